"""Reporters of one's own: a package with an entry point, in a process that has it installed."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

PROGRAM = """
from penstock.common.configuration import Configuration
from penstock.datastream import StreamExecutionEnvironment
from penstock.testing import in_process

with in_process():
    environment = StreamExecutionEnvironment.get_execution_environment(
        Configuration.from_dict({"metrics.reporter.mine.factory.class": "shout", "metrics.reporter.mine.mark": "!"})
    )
    environment.from_collection([1, 2, 3]).map(lambda x: x).print()
    environment.execute("shouting")
"""


def documented() -> str:
    """The reporter that the page shows."""
    page = (Path(__file__).parents[3] / "docs/reporters.md").read_text()
    block = next(part for part in page.split("```") if "class Shout(Reporter)" in part)
    return block.removeprefix("python")


def test_an_installed_entry_point_is_found_and_reports(tmp_path):
    (tmp_path / "shouting.py").write_text(documented())
    installed = tmp_path / "shouting-1.0.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: shouting\nVersion: 1.0\n")
    (installed / "entry_points.txt").write_text("[penstock.reporters]\nshout = shouting:Shout\n")
    (tmp_path / "program.py").write_text(textwrap.dedent(PROGRAM))
    path = os.pathsep.join([str(tmp_path), str(Path(__file__).parents[3])])
    done = subprocess.run(
        [sys.executable, str(tmp_path / "program.py")],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    # The program ends right after its job, and still waits for the last report.
    assert "numRecordsIn = 3!" in done.stdout or "numRecordsOut = 3!" in done.stdout, done.stdout
