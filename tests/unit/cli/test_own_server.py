"""A command finds the server of this user's folder by itself, whatever its port."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from penstock.service.cli import app
from penstock.service.server.home import Home
from tests.unit.cli.recorded_server import RecordedServer, said

JOBS = {"jobs": []}


@pytest.fixture
def own(cluster: RecordedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RecordedServer]:
    """A server that has announced itself in the folder of this user."""
    monkeypatch.setenv("PENSTOCK_HOME", str(tmp_path / "server"))
    home = Home(tmp_path / "server")
    home.announce(f"http://{cluster.address}", "no-socket")
    yield cluster.on("GET /jobs/overview", said(JOBS))
    home.leave()


def test_without_an_address_the_server_of_the_folder_is_asked(own: RecordedServer) -> None:
    done = CliRunner().invoke(app, ["list"])
    assert done.exit_code == 0, done.output
    assert own.lines() == ["GET /jobs/overview"]


@pytest.mark.parametrize("named", [["-m", "127.0.0.1:1"], ["-D", "rest.port=1"], ["-D", "rest.address=127.0.0.2"]])
def test_an_address_that_is_named_holds(own: RecordedServer, named: list[str]) -> None:
    done = CliRunner().invoke(app, ["list", *named])
    assert done.exit_code != 0
    assert own.lines() == []


def test_a_server_that_has_gone_is_not_looked_for(own: RecordedServer, tmp_path: Path) -> None:
    (tmp_path / "server/server.pid").unlink()
    assert "127.0.0.1:8081" in CliRunner().invoke(app, ["list"]).output
    assert own.lines() == []
