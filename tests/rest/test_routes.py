"""Paths, methods and statuses, as Flink has them."""

from __future__ import annotations

import json

import pytest

from penstock.service.rest.job_backend import LogFile, RunRequest, SavepointOrder
from tests.rest.conftest import client_of
from tests.rest.scripted_jobs import CANCELED, FAILED, FINISHED, RUNNING, SINK, job
from tests.waiting import until

NOBODY = "f" * 32


def outcome(client, path):
    return until(lambda: (answer := client.get(path).json())["status"]["id"] == "COMPLETED" and answer)["operation"]


def errors(response):
    body = response.json()
    assert list(body) == ["errors"], body
    assert all(isinstance(text, str) and text for text in body["errors"])
    return body["errors"]


# --- paths ---
@pytest.mark.parametrize("path", ["/overview", "/v1/overview", "/overview/", "/v1/overview/", "/overview?colour=blue"])
def test_a_path_answers_with_and_without_version_and_slash(client, path):
    response = client.get(path)
    assert response.status_code == 200
    assert response.headers["content-type"] == "application/json; charset=UTF-8"
    assert response.json()["jobs-running"] == 1


@pytest.mark.parametrize("path", ["/nosuch", "/v1", "/v2/overview", "/v1/v1/overview", f"/jobs/{RUNNING}/nosuch"])
def test_an_unknown_path_is_not_found(client, path):
    response = client.get(path)
    assert response.status_code == 404
    errors(response)


@pytest.mark.parametrize(("method", "path"), [("POST", "/overview"), ("DELETE", "/jobs"), ("PUT", f"/jobs/{RUNNING}")])
def test_a_wrong_method_is_not_found_either(client, method, path):
    response = client.request(method, path)
    assert response.status_code == 404
    errors(response)


def test_ids_may_be_in_upper_case_but_must_be_ids(client):
    assert client.get(f"/jobs/{RUNNING.upper()}").json()["jid"] == RUNNING
    for wrong in ("123", "z" * 32, "a" * 33):
        response = client.get(f"/jobs/{wrong}")
        assert response.status_code == 400
        errors(response)


def test_requests_to_read_may_have_a_body(client):
    assert client.request("GET", "/jobs/overview", json={}).status_code == 200


@pytest.mark.parametrize(
    ("path", "status"),
    [
        (f"/jobs/{NOBODY}", 404),
        (f"/jobs/{NOBODY}/status", 404),
        (f"/jobs/{RUNNING}/vertices/{NOBODY}", 404),
        (f"/jobs/{RUNNING}/vertices/qq", 400),
        (f"/jobs/{RUNNING}/vertices/{SINK}/subtasks/2", 404),
        (f"/jobs/{RUNNING}/vertices/{SINK}/subtasks/x", 400),
        (f"/jobs/{RUNNING}/vertices/{SINK}/subtasks/0/attempts/5", 404),
        (f"/jobs/{RUNNING}/vertices/{SINK}/subtasks/metrics?get=numRecordsIn&agg=median", 400),
        (f"/jobs/{RUNNING}/vertices/{SINK}/subtasks/metrics?subtasks=one", 400),
        (f"/jobs/{RUNNING}/exceptions?maxExceptions=many", 400),
        (f"/jobs/{RUNNING}/checkpoints/details/99", 404),
        (f"/jobs/{RUNNING}/checkpoints/details/abc", 400),
        (f"/jobs/{RUNNING}/savepoints/{NOBODY}", 404),
        (f"/jobs/{RUNNING}/savepoints/zz", 400),
        (f"/savepoint-disposal/{NOBODY}", 404),
        ("/taskmanagers/nobody", 404),
        ("/jars/none.py/plan", 404),
        (f"/jobs/{RUNNING}/log?offset=x", 400),
    ],
)
def test_what_is_not_there_or_malformed(client, path, status):
    response = client.get(path)
    assert response.status_code == status
    errors(response)


