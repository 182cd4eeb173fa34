"""What a job does now, for pages that draw its graph."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from penstock.job.record import StateRecord, as_json, from_json
from penstock.rest.answers.activity import activity, queryable_states
from tests.rest.scripted_jobs import CANCELED, SINK, SOURCE, job, slot

SHARES = st.floats(0, 1000)


def sink_of(*slots):
    return next(one for one in activity(job(slots=slots))["vertices"] if one["id"] == SINK)


@given(st.lists(st.tuples(SHARES, SHARES, st.integers(0, 10**9)), min_size=2, max_size=2))
def test_records_are_added_up_and_the_worst_subtask_speaks_for_the_vertex(figures):
    slots = [
        slot(index, busyTimeMsPerSecond=busy, backPressuredTimeMsPerSecond=held, numRecordsIn=records)
        for index, (busy, held, records) in enumerate(figures)
    ]
    told = sink_of(*slots)
    assert told["records-in"] == sum(records for *_, records in figures)
    assert told["busy"] == max(busy for busy, *_ in figures) / 1000
    assert told["back-pressured"] == max(held for _, held, _ in figures) / 1000
    assert figures[told["busiest-subtask"]][0] == max(busy for busy, *_ in figures)


def test_event_time_is_that_of_the_subtask_furthest_behind():
    assert sink_of(slot(0), slot(1))["watermark"] == 4000
    silent = replace(slot(0), watermarks={"sink-1": -(1 << 63)})
    assert sink_of(silent, slot(1))["watermark"] is None


def test_a_job_that_has_ended_does_nothing(client):
    told = client.get(f"/jobs/{CANCELED}/activity").json()
    assert told["vertices"] == [] and [change["state"] for change in told["changes"]][-1] == "CANCELED"
    assert client.get(f"/jobs/{'0' * 32}/activity").status_code == 404


def test_states_that_can_be_looked_up_are_named_with_their_vertex(client, jobs):
    states = (StateRecord("totals", "map", "sink-1", "print"), StateRecord("last", "value", "gone", "gone"))
    record = job(queryable=states)
    jobs.known[record.job_id] = record
    told = client.get(f"/jobs/{record.job_id}/state").json()["states"]
    assert [(state["name"], state["kind"], state["vertex"]) for state in told] == [
        ("last", "value", None),
        ("totals", "map", SINK),
    ]
    assert queryable_states(job(CANCELED, "CANCELED", queryable=states)) == {"states": []}
    assert from_json(type(record), as_json(record)).queryable == states


def test_more_than_ten_checkpoints_are_listed_if_a_client_wants_them(client):
    path = "/jobs/" + job().job_id + "/checkpoints"
    assert len(client.get(path).json()["history"]) == 3
    assert len(client.get(path, params={"history": 2}).json()["history"]) == 2
    assert client.get(path, params={"history": "many"}).status_code == 400


def test_sources_are_told_of_too():
    assert {one["id"] for one in activity(job())["vertices"]} == {SOURCE, SINK}
