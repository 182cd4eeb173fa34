"""The user who started a server may run programs on it; nobody else may, unless it says so."""

import stat

import pytest
from starlette.testclient import TestClient

from penstock.service.cli.exit_codes import CommandFailed
from penstock.service.cli.rest_client import RestClient
from penstock.service.options.rest_options import RestSettings, Tokens
from penstock.service.rest.app import create_app
from penstock.service.rest.server_secret import (
    HEADER,
    create_secret,
    delete_secret,
    read_secret,
    secret_file,
    write_secret,
)
from tests.rest.scripted_jobs import ScriptedJobs

URL = "http://127.0.0.1:8081"


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("PENSTOCK_HOME", str(tmp_path / "home"))


def client(**settings):
    app = create_app(ScriptedJobs(), RestSettings(owner_secret="the pass", **settings))
    return TestClient(app, base_url=URL)


def test_a_pass_is_readable_for_its_owner_alone():
    secret = create_secret()
    write_secret(URL, secret)
    assert read_secret(URL) == read_secret("https://localhost:8081") == secret
    assert stat.S_IMODE(secret_file(URL).stat().st_mode) == 0o600
    assert stat.S_IMODE(secret_file(URL).parent.stat().st_mode) == 0o700


def test_a_pass_is_shown_to_servers_on_this_machine_only():
    write_secret(URL, "secret")
    assert read_secret("http://elsewhere:8081") is None
    assert read_secret("http://127.0.0.1:8082") is None


def test_a_server_that_ends_takes_its_own_pass_with_it():
    write_secret(URL, "of the first")
    write_secret(URL, "of the second")
    delete_secret(URL, "of the first")
    assert read_secret(URL) == "of the second"
    delete_secret(URL, "of the second")
    assert read_secret(URL) is None


@pytest.mark.parametrize("shown", [None, "", "another pass", "the pass "[:-2]])
def test_without_the_pass_no_program_is_taken(shown):
    headers = {} if shown is None else {HEADER: shown}
    answer = client().get("/jars", headers=headers)
    assert answer.status_code == 404 and "web.submit.enable" in answer.json()["errors"][0]


def test_with_the_pass_programs_are_taken_and_tokens_are_not_asked_for():
    assert client().get("/jars", headers={HEADER: "the pass"}).status_code == 200
    strict = client(tokens=Tokens("read me", "steer me"))
    assert strict.get("/jobs").status_code == 401
    assert strict.get("/jars", headers={HEADER: "the pass"}).status_code == 200


def test_a_wrong_token_is_refused_whatever_pass_comes_with_it():
    strict = client(tokens=Tokens("read me", "steer me"))

    def answer(token, path="/jobs"):
        return strict.get(path, headers={HEADER: "the pass", "authorization": f"Bearer {token}"}).status_code

    assert [answer(token) for token in ("wrong", "read me", "steer me")] == [401, 200, 200]
    cancelling = "/jobs/00000000000000000000000000000000/yarn-cancel"
    assert answer("read me", cancelling) == answer("steer me", cancelling) != 403


def test_a_server_without_a_pass_accepts_none():
    app = create_app(ScriptedJobs(), RestSettings())
    assert TestClient(app, base_url=URL).get("/jars", headers={HEADER: ""}).status_code == 404


def test_the_command_line_shows_it():
    write_secret("http://127.0.0.1:1", "secret")
    assert RestClient("http://127.0.0.1:1")._headers("http://127.0.0.1:1/v1/jars", None, "", None)[HEADER] == "secret"
    with pytest.raises(CommandFailed):
        RestClient("http://127.0.0.1:1", timeout=1).get("/jars")