# --- metrics ---
def test_of_what_nobody_knows_there_are_no_metrics(client):
    for path in (
        f"/jobs/{NOBODY}/metrics",
        f"/jobs/{RUNNING}/vertices/{NOBODY}/metrics",
        "/taskmanagers/nobody/metrics",
        f"/jobs/{FINISHED}/metrics",
        f"/jobs/{FINISHED}/vertices/{SINK}/metrics",
    ):
        assert client.get(path).json() == []


def test_metrics_of_subtasks(client):
    path = f"/jobs/{RUNNING}/vertices/{SINK}"
    assert client.get(f"{path}/metrics?get=1.numRecordsIn,0.nosuch").json() == [{"id": "1.numRecordsIn", "value": "30"}]
    assert client.get(f"{path}/subtasks/1/metrics?get=numRecordsIn").json() == [{"id": "numRecordsIn", "value": "30"}]
    some = client.get(f"{path}/subtasks/metrics?get=numRecordsIn&agg=sum,max&subtasks=0-0").json()
    assert some == [{"id": "numRecordsIn", "max": 10.0, "sum": 10.0}]
    assert {"id": "0.numRecordsOut"} in client.get(f"{path}/metrics").json()


def test_metrics_of_chosen_jobs(client, jobs):
    jobs.known["1" * 32] = job("1" * 32, attempt=3)
    everyone = client.get("/jobs/metrics?get=numRestarts&agg=max").json()
    one = client.get(f"/jobs/metrics?get=numRestarts&agg=max&jobs={RUNNING}").json()
    assert (everyone, one) == ([{"id": "numRestarts", "max": 3.0}], [{"id": "numRestarts", "max": 0.0}])


# --- ending jobs ---
def test_a_job_is_cancelled_by_patch_and_by_the_button(client, jobs):
    for response in (
        client.patch(f"/jobs/{RUNNING}?mode=cancel", json={}),
        client.get(f"/jobs/{RUNNING}/yarn-cancel"),
        client.post(f"/applications/{RUNNING}/cancel"),
    ):
        assert (response.status_code, response.json()) == (202, {})
    assert jobs.orders == [("cancel", RUNNING)] * 3


@pytest.mark.parametrize(
    ("path", "status"),
    [
        (f"/jobs/{FINISHED}", 409),
        (f"/jobs/{FAILED}", 409),
        (f"/jobs/{CANCELED}", 202),
        (f"/jobs/{NOBODY}", 404),
        (f"/jobs/{RUNNING}?mode=explode", 400),
        (f"/jobs/{RUNNING}?mode=stop", 308),
        ("/jobs/xy", 400),
    ],
)
def test_what_cannot_be_cancelled(client, jobs, path, status):
    response = client.patch(path)
    assert response.status_code == status
    assert jobs.orders == []
    if status != 202:
        errors(response)


def test_the_dashboards_button_can_be_switched_off(jobs):
    client = client_of(jobs, cancel=False)
    assert client.get(f"/jobs/{RUNNING}/yarn-cancel").status_code == 404
    assert jobs.orders == []
    assert client.get("/config").json()["features"]["web-cancel"] is False
    assert client.patch(f"/jobs/{RUNNING}").status_code == 202


# --- operations ---
def test_a_savepoint_is_in_progress_until_it_is_complete(client, jobs):
    jobs.hold.clear()
    response = client.post(f"/jobs/{RUNNING}/savepoints", json={"target-directory": "/here", "cancel-job": True})
    assert response.status_code == 202
    path = f"/jobs/{RUNNING}/savepoints/{response.json()['request-id']}"
    assert client.get(path).json() == {"status": {"id": "IN_PROGRESS"}, "operation": None}
    jobs.hold.set()
    assert outcome(client, path) == {"location": "file:/savepoints/1"}
    assert jobs.orders == [("savepoint", RUNNING, SavepointOrder("/here", cancel=True))]


