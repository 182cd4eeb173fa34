"""A process's own use of processor and memory, under the names of Flink's metrics."""

from __future__ import annotations

import gc
import os
import resource
import sys
import threading
import time

_KIBIBYTE = 1 << 10
_PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096


def process_metrics() -> dict[str, float | int]:
    """Return memory, threads and time of this process. Flink's heap is here the whole memory of the process."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    unit = 1 if sys.platform == "darwin" else _KIBIBYTE
    peak = usage.ru_maxrss * unit
    return {
        "Status.JVM.CPU.Load": machine_load(),
        "Status.JVM.CPU.Time": int((usage.ru_utime + usage.ru_stime) * 1e9),
        "Status.JVM.Memory.Heap.Used": resident() or peak,
        "Status.JVM.Memory.Heap.Committed": peak,
        "Status.JVM.Memory.Heap.Max": physical_memory(),
        "Status.JVM.Threads.Count": threading.active_count(),
        "Status.JVM.GarbageCollector.All.Count": sum(generation["collections"] for generation in gc.get_stats()),
    }


class Usage:
    """The metrics of this process over time. The load is its share of a core since the last call of `look`."""

    def __init__(self, every_seconds: float = 1.0) -> None:
        self._every = every_seconds
        self._asked = self._spent = 0.0

    def look(self) -> dict[str, float | int]:
        """Return the metrics of this process, or nothing if the last call was only just now."""
        now = time.monotonic()
        if now - self._asked < self._every and self._asked:
            return {}
        spent = time.process_time()
        load = (spent - self._spent) / (now - self._asked) if self._asked else 0.0
        self._asked, self._spent = now, spent
        return {**process_metrics(), "Status.JVM.CPU.Load": min(load, float(os.cpu_count() or 1))}


def machine_load() -> float:
    """Return the machine's load as a share of its cores."""
    try:
        return min(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))
    except OSError:
        return 0.0


def resident() -> int:
    """Return the memory in use, in bytes, or 0 where the system does not tell."""
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * _PAGE
    except (OSError, ValueError, IndexError):
        return 0


def physical_memory() -> int:
    """Return the memory of this machine, in bytes, or 0 where the system does not tell."""
    try:
        return _PAGE * os.sysconf("SC_PHYS_PAGES")
    except (OSError, ValueError):
        return 0


def free_memory() -> int:
    """Return the free memory of this machine, in bytes, or 0 where the system does not tell."""
    try:
        return _PAGE * os.sysconf("SC_AVPHYS_PAGES")
    except (OSError, ValueError):
        return 0
