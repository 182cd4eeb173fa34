"""Programs whose results were recorded from Apache Flink SQL, in this process: where epochs end makes no difference."""

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

from penstock.testing import in_process

RECORDED = Path(__file__).parent / "recorded"
FILES = {"cases": "expected.json", "random_cases": "random_expected.json"}
CUTS: dict[str, list[int | None]] = {"cases": [1, None], "random_cases": [3]}
"""How many records an epoch reads; None for all."""
MODULES = ("harness", "inputs", "cases", "random_queries")


@cache
def recorded(file: str) -> dict[str, Any]:
    return json.loads((RECORDED / FILES[file]).read_text())


@contextmanager
def modules_unchanged() -> Iterator[None]:
    """The harness registers itself and finds its inputs by a path; neither is left behind."""
    before, path = {name: sys.modules.pop(name, None) for name in MODULES}, list(sys.path)
    try:
        yield
    finally:
        sys.path[:] = path
        for name, module in before.items():
            sys.modules.pop(name, None)
            if module is not None:
                sys.modules[name] = module


@cache
def harness(file: str) -> ModuleType:
    """The harness with one file of cases loaded; a module of its own for each file."""
    spec = importlib.util.spec_from_file_location("harness", RECORDED / "harness.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with modules_unchanged():
        sys.modules["harness"] = module
        spec.loader.exec_module(module)
        module.PKG = "penstock"
        module.load(str(RECORDED / f"{file}.py"))
    return module


@pytest.mark.parametrize(
    ("file", "case", "epoch_records"),
    [(file, case, cut) for file in FILES for case in recorded(file) for cut in CUTS[file]],
)
def test_recorded_result(file: str, case: str, epoch_records: int | None) -> None:
    with in_process(epoch_records=epoch_records):
        wrong, _ = harness(file).differences(case, recorded(file)[case])
    assert wrong is None, wrong
