"""The work of a job, for a notebook: the records of each operator, and the metrics of its functions."""

from __future__ import annotations

from penstock.base.display.html_parts import BLUE, Heading, grid, head, whole
from penstock.base.display.short_texts import count
from penstock.engine.job.job_record import JobRecord


def result_picture(record: JobRecord, millis: int) -> str:
    """Return the figures of a job that has finished as HTML."""
    facts = [f"ran for {millis / 1000:,.2f} s", count(record.attempt, "restart") if record.attempt else ""]
    checkpoints = record.checkpoints.completed_in_all
    facts.append(count(checkpoints, "checkpoint") if checkpoints else "")
    title = head(record.name, *facts, record.job_id, badge=record.status, colour=BLUE)
    return whole(title, _operators(record), _metrics(record))


def _operators(record: JobRecord) -> str:
    headings = [Heading("operator"), Heading("uid")]
    headings += [Heading(name, numeric=True) for name in ("parallelism", "records in", "records out")]
    rows = [
        [one.name, one.uid, str(vertex.parallelism), *(_total(record, one.uid, name) for name in _RECORDS)]
        for vertex in record.vertices
        for one in vertex.operators
    ]
    return grid(headings, rows) if rows else ""


_RECORDS = ("numRecordsIn", "numRecordsOut")


def _total(record: JobRecord, uid: str, name: str) -> str:
    return f"{sum(int(slot.operators.get(uid, {}).get(name, 0)) for slot in record.slots):,}"


def _metrics(record: JobRecord) -> str:
    if not record.accumulators:
        return ""
    rows = [[name, f"{value:,}"] for name, value in sorted(record.accumulators.items())]
    return grid([Heading("metric"), Heading("value", numeric=True)], rows)
