"""What a job does now, for pages that draw its graph."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from penstock.engine.job.job_record import MetricRecord, SlotRecord, StateRecord, as_json, from_json
from penstock.engine.messages.metric_totals import OF_THE_JOB
from penstock.service.rest import activity_history
from penstock.service.rest.activity_history import ActivityHistory
from penstock.service.rest.answers.activity_answers import activity, queryable_states
from penstock.service.rest.answers.marker_latency import latencies
from tests.rest.scripted_jobs import CANCELED, NOW, RUNNING, SINK, SOURCE, job, slot

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


def marker_time(index, part, millis, source=True):
    """A reading of the histogram that the sink has in a slot, as slots report it."""
    way = f"source_id.{SOURCE}." if source else ""
    name = f"{OF_THE_JOB}latency.{way}operator_id.{SINK}.operator_subtask_index.{index}.latency"
    described = {name: MetricRecord("", name.removeprefix(OF_THE_JOB), "histogram", (part,))}
    record = SlotRecord(index, 100 + index, False, {}, {f"{name}.{part}": millis})
    return record, described


def test_latency_is_that_of_the_subtask_to_which_it_takes_longest():
    (first, one), (second, two) = marker_time(0, "p99", 12.5), marker_time(1, "p99", 40.0)
    record = job(slots=(first, second), described=one | two)
    assert latencies(record)["latencies"] == [{"source": "Source: numbers", "operator": "Sink: <print>", "p99": 40.0}]
    alone, described = marker_time(0, "p50", 7, source=False)
    (row,) = latencies(job(slots=(alone,), described=described))["latencies"]
    assert row == {"source": None, "operator": "Sink: <print>", "median": 7.0}


def test_a_record_that_has_travelled_still_tells_its_latency():
    slot_record, described = marker_time(0, "p99", 12.5)
    record = job(slots=(slot_record,), described=described)
    assert latencies(from_json(type(record), as_json(record))) == latencies(record)


def test_a_job_without_markers_has_no_latency(client):
    assert client.get(f"/jobs/{RUNNING}/latency").json() == {"latencies": []}


def test_a_list_of_jobs_tells_what_each_takes_in(client):
    (told,) = client.get("/jobs/activity").json()["jobs"]
    assert told["jid"] == RUNNING and told["last-checkpoint"] == NOW - 500 and told["restarts"] == 0


# --- what was before ---
def sampled(jobs, *records):
    """The history of a job after it was looked at in each of these states."""
    history = ActivityHistory(jobs)
    for record in records:
        jobs.known[record.job_id] = record
        history.look()
    return history


def busy(share, **changes):
    return job(slots=(slot(0, busyTimeMsPerSecond=share), slot(1)), **changes)


def test_samples_are_told_in_order_and_once(jobs):
    history = sampled(jobs, busy(100, taken=NOW), busy(100, taken=NOW), busy(900, taken=NOW + 5000))
    told = history.answer(RUNNING)
    assert told["times"] == [NOW, NOW + 5000]
    assert told["vertices"][SINK]["busy"] == [0.1, 0.9]
    assert told["vertices"][SINK]["watermark-lag"] == [float(f"{NOW - 4000:.4g}")] * 2
    assert history.answer("0" * 32) == {"times": [], "vertices": {}}


def test_samples_of_a_job_that_has_ended_stay_until_it_is_forgotten(jobs):
    history = sampled(jobs, busy(100))
    jobs.known[RUNNING] = job(status="FINISHED", taken=NOW + 9000)
    history.look()
    assert history.answer(RUNNING)["times"] == [NOW]
    del jobs.known[RUNNING]
    history.look()
    assert history.answer(RUNNING)["times"] == []


def test_an_answer_about_many_vertices_has_fewer_samples_but_the_newest(jobs, monkeypatch):
    monkeypatch.setattr(activity_history, "MOST_FIGURES", 30)
    history = sampled(jobs, *(busy(100, taken=NOW + number) for number in range(10)))
    times = history.answer(RUNNING)["times"]
    assert times == [NOW + 1, NOW + 5, NOW + 9]


def test_only_so_many_samples_and_jobs_are_kept(jobs, monkeypatch):
    monkeypatch.setattr(activity_history, "MOST_JOBS", 2)
    ids = [f"{number:032x}" for number in range(4)]
    history = sampled(jobs, *(busy(100, job_id=job_id) for job_id in ids))
    assert [bool(history.answer(job_id)["times"]) for job_id in ids] == [False, False, True, True]


def test_sources_are_told_of_too():
    assert {one["id"] for one in activity(job())["vertices"]} == {SOURCE, SINK}