def test_an_own_trigger_id_is_used_once(client, jobs):
    mine = "0123456789abcdef" * 2
    for _ in range(3):
        response = client.post(f"/jobs/{RUNNING}/savepoints", json={"triggerId": mine.upper()})
        assert response.json() == {"request-id": mine}
        outcome(client, f"/jobs/{RUNNING}/savepoints/{mine}")
    assert len(jobs.orders) == 1


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"  ",
        b"{}",
        b'{"target-directory": null, "cancel-job": false, "formatType": "CANONICAL", "triggerId": null, "colour": 1}',
    ],
)
def test_a_body_may_be_missing_or_hold_nulls(client, jobs, body):
    trigger = client.post(f"/jobs/{RUNNING}/savepoints", content=body).json()["request-id"]
    assert "location" in outcome(client, f"/jobs/{RUNNING}/savepoints/{trigger}")
    assert jobs.orders == [("savepoint", RUNNING, SavepointOrder())]


@pytest.mark.parametrize(
    "body",
    [
        b'{"cancel-job": ',
        b'{"cancel-job": "perhaps"}',
        b'{"formatType": "TARBALL"}',
        b'{"triggerId": "xyz"}',
        b"[]",
        b"null",
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"a":' * 50_000,
    ],
)
def test_a_malformed_body_is_refused(client, jobs, body):
    response = client.post(f"/jobs/{RUNNING}/savepoints", content=body)
    assert response.status_code == 400
    errors(response)
    assert jobs.orders == []


def test_a_failure_is_completed_with_its_cause(client):
    trigger = client.post(f"/jobs/{RUNNING}/savepoints", json={"target-directory": "/full"}).json()["request-id"]
    cause = outcome(client, f"/jobs/{RUNNING}/savepoints/{trigger}")["failure-cause"]
    assert cause["class"] == "penstock.errors.CheckpointFailed"
    assert "the disk is full" in cause["stack-trace"]
    assert "hunter2" not in json.dumps(cause)
    assert cause["serialized-throwable"].startswith("rO0AB")


def test_a_savepoint_of_an_unknown_or_ended_job_fails_later(client):
    for job_id in (NOBODY, FINISHED):
        response = client.post(f"/jobs/{job_id}/savepoints")
        assert response.status_code == 202
        cause = outcome(client, f"/jobs/{job_id}/savepoints/{response.json()['request-id']}")["failure-cause"]
        assert job_id in cause["stack-trace"] and "Traceback" not in cause["stack-trace"]


def test_of_a_surprise_in_an_operation_the_whole_way_is_told(client, jobs):
    jobs.checkpoint = lambda job_id, full: 1 // 0
    trigger = client.post(f"/jobs/{RUNNING}/checkpoints").json()["request-id"]
    cause = outcome(client, f"/jobs/{RUNNING}/checkpoints/{trigger}")["failure-cause"]
    assert cause["class"] == "builtins.ZeroDivisionError" and "Traceback" in cause["stack-trace"]


def test_a_stop_is_asked_for_under_savepoints(client, jobs):
    trigger = client.post(f"/jobs/{RUNNING}/stop", json={"drain": True, "targetDirectory": "/x"}).json()["request-id"]
    assert "location" in outcome(client, f"/jobs/{RUNNING}/savepoints/{trigger}")
    assert jobs.orders == [("savepoint", RUNNING, SavepointOrder("/x", stop=True, drain=True))]


def test_a_checkpoint_on_demand(client, jobs):
    trigger = client.post(f"/jobs/{RUNNING}/checkpoints", json={"checkpointType": "FULL"}).json()["request-id"]
    assert outcome(client, f"/jobs/{RUNNING}/checkpoints/{trigger}") == {"checkpointId": 7}
    assert jobs.orders == [("checkpoint", RUNNING, True)]


def test_a_savepoint_is_disposed_of(client, jobs):
    response = client.post("/savepoint-disposal", json={"savepoint-path": "file:/there"})
    assert response.status_code == 200
    assert outcome(client, f"/savepoint-disposal/{response.json()['request-id']}") == {}
    again = client.post("/savepoint-disposal", json={"savepoint-path": "gone"}).json()["request-id"]
    assert "failure-cause" in outcome(client, f"/savepoint-disposal/{again}")
    assert client.post("/savepoint-disposal", json={}).status_code == 400


