"""The stacks of threads: those of this process, and those of slots in the output of `faulthandler`."""

from __future__ import annotations

import re
import sys
import threading
import traceback
from types import FrameType

_THREAD = re.compile(r"^(?:Current thread|Thread) (0x[0-9a-f]+)[^\n]*\n", re.MULTILINE)
_FRAME = re.compile(r'^  File "(.*)", line (\d+) in (.*)$', re.MULTILINE)


def own_threads() -> list[tuple[str, str]]:
    """Return the names and stacks of the threads of this process, the main thread first."""
    frames, main = sys._current_frames(), threading.main_thread()
    threads = sorted(threading.enumerate(), key=lambda thread: (thread is not main, thread.name))
    running = [(one, frames.get(one.ident or 0)) for one in threads]
    return [(one.name, _stack(one, frame)) for one, frame in running if frame is not None]


def _stack(thread: threading.Thread, frame: FrameType) -> str:
    called = [(one.name, one.filename, one.lineno or 0) for one in reversed(traceback.extract_stack(frame))]
    return _format_stack(f'"{thread.name}"{" daemon" if thread.daemon else ""} Id={thread.native_id}', called)


def threads_in(text: str) -> list[tuple[str, str]]:
    """Return the names and stacks of the threads in a text of `faulthandler`.

    Threads have no names there. The main thread, which began first, comes last in the text.
    """
    parts = _THREAD.split(text)[1:]
    found = list(zip(parts[::2], parts[1::2], strict=True))[::-1]
    names = ["main" if number == 0 else address for number, (address, _) in enumerate(found)]
    return [
        (name, _format_stack(f'"{name}" Id={address}', [(f[2], f[0], int(f[1])) for f in _FRAME.findall(stack)]))
        for name, (address, stack) in zip(names, found, strict=True)
    ]


def _format_stack(title: str, called: list[tuple[str, str, int]]) -> str:
    """Format a stack in the form of Java's thread dumps."""
    return "\n".join([title, *(f"\tat {name} ({file}:{line})" for name, file, line in called), ""])
