"""A server with recorded answers, and the command line as a person calls it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from penstock.service.cli import app
from tests.unit.cli.recorded_server import RecordedServer


@pytest.fixture
def cluster() -> Iterator[RecordedServer]:
    """A server that answers as Flink did."""
    server = RecordedServer()
    yield server
    server.close()


@pytest.fixture(autouse=True)
def plain_surroundings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No configuration but the test's own, and a wide terminal."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in ("PENSTOCK_CONF_DIR", "FLINK_CONF_DIR", "PENSTOCK_TOKEN", "PENSTOCK_MASTER", "PENSTOCK_HOME"):
        monkeypatch.delenv(name, raising=False)


class Said:
    """How a command ended, and what it printed."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err


@pytest.fixture
def penstock(cluster: RecordedServer) -> Callable[..., Said]:
    """Calls the command with the recorded server as the one of the configuration."""

    def call(*arguments: str) -> Said:
        Path("penstock-conf.yaml").write_text(f"rest.port: {cluster.port}\n")
        result = CliRunner().invoke(app, arguments)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return Said(result.exit_code, result.stdout, result.stderr)

    return call