def test_a_job_is_rescaled(client, jobs):
    trigger = client.post(f"/jobs/{RUNNING}/rescaling", json={"parallelism": 4}).json()["request-id"]
    assert outcome(client, f"/jobs/{RUNNING}/rescaling/{trigger}") == {}
    client.patch(f"/jobs/{RUNNING}/rescaling?parallelism=5")
    until(lambda: jobs.orders == [("rescale", RUNNING, 4), ("rescale", RUNNING, 5)])
    for wrong in ({}, {"parallelism": 0}, {"parallelism": "many"}):
        assert client.post(f"/jobs/{RUNNING}/rescaling", json=wrong).status_code == 400


# --- logs ---
def test_logs_are_served_whole_or_from_an_offset(client, jobs, tmp_path):
    log, out = tmp_path / "a.log", tmp_path / "a.out"
    log.write_bytes(b"0123456789")
    out.write_bytes(b"printed")
    jobs.files = [LogFile("a.log", log), LogFile("a.out", out)]
    for place in ("/jobmanager", "/taskmanagers/worker-1", f"/jobs/{RUNNING}"):
        response = client.get(f"{place}/log")
        assert response.text == "0123456789"
        assert response.headers["content-type"].startswith("text/plain")
        assert response.headers["x-log-size"] == "10"
        assert client.get(f"{place}/stdout").text == "printed"
    texts = [client.get(f"/jobs/{RUNNING}/log?offset={offset}").text for offset in (0, 7, 10, 99, -3, -99)]
    assert texts == ["0123456789", "789", "", "", "789", "0123456789"]
    assert client.get("/jobmanager/logs/a.out").text == "printed"
    assert client.get("/taskmanagers/worker-1/logs/a.out").text == "printed"
    assert [row["name"] for row in client.get("/jobmanager/logs").json()["logs"]] == ["a.log", "a.out"]


def test_a_log_that_nobody_has_written_is_empty(client):
    assert client.get("/jobmanager/log").text == ""
    assert client.get("/taskmanagers/nobody/log").status_code == 404


# --- programs ---
def test_a_program_is_uploaded_run_looked_at_and_deleted(client, jobs):
    response = client.post("/jars/upload", files={"anything": ("my job.py", b"print(1)")})
    assert response.json()["status"] == "success"
    program = response.json()["filename"].rpartition("/")[2]
    assert [row["id"] for row in client.get("/jars").json()["files"]] == [program]
    assert jobs.uploaded == {program: b"print(1)"}
    body = {
        "entryClass": "a:main",
        "programArgsList": ["x", "y z"],
        "parallelism": 3,
        "savepointPath": "/s",
        "allowNonRestoredState": True,
        "jobId": "9" * 32,
        "flinkConfiguration": {"a": True, "b": 1},
        "pyflink": True,
    }
    assert client.post(f"/jars/{program}/run", json=body).json() == {"jobid": "9" * 32, "applicationId": "9" * 32}
    assert jobs.orders == [
        RunRequest(
            program, ("x", "y z"), "a:main", 3, "/s", True, None, "9" * 32, True, configuration={"a": "true", "b": "1"}
        )
    ]
    plan = client.post(f"/jars/{program}/plan").json()["plan"]
    assert client.get(f"/jars/{program}/plan").json()["plan"] == plan
    assert client.delete(f"/jars/{program}").json() == {}
    assert client.delete(f"/jars/{program}").status_code == 400


def test_a_program_is_run_as_the_query_says(client, jobs):
    client.post("/jars/upload", files={"f": ("a.py", b"")})
    client.post("/jars/1_a.py/run?entry-class=m:f&programArg=one,two&parallelism=2&colour=blue")
    client.post("/jars/1_a.py/run", json={"programArgs": "--name 'a b'"})
    first, second = jobs.orders
    assert (first.entry, first.arguments, first.parallelism) == ("m:f", ("one", "two"), 2)
    assert second.arguments == ("--name", "a b")
    assert client.post("/jars/1_a.py/run", json={"parallelism": "two"}).status_code == 400
    assert client.post("/jars/1_a.py/run", json={"programArgs": "'open"}).status_code == 400


