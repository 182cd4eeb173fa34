"""The SQL gateway, over HTTP, with queries in this process."""

from __future__ import annotations

import time
from collections.abc import Iterator

import httpx
import pytest

from penstock.service.gateway.gateway_server import serve_gateway
from penstock.testing import in_process


@pytest.fixture
def gateway() -> Iterator[httpx.Client]:
    settings = {"sql-gateway.endpoint.rest.port": "0"}
    with in_process(), serve_gateway(settings) as url, httpx.Client(base_url=url, timeout=30) as client:
        yield client


def session_of(gateway: httpx.Client) -> str:
    return gateway.post("/v3/sessions", json={"sessionName": "test", "properties": {}}).json()["sessionHandle"]


def run(gateway: httpx.Client, session: str, statement: str) -> dict:
    answer = gateway.post(f"/v3/sessions/{session}/statements", json={"statement": statement})
    operation = answer.json()["operationHandle"]
    link, data, last = f"/v3/sessions/{session}/operations/{operation}/result/0?rowFormat=JSON", [], {}
    deadline = time.monotonic() + 60
    while link and time.monotonic() < deadline:
        page = gateway.get(link)
        assert page.status_code == 200, page.text
        last = page.json()
        data += last.get("results", {}).get("data", [])
        link = last.get("nextResultUri")
    return {**last, "data": data}


def test_a_client_finds_what_it_expects(gateway):
    assert gateway.get("/v1/info").json()["productName"] == "Apache Flink"
    assert gateway.get("/api_versions").json() == {"versions": ["V1", "V2", "V3", "V4"]}


def test_statements_of_a_session_build_upon_each_other(gateway):
    session = session_of(gateway)
    run(gateway, session, "CREATE TEMPORARY VIEW v AS SELECT * FROM (VALUES (1, 'a'), (2, 'b')) AS t(n, s)")
    result = run(gateway, session, "SELECT n + 1 AS m, s FROM v")
    assert [row["fields"] for row in result["data"]] == [[2, "a"], [3, "b"]]
    assert {row["kind"] for row in result["data"]} == {"INSERT"}
    assert result["isQueryResult"] is True and result["resultKind"] == "SUCCESS_WITH_CONTENT"
    columns = {column["name"]: column["logicalType"]["type"] for column in result["results"]["columns"]}
    assert columns == {"m": "INTEGER", "s": "CHAR"}


def test_an_error_is_told_with_its_reason(gateway):
    session = session_of(gateway)
    operation = gateway.post(f"/v3/sessions/{session}/statements", json={"statement": "SELEC 1"}).json()
    path = f"/v3/sessions/{session}/operations/{operation['operationHandle']}"
    deadline = time.monotonic() + 30
    while gateway.get(f"{path}/status").json()["status"] != "ERROR" and time.monotonic() < deadline:
        time.sleep(0.02)
    answer = gateway.get(f"{path}/result/0")
    assert answer.status_code == 500 and "SELEC" in " ".join(answer.json()["errors"])


def test_sessions_end(gateway):
    session = session_of(gateway)
    assert gateway.post(f"/v3/sessions/{session}/heartbeat").status_code == 200
    assert gateway.delete(f"/v3/sessions/{session}").json() == {"status": "CLOSED"}
    assert gateway.get(f"/v3/sessions/{session}").status_code == 404


def test_a_query_without_end_is_cancelled(gateway):
    session = session_of(gateway)
    run(gateway, session, "CREATE TABLE g (n INT) WITH ('connector' = 'datagen', 'rows-per-second' = '50')")
    answer = gateway.post(f"/v3/sessions/{session}/statements", json={"statement": "SELECT n FROM g"})
    path = f"/v3/sessions/{session}/operations/{answer.json()['operationHandle']}"
    assert gateway.post(f"{path}/cancel").json() == {"status": "CANCELED"}
    assert gateway.delete(f"{path}/close").json() == {"status": "CLOSED"}
