"""The same for PyFlink's Table API: what is missing fits a pattern of `absent-table.json`, which gives the reason."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path
from types import ModuleType

import pytest

HERE = Path(__file__).parent
SURFACE = json.loads((HERE / "pyflink-table-surface.json").read_text())
REASONS = json.loads((HERE / "absent-table.json").read_text())


def surface() -> ModuleType:
    """The other test of this folder, which knows how to compare, over this surface."""
    spec = importlib.util.spec_from_file_location("surface", HERE / "test_surface.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.SURFACE = SURFACE
    return module


MISSING = {module: list(surface().missing_in(module)) for module in SURFACE}


@pytest.mark.parametrize("module", sorted(SURFACE))
def test_every_public_name_is_here_or_its_absence_has_a_reason(module: str) -> None:
    unexplained = [name for name in MISSING[module] if not any(re.search(pattern, name) for pattern in REASONS)]
    assert not unexplained, "\n".join(unexplained)


@pytest.mark.parametrize("pattern", REASONS)
def test_no_reason_is_left_over(pattern: str) -> None:
    assert any(re.search(pattern, name) for names in MISSING.values() for name in names)
