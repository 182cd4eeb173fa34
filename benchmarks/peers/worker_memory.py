"""The peak memory of the Python processes that Spark starts for a program."""

from __future__ import annotations

import threading
from contextlib import suppress
from pathlib import Path

import psutil

SAMPLE_SECONDS = 0.2


class WorkerMemory:
    """Asks the kernel all the time for the peak of every worker; a process that has ended cannot be asked any more."""

    def __init__(self) -> None:
        self._peaks: dict[int, int] = {}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        while not self._over.wait(SAMPLE_SECONDS):
            for process in psutil.Process().children(recursive=True):
                with suppress(psutil.Error, OSError, ValueError):
                    if "pyspark.daemon" in process.cmdline() or "pyspark.worker" in process.cmdline():
                        self._peaks[process.pid] = max(self._peaks.get(process.pid, 0), _peak_kilobytes(process.pid))

    def megabytes(self) -> float:
        """The largest peak of all."""
        self._over.set()
        self._thread.join()
        return round(max(self._peaks.values(), default=0) / 1024, 1)


def _peak_kilobytes(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0])
