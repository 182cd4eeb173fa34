"""Sampling profiles of this process: a thread of its own looks at the stacks of the other threads.

Python's own frames are enough for that. They need no debugger's right, which py-spy would need in most containers, and
they tell the operator at work. Time inside the native code of a library counts for the Python line that called it.
"""

from __future__ import annotations

import sys
import threading
import time
from collections import Counter
from dataclasses import dataclass
from types import FrameType

from penstock.engine.observe.current_operator import operator_of

WAITING = ""
"""Stands for the uid of an operator when none is at work."""
_MOST_STACKS = 5_000


@dataclass(frozen=True)
class ProfileOrder:
    """The settings of a profile: number of samples, milliseconds between them, and depth of the stacks."""

    samples: int = 100
    millis: int = 50
    depth: int = 100

    @property
    def seconds(self) -> float:
        """The length of the profile in seconds."""
        return self.samples * self.millis / 1000


@dataclass(frozen=True)
class Seen:
    """A stack, and the number of times it was seen."""

    uid: str
    """The uid of the operator at work."""
    subtask: int
    on_cpu: bool
    frames: tuple[str, ...]
    """Frames from the first operator on, outermost first."""
    count: int


def profile(order: ProfileOrder, slot: int | None = None, driving: int | None = None) -> list[Seen]:
    """Sample all threads of this process. `driving` is the thread that runs the slot, which may also wait."""
    found: Counter[tuple[str, int, bool, tuple[str, ...]]] = Counter()
    clocks = _CpuClocks()
    own = threading.get_ident()
    clocks.read()
    for _ in range(order.samples):
        time.sleep(order.millis / 1000)
        busy = clocks.read()
        for thread, frame in sys._current_frames().items():
            if thread != own and len(found) < _MOST_STACKS:
                seen = _stack_at_work(frame, order.depth)
                if seen is None and thread == driving and slot is not None:
                    seen = WAITING, slot, _innermost_first(frame, order.depth)
                if seen is not None:
                    uid, subtask, stack = seen
                    found[uid, subtask, busy.get(thread, True), stack] += 1
        del frame  # it would keep the objects of the thread alive
    return [Seen(*key, count) for key, count in found.items()]


def _stack_at_work(frame: FrameType, depth: int) -> tuple[str, int, tuple[str, ...]] | None:
    """Return the uid and subtask of the operator at work, and the frames from the first operator on.

    The result is None if no operator is at work.
    """
    names: list[str] = []
    uid, subtask, end = "", 0, 0
    here: FrameType | None = frame
    while here is not None:
        names.append(_name(here))
        operator = operator_of(here)
        if operator is not None:
            uid, subtask = (uid, subtask) if uid else (operator.context.uid, operator.context.subtask)
            end = len(names)
        here = here.f_back
    return (uid, subtask, tuple(reversed(names[:end]))[:depth]) if end else None


def _innermost_first(frame: FrameType, depth: int) -> tuple[str, ...]:
    names = []
    here: FrameType | None = frame
    while here is not None:
        names.append(_name(here))
        here = here.f_back
    return tuple(reversed(names))[-depth:]


def _name(frame: FrameType) -> str:
    """Return the name of a frame, such as `my_module.Enrich.process_element:42`."""
    module = frame.f_globals.get("__name__", "?")
    return f"{module}.{frame.f_code.co_qualname}:{frame.f_lineno}"


class _CpuClocks:
    """Tells which threads have worked since the last look, and not only waited."""

    def __init__(self) -> None:
        self._spent: dict[int, int] = {}
        self._read = time.monotonic_ns()

    def read(self) -> dict[int, bool]:
        """Return for each thread whether it was on a CPU for more than half of the time.

        The result is empty if the system does not report this.
        """
        now = time.monotonic_ns()
        passed, self._read = now - self._read, now
        spent = {thread.ident or 0: _cpu_nanos(thread.native_id) for thread in threading.enumerate()}
        known = {ident: used for ident, used in spent.items() if used is not None}
        busy = {ident: used - self._spent.get(ident, used) > passed / 2 for ident, used in known.items()}
        self._spent = known
        return busy


def _cpu_nanos(native_id: int | None) -> int | None:
    """Return the CPU time of a thread in nanoseconds, from Linux.

    A thread's own clock would do as well, but asking for that of a thread that has just ended crashes the process.
    """
    try:
        with open(f"/proc/self/task/{native_id}/schedstat") as told:
            return int(told.read().split()[0])
    except (OSError, ValueError, IndexError):
        return None