@pytest.mark.parametrize(
    "name", ["../a.py", "/etc/a.py", "a/b.py", "..\\a.py", "a\0.py", ".py", "a.jar", "a.py/", "a" * 300 + ".py", ""]
)
def test_a_name_that_is_a_path_or_of_another_kind_is_not_kept(client, jobs, name):
    data = f'--x\r\ncontent-disposition: form-data; name="f"; filename="{name}"\r\n\r\n1\r\n--x--\r\n'.encode()
    response = client.post("/jars/upload", content=data, headers={"content-type": "multipart/form-data; boundary=x"})
    assert response.status_code == 400
    errors(response)
    assert jobs.uploaded == {}


def test_exactly_one_file_is_uploaded(client):
    two = {"a": ("a.py", b""), "b": ("b.py", b"")}
    assert client.post("/jars/upload", files=two).status_code == 400
    assert client.post("/jars/upload", content=b"{}").status_code == 400
    broken = {"content-type": "multipart/form-data"}
    assert client.post("/jars/upload", content=b"--x", headers=broken).status_code == 400


def test_no_program_is_taken_unless_that_is_switched_on(jobs):
    client = client_of(jobs)
    assert client.get("/config").json()["features"]["web-submit"] is False
    for method, path in [("GET", "/jars"), ("POST", "/jars/upload"), ("POST", "/jars/a.py/run"), ("DELETE", "/jars/a")]:
        response = client.request(method, path)
        assert response.status_code == 404
        assert "web.submit.enable" in errors(response)[0]


# --- queryable state ---
def test_state_is_looked_up_by_keys(client):
    path = f"/jobs/{RUNNING}/state/totals"
    assert client.get(f"{path}?key=7&key=a b&key=1e1.2").json() == {"state": "totals", "keys": [7, "a b", "1e1.2"]}
    paged = {"state": "totals", "key-groups": [0, 63], "limit": 3, "token": "1234.5"}
    assert client.get(f"{path}?limit=3&token=1234.5&key-groups=0-63&colour=blue").json() == paged
    assert client.get(f"{path}?limit=0").status_code == 400
    assert client.get(f"{path}?key-groups=all").status_code == 400
    assert client.post(path, json={"keys": [[1, 2]]}).json() == {"state": "totals", "keys": [[1, 2]]}
    assert client.post(path, content=b"[]").status_code == 400
    assert client.get(f"/jobs/{NOBODY}/state/totals").status_code == 404


# --- pages and surprises ---
def test_the_description_loads_nothing_from_elsewhere(client):
    page = client.get("/docs")
    assert page.status_code == 200
    assert "http" not in page.text.partition("<body>")[2]
    assert "/jobs/{job_id}/savepoints" in page.text
    assert "/jobs/{job_id}" in client.get("/openapi.json").json()["paths"]


def test_a_dashboard_is_served_beside_the_paths(jobs, tmp_path):
    (tmp_path / "index.html").write_text("<html>dashboard</html>")
    (tmp_path / "main.js").write_text("1")
    client = client_of(jobs, dashboard=tmp_path)
    assert "dashboard" in client.get("/").text
    assert client.get("/main.js").text == "1"
    assert client.get("/overview").json()["taskmanagers"] == 1
    errors(client.get("/nosuch.js"))
    errors(client.post("/overview"))
    assert client.get("/../scripted_jobs.py").status_code == 404


def test_what_nobody_foresaw_is_told_in_the_log_only(client, jobs, caplog):
    def surprise():
        raise RuntimeError("a detail of ours")

    jobs.records = surprise
    response = client.get("/jobs")
    assert response.status_code == 500
    assert "a detail of ours" not in response.text
    number = errors(response)[1].rpartition(" ")[2].strip(".")
    assert number in caplog.text and "a detail of ours" in caplog.text
