"""The tests that reach each line of some modules: a plugin of pytest, which writes them down as JSON."""

from __future__ import annotations

import inspect
import json
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Generator, Iterable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest


class Reach:
    """Notes the lines inside functions that each test runs in this process, and how long each test takes."""

    def __init__(self, root: Path, modules: Iterable[str], into: Path) -> None:
        self._modules = {str(root / module): module for module in modules}
        self._into = into
        self._lines: dict[str, set[str]] = defaultdict(set)
        self._seconds: dict[str, float] = {}
        self._failing: set[str] = set()
        self._test = ""

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, Any, Any]:
        """Trace a test with its fixtures."""
        self._test, began = item.nodeid, time.perf_counter()
        sys.settrace(self._enter)
        threading.settrace(self._enter)
        try:
            return (yield)
        finally:
            sys.settrace(None)
            threading.settrace(None)  # type: ignore[arg-type]
            self._seconds[item.nodeid] = time.perf_counter() - began

    def _enter(self, frame: FrameType, event: str, _: Any) -> Any:
        """Trace the functions of the modules; the first test alone runs the bodies of modules and classes."""
        code = frame.f_code
        if code.co_filename not in self._modules or not code.co_flags & inspect.CO_OPTIMIZED:
            return None
        return self._line

    def _line(self, frame: FrameType, event: str, _: Any) -> Any:
        if event == "line":
            self._lines[f"{self._modules[frame.f_code.co_filename]}:{frame.f_lineno}"].add(self._test)
        return self._line

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Leave out tests that fail without any change, such as those that a busy machine is too slow for."""
        if report.failed:
            self._failing.add(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        """Write the tests of each line, the seconds of each test, and the tests that fail."""
        lines = {line: sorted(tests - self._failing) for line, tests in self._lines.items()}
        seconds = {test: took for test, took in self._seconds.items() if test not in self._failing}
        self._into.write_text(json.dumps({"lines": lines, "seconds": seconds, "failing": sorted(self._failing)}))
