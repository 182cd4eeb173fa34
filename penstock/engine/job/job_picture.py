"""A picture of a job for a notebook: its graph with rates, as HTML without any script."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape

from penstock.engine.job.job_record import JobRecord, VertexRecord

MOST_VERTICES = 60
"""Largest number of vertices in a picture. Further vertices are left out."""
_WIDTH, _HEIGHT, _GAP_X, _GAP_Y = 190, 74, 70, 18
_LONGEST_NAME = 28
_COLOURS = {"RUNNING": "#1a7f37", "FINISHED": "#0969da", "FAILED": "#cf222e", "CANCELED": "#6e7781"}
_OTHER_COLOUR = "#9a6700"


@dataclass(frozen=True)
class Traffic:
    """The traffic of a vertex over all its subtasks, in records per second."""

    records_in: float
    records_out: float
    busy: float
    """The share of time in which the busiest subtask worked, from 0 to 1."""


def picture(record: JobRecord) -> str:
    """Return the job at the moment of the record as HTML."""
    return (
        '<div style="font-family: var(--jp-ui-font-family, system-ui, sans-serif); font-size: 13px">'
        f"{_headline(record)}{_failure(record)}{_graph(record)}</div>"
    )


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
    colour = _COLOURS.get(record.status, _OTHER_COLOUR)
    facts = [f"for {_duration((record.ended or record.taken) - record.started)}"]
    if record.attempt:
        facts.append(f"{record.attempt} restart{'s' if record.attempt > 1 else ''}")
    last = record.checkpoints.completed[-1] if record.checkpoints.completed else None
    if last is not None:
        facts.append(f"checkpoint {last.number} took {last.millis} ms, {_bytes(last.size)}")
    badge = (
        f'<span style="background: {colour}; color: white; border-radius: 8px; padding: 1px 8px">{record.status}</span>'
    )
    about = escape(" · ".join(facts))
    return (
        f'<div><b>{escape(record.name)}</b> {badge} <span style="opacity: 0.7">{about} · {record.job_id}</span></div>'
    )


def _failure(record: JobRecord) -> str:
    if not record.failures:
        return ""
    said = escape(record.failures[-1].message[:500])
    return f'<div style="color: #cf222e; white-space: pre-wrap; margin-top: 4px">last failure: {said}</div>'


def _duration(millis: int) -> str:
    return str(datetime.timedelta(seconds=max(0, millis) // 1000))


def _bytes(size: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} TB"


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
    places = _places(shown)
    width = max(x for x, _ in places.values()) + _WIDTH + 2
    height = max(y for _, y in places.values()) + _HEIGHT + 2
    drawn = [
        _edge(places[one.vertex], places[vertex.id])
        for vertex in shown
        for one in vertex.inputs
        if one.vertex in places
    ]
    drawn += [_box(vertex, traffic_of(record, vertex), places[vertex.id]) for vertex in shown]
    left_out = len(record.vertices) - len(shown)
    more = f'<div style="opacity: 0.7">and {left_out} more vertices</div>' if left_out else ""
    title = f"<title>{escape(caption(record))}</title>"
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" style="max-width: 100%; margin-top: 6px">{title}{"".join(drawn)}</svg>'
    )
    return svg + more


def _places(vertices: tuple[VertexRecord, ...]) -> dict[str, tuple[int, int]]:
    """Return the place of each vertex: right of all its inputs, below earlier vertices of the same column."""
    column: dict[str, int] = {}
    rows: dict[int, int] = {}
    places = {}
    for vertex in vertices:
        column[vertex.id] = max((column.get(one.vertex, 0) + 1 for one in vertex.inputs), default=0)
        row = rows.get(column[vertex.id], 0)
        rows[column[vertex.id]] = row + 1
        places[vertex.id] = 1 + column[vertex.id] * (_WIDTH + _GAP_X), 1 + row * (_HEIGHT + _GAP_Y)
    return places


def _edge(source: tuple[int, int], target: tuple[int, int]) -> str:
    (x1, y1), (x2, y2) = (source[0] + _WIDTH, source[1] + _HEIGHT // 2), (target[0], target[1] + _HEIGHT // 2)
    bend = (x2 - x1) // 2
    path = f"M {x1} {y1} C {x1 + bend} {y1}, {x2 - bend} {y2}, {x2} {y2}"
    return f'<path d="{path}" fill="none" stroke="currentColor" stroke-opacity="0.5"/>'


def _box(vertex: VertexRecord, traffic: Traffic, place: tuple[int, int]) -> str:
    x, y = place
    name = vertex.name if len(vertex.name) <= _LONGEST_NAME else vertex.name[: _LONGEST_NAME - 1] + "…"
    lines = [
        f"{vertex.parallelism} subtask{'s' if vertex.parallelism > 1 else ''}, {traffic.busy:.0%} busy",
        f"in {rate(traffic.records_in)}/s, out {rate(traffic.records_out)}/s",
    ]
    # An idle vertex is blue, and a busy one is red.
    fill = f"hsl({round(210 * (1 - traffic.busy))}, 70%, 50%)"
    texts = [_text(x + 10, y + 22, name, 'font-weight="bold"')]
    texts += [_text(x + 10, y + 42 + 18 * number, line) for number, line in enumerate(lines)]
    box = (
        f'<rect x="{x}" y="{y}" width="{_WIDTH}" height="{_HEIGHT}" rx="8" fill="{fill}" fill-opacity="0.15" '
        f'stroke="{fill}"/>'
    )
    return f"<g><title>{escape(vertex.name)}</title>{box}{''.join(texts)}</g>"


def _text(x: int, y: int, said: str, more: str = "") -> str:
    return f'<text x="{x}" y="{y}" font-size="12" fill="currentColor" {more}>{escape(said)}</text>'


def bundle(record: JobRecord) -> Mapping[str, str]:
    """Return the picture and the caption by MIME type."""
    return {"text/html": picture(record), "text/plain": caption(record)}
