"""Who is let in, and what a request may cost."""

from __future__ import annotations

import pytest

from penstock.service.options.rest_options import Tokens
from penstock.service.rest.job_backend import LogFile
from penstock.service.rest.middleware import LARGEST_JSON, plain_path
from tests.rest.conftest import client_of
from tests.rest.scripted_jobs import RUNNING

READ, OPERATE = "reading-is-fine", "operating-is-too"
BOTH = Tokens(READ, OPERATE)


def with_token(token):
    return {"authorization": f"Bearer {token}"} if token is not None else {}


# --- tokens ---
@pytest.mark.parametrize(
    ("token", "reads", "operates"),
    [
        (None, 401, 401),
        ("wrong-token", 401, 401),
        (READ, 200, 403),
        (OPERATE, 200, 202),
        ("", 401, 401),
        ("ü", 401, 401),
    ],
)
def test_a_token_lets_its_holder_read_or_operate(jobs, token, reads, operates):
    client = client_of(jobs, tokens=BOTH)
    headers = {"authorization": f"Bearer {token}".encode()} if token is not None else {}
    for path in ("/overview", "/v1/jobs", "/docs", "/openapi.json", f"/jobs/{RUNNING}/plan"):
        assert client.get(path, headers=headers).status_code == reads
    assert client.patch(f"/jobs/{RUNNING}", headers=headers).status_code == operates
    assert client.get(f"/v1/jobs/{RUNNING}/yarn-cancel/", headers=headers).status_code == operates
    assert len(jobs.orders) == (2 if operates == 202 else 0)


def test_every_method_but_get_and_head_operates(jobs):
    client = client_of(jobs, tokens=BOTH, submit=True)
    for method in ("POST", "PUT", "PATCH", "DELETE", "OPTIONS", "BREW"):
        assert client.request(method, "/jobs", headers=with_token(READ)).status_code == 403
    assert client.get("/jars/a.py/plan", headers=with_token(READ)).status_code == 403


@pytest.mark.parametrize("header", [f"Basic {OPERATE}", OPERATE, "Bearer", f"Bearer{OPERATE}"])
def test_a_token_is_a_bearer_token(jobs, header):
    response = client_of(jobs, tokens=BOTH).get("/overview", headers={"authorization": header})
    assert response.status_code == 401
    assert response.headers["www-authenticate"] == "Bearer"
    assert response.json()["errors"]


def test_with_one_token_only_nobody_does_the_other_thing_without_it(jobs):
    reading = client_of(jobs, tokens=Tokens(read=READ))
    assert reading.get("/overview", headers=with_token(READ)).status_code == 200
    assert reading.patch(f"/jobs/{RUNNING}", headers=with_token(READ)).status_code == 403
    operating = client_of(jobs, tokens=Tokens(operate=OPERATE))
    assert operating.get("/overview").status_code == 401
    assert operating.get("/overview", headers=with_token(OPERATE)).status_code == 200
    assert jobs.orders == []


def test_tokens_are_shown_nowhere(jobs):
    jobs.options = {"security.rest.token.read": READ, "security.rest.token.operate": OPERATE}
    client = client_of(jobs, tokens=BOTH)
    text = client.get("/jobmanager/config", headers=with_token(READ)).text
    text += client.get("/overview", headers=with_token("x")).text + repr(BOTH)
    assert READ not in text and OPERATE not in text
    assert "******" in text


# --- other sites ---
@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": "http://localhost:9999"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ],
)
def test_pages_of_other_sites_give_no_orders(jobs, headers):
    client = client_of(jobs, submit=True)
    assert client.patch(f"/jobs/{RUNNING}", headers=headers).status_code == 403
    assert client.get(f"/jobs/{RUNNING}/yarn-cancel", headers=headers).status_code == 403
    assert client.post("/jars/upload", headers=headers, files={"f": ("a.py", b"")}).status_code == 403
    assert (jobs.orders, jobs.uploaded) == ([], {})


def test_pages_of_our_own_do(jobs):
    client = client_of(jobs)
    own = {"origin": "http://localhost", "sec-fetch-site": "same-origin"}
    assert client.patch(f"/jobs/{RUNNING}", headers=own).status_code == 202


