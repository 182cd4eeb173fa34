"""What the processes that Spark starts for a program need: the peak memory of the Python ones, the time of all."""

from __future__ import annotations

import threading
from contextlib import suppress
from pathlib import Path

import psutil

SAMPLE_SECONDS = 0.2


class WorkerWatch:
    """Asks the kernel about all processes again and again; for a process that has ended, the last answer counts."""

    def __init__(self) -> None:
        self._peaks: dict[int, int] = {}
        self._seconds: dict[int, float] = {}
        self._before = 0.0
        self._over = threading.Event()
        self._look()
        self._before = sum(self._seconds.values())
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        while not self._over.wait(SAMPLE_SECONDS):
            self._look()

    def _look(self) -> None:
        for process in psutil.Process().children(recursive=True):
            with suppress(psutil.Error, OSError, ValueError, IndexError):
                times = process.cpu_times()
                self._seconds[process.pid] = times.user + times.system
                if "pyspark.daemon" in process.cmdline():
                    self._peaks[process.pid] = _peak_kilobytes(process.pid)

    def found(self) -> dict[str, float]:
        """The largest peak of a Python process, and the processor time of all processes together."""
        self._over.set()
        self._thread.join()
        return {
            "peak_megabytes": round(max(self._peaks.values(), default=0) / 1024, 1),
            "cpu_seconds": round(sum(self._seconds.values()) - self._before, 1),
        }


def _peak_kilobytes(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0])
