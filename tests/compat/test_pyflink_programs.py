"""Unchanged PyFlink programs run on Spark through the command line, and print what PyFlink printed.

`repros/` has small programs, and in its README what PyFlink prints; `programs/` has programs of several modules, each
with PyFlink's output in `expected.txt`. Where ours stays different, it says why: see docs/pyflink.md.
"""

import re
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from penstock import compat
from penstock.service.cli import app

HERE = Path(__file__).parent
RECORDED = dict(re.findall(r"^## (\S+)\n```text\n(.*?)```", (HERE / "repros/README.md").read_text(), re.M | re.S))
PROGRAMS = {path.parent.name: path for path in sorted((HERE / "programs").glob("*/main.py"))}
DIFFERENT = {
    # PyFlink hands out the pair that it made of key and value on the way; ours are the stream's values.
    "r09_collect_types.py": ("[Row(f0='x', f1=('x', 1)), Row(f0='y', f1=('y', 2))]", "[('x', 1), ('y', 2)]"),
}
UNORDERED = {"r05_connect_then_key.py"}
"""Two inputs meet: in which order, neither system promises."""

pytestmark = pytest.mark.spark


@pytest.fixture
def run(monkeypatch):
    """Runs a program as `penstock run --pyflink` does, and gives what it printed."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "argv", list(sys.argv))

    def run(program, *arguments):
        result = CliRunner().invoke(app, ["run", "--pyflink", str(program), *arguments])
        assert result.exit_code == 0, result.output
        return result.stdout

    yield run
    compat.uninstall()
    for name, module in list(sys.modules.items()):
        if name != __name__ and str(getattr(module, "__file__", None)).startswith(str(HERE)):
            del sys.modules[name]


@pytest.mark.parametrize("program", sorted(RECORDED))
def test_small_programs(run, program):
    printed, expected = run(HERE / "repros" / program), RECORDED[program]
    if program in DIFFERENT:
        theirs, ours = DIFFERENT[program]
        assert theirs in expected
        expected = expected.replace(theirs, ours)
    if program in UNORDERED:
        printed, expected = sorted(printed.splitlines()), sorted(expected.splitlines())
    assert printed == expected


def test_every_recorded_program_is_here():
    assert sorted(RECORDED) == sorted(path.name for path in (HERE / "repros").glob("r*.py"))
    assert len(RECORDED) == 14


@pytest.mark.parametrize("program", PROGRAMS)
def test_programs_of_several_modules(run, program):
    expected = (HERE / "programs" / program / "expected.txt").read_text()
    assert sorted(run(PROGRAMS[program]).splitlines()) == sorted(expected.splitlines())


def test_arguments_reach_the_program(run):
    lines = run(PROGRAMS["words"], "--parallelism", "2").splitlines()
    assert {line[:3] for line in lines} == {"1> ", "2> "}