@pytest.mark.parametrize(("host", "status"), [("evil.example:8081", 403), ("127.0.0.1:1", 200), ("[::1]:8081", 200)])
def test_on_loopback_no_other_name_leads_here(jobs, host, status):
    assert client_of(jobs).get("/overview", headers={"host": host}).status_code == status


def test_a_name_can_be_allowed_and_who_has_a_token_may_use_any(jobs):
    proxied = {"host": "flink.example"}
    assert client_of(jobs, address="flink.example").get("/overview", headers=proxied).status_code == 200
    assert client_of(jobs, bind_address="0.0.0.0").get("/overview", headers=proxied).status_code == 200
    tokens = client_of(jobs, tokens=BOTH)
    assert tokens.get("/overview", headers={**proxied, **with_token(READ)}).status_code == 200


def test_answers_are_open_to_all_pages_as_flinks_are_unless_there_are_tokens(jobs):
    name = "access-control-allow-origin"
    assert client_of(jobs).get("/overview").headers[name] == "*"
    assert name not in client_of(jobs).patch(f"/jobs/{RUNNING}").headers
    closed = client_of(jobs, tokens=BOTH).get("/overview", headers=with_token(READ))
    assert name not in closed.headers
    assert name not in client_of(jobs, allow_origin="").get("/overview").headers
    chosen = client_of(jobs, allow_origin="https://ui.example").get("/overview")
    assert chosen.headers[name] == "https://ui.example"
    assert chosen.headers["x-content-type-options"] == "nosniff"


# --- sizes ---
def test_a_body_that_is_too_large_is_not_read(jobs):
    client = client_of(jobs, submit=True)
    path = f"/jobs/{RUNNING}/savepoints"
    response = client.post(path, content=b" " * (LARGEST_JSON + 1))
    assert response.status_code == 413
    assert response.json()["errors"]
    assert client.post(path, content=b" " * LARGEST_JSON).status_code == 202


def test_a_body_without_a_length_is_counted(jobs):
    read = []

    def pieces():
        for number in range(1000):
            read.append(number)
            yield b" " * (1 << 16)

    response = client_of(jobs).post(f"/jobs/{RUNNING}/savepoints", content=pieces())
    assert response.status_code == 413
    assert jobs.orders == []


def test_uploads_have_a_limit_of_their_own(jobs):
    client = client_of(jobs, submit=True, max_content=LARGEST_JSON + 1000)
    assert client.post("/jars/upload", files={"f": ("a.py", b"x" * LARGEST_JSON)}).status_code == 200
    assert client.post("/jars/upload", files={"f": ("b.py", b"x" * (LARGEST_JSON + 1000))}).status_code == 413
    assert list(jobs.uploaded) == ["1_a.py"]


@pytest.mark.parametrize("length", ["-1", "abc", "1e3", "9" * 40])
def test_a_length_that_is_none(jobs, length):
    response = client_of(jobs).post("/jobs", headers={"content-length": length})
    assert response.status_code in (400, 413)


# --- paths ---
@pytest.mark.parametrize(
    "name",
    [
        "..%2f..%2fetc%2fpasswd",
        "%2e%2e",
        "%2fetc%2fpasswd",
        "a.log%00",
        "....//a.log",
        "..%5ca.log",
        "%252e%252e%252fa.log",
    ],
)
def test_no_name_leads_out_of_the_logs(jobs, name, tmp_path):
    (tmp_path / "logs").mkdir()
    for folder in (tmp_path, tmp_path / "logs"):
        (folder / "a.log").write_text("secret")
    jobs.files = [LogFile("b.log", tmp_path / "logs" / "a.log")]
    client = client_of(jobs)
    for place in ("/jobmanager/logs", "/taskmanagers/worker-1/logs"):
        assert client.get(f"{place}/{name}").status_code == 404
        assert client.get(f"{place}/b.log").text == "secret"


@pytest.mark.parametrize(
    ("path", "plain"),
    [
        ("/v1/jobs", "/jobs"),
        ("/jobs/", "/jobs"),
        ("/v1/", "/"),
        ("/", "/"),
        ("/v1", "/v1"),
        ("/v11/x", "/v11/x"),
        ("/v1/v1/x", "/v1/x"),
    ],
)
def test_versions_and_slashes_are_left_out(path, plain):
    assert plain_path(path) == plain
