"""Whatever a record says, the answers made of it have Flink's shapes: `shapes.py` holds what Flink 2.3 sends."""

from __future__ import annotations

import importlib.util
import json
import string
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.common.job import JobStatus
from penstock.engine.checkpoint.checkpoint_history import (
    CheckpointRecord,
    CheckpointStatus,
    CheckpointsView,
    Restored,
    SlotShare,
)
from penstock.engine.job.job_record import (
    CheckpointingRecord,
    InputRecord,
    JobRecord,
    OperatorRecord,
    Settings,
    SlotRecord,
    VertexRecord,
    vertex_id,
)
from penstock.engine.job.job_view import FailureView, StatusChange
from penstock.engine.observe.system_metrics import TASK_METRICS
from penstock.service.options.rest_options import RestSettings
from penstock.service.reporters.job_metrics import job_metrics
from penstock.service.rest.answers import applications, checkpoints, jobs, machines, vertices
from penstock.service.rest.answers import exception_answers as failures
from penstock.service.rest.answers.flink_numbers import AGGREGATES, percentile, summary
from penstock.service.rest.answers.metrics import (
    aggregate_metrics,
    by_subtask,
    cluster_metrics,
    list_metrics,
    machine_metrics,
    subtask_metrics,
)
from penstock.service.rest.answers.subtask_states import TASK_STATES, subtasks
from penstock.service.rest.job_backend import LogFile, TaskManagerRecord
from tests.rest import scripted_jobs

_spec = importlib.util.spec_from_file_location("shapes", Path(__file__).with_name("shapes.py"))
s = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(s)

# --- records, as wild as they come ---
times = st.integers(10**12 + 1, 10**13 - 10**6)
counts = st.integers(0, 10**12)
words = st.text(max_size=12)
uids = st.text(string.ascii_lowercase + ".-", min_size=1, max_size=6)
ODD = [float("nan"), float("inf"), -float("inf"), 1e308, -1e308, 10**400, True, "x", -1]
numbers = st.one_of(st.sampled_from(ODD), st.integers(), st.floats(), st.booleans(), words)


@st.composite
def all_vertices(draw):
    names = draw(st.lists(uids, min_size=1, max_size=6, unique=True))
    cuts = draw(st.lists(st.integers(1, len(names)), max_size=3, unique=True))
    bounds = sorted({0, *cuts, len(names)})
    chains = [names[a:b] for a, b in pairwise(bounds)]
    made = []
    for chain in chains:
        parallelism = draw(st.integers(1, 4))
        known = [one.id for one in made]
        made.append(
            VertexRecord(
                vertex_id(chain[0]),
                draw(words),
                parallelism,
                draw(st.integers(1, 128)),
                draw(words),
                tuple(OperatorRecord(uid, draw(words), draw(words)) for uid in chain),
                tuple(InputRecord(one, n, draw(words)) for n, one in enumerate(known[: draw(st.integers(0, 2))])),
            )
        )
    return tuple(made)


def slots(named):
    metric_names = st.one_of(
        st.sampled_from([f"{uid}.{name}" for uid in named for name in ("numRecordsIn", "busyTimeMsPerSecond", "mine")]),
        words,
    )
    return st.lists(
        st.builds(
            SlotRecord,
            st.integers(0, 5),
            counts,
            st.booleans(),
            st.dictionaries(st.sampled_from(named), st.integers(-(1 << 63), (1 << 63) - 1)),
            st.dictionaries(metric_names, numbers, max_size=6),
            words,
        ),
        max_size=6,
        unique_by=lambda slot: slot.slot,
    ).map(tuple)


def shares(named):
    sizes = st.dictionaries(st.sampled_from(named), counts)
    millis = st.floats(0, 1e9)
    share = st.builds(SlotShare, st.integers(0, 5), times, counts, counts, millis, millis, sizes)
    return st.lists(share, max_size=6, unique_by=lambda one: one.slot).map(tuple)


def checkpoint_records(status, named):
    one = st.builds(
        CheckpointRecord,
        st.integers(1, 10**9),
        st.just(status),
        st.booleans(),
        times,
        st.just(None) if status is CheckpointStatus.IN_PROGRESS else times,
        st.none() | words,
        st.none() | words,
        st.integers(0, 9),
        shares(named),
    )
    return st.lists(one, max_size=12, unique_by=lambda record: record.number).map(
        lambda records: tuple(sorted(records, key=lambda record: record.number))
    )


