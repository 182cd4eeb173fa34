"""`penstock config` shows what is in force, where it came from, and no secrets; mistyped names are warned of."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from penstock.service.cli import app


def penstock(*arguments: str):
    result = CliRunner().invoke(app, arguments)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


@pytest.fixture
def settings(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("penstock-conf.yaml").write_text("rest: {port: 9000}\npipeline.name: mine\nclient.password: hunter2\n")
    monkeypatch.setenv("PENSTOCK__PIPELINE__NAME", "theirs")


def test_what_is_set_and_by_what(settings: None) -> None:
    listed = json.loads(penstock("config", "--json", "-D", "parallelism.default=3").stdout)
    assert listed == [
        {"name": "client.password", "value": "******", "origin": str(Path.cwd() / "penstock-conf.yaml")},
        {"name": "parallelism.default", "value": "3", "origin": "command line"},
        {"name": "pipeline.name", "value": "theirs", "origin": "environment PENSTOCK__PIPELINE__NAME"},
        {"name": "rest.port", "value": "9000", "origin": str(Path.cwd() / "penstock-conf.yaml")},
    ]


def test_the_table_for_people(settings: None) -> None:
    shown = penstock("config", "-D", "rest.client.token=hunter2").stdout
    assert "hunter2" not in shown
    rows = {line.split()[0]: line for line in shown.splitlines()[2:]}
    assert list(rows) == ["client.password", "pipeline.name", "rest.client.token", "rest.port"]
    assert rows["client.password"].endswith("not known to Penstock") and "******" in rows["rest.client.token"]


def test_all_shows_defaults_too(settings: None) -> None:
    listed = {entry["name"]: entry for entry in json.loads(penstock("config", "--all", "--json").stdout)}
    assert listed["rest.address"] == {"name": "rest.address", "value": "127.0.0.1", "origin": "default"}
    assert listed["rest.port"]["value"] == "9000"


def test_one_option(settings: None) -> None:
    assert penstock("config", "rest.port").stdout == f"rest.port: 9000  ({Path.cwd() / 'penstock-conf.yaml'})\n"
    assert penstock("config", "state.backend").stdout == "state.backend.type: hashmap  (default)\n"
    assert "hunter2" not in penstock("config", "client.password").output


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("pipeline.name", "pipeline.name is not set, and has no default"),
        ("mesos.master", "mesos.master has no effect: Spark no longer supports Mesos"),
        ("rest.prt", "there is no option 'rest.prt'; did you mean 'rest.port'?"),
        ("quite.another.thing", "there is no option 'quite.another.thing'"),
    ],
)
def test_an_option_without_a_value(name: str, said: str) -> None:
    done = penstock("config", name)
    assert (done.exit_code, done.stderr) == (4, f"error: {said}\n")


def test_nothing_is_set() -> None:
    assert penstock("config").stdout == "no option is set outside the program; --all shows the defaults\n"
    assert json.loads(penstock("config", "--json").stdout) == []


def test_names_without_effect_are_warned_of(fresh_warnings: None) -> None:
    Path("penstock-conf.yaml").write_text("taskmanager.memory.process.size: 1g\npipeline.nam: x\n")
    file = Path.cwd() / "penstock-conf.yaml"
    done = penstock("config", "-D", "paralelism.default=2", "-D", "quite.another=1")
    assert done.exit_code == 0
    assert done.stderr.splitlines() == [
        f"warning: there is no option 'pipeline.nam' ({file}); did you mean 'pipeline.name'?",
        "warning: there is no option 'paralelism.default' (command line); did you mean 'parallelism.default'?",
        "warning: no part of Penstock reads an option 'quite.another' (command line)",
    ]


def test_options_of_queries_and_of_the_gateway_are_known() -> None:
    assert penstock("config", "table.exec.state.ttl").stdout == "table.exec.state.ttl: 0 s  (default)\n"
    assert penstock("config", "sql-gateway.endpoint.rest.port").stdout.endswith(": 8083  (default)\n")
    Path("penstock-conf.yaml").write_text("akka.ask.timeout: 1 s\n")
    assert "no effect" in penstock("config").stdout


def test_a_broken_file_is_a_usage_error() -> None:
    Path("penstock-conf.yaml").write_text("a: [\n")
    done = penstock("config")
    assert done.exit_code == 2 and "penstock-conf.yaml is not valid YAML" in done.stderr
