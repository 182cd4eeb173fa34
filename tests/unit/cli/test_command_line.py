"""What all verbs share: the verbs of the server, progress for people, completion, and how little help needs."""

import os
import subprocess
import sys
import types
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from penstock.service.cli import app
from penstock.service.cli.polling import count_acknowledged, outcome, pauses
from penstock.service.cli.rest_client import RestClient
from tests.unit.cli.recorded_server import RecordedServer, said

ROOT = Path(__file__).parents[3]
STARTED = {"id": 7, "status": "IN_PROGRESS", "num_acknowledged_subtasks": 3, "num_subtasks": 8}


class TestServerVerbs:
    def test_are_those_of_the_servers_own_module(self, monkeypatch: pytest.MonkeyPatch) -> None:
        verbs = typer.Typer()

        @verbs.command()
        def status() -> None:
            typer.echo("it runs")

        @verbs.callback()
        def all_of_them() -> None:
            """The server."""

        monkeypatch.setitem(sys.modules, "penstock.service.server.cli", types.SimpleNamespace(app=verbs))
        assert CliRunner().invoke(app, ["server", "status"]).stdout == "it runs\n"
        assert CliRunner().invoke(app, ["server", "sleep"]).exit_code == 2
        assert "status" in CliRunner().invoke(app, ["server", "--help"]).stdout

    def test_say_what_is_missing(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "penstock.service.server.cli", None)
        done = CliRunner().invoke(app, ["server", "start"])
        assert done.exit_code == 1 and "the server is not part of this installation" in done.stderr


class TestProgress:
    def test_tells_how_many_subtasks_have_answered(self, cluster: RecordedServer) -> None:
        cluster.on("GET /jobs/:jobid/savepoints/:triggerid", "savepoint (IN_PROGRESS)", "savepoint (COMPLETED)").on(
            "GET /jobs/:jobid/checkpoints", said({"history": [{"status": "COMPLETED"}, STARTED]})
        )
        client, told = RestClient(f"http://{cluster.address}"), []
        outcome(client, "/jobs/x/savepoints/y", told.append, lambda: count_acknowledged(client, "x"))
        assert told == ["0 s (3 of 8 subtasks)"]

    def test_does_not_fail_where_nothing_is_known(self, cluster: RecordedServer) -> None:
        client = RestClient(f"http://{cluster.address}")
        assert count_acknowledged(client, "x") == ""
        cluster.on("GET /jobs/:jobid/checkpoints", said({"history": []}))
        assert count_acknowledged(client, "x") == ""

    def test_asks_less_and_less_often(self) -> None:
        waits = pauses()
        asked = [next(waits) for _ in range(10)]
        assert asked[0] == 0.02 and asked == sorted(asked) and asked[-1] == 2.0


def called(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", "from penstock.service.cli import app; app(prog_name='penstock')", *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_shell_completes_verbs() -> None:
    done = called(_PENSTOCK_COMPLETE="complete_bash", COMP_WORDS="penstock c", COMP_CWORD="1")
    assert sorted(done.stdout.split()) == ["cancel", "checkpoint", "config"]


def test_a_verb_that_does_not_exist_is_a_usage_error() -> None:
    done = CliRunner().invoke(app, ["cancle", "x"])
    assert done.exit_code == 2 and "cancel" in done.stderr


def test_help_comes_without_the_engine() -> None:
    code = (
        "import sys; sys.argv = ['penstock', '--help']\n"
        "from penstock.service.cli import app\n"
        "app(standalone_mode=False)\n"
        "heavy = {'pyspark', 'yaml', 'urllib.request', 'penstock.common', 'penstock.service.options'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "modify" in done.stdout and "server" in done.stdout


WITHOUT = """
import sys
for name in sys.argv.pop(1).split(","):
    sys.modules[name] = None  # as if it were not installed
from penstock.service.cli import main
main()
"""


@pytest.mark.parametrize(
    ("missing", "arguments", "says"),
    [
        ("pyarrow", ["sql", "-e", "SELECT 1"], 'SQL needs pyarrow: pip install "penstock[table]"'),
        ("sqlglot", ["sql", "-e", "SELECT 1"], 'SQL needs sqlglot: pip install "penstock[table]"'),
        ("fastapi", ["server", "start"], 'REST needs FastAPI and uvicorn: pip install "penstock[server]"'),
        ("fastapi", ["sql-gateway"], 'The SQL gateway needs fastapi: pip install "penstock[server,table]"'),
    ],
)
def test_an_extra_that_is_not_installed_is_named(missing: str, arguments: list[str], says: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT, missing, *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PENSTOCK_HOME": str(tmp_path)},
    )
    assert (done.returncode, done.stderr) == (1, f"MissingDependency: {says}\n")


def test_a_program_that_lacks_an_extra_learns_its_name() -> None:
    program = "import sys; sys.modules['pyarrow'] = None; from penstock.table import DataTypes, TableEnvironment"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    expected = 'penstock.errors.MissingDependency: The Table API with SQL needs pyarrow: pip install "penstock[table]"'
    assert done.stderr.splitlines()[-1] == expected
