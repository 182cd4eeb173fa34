"""`penstock server` as people use it: start, status, stop, and what goes wrong."""

import json
import os
import subprocess
import sys

import pytest

from penstock.service.server.home import running_server
from tests.waiting import SPARK_SECONDS, until

pytestmark = [pytest.mark.service, pytest.mark.timeout(300)]


@pytest.fixture
def penstock(tmp_path):
    """Runs a command; whatever server it starts does not survive the test."""
    home = tmp_path / "home"

    def run(*arguments, code=0):
        done = subprocess.run(
            [sys.executable, "-m", "penstock", *arguments],
            capture_output=True,
            text=True,
            check=False,
            timeout=200,
            env={**os.environ, "PENSTOCK_HOME": str(home), "COLUMNS": "200"},
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout if code == 0 else done.stderr

    yield run
    left = running_server(home)
    if left is not None:
        left.ask("stop", keep_jobs=False)


def test_start_status_and_stop(penstock, tmp_path):
    assert "no server runs on the folder" in penstock("server", "status", code=1)
    said = penstock("server", "start", "--port", "0")
    found = running_server(tmp_path / "home")
    assert said == f"The server listens at {found.address} (process {found.pid}, folder {tmp_path / 'home'}).\n"
    assert f"a server already runs on the folder '{tmp_path / 'home'}' (process {found.pid}" in penstock(
        "server", "start", "--port", "0", code=1
    )
    told = json.loads(penstock("server", "status", "--json"))
    assert (told["pid"], told["address"], told["leads"], told["jobs"]) == (found.pid, found.address, True, {})
    assert "leader   this server\njobs     none\nslots    " in penstock("server", "status")
    assert penstock("server", "stop") == "The server has stopped; its jobs are suspended.\n"
    assert running_server(tmp_path / "home") is None
    assert not (tmp_path / "home" / "server.pid").exists(), "it says that it has left"
    assert "Traceback" not in (tmp_path / "home" / "server.log").read_text()
    modes = {path.name: oct(path.stat().st_mode & 0o777) for path in (tmp_path / "home").iterdir()}
    assert modes["control.key"] == "0o600" and not list((tmp_path / "home").glob("server-*.json"))


def test_a_server_in_the_foreground_ends_well_when_it_is_terminated(tmp_path):
    """Its log is in the terminal, and in the file that its web pages show."""
    home, said = tmp_path / "home", tmp_path / "said"
    command = [sys.executable, "-m", "penstock", "server", "start", "--foreground", "--port", "0"]
    with said.open("wb") as file:
        server = subprocess.Popen(command, stderr=file, env={**os.environ, "PENSTOCK_HOME": str(home)})
    try:
        until(lambda: running_server(home) is not None, patience=SPARK_SECONDS, told=said.read_text)
    finally:
        server.terminate()
    assert server.wait(SPARK_SECONDS) == 0, said.read_text()
    log = (home / "server.log").read_text()
    assert "the server listens at http://" in log and log == said.read_text()


def test_what_cannot_be_started_says_why(penstock, tmp_path):
    said = penstock("server", "start", "--port", "0", "-D", "high-availability.type=storage", code=1)
    assert "storageDir is not set: name a storage that all servers share" in said
    said = penstock("server", "start", "--host", "203.0.113.1", "--port", "0", code=1)
    assert "REST cannot listen at 203.0.113.1" in said
