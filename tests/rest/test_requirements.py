"""Resource requirements in Flink's form, and which of them this engine can fulfil."""

import re
from dataclasses import replace

import pytest

from tests.rest.conftest import client_of
from tests.rest.scripted_jobs import FINISHED, RUNNING, SINK, SOURCE, job

PATH = f"/jobs/{RUNNING}/resource-requirements"


def bounds(**uppers):
    ids = {"source": SOURCE, "sink": SINK}
    return {ids.get(name, name): {"parallelism": {"lowerBound": 1, "upperBound": n}} for name, n in uppers.items()}


@pytest.fixture
def client(jobs):
    return client_of(jobs)


def rescalings(jobs):
    return [order for order in jobs.orders if order[0] == "rescale"]


def test_what_a_job_has_is_told(client):
    assert client.get(PATH).json() == client.get(f"/v1{PATH}").json() == bounds(source=2, sink=2)
    assert client.get(f"/jobs/{FINISHED}/resource-requirements").status_code == 200
    assert client.get(f"/jobs/{'f' * 32}/resource-requirements").status_code == 404


def test_new_bounds_rescale_the_job(client, jobs):
    answer = client.put(PATH, json=bounds(source=3, sink=3))
    assert (answer.status_code, answer.json()) == (200, {})
    assert rescalings(jobs) == [("rescale", RUNNING, 3)]
    assert client.put(PATH, json=bounds(source=2, sink=2)).status_code == 200
    assert len(rescalings(jobs)) == 1, "it has them already"


@pytest.mark.parametrize(
    ("sent", "why"),
    [
        (bounds(source=3), r"incomplete: it has no requirements for 'Sink: <print>'"),
        (bounds(source=3, sink=3, ffff=3), r"vertex ffff was not found"),
        (bounds(source=3, sink=4), r"the same upper bound for all of them, not 3, 4"),
        (bounds(source=3, sink=2), r"'Sink: <print>' .* changes together with 'Source: numbers'"),
        (bounds(source=129, sink=129), r"is 129, and its max parallelism is 128"),
        (bounds(source=0, sink=0), r"greater than or equal to 1"),
        ({SOURCE: {"parallelism": {"lowerBound": 4, "upperBound": 3}}}, r"lower bound .* above its upper bound"),
        ({"nonsense": 1}, r"not have the expected form"),
        ([], r"not have the expected form"),
    ],
)
def test_what_cannot_be_is_refused_with_the_reason(client, jobs, sent, why):
    answer = client.put(PATH, json=sent)
    assert answer.status_code == 400
    assert re.search(why, answer.json()["errors"][0]), answer.json()
    assert rescalings(jobs) == []


def test_a_vertex_with_a_parallelism_of_its_own_keeps_it(jobs):
    first, second = job().vertices
    jobs.known[RUNNING] = job(vertices=(replace(first, parallelism=1), second))
    client = client_of(jobs)
    refused = client.put(PATH, json=bounds(source=3, sink=3))
    assert refused.status_code == 400 and "a parallelism of its own" in refused.json()["errors"][0]
    assert client.put(PATH, json=bounds(source=1, sink=3)).status_code == 200
    assert rescalings(jobs) == [("rescale", RUNNING, 3)]


def test_thread_dumps(client, jobs):
    manager = client.get("/taskmanagers").json()["taskmanagers"][0]["id"]
    for path in ("/jobmanager/thread-dump", f"/taskmanagers/{manager}/thread-dump"):
        (thread,) = client.get(path).json()["threadInfos"]
        assert thread.keys() == {"threadName", "stringifiedThreadInfo"}
    assert client.get("/taskmanagers/nobody/thread-dump").status_code == 404
