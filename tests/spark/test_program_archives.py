"""A package is shipped to the slots with its modules and libraries, and imported there, not from the driver's copy."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from penstock.service.launch.program_package import make_package
from tests.unit.cli.programs_of_tests import wheel

pytestmark = pytest.mark.spark

ROOT = Path(__file__).parents[2]
JOB = """
from penstock.datastream import RuntimeExecutionMode, StreamExecutionEnvironment
from beside import where

for mode in RuntimeExecutionMode.STREAMING, RuntimeExecutionMode.BATCH:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_runtime_mode(mode)
    env.from_elements(1, 2).map(where).print()
    env.execute()
"""
BESIDE = """
import tenfold

def where(number):
    return f"{tenfold.ten(number)} {__file__} {tenfold.__file__}"
"""


def test_slots_on_other_machines_import_from_the_package(tmp_path: Path) -> None:
    made = wheel(tmp_path, "tenfold", {"tenfold.py": "def ten(x):\n    return x * 10\n"})
    (tmp_path / "requirements.txt").write_text(f"tenfold @ {made.as_uri()}\n")
    (tmp_path / "app").mkdir()
    (tmp_path / "app/job.py").write_text(textwrap.dedent(JOB))
    (tmp_path / "app/beside.py").write_text(textwrap.dedent(BESIDE))
    make_package(tmp_path / "app/job.py", tmp_path / "job.zip", tmp_path / "requirements.txt")
    done = subprocess.run(
        [sys.executable, "-m", "penstock", "run", "-m", "local-cluster[2,1,1024]", "-p", "2", "job.zip"],
        env={**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(tmp_path)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    printed = [line.rpartition("> ")[2].split() for line in done.stdout.splitlines()]
    assert sorted(number for number, _, _ in printed) == ["10", "10", "20", "20"]
    for _, beside, library in printed:
        folder = beside.removesuffix("/program/beside.py")
        assert folder.endswith("job.zip.unpacked") and library == f"{folder}/libraries/tenfold.py"
        assert "penstock-program-" not in folder, "this is where the driver unpacked it"
