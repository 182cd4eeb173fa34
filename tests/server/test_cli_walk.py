"""The command line against a server of its own, from a package to a job that was rescaled and upgraded."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.server.cli_walk import ROOT, walk

pytestmark = pytest.mark.spark


@pytest.fixture
def session(tmp_path: Path) -> Iterator[str]:
    """The address of a server that takes programs."""

    def penstock(*arguments: str) -> str:
        command = [sys.executable, "-m", "penstock", "server", *arguments, "--data", str(tmp_path / "data")]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        return subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True).stdout

    penstock("start", "--port", "0", "-D", "web.submit.enable=true")
    yield json.loads(penstock("status", "--json"))["address"]
    penstock("stop")


def test_the_life_of_a_job(session: str, tmp_path: Path) -> None:
    (tmp_path / "walk").mkdir()
    walk(session, tmp_path / "walk")
