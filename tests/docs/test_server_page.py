"""The pages about the server: the options are those of the code, and every command of "Run it as a service" runs."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from penstock.service.options.server_options import OPTIONS
from penstock.service.server.home import running_server
from tests.docs.test_documentation import blocks
from tests.services.service import free_port
from tests.waiting import SPARK_SECONDS

DOCS = Path(__file__).parents[2] / "docs"
SECTION = (DOCS / "configuration.md").read_text().partition("### The server\n")[2].partition("\n### ")[0]


def code(cell):
    return re.findall(r"`([^`]+)`", cell)


def test_the_options_are_those_of_the_code():
    rows = [line.strip("|").split("|") for line in SECTION.splitlines() if line.startswith("| `")]
    listed = [(code(name)[0], tuple(code(others)), code(default)) for name, others, default, _ in rows]
    said = [(option.name, option.others, [option.default] if option.default else []) for option in OPTIONS]
    # Some defaults are words with a name in them, such as a folder.
    assert [row[:2] for row in listed] == [row[:2] for row in said]
    assert [row for row in said if row[2] and row not in listed] == []


@pytest.mark.spark
@pytest.mark.timeout(900)
def test_every_command_of_the_page_runs(tmp_path):
    found = [block for block in blocks(DOCS / "server.md") if not block.directive.startswith("not run")]
    (tmp_path / "clicks.py").write_text(next(block.text for block in found if block.language == "python"))
    shown = [block.text for block in found if block.language == "bash"]
    assert len(shown) >= 5
    home = tmp_path / "home"
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PENSTOCK_HOME": str(home),
        "PENSTOCK__REST__PORT": str(free_port()),
        "PENSTOCK_MASTER": "local[2]",
    }
    try:
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", "\n".join(shown)],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=2 * SPARK_SECONDS,
        )
    finally:
        left = running_server(home)
        if left is not None:
            left.ask("stop", keep_jobs=False)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    assert left is None, "the last command stops the server"
    said = done.stdout
    assert "The server listens at http://127.0.0.1:" in said and "runs with parallelism 2" in said
    assert re.search(r"clicks +FINISHED", said) and re.search(r"clicks +(RUNNING|CREATED)", said)
    counts = "".join(path.read_text() for path in home.glob("drivers/*/driver.out"))
    highest = {word: max(map(int, re.findall(rf": (\d+) {word}", counts)), default=0) for word in ("clicks", "visits")}
    assert highest["visits"] > highest["clicks"] > 0, "the new version goes on where the old one stopped"
