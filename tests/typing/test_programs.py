"""Programs that nobody wrote for type checkers give no errors: the tutorial, and unchanged PyFlink programs."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from tests.typing.checkers import ROOT, Finding, run_mypy
from tests.typing.test_types import pyright

COMPAT = ROOT / "tests" / "compat"
RELAXED = "allow-untyped-defs, allow-incomplete-defs, allow-untyped-calls, allow-untyped-decorators, allow-any-generics"
"""Options of mypy for programs without annotations. What is in their functions is checked all the same."""

OWN = {"sensor_lib"}
"""Packages of which pyright refuses a class that overrides a method of another class of the package."""


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs in one folder, with Penstock's name for the package."""
    folder = tmp_path_factory.mktemp("programs")
    blocks = re.findall(r"^```python\n(.*?)^```", (ROOT / "docs/tutorial.md").read_text(), re.MULTILINE | re.DOTALL)
    assert len(blocks) > 5
    (folder / "tutorial.py").write_text("\n".join(blocks))
    for program in (COMPAT / "programs").iterdir():
        shutil.copytree(program, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("*.txt", "__pycache__"))
        (folder / "main.py").rename(folder / f"{program.name}_main.py")
    for program in (COMPAT / "repros").glob("*.py"):
        shutil.copy(program, folder)
    for file in folder.rglob("*.py"):
        file.write_text(f"# mypy: {RELAXED}\n" + re.sub(r"\bpyflink\b", "penstock", file.read_text()))
    assert len(list(folder.rglob("*.py"))) > 30
    return folder


def test_mypy_finds_no_errors(programs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MYPYPATH", str(programs))
    assert not in_short(run_mypy(programs))


def test_pyright_finds_no_errors(programs: Path) -> None:
    found = [one for one in pyright(programs) if Path(one.file).parent.name not in OWN]
    assert not in_short([one for one in found if "could not be resolved" not in one.message])


def in_short(found: list[Finding]) -> list[str]:
    return [f"{Path(one.file).name}:{one.line}: {one.message}" for one in found]
