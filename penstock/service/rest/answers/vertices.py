"""The vertices of a job and their subtasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import md5
from typing import Any

from penstock.engine.job.job_record import JobRecord, VertexRecord
from penstock.service.rest.answers.flink_numbers import Json, as_number, count, metric_text, spread
from penstock.service.rest.answers.metrics import input_watermark, owner_of, task_metric_names, task_metrics
from penstock.service.rest.answers.subtask_states import BEFORE_THE_END, Subtask, combine_states, count_states, subtasks

_IO = {
    "read-bytes": "numBytesIn",
    "write-bytes": "numBytesOut",
    "read-records": "numRecordsIn",
    "write-records": "numRecordsOut",
}
_ACCUMULATED = {
    "accumulated-backpressured-time": "accumulateBackPressuredTimeMs",
    "accumulated-idle-time": "accumulateIdleTimeMs",
    "accumulated-busy-time": "accumulateBusyTimeMs",
}
_HIGH, _LOW = 0.5, 0.1
"""The shares of time under back pressure above which Flink calls it high, or low."""


# --- inputs and outputs ---
def io_of(vertex: VertexRecord, tasks: Sequence[Subtask]) -> Json:
    """Return the total input and output of subtasks."""
    each = [_figures(vertex, task) for task in tasks]
    complete = all(task.slot is not None for task in tasks)
    sums = {name: sum(figures[name] for figures in each) for name in (*_IO, *_ACCUMULATED)}
    answer: Json = {}
    for name in _IO:
        answer |= {name: sums[name], f"{name}-complete": complete}
    answer |= {name: sums[name] for name in _ACCUMULATED}
    answer["accumulated-busy-time"] = float(sums["accumulated-busy-time"])
    return answer


def _figures(vertex: VertexRecord, task: Subtask) -> dict[str, int]:
    metrics = task_metrics(vertex, task.slot)
    return {name: count(metrics, metric) for name, metric in {**_IO, **_ACCUMULATED}.items()}


def _distribution(vertex: VertexRecord, tasks: Sequence[Subtask]) -> Json:
    figures = [_figures(vertex, task) for task in tasks]
    durations = [task.durations() for task in tasks]
    return {
        "metrics": {name: spread([one[name] for one in figures]) for name in (*_IO, *_ACCUMULATED)},
        "status-duration": {state: spread([one[state] for one in durations]) for state in BEFORE_THE_END},
    }


# --- answers ---
def vertex_row(record: JobRecord, vertex: VertexRecord) -> Json:
    """Return a vertex as a line of the answer about its job."""
    tasks = subtasks(record, vertex)
    states = [task.status for task in tasks]
    return {
        "id": vertex.id,
        "slotSharingGroupId": md5(vertex.slot_sharing_group.encode(), usedforsecurity=False).hexdigest(),
        "name": name_of(vertex),
        "maxParallelism": max(vertex.max_parallelism, vertex.parallelism),
        "parallelism": vertex.parallelism,
        "status": combine_states(states),
        **_span(tasks, record.taken),
        "tasks": count_states(states),
        "metrics": io_of(vertex, tasks),
    }


def name_of(vertex: VertexRecord) -> str:
    """Return the name of a vertex, or its id if it has no name."""
    return vertex.name or vertex.id


def _span(tasks: Sequence[Subtask], now: int) -> Json:
    """Return the time from the first start to the last end of subtasks."""
    starts = [task.start for task in tasks if task.start >= 0]
    ends = [task.end for task in tasks]
    start = min(starts, default=-1)
    end = max(ends) if ends and min(ends) >= 0 else -1
    duration = max(0, (end if end >= 0 else now) - start) if start >= 0 else -1
    return {"start-time": start, "end-time": end, "duration": duration}


def vertex_details(record: JobRecord, vertex: VertexRecord) -> Json:
    """Return a vertex with its subtasks."""
    tasks = subtasks(record, vertex)
    return {
        "id": vertex.id,
        "name": name_of(vertex),
        "parallelism": vertex.parallelism,
        "maxParallelism": max(vertex.max_parallelism, vertex.parallelism),
        "now": record.taken,
        "subtasks": [subtask(vertex, task) for task in tasks],
        "aggregated": _distribution(vertex, tasks),
    }


def subtask(vertex: VertexRecord, task: Subtask) -> Json:
    """Return one subtask of a vertex."""
    return {
        "subtask": task.index,
        "status": task.status,
        "attempt": task.attempt,
        "endpoint": task.place,
        "start-time": task.start,
        "end-time": task.end,
        "duration": task.duration,
        "metrics": io_of(vertex, [task]),
        "taskmanager-id": task.place,
        "status-duration": task.durations(),
        "start_time": task.start,
    }


def subtask_times(record: JobRecord, vertex: VertexRecord) -> Json:
    """Return the times at which each subtask entered its states."""
    return {
        "id": vertex.id,
        "name": name_of(vertex),
        "now": record.taken,
        "subtasks": [
            {"subtask": task.index, "endpoint": task.place, "duration": task.duration, "timestamps": task.times}
            for task in subtasks(record, vertex)
        ],
    }


def hosts(record: JobRecord, vertex: VertexRecord) -> Json:
    """Return the subtasks of a vertex, grouped by machine."""
    places: dict[str, list[Subtask]] = {}
    for task in subtasks(record, vertex):
        places.setdefault(task.place, []).append(task)
    return {
        "id": vertex.id,
        "name": name_of(vertex),
        "now": record.taken,
        "taskmanagers": [_host(record, vertex, place, tasks) for place, tasks in places.items()],
    }


def _host(record: JobRecord, vertex: VertexRecord, place: str, tasks: Sequence[Subtask]) -> Json:
    states = [task.status for task in tasks]
    return {
        "endpoint": place,
        "status": combine_states(states),
        **_span(tasks, record.taken),
        "metrics": io_of(vertex, tasks),
        "status-counts": count_states(states),
        "taskmanager-id": place,
        "aggregated": _distribution(vertex, tasks),
    }


# --- accumulators ---
def accumulator(name: str, value: Any) -> Json:
    """Return a metric in the form of an accumulator."""
    kind = "DoubleCounter" if isinstance(value, float) else "LongCounter"
    return {"name": name, "type": kind, "value": metric_text(value)}


def _own(vertex: VertexRecord, metrics: Mapping[str, Any]) -> list[Json]:
    """Return the numeric metrics of a program that belong to operators of this vertex."""
    built_in = task_metric_names(vertex).values()
    return [
        accumulator(name, value)
        for name, value in metrics.items()
        if owner_of(name, vertex) is not None and name not in built_in and as_number(value) is not None
    ]


def vertex_accumulators(record: JobRecord, vertex: VertexRecord) -> Json:
    """Return the accumulators of a vertex."""
    return {"id": vertex.id, "user-accumulators": _own(vertex, record.accumulators)}


def subtask_accumulators(record: JobRecord, vertex: VertexRecord) -> Json:
    """Return the accumulators of each subtask of a vertex."""
    rows = [
        {
            "subtask": task.index,
            "attempt": task.attempt,
            "endpoint": task.place,
            "user-accumulators": _own(vertex, task.slot.metrics if task.slot is not None else {}),
        }
        for task in subtasks(record, vertex)
    ]
    return {"id": vertex.id, "parallelism": vertex.parallelism, "subtasks": rows}


# --- time and pressure ---
def watermarks(record: JobRecord, vertex: VertexRecord) -> list[Json]:
    """Return the input watermark of each subtask. A source and a vertex of an ended job have no watermarks."""
    if not vertex.inputs or record.ended is not None:
        return []
    return [
        {"id": f"{task.index}.currentInputWatermark", "value": str(input_watermark(vertex, task.slot))}
        for task in subtasks(record, vertex)
    ]


def back_pressure(record: JobRecord, vertex: VertexRecord | None) -> Json:
    """Return the share of time that subtasks had to wait for the subtasks behind them."""
    if vertex is None or record.ended is not None:
        return {"status": "deprecated"}
    rows = [_pressure(vertex, task) for task in subtasks(record, vertex)]
    level = _level(max((row["ratio"] for row in rows), default=0.0))
    return {
        "status": "ok",
        "backpressureLevel": level,
        "end-timestamp": record.taken,
        "subtasks": rows,
        "backpressure-level": level,
    }


def _pressure(vertex: VertexRecord, task: Subtask) -> Json:
    metrics = task_metrics(vertex, task.slot)

    def share(name: str) -> float:
        return min(1.0, count(metrics, name) / 1000)

    ratio = share("backPressuredTimeMsPerSecond")
    return {
        "subtask": task.index,
        "backpressureLevel": _level(ratio),
        "ratio": ratio,
        "idleRatio": share("idleTimeMsPerSecond"),
        "busyRatio": share("busyTimeMsPerSecond"),
        "backpressure-level": _level(ratio),
    }


def _level(ratio: float) -> str:
    if ratio > _HIGH:
        return "high"
    return "low" if ratio > _LOW else "ok"
