"""The present activity of all vertices of a job in one answer, for pages that show its graph. Not in Flink."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.engine.job.job_record import JobRecord, SlotRecord, VertexRecord
from penstock.engine.observe.system_metrics import LOWEST_WATERMARK
from penstock.service.rest.answers.flink_numbers import Json, as_number
from penstock.service.rest.answers.metrics import task_metrics

_SUMS = {
    "records-in": "numRecordsIn",
    "records-out": "numRecordsOut",
    "records-in-per-second": "numRecordsInPerSecond",
    "records-out-per-second": "numRecordsOutPerSecond",
    "bytes-in-per-second": "numBytesInPerSecond",
    "bytes-out-per-second": "numBytesOutPerSecond",
}
_BUSY, _HELD, _IDLE = "busyTimeMsPerSecond", "backPressuredTimeMsPerSecond", "idleTimeMsPerSecond"


def activity(record: JobRecord) -> Json:
    """Return the activity of the vertices while slots report, and all changes of the job's status."""
    slots = [] if record.ended is not None else list(record.slots)
    return {
        "now": record.taken,
        "state": record.status,
        "attempt": record.attempt,
        "epoch": record.epoch,
        "restart-at": record.restart_at if record.status == "RESTARTING" else None,
        "changes": [{"state": change.status.name, "timestamp": change.when} for change in record.changes],
        "vertices": [_vertex(vertex, slots) for vertex in record.vertices] if slots else [],
    }


def activities(records: Sequence[JobRecord]) -> Json:
    """Return the input rate, the load and the newest checkpoint of each running job, for lists of jobs."""
    return {"jobs": [_job(record) for record in records if record.ended is None]}


def _job(record: JobRecord) -> Json:
    vertices = activity(record)["vertices"]
    sources = {vertex.id for vertex in record.vertices if not vertex.inputs}
    newest = max((one.ended or 0 for one in record.checkpoints.completed), default=0)
    return {
        "jid": record.job_id,
        "records-per-second": sum(one["records-out-per-second"] for one in vertices if one["id"] in sources),
        "busy": max((one["busy"] for one in vertices), default=0.0),
        "back-pressured": max((one["back-pressured"] for one in vertices), default=0.0),
        "restarts": record.attempt,
        "last-checkpoint": newest or None,
        "now": record.taken,
    }


def _vertex(vertex: VertexRecord, slots: list[SlotRecord]) -> Json:
    """Return sums over the subtasks. A share of time is that of the slowest subtask, because it delays the others."""
    own = [slot for slot in slots if slot.slot < vertex.parallelism]
    metrics = [task_metrics(vertex, slot) for slot in own]

    def numbers(name: str) -> list[float | int]:
        return [as_number(one.get(name)) or 0 for one in metrics]

    def shares(name: str) -> list[float]:
        return [min(1.0, max(0.0, number / 1000)) for number in numbers(name)]

    busy = shares(_BUSY)
    return {
        "id": vertex.id,
        **{name: sum(numbers(metric)) for name, metric in _SUMS.items()},
        "busy": max(busy, default=0.0),
        "back-pressured": max(shares(_HELD), default=0.0),
        "idle": min(shares(_IDLE), default=0.0),
        "busiest-subtask": own[busy.index(max(busy))].slot if own else 0,
        "watermark": _watermark(vertex, own),
    }


def _watermark(vertex: VertexRecord, slots: list[SlotRecord]) -> int | None:
    """Return the lowest watermark of the subtasks, or None before the first watermark."""
    uids = [operator.uid for operator in vertex.operators]
    reached = [slot.watermarks[uid] for slot in slots for uid in uids[-1:] if uid in slot.watermarks]
    lowest = min(reached, default=LOWEST_WATERMARK)
    return lowest if lowest > LOWEST_WATERMARK else None


def queryable_states(record: JobRecord) -> Json:
    """Return the queryable states, each with the vertex that holds it."""
    vertices = {operator.uid: vertex.id for vertex in record.vertices for operator in vertex.operators}
    rows = [
        {"name": state.name, "kind": state.kind, "operator": state.operator, "vertex": vertices.get(state.uid)}
        for state in sorted(record.queryable, key=lambda state: state.name)
    ]
    return {"states": rows if record.ended is None else []}
