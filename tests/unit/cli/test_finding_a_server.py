"""Where a command looks for a server, with what token, and what it says if there is none."""

from pathlib import Path

import pytest

from penstock.service.cli.exit_codes import UsageFailed
from penstock.service.cli.server_connection import is_server, server_url
from penstock.service.launch.config_files import load_configuration
from tests.unit.cli.recorded_server import RecordedServer

JOB = "ac1107dd499275ed3ad01ebfb079e5fb"


@pytest.mark.parametrize("place", ["host:8081", "127.0.0.1:1", "[::1]:8081", "http://x", "https://x/prefix"])
def test_a_server(place: str) -> None:
    assert is_server(place)


@pytest.mark.parametrize(
    "place",
    ["local", "local[2]", "local[2,4]", "spark://h:7077", "yarn", "k8s://https://h:6443", "sparkle://host", "host"],
)
def test_a_spark_master(place: str) -> None:
    assert not is_server(place)


@pytest.mark.parametrize(
    ("options", "at", "url"),
    [
        ([], None, "http://127.0.0.1:8081"),
        (["rest.port=9"], None, "http://127.0.0.1:9"),
        (["rest.address=h", "rest.port=9"], None, "http://h:9"),
        (["rest.address=::1"], None, "http://[::1]:8081"),
        (["jobmanager.rpc.address=old"], None, "http://old:8081"),
        (["rest.address=h", "security.ssl.rest.enabled=true"], None, "https://h:8081"),
        (["rest.address=h"], "other:1", "http://other:1"),
        (["security.ssl.rest.enabled=true"], "other:1", "https://other:1"),
        (["security.ssl.rest.enabled=true"], "http://x/y", "http://x/y"),
    ],
)
def test_the_address(tmp_path: Path, options: list[str], at: str | None, url: str) -> None:
    assert server_url(load_configuration(options, tmp_path, {}), at) == url


@pytest.mark.parametrize(("options", "at"), [(["rest.port=8081-8090"], None), ([], "local[2]"), ([], "host")])
def test_what_is_no_address(tmp_path: Path, options: list[str], at: str | None) -> None:
    with pytest.raises(UsageFailed):
        server_url(load_configuration(options, tmp_path, {}), at)


@pytest.mark.parametrize(
    "arguments",
    [
        ["list"],
        ["cancel", JOB],
        ["cancel", "-s", JOB],
        ["stop", JOB],
        ["savepoint", JOB],
        ["savepoint", "-d", "/x"],
        ["checkpoint", JOB],
        ["modify", "-p", "2", JOB],
        ["logs", JOB],
        ["logs", "-f", JOB],
        ["state", JOB, "counts"],
        ["run", "-d", "job.py"],
    ],
    ids=" ".join,
)
def test_without_a_server_every_verb_says_how_to_start_one(cluster: RecordedServer, penstock, arguments) -> None:
    Path("job.py").write_text("")
    cluster.close()
    done = penstock(*arguments)
    assert (done.code, done.out) == (3, "")
    assert "`penstock server start`" in done.err and done.err.count("\n") == 1


def test_the_token_of_switch_variable_and_option(cluster: RecordedServer, penstock, monkeypatch) -> None:
    cluster.on("GET /jobs/overview", "empty cluster")
    penstock("list", "-D", "rest.client.token=option")
    monkeypatch.setenv("PENSTOCK_TOKEN", "variable")
    penstock("list", "-D", "rest.client.token=option")
    penstock("list", "--token", "switch")
    sent = [asked.headers["Authorization"] for asked in cluster.asked]
    assert sent == ["Bearer option", "Bearer variable", "Bearer switch"]


def test_the_servers_own_token_is_for_the_server_of_this_configuration(cluster: RecordedServer, penstock) -> None:
    cluster.on("GET /jobs/overview", "empty cluster")
    reads, operates = ["-D", "security.rest.token.read=reads"], ["-D", "security.rest.token.operate=operates"]
    penstock("list", *reads)
    penstock("list", *reads, *operates)
    penstock("list", *reads, *operates, "-m", cluster.address)
    sent = [asked.headers.get("Authorization") for asked in cluster.asked]
    assert sent == ["Bearer reads", "Bearer operates", None]
