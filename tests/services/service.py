"""What every server has in common: where its files are, how it is started, waited for and ended."""

from __future__ import annotations

import os
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from abc import ABC, abstractmethod
from contextlib import suppress
from pathlib import Path

from tests.waiting import Patience

HOME = Path(os.environ.get("PENSTOCK_SERVICES", Path(__file__).resolve().parents[2] / ".services"))
"""Where downloads are kept, so that only the first run pays for them."""


def free_port() -> int:
    """A port that nobody uses, below those that the system gives to clients.

    Among those, a client that calls for a server that is away may be given the server's own port, and keep it.
    """
    while True:
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", random.randrange(15_000, 30_000)))
            return int(probe.getsockname()[1])


class NotInstalled(RuntimeError):
    """A server that comes with the system's packages is not there; the message says how to get it."""


class Service(ABC):
    """A server in a process group of its own, with its data in a folder that goes with it."""

    name: str
    patience = 120.0
    """Seconds that it may take to answer."""

    def __init__(self, folder: Path | None = None, port: int | None = None) -> None:
        """`folder` keeps the data of a server that is started by hand; `port` is a free one unless given."""
        self.folder = folder or Path(tempfile.mkdtemp(prefix=f"penstock-{self.name}-", dir="/tmp"))
        self.port = port or free_port()
        self.process: subprocess.Popen[bytes] | None = None

    @abstractmethod
    def install(self) -> None:
        """Get what is needed, if it is not there; raise NotInstalled with what to do if that is impossible."""

    @abstractmethod
    def launch(self) -> subprocess.Popen[bytes]:
        """Start the process, with `self.spawn`."""

    @abstractmethod
    def answers(self) -> bool:
        """Whether a client would be served now."""

    def start(self) -> None:
        """Install, launch and wait until it answers; used again after `stop` or `kill`, it finds its data."""
        self.install()
        self.folder.mkdir(parents=True, exist_ok=True)
        self.process = self.launch()
        patience = Patience(self.patience)
        while not self._answers():
            if self.process.poll() is not None:
                raise RuntimeError(f"{self.name} ended with {self.process.returncode}:\n{self.last_lines()}")
            if patience.spent(self.last_lines()):
                self.kill()
                raise RuntimeError(f"{self.name} is silent for {self.patience:.0f} s:\n{self.last_lines()}")
            time.sleep(0.2)

    def _answers(self) -> bool:
        try:
            return self.answers()
        except Exception:
            # Before a server is up, its client may fail in any way.
            return False

    def spawn(self, command: list[str], **environment: str) -> subprocess.Popen[bytes]:
        """A process group of its own, with its output in a log."""
        with (self.folder / "log").open("ab") as log:
            return subprocess.Popen(
                command,
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
                cwd=self.folder,
                env={**os.environ, **environment},
            )

    def stop(self, signal_number: int = signal.SIGTERM) -> None:
        """End it and wait; its data stays."""
        if self.process is not None and self.process.poll() is None:
            os.killpg(self.process.pid, signal_number)
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                os.killpg(self.process.pid, signal.SIGKILL)
                self.process.wait()
        self.process = None

    def kill(self) -> None:
        """As a power cut would."""
        self.stop(signal.SIGKILL)

    def remove(self) -> None:
        """Stop it and delete its data."""
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def last_lines(self) -> str:
        log = self.folder / "log"
        return "\n".join(log.read_text(errors="replace").splitlines()[-30:]) if log.exists() else ""
