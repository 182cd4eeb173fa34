"""What the process that answers knows of itself, under the names of Flink's metrics."""

from __future__ import annotations

import gc
import os
import resource
import sys
import threading

_KIBIBYTE = 1 << 10


def process_metrics() -> dict[str, float | int]:
    """Memory, threads, files and time of this process. What Flink calls heap is all memory of the process here."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    unit = 1 if sys.platform == "darwin" else _KIBIBYTE
    peak = usage.ru_maxrss * unit
    return {
        "Status.JVM.CPU.Load": _load(),
        "Status.JVM.CPU.Time": int((usage.ru_utime + usage.ru_stime) * 1e9),
        "Status.JVM.Memory.Heap.Used": _resident() or peak,
        "Status.JVM.Memory.Heap.Committed": peak,
        "Status.JVM.Memory.Heap.Max": physical_memory(),
        "Status.JVM.Threads.Count": threading.active_count(),
        "Status.JVM.GarbageCollector.All.Count": sum(generation["collections"] for generation in gc.get_stats()),
    }


def _load() -> float:
    """The machine's load as a share of its cores."""
    try:
        return min(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))
    except OSError:
        return 0.0


def _resident() -> int:
    """Bytes of memory in use; 0 where the system does not say."""
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0


def physical_memory() -> int:
    """Bytes of memory of this machine; 0 where the system does not say."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (OSError, ValueError):
        return 0


def free_memory() -> int:
    """Bytes of memory that nobody uses; 0 where the system does not say."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_AVPHYS_PAGES")
    except (OSError, ValueError):
        return 0