def views(named):
    return st.builds(
        lambda going, done, failed, more, restored, times_restored: CheckpointsView(
            going, done, failed, len(done) + more, len(failed) + more, restored, times_restored
        ),
        checkpoint_records(CheckpointStatus.IN_PROGRESS, named),
        checkpoint_records(CheckpointStatus.COMPLETED, named),
        checkpoint_records(CheckpointStatus.FAILED, named),
        st.integers(0, 5),
        st.none() | st.builds(Restored, st.integers(0, 99), st.booleans(), times, st.none() | words),
        st.integers(0, 5),
    )


def failure_views(named):
    return st.builds(
        FailureView,
        times,
        st.integers(0, 9),
        words,
        words,
        words,
        st.one_of(words, st.sampled_from(named)),
        st.none() | st.integers(0, 5),
        words,
        words,
    )


@st.composite
def records(draw):
    made = draw(all_vertices())
    named = [operator.uid for vertex in made for operator in vertex.operators]
    changes = sorted(
        draw(st.lists(st.builds(StatusChange, st.sampled_from(JobStatus), times), min_size=1, max_size=6)),
        key=lambda change: change.when,
    )
    return JobRecord(
        draw(st.uuids()).hex,
        draw(words),
        draw(st.booleans()),
        changes[-1].status.name,
        tuple(changes),
        changes[-1].when + draw(st.integers(0, 10**5)),
        draw(st.integers(0, 9)),
        draw(counts),
        draw(st.none() | times),
        draw(st.none() | times),
        made,
        draw(slots(named)),
        draw(views(named)),
        tuple(draw(st.lists(failure_views(named), max_size=4))),
        draw(st.dictionaries(words, numbers, max_size=4)),
        draw(
            st.builds(
                Settings,
                st.integers(1, 9),
                st.none() | st.integers(1, 99),
                words,
                st.booleans(),
                st.dictionaries(words, words, max_size=3),
                st.dictionaries(words, words, max_size=3),
                st.none() | st.builds(CheckpointingRecord, interval=st.integers(0, 10**6)),
            )
        ),
    )


machine_records = st.builds(
    TaskManagerRecord,
    words.filter(bool),
    words,
    st.integers(0, 9),
    st.integers(0, 9),
    st.dictionaries(st.uuids().map(lambda one: one.hex), st.integers(0, 3), max_size=3),
    st.integers(0, 9),
    counts,
    counts,
    st.dictionaries(words.filter(bool), numbers, max_size=4),
)


def fits(shape, answer):
    """The answer can be sent, and what arrives has the shape."""
    complaints = shape(json.loads(json.dumps(answer, allow_nan=False)), "answer")
    assert not complaints, complaints


# --- properties ---
@given(records())
@settings(max_examples=60, deadline=None)
def test_the_answers_about_any_job(record):
    about_the_job(record)
    about_its_fields(record)
    about_its_vertices(record)
    about_its_checkpoints(record)


def about_the_job(record):
    fits(s.JOBS, jobs.job_ids([record]))
    fits(s.JOBS_OVERVIEW, jobs.jobs_overview([record]))
    fits(s.JOB, jobs.job_details(record))
    fits(s.PLAN, jobs.plan(record))
    fits(s.JOB_CONFIG, jobs.job_config(record))
    fits(s.ACCUMULATORS, jobs.accumulators(record))
    fits(s.EXCEPTIONS, failures.exceptions(record))
    fits(s.IN_PROGRESS_RESULT if record.ended is None else s.RESULT, jobs.execution_result(record))
    fits(s.APPLICATIONS, applications.applications([record]))
    fits(s.APPLICATION, applications.application(record))
    fits(s.APPLICATION_EXCEPTIONS, failures.application_exceptions(record))
    fits(s.NAMES, list_metrics(job_metrics(record), None))
    fits(s.VALUES, list_metrics(job_metrics(record), ["uptime", "numRestarts", "nosuch"]))


def about_its_fields(record):
    details, row = jobs.job_details(record), jobs.job_row(record)
    assert sum(details["status-counts"].values()) == len(record.vertices)
    for vertex in details["vertices"]:
        assert sum(vertex["tasks"].values()) == vertex["parallelism"] <= vertex["maxParallelism"]
    assert row["tasks"]["total"] == sum(row["tasks"].values()) - row["tasks"]["total"]
    assert details["timestamps"][record.status] != 0
    ended = record.status in ("FINISHED", "FAILED", "CANCELED")
    assert (details["end-time"] == -1) == (not ended)
    end = details["end-time"] if ended else details["now"]
    assert details["duration"] == max(0, end - details["start-time"])
    assert {node["id"] for node in details["plan"]["nodes"]} == {vertex.id for vertex in record.vertices}


