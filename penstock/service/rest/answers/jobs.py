"""A job as a whole: its line in lists, its details, its plan, its settings, its result."""

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
    return {"jobs": [{"id": record.job_id, "status": record.status} for record in records]}


def jobs_overview(records: Sequence[JobRecord]) -> Json:
    return {"jobs": [job_row(record) for record in records]}


def job_row(record: JobRecord) -> Json:
    """A job as a line in a list."""
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
    """Start, end and duration; the end of a job that has none yet is -1."""
    end = record.ended
    duration = max(0, (record.taken if end is None else end) - record.started)
    return {"start-time": record.started, "end-time": -1 if end is None else end, "duration": duration}


def _last_modification(record: JobRecord) -> int:
    moments = [change.when for change in record.changes]
    return max([*moments, record.deployed or 0, record.started])


def _type(record: JobRecord) -> str:
    return "BATCH" if record.batch else "STREAMING"


def job_details(record: JobRecord) -> Json:
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
    """When the job last entered each status; 0 for those that it never had."""
    known = {state: record.entered(state) or 0 for state in JOB_STATES}
    known["INITIALIZING"] = known["INITIALIZING"] or record.started
    known["CREATED"] = known["CREATED"] or record.started
    known[record.status] = known.get(record.status) or record.taken
    return known


# --- the plan ---
def plan(record: JobRecord) -> Json:
    """The graph of the job, sinks first."""
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
    """The operators of a chain as HTML, each below the one that feeds it."""
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
    """What the job has counted. Java's serialised form of it is not given."""
    own = [
        accumulator(name, value) for name, value in record.accumulators.items() if name and as_number(value) is not None
    ]
    return {"job-accumulators": [], "user-task-accumulators": own, "serialized-user-task-accumulators": {}}


def execution_result(record: JobRecord) -> Json:
    """How the job ended, once it has."""
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
