"""Processes of the lab, each with a log, which end with it."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

ENDING_SECONDS = 10


class Processes:
    """Started in order, ended in the reverse order, each by its own process group."""

    def __init__(self, logs: Path) -> None:
        self._logs = logs
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, name: str, *command: str | Path, variables: Mapping[str, str] | None = None) -> None:
        with open(self._logs / f"{name}.log", "ab") as log:
            self._running[name] = subprocess.Popen(
                [str(word) for word in command],
                stdout=log,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                cwd=self._logs,
                env={**os.environ, **(variables or {})},
                start_new_session=True,
            )

    def check(self) -> None:
        """Raise the end of a log if its process has ended."""
        for name, process in self._running.items():
            if process.poll() is not None:
                text = (self._logs / f"{name}.log").read_text(errors="replace")
                raise RuntimeError(f"{name} has ended with status {process.returncode}:\n{text[-2000:]}")

    def signal(self, name: str, number: int) -> None:
        os.killpg(self._running[name].pid, number)

    def end(self, *names: str) -> None:
        """End some of them, or all."""
        for name in names or tuple(reversed(self._running)):
            process = self._running.pop(name, None)
            if process is None or process.poll() is not None:
                continue
            process.terminate()
            until = time.monotonic() + ENDING_SECONDS
            while process.poll() is None and time.monotonic() < until:
                time.sleep(0.1)
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
