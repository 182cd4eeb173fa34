"""Queryable state over REST: what a running job holds, as JSON, all of one answer from one cut."""

import json
import re
import urllib.error
import urllib.request

import pytest
from typer.testing import CliRunner

from penstock.common import Types
from penstock.datastream import StreamExecutionEnvironment
from penstock.datastream.functions import KeyedProcessFunction
from penstock.datastream.state import ValueStateDescriptor
from penstock.service.cli import app
from penstock.service.launch.submission import start, with_defaults
from penstock.service.rest.embedded import serve_in_thread
from penstock.service.rest.local_jobs import LocalJobs
from penstock.testing import in_process
from tests.rest.served_jobs import ANY_PORT, Seconds
from tests.waiting import until

KEYS = 7


class Count(KeyedProcessFunction):
    def open(self, runtime_context):
        descriptor = ValueStateDescriptor("count", Types.LONG())
        descriptor.set_queryable("counts")
        self.count = runtime_context.get_state(descriptor)

    def process_element(self, value, ctx):
        self.count.update((self.count.value() or 0) + 1)


@pytest.fixture(scope="module")
def served():
    """The address of a job's states, and the job."""
    jobs = LocalJobs({}, [])
    with in_process(), with_defaults(on_start=jobs.add), serve_in_thread(jobs, ANY_PORT) as url:
        env = StreamExecutionEnvironment.get_execution_environment()
        env.set_parallelism(2)
        numbers = env.add_source(Seconds(), type_info=Types.LONG())
        numbers.key_by(lambda n: n % KEYS, Types.LONG()).process(Count()).print()
        handle = start(env, "counting")
        yield f"{url}/jobs/{handle.job_id}/state", handle
        handle.cancel()


def answer(url, body=None):
    data = None if body is None else json.dumps(body).encode()
    try:
        with urllib.request.urlopen(urllib.request.Request(url, data), timeout=60) as answered:
            return answered.status, json.load(answered)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def test_keys_are_looked_up(served):
    url, _ = served
    until(lambda: all(entry["found"] for entry in answer(f"{url}/counts?key=0&key=6")[1]["entries"]))
    status, found = answer(f"{url}/counts?key=3&key=999")
    assert status == 200 and (found["state"], found["kind"]) == ("counts", "value")
    (three, none) = found["entries"]
    assert three["key"] == 3 and three["value"] > 0 and none == {"key": 999, "found": False}
    assert set(found["cut"]) == {"attempt", "epoch", "processing-time"}


def test_all_counts_of_one_answer_are_of_one_moment(served):
    """Records come in turn to the keys, so at any moment two counts differ by one at most."""
    url, _ = served
    for _ in range(20):
        counts = [entry["value"] for entry in answer(f"{url}/counts", {"keys": list(range(KEYS))})[1]["entries"]]
        assert max(counts) - min(counts) <= 1


def test_all_keys_come_in_pages_of_one_moment(served):
    url, _ = served
    status, page = answer(f"{url}/counts?limit=3")
    entries, cut = list(page["entries"]), page["cut"]
    assert status == 200 and len(entries) == 3
    while page["next"] is not None:
        _, page = answer(f"{url}/counts", {"limit": 3, "token": page["next"]})
        entries += page["entries"]
        assert page["cut"] == cut
    assert sorted(entry["key"] for entry in entries) == list(range(KEYS))
    assert max(e["value"] for e in entries) - min(e["value"] for e in entries) <= 1


@pytest.mark.parametrize(
    ("path", "body", "status", "telling"),
    [
        ("/nothing?key=1", None, 404, "counts"),
        ("/counts", {"keys": 5}, 400, "lists"),
        ("/counts", {"keys": [1], "limit": 3}, 400, "not both"),
        ("/counts", {"key": [1]}, 400, "cannot have 'key'"),
        ("/counts", {"limit": 0}, 400, "at least 1"),
        ("/counts", {"keys": [{"a": 1}]}, 400, ""),
        ("/counts?token=stale", None, 400, ""),
        ("/counts", {"token": 1.5, "limit": 3}, 400, "must be a string"),
    ],
)
def test_what_cannot_be_answered_says_why(served, path, body, status, telling):
    url, _ = served
    found, said = answer(url + path, body)
    assert found == status, said
    assert telling in said["errors"][0] and len(said) == 1


def test_the_command_line_shows_what_is_held_and_what_is_not(served):
    url, handle = served
    server = url.partition("/jobs/")[0]
    until(lambda: answer(f"{url}/counts?key=3")[1]["entries"][0]["found"])
    shown = CliRunner().invoke(app, ["state", "-m", server, handle.job_id.hex, "counts", "3", "999"])
    assert shown.exit_code == 0, shown.output
    three, none = (line.split() for line in shown.stdout.splitlines()[-2:])
    assert three[0] == "3" and int(three[1]) > 0 and none == ["999", "(nothing)"]


def test_a_job_that_has_ended_says_so(served):
    url, handle = served
    handle.cancel()
    status, said = answer(f"{url}/counts?key=1")
    assert status in (409, 503) and re.search("cancel", said["errors"][0], re.IGNORECASE)
