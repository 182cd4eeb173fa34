"""A picture of a job for a notebook: its graph with rates, as HTML without any script."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass

from penstock.base.display.flow_graph import Arrow, Box, draw
from penstock.base.display.html_parts import BLUE, GREEN, GREY, RED, YELLOW, failure, head, note, whole
from penstock.base.display.short_texts import count, size_text
from penstock.engine.job.job_record import JobRecord, VertexRecord

MOST_VERTICES = 60
"""Largest number of vertices in a picture. Further vertices are left out."""
_COLOURS = {"RUNNING": GREEN, "FINISHED": BLUE, "FAILED": RED, "CANCELED": GREY}


@dataclass(frozen=True)
class Traffic:
    """The traffic of a vertex over all its subtasks, in records per second."""

    records_in: float
    records_out: float
    busy: float
    """The share of time in which the busiest subtask worked, from 0 to 1."""


def picture(record: JobRecord) -> str:
    """Return the job at the moment of the record as HTML."""
    return whole(_headline(record), _failure(record), _graph(record))


def caption(record: JobRecord) -> str:
    """Return the job at the moment of the record as a line of text."""
    traffic = [traffic_of(record, vertex) for vertex in record.vertices]
    out = sum(one.records_out for one in traffic)
    return f"job '{record.name}' ({record.job_id}) is {record.status}; {len(traffic)} vertices, {rate(out)} records/s"


def traffic_of(record: JobRecord, vertex: VertexRecord) -> Traffic:
    """Return the traffic of a vertex at the moment of the record."""
    uid = vertex.operators[0].uid if vertex.operators else ""
    subtasks = [slot.metrics for slot in record.slots if slot.slot < vertex.parallelism]

    def values(name: str) -> list[float]:
        return [float(metrics.get(f"{uid}.{name}", 0)) for metrics in subtasks]

    busy = max(values("busyTimeMsPerSecond"), default=0.0) / 1000
    return Traffic(sum(values("numRecordsInPerSecond")), sum(values("numRecordsOutPerSecond")), min(1.0, busy))


# --- the words above the graph ---
def _headline(record: JobRecord) -> str:
    facts = [f"for {_duration((record.ended or record.taken) - record.started)}"]
    if record.attempt:
        facts.append(count(record.attempt, "restart"))
    last = record.checkpoints.completed[-1] if record.checkpoints.completed else None
    if last is not None:
        facts.append(f"checkpoint {last.number} took {last.millis} ms, {size_text(last.size)}")
    colour = _COLOURS.get(record.status, YELLOW)
    return head(record.name, *facts, record.job_id, badge=record.status, colour=colour)


def _failure(record: JobRecord) -> str:
    return failure(f"last failure: {record.failures[-1].message[:500]}") if record.failures else ""


def _duration(millis: int) -> str:
    return str(datetime.timedelta(seconds=max(0, millis) // 1000))


def rate(number: float) -> str:
    """Return a number of records per second as text that fits into a box."""
    for unit in ("", "k", "M"):
        if number < 1000:
            return f"{number:.3g}{unit}"
        number /= 1000
    return f"{number:.3g}G"


# --- the graph ---
def _graph(record: JobRecord) -> str:
    shown = record.vertices[:MOST_VERTICES]
    if not shown:
        return ""
    boxes = [_box(vertex, traffic_of(record, vertex)) for vertex in shown]
    arrows = [Arrow(one.vertex, vertex.id, one.partitioning) for vertex in shown for one in vertex.inputs]
    left_out = len(record.vertices) - len(shown)
    more = note(f"and {left_out} more vertices") if left_out else ""
    return f'<div class="scroll">{draw(boxes, arrows, caption(record))}</div>{more}'


def _box(vertex: VertexRecord, traffic: Traffic) -> Box:
    lines = (
        f"{count(vertex.parallelism, 'subtask')}, {traffic.busy:.0%} busy",
        f"in {rate(traffic.records_in)}/s, out {rate(traffic.records_out)}/s",
    )
    # An idle vertex is blue, and a busy one is red.
    colour = f"hsl({round(210 * (1 - traffic.busy))}, 70%, 50%)"
    return Box(vertex.id, vertex.name, lines, colour, vertex.name)


def bundle(record: JobRecord) -> Mapping[str, str]:
    """Return the picture and the caption by MIME type."""
    return {"text/html": picture(record), "text/plain": caption(record)}
