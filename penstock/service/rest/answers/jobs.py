"""Answers about a job as a whole: its line in lists, details, plan, settings and result."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from penstock.engine.job.job_record import InputRecord, JobRecord, VertexRecord
from penstock.service.rest.answers.exception_answers import cause_of
from penstock.service.rest.answers.flink_numbers import Json, as_number
from penstock.service.rest.answers.subtask_states import JOB_STATES, count_states, subtasks
from penstock.service.rest.answers.vertices import accumulator, vertex_row

_RESULTS = {"FINISHED": "SUCCEEDED", "CANCELED": "CANCELED", "FAILED": "FAILED"}


def job_ids(records: Sequence[JobRecord]) -> Json:
    """Return the id and status of each job."""
    return {"jobs": [{"id": record.job_id, "status": record.status} for record in records]}


def jobs_overview(records: Sequence[JobRecord]) -> Json:
    """Return all jobs as lines of a list."""
    return {"jobs": [job_row(record) for record in records]}


def job_row(record: JobRecord) -> Json:
    """Return a job as a line of a list."""
    states = [task.status for vertex in record.vertices for task in subtasks(record, vertex)]
    tasks = {state.lower(): number for state, number in count_states(states).items()}
    return {
        "jid": record.job_id,
        "name": record.name,
        "jobType": _type(record),
        "schedulerType": "Default",
        **times(record),
        "state": record.status,
        "last-modification": _last_modification(record),
        "tasks": {**tasks, "total": len(states)},
        "pending-operators": 0,
    }


def times(record: JobRecord) -> Json:
    """Return start, end and duration of a job. The end is -1 while the job runs."""
    end = record.ended
    duration = max(0, (record.taken if end is None else end) - record.started)
    return {"start-time": record.started, "end-time": -1 if end is None else end, "duration": duration}


def _last_modification(record: JobRecord) -> int:
    moments = [change.when for change in record.changes]
    return max([*moments, record.deployed or 0, record.started])


def _type(record: JobRecord) -> str:
    return "BATCH" if record.batch else "STREAMING"


def job_details(record: JobRecord) -> Json:
    """Return a job with its vertices and its plan."""
    rows = [vertex_row(record, vertex) for vertex in record.vertices]
    return {
        "jid": record.job_id,
        "application-id": record.job_id,
        "name": record.name,
        "isStoppable": False,
        "state": record.status,
        "job-type": _type(record),
        "schedulerType": "Default",
        **times(record),
        "maxParallelism": record.settings.max_parallelism or -1,
        "now": record.taken,
        "timestamps": timestamps(record),
        "vertices": rows,
        "status-counts": count_states(row["status"] for row in rows),
        "plan": plan(record),
        "pending-operators": 0,
    }


def timestamps(record: JobRecord) -> Json:
    """Return the time at which the job last entered each status, or 0 if it never did."""
    known = {state: record.time_of(state) or 0 for state in JOB_STATES}
    known["INITIALIZING"] = known["INITIALIZING"] or record.started
    known["CREATED"] = known["CREATED"] or record.started
    known[record.status] = known.get(record.status) or record.taken
    return known


# --- the plan ---
def plan(record: JobRecord) -> Json:
    """Return the graph of the job, sinks first."""
    return {
        "jid": record.job_id,
        "name": record.name,
        "type": _type(record),
        "nodes": [_node(record, vertex) for vertex in reversed(record.vertices)],
    }


def _node(record: JobRecord, vertex: VertexRecord) -> Json:
    node = {
        "id": vertex.id,
        "operator": "",
        "parallelism": vertex.parallelism,
        "operator_strategy": "",
        "description": _description(vertex),
        "optimizer_properties": {},
    }
    if vertex.inputs:
        node["inputs"] = [_input(record, number, entering) for number, entering in enumerate(vertex.inputs)]
    return node


def _description(vertex: VertexRecord) -> str:
    """Return the operators of a chain as HTML, each below its input."""
    names = [escape(operator.name or operator.uid) for operator in vertex.operators] or [vertex.id]
    return f"{names[0]}<br/>" + "".join(f"{'&nbsp;' * 3 * depth}+- {name}<br/>" for depth, name in enumerate(names[1:]))


def _input(record: JobRecord, number: int, entering: InputRecord) -> Json:
    return {
        "num": number,
        "id": entering.vertex,
        "ship_strategy": entering.partitioning or "FORWARD",
        "exchange": "blocking" if record.batch else "pipelined_bounded",
    }


# --- settings and results ---
def job_config(record: JobRecord) -> Json:
    """Return restart strategy, parallelism and global parameters of a job."""
    settings = record.settings
    return {
        "jid": record.job_id,
        "name": record.name,
        "execution-config": {
            "restart-strategy": settings.restart_strategy or "not known",
            "job-parallelism": settings.parallelism,
            "object-reuse-mode": settings.object_reuse,
            "user-config": {name: str(value) for name, value in settings.parameters.items()},
        },
    }


def accumulators(record: JobRecord) -> Json:
    """Return the accumulators of the job, without Java's serialised form."""
    own = [
        accumulator(name, value) for name, value in record.accumulators.items() if name and as_number(value) is not None
    ]
    return {"job-accumulators": [], "user-task-accumulators": own, "serialized-user-task-accumulators": {}}


def execution_result(record: JobRecord) -> Json:
    """Return the result of the job, or IN_PROGRESS while it runs."""
    if record.ended is None:
        return {"status": {"id": "IN_PROGRESS"}}
    span = times(record)
    result: Json = {
        "id": record.job_id,
        "name": record.name,
        "application-status": _RESULTS.get(record.status, "UNKNOWN"),
        "accumulator-results": {},
        "net-runtime": span["duration"],
        "application-id": record.job_id,
        "start-time": span["start-time"],
        "end-time": span["end-time"],
    }
    if record.status == "FAILED":
        result["failure-cause"] = cause_of(record)
    return {"status": {"id": "COMPLETED"}, "job-execution-result": result}