def about_its_vertices(record):
    for vertex in record.vertices:
        fits(s.VERTEX, vertices.vertex_details(record, vertex))
        fits(s.SUBTASK_TIMES, vertices.subtask_times(record, vertex))
        fits(s.VERTEX_HOSTS, vertices.hosts(record, vertex))
        fits(s.VERTEX_ACCUMULATORS, vertices.vertex_accumulators(record, vertex))
        fits(s.SUBTASK_ACCUMULATORS, vertices.subtask_accumulators(record, vertex))
        fits(s.WATERMARKS, vertices.watermarks(record, vertex))
        fits(s.BACKPRESSURE, vertices.back_pressure(record, vertex))
        fits(s.SUBTASK, vertices.subtask(vertex, subtasks(record, vertex)[0]))
        metrics = subtask_metrics(record, vertex)
        fits(s.SOME_NAMES, list_metrics(by_subtask(metrics), None))
        fits(s.VALUES, list_metrics(by_subtask(metrics), ["0.numRecordsIn", "0.nosuch"]))
        fits(s.AGGREGATES, aggregate_metrics(list(metrics.values()), ["numRecordsIn"], list(AGGREGATES)))


def about_its_checkpoints(record):
    answer = checkpoints.statistics(record)
    fits(s.CHECKPOINTS, answer)
    numbers = [row["id"] for row in answer["history"]]
    assert numbers == sorted(numbers, reverse=True)
    total = answer["counts"]
    assert total["total"] == total["in_progress"] + total["completed"] + total["failed"]
    fits(s.CHECKPOINT_CONFIG, checkpoints.config(record))
    known = record.checkpoints
    for one in (*known.in_progress, *known.completed, *known.failed):
        fits(s.checkpoint, checkpoints.checkpoint_details(record, one))
        for vertex in record.vertices:
            fits(s.CHECKPOINT_SUBTASKS, checkpoints.subtasks(one, vertex))


@given(st.lists(records(), max_size=2), st.lists(machine_records, min_size=1, max_size=3))
@settings(max_examples=15, deadline=None)
def test_the_answers_about_machines(some, known):
    fits(s.OVERVIEW, machines.overview(some, known))
    fits(s.TASKMANAGERS, machines.task_managers(known))
    fits(s.TASKMANAGER, machines.task_manager(known[0]))
    fits(s.SOME_NAMES, list_metrics(machine_metrics(known[0]), None))
    fits(s.VALUES, list_metrics(machine_metrics(known[0]), [*known[0].metrics]))
    fits(
        s.AGGREGATES,
        aggregate_metrics([machine_metrics(one) for one in known], ["Status.JVM.CPU.Load"], list(AGGREGATES)),
    )
    fits(s.SOME_NAMES, list_metrics(cluster_metrics(1, known, {}), None))


@given(st.dictionaries(words, words))
@settings(deadline=None)
def test_options_are_shown_without_secrets(options):
    rows = machines.key_values({**options, "rest.port": "1", "my.Password": "hunter2"})
    fits(s.KEY_VALUES, rows)
    assert {"key": "my.Password", "value": "******"} in rows


def test_the_answers_about_the_service(tmp_path):
    fits(s.CONFIG, machines.web_config(RestSettings()))
    fits(s.ENVIRONMENT, machines.environment())
    written = tmp_path / "a.log"
    written.write_text("hello")
    answer = machines.log_files([LogFile("a.log", written), LogFile("gone", tmp_path / "gone")])
    fits(s.LOGS, answer)
    assert [(row["name"], row["size"]) for row in answer["logs"]] == [("a.log", 5)]


# --- values ---
def test_percentiles_lie_where_flink_puts_them():
    """As in an answer of Flink 2.3: a quarter beyond the ninth of ten values."""
    assert percentile([1, 2, 3, 4, 5, 6, 7, 8, 9, 10], 0.9) == 9.9
    assert percentile([5], 0.5) == 5
    assert summary([])["p99"] == "NaN"


def test_what_a_vertex_read_and_wrote_is_the_sum_over_its_subtasks():
    record = scripted_jobs.job()
    sink = record.vertices[1]
    answer = vertices.vertex_row(record, sink)["metrics"]
    assert (answer["read-records"], answer["write-records"]) == (40, 7)
    assert answer["read-records-complete"] is True


