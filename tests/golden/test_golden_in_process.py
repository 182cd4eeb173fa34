"""Programs whose results were recorded from Apache Flink, in this process: where epochs end makes no difference."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from penstock.testing import ManualClock, in_process

GOLDEN = Path(__file__).parent
FILES = {"cases": "expected.json", "beyond_cases": "beyond_expected.json"}


@cache
def recorded(file: str) -> dict[str, Any]:
    return json.loads((GOLDEN / FILES[file]).read_text())


@contextmanager
def modules_unchanged() -> Iterator[None]:
    """The harness registers itself and finds the package by an environment variable; neither is left behind."""
    before = dict(sys.modules)
    try:
        yield
    finally:
        for name in ("harness", "cases"):
            if name in before:
                sys.modules[name] = before[name]
            else:
                sys.modules.pop(name, None)


@cache
def harness(file: str) -> ModuleType:
    """The harness with one file of cases loaded; a module of its own for each file."""
    spec = importlib.util.spec_from_file_location("harness", GOLDEN / "harness.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with modules_unchanged():
        sys.modules["harness"] = module
        spec.loader.exec_module(module)
        module.PKG = "penstock"
        module.load(GOLDEN / f"{file}.py")
    return module


@pytest.mark.parametrize("epoch_records", [1, 3, None])
@pytest.mark.parametrize(("file", "case"), [(file, case) for file in FILES for case in recorded(file)])
def test_recorded_result(file: str, case: str, epoch_records: int | None) -> None:
    with in_process(epoch_records=epoch_records, clock=ManualClock()):
        assert harness(file).run(case) == recorded(file)[case]


@pytest.mark.parametrize("file", FILES)
def test_every_case_is_recorded(file: str) -> None:
    assert set(harness(file).CASES) == set(recorded(file))


def test_the_harness_leaves_no_modules_behind() -> None:
    harness("cases")
    assert "harness" not in sys.modules and "cases" not in sys.modules
