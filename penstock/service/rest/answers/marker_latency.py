"""Latency of markers from sources to operators, combined over subtasks. Not in Flink."""

from __future__ import annotations

import re

from penstock.engine.job.job_record import JobRecord
from penstock.graph.plan import operator_id
from penstock.service.rest.answers.flink_numbers import Json, as_number
from penstock.service.rest.answers.metrics import latency_metrics

_NAME = re.compile(
    r"latency(?:\.source_id\.(\w+))?(?:\.source_subtask_index\.\d+)?"
    r"\.operator_id\.(\w+)\.operator_subtask_index\.\d+\.latency_(\w+)"
)
_SHOWN = ("median", "p95", "p99", "max")


def latencies(record: JobRecord) -> Json:
    """Return the latency for each source and operator, in milliseconds: the highest figures of all subtasks."""
    found: dict[tuple[str | None, str], dict[str, float]] = {}
    for name, value in (latency_metrics(record) if record.ended is None else {}).items():
        match, number = _NAME.fullmatch(name), as_number(value)
        if match is not None and number is not None and match[3] in _SHOWN:
            figures = found.setdefault((match[1], match[2]), {})
            figures[match[3]] = max(float(number), figures.get(match[3], 0.0))
    names = {operator_id(one.uid): one.name or one.uid for vertex in record.vertices for one in vertex.operators}
    rows = [
        {"source": names.get(source or "", source), "operator": names.get(operator, operator), **figures}
        for (source, operator), figures in found.items()
    ]
    return {"latencies": rows}