@pytest.mark.parametrize("value", ODD, ids=lambda value: repr(value)[:6])
def test_a_metric_that_is_no_number_to_reckon_with(value):
    odd = dict.fromkeys(TASK_METRICS, value)
    record = replace(scripted_jobs.job(), slots=(scripted_jobs.slot(0, **odd), scripted_jobs.slot(1, **odd)))
    about_its_vertices(record)
    fits(s.JOB, jobs.job_details(record))


def test_aggregates_of_a_metric():
    record = scripted_jobs.job()
    metrics = list(subtask_metrics(record, record.vertices[1]).values())
    (row,) = aggregate_metrics(metrics, ["numRecordsIn"], ["min", "max", "avg", "sum", "skew"])
    assert row == {"id": "numRecordsIn", "min": 10, "max": 30, "avg": 20, "sum": 40, "skew": 50}
    assert aggregate_metrics(metrics, ["numRecordsIn", "nosuch"], ["min"]) == []


def test_watermarks_are_those_of_the_first_operator():
    record = scripted_jobs.job()
    assert vertices.watermarks(record, record.vertices[0]) == []
    assert vertices.watermarks(record, record.vertices[1]) == [
        {"id": "0.currentInputWatermark", "value": "4000"},
        {"id": "1.currentInputWatermark", "value": "4001"},
    ]


def test_the_subtask_that_raised_has_failed_and_the_others_were_cancelled():
    record = scripted_jobs.job(status="FAILED", failures=(scripted_jobs.failure(),))
    source, sink = record.vertices
    assert [task.status for task in subtasks(record, sink)] == ["CANCELED", "FAILED"]
    assert [task.status for task in subtasks(record, source)] == ["CANCELED", "CANCELED"]
    (entry,) = failures.exceptions(record)["exceptionHistory"]["entries"]
    (cause,) = entry["concurrentExceptions"]
    assert cause["exceptionName"] == "ValueError"
    assert cause["taskName"] == "Sink: <print> (2/2) - execution #0"


def test_a_job_that_waits_for_slots_runs_and_its_subtasks_are_scheduled():
    record = replace(scripted_jobs.job(), deployed=None, slots=())
    details = jobs.job_details(record)
    assert details["state"] == "RUNNING"
    assert details["vertices"][0]["tasks"] == {**dict.fromkeys(TASK_STATES, 0), "SCHEDULED": 2}
    task = vertices.vertex_details(record, record.vertices[0])["subtasks"][0]
    assert (task["endpoint"], task["start-time"], task["duration"]) == ("(unassigned)", -1, -1)


def test_only_the_newest_checkpoints_are_still_there_but_savepoints_are():
    rows = checkpoints.statistics(scripted_jobs.job())["history"]
    assert [(row["id"], row["discarded"]) for row in rows] == [(3, False), (2, False), (1, True)]


@pytest.mark.parametrize(("savepoint", "path"), [(True, "file:/s"), (False, None)])
def test_where_a_job_started_from_is_told(savepoint, path):
    told = CheckpointsView(restored=Restored(3, savepoint, scripted_jobs.NOW), restored_in_all=1)
    options = Settings(configuration={"execution.state-recovery.path": "file:/s"})
    answer = checkpoints.statistics(replace(scripted_jobs.job(), checkpoints=told, settings=options))
    assert answer["latest"]["restored"]["external_path"] == path


def test_a_job_without_periodic_checkpoints_has_an_interval_without_end():
    record = replace(scripted_jobs.job(), settings=Settings())
    assert checkpoints.config(record)["interval"] == 0x7FFFFFFFFFFFFFFF
    assert checkpoints.config(scripted_jobs.job())["interval"] == 1000


def test_a_checkpoint_is_divided_up_by_what_each_vertex_keeps():
    record = scripted_jobs.job()
    answer = checkpoints.checkpoint_details(record, record.checkpoints.completed[0])
    assert (answer["state_size"], answer["checkpointed_size"]) == (200, 120)
    assert answer["tasks"][scripted_jobs.SINK]["state_size"] == 160
    assert answer["tasks"][scripted_jobs.SOURCE]["state_size"] == 0
    assert answer["num_subtasks"] == answer["num_acknowledged_subtasks"] == 4


def test_names_of_operators_are_no_markup():
    (sink, _) = jobs.plan(scripted_jobs.job())["nodes"]
    assert sink["description"] == "Sink: &lt;print&gt;<br/>"
