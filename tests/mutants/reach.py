"""The tests that reach each line of some modules, and how long each test takes."""

from __future__ import annotations

import inspect
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Generator
from contextlib import contextmanager
from types import CodeType, FrameType
from typing import Any


class Reach:
    """Notes the lines inside functions that each test runs in this process, and how long each test takes."""

    def __init__(self, modules: dict[str, str]) -> None:
        """Watch modules, given by path and name."""
        self._modules = modules
        self.lines: dict[str, set[str]] = defaultdict(set)
        self.seconds: dict[str, float] = {}
        self._test = ""

    @contextmanager
    def watch(self, test: str) -> Generator[None]:
        """Trace a test with its fixtures."""
        self._test, began = test, time.perf_counter()
        sys.settrace(self._enter)
        threading.settrace(self._enter)
        try:
            yield
        finally:
            sys.settrace(None)
            threading.settrace(None)  # type: ignore[arg-type]
            self.seconds[test] = time.perf_counter() - began

    def _enter(self, frame: FrameType, event: str, _: Any) -> Any:
        """Trace the functions of the modules; the first test alone runs the bodies of modules and classes."""
        code = frame.f_code
        if code.co_filename not in self._modules or not code.co_flags & inspect.CO_OPTIMIZED:
            return None
        for line in range(code.co_firstlineno, _first_line(code) + 1):  # a call uses the defaults of its parameters
            self._note(code, line)
        return self._line

    def _line(self, frame: FrameType, event: str, _: Any) -> Any:
        if event == "line":
            self._note(frame.f_code, frame.f_lineno)
        return self._line

    def _note(self, code: CodeType, line: int) -> None:
        self.lines[f"{self._modules[code.co_filename]}:{line}"].add(self._test)


def _first_line(code: CodeType) -> int:
    """The first line of a function's body."""
    return min((line for _, _, line in code.co_lines() if line and line > code.co_firstlineno), default=0)
