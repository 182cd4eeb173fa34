"""The engine's own metrics: their names, which are Flink's, and their descriptions."""

from __future__ import annotations

from penstock.metrics.histogram import QUANTILES
from penstock.metrics.samples import COUNTER, GAUGE, HISTOGRAM, METER

LOWEST_WATERMARK = -(1 << 63)
"""The watermark of an operator that has seen none."""
HIGHEST_WATERMARK = (1 << 63) - 1
"""The watermark at the end of event time."""

TASK_METRICS = (
    "numRecordsIn",
    "numRecordsOut",
    "numRecordsInPerSecond",
    "numRecordsOutPerSecond",
    "numBytesIn",
    "numBytesOut",
    "numBytesInPerSecond",
    "numBytesOutPerSecond",
    "busyTimeMsPerSecond",
    "idleTimeMsPerSecond",
    "backPressuredTimeMsPerSecond",
    "accumulateBusyTimeMs",
    "accumulateIdleTimeMs",
    "accumulateBackPressuredTimeMs",
)
"""The metrics of a whole subtask. In a slot's report they bear the uid of the first operator of the chain."""

_COUNTERS = {
    "numRecordsIn": "Records that came in since the attempt began.",
    "numRecordsOut": "Records that went out since the attempt began.",
    "numBytesIn": "Bytes that came in over exchanges since the attempt began.",
    "numBytesOut": "Bytes that went out over exchanges since the attempt began.",
    "numLateRecordsDropped": "Records that came too late for their windows and were dropped.",
}
_METERS = {
    "numRecordsInPerSecond": "Records that came in per second, over the last seconds.",
    "numRecordsOutPerSecond": "Records that went out per second, over the last seconds.",
    "numBytesInPerSecond": "Bytes that came in per second, over the last seconds.",
    "numBytesOutPerSecond": "Bytes that went out per second, over the last seconds.",
}
_GAUGES = {
    "busyTimeMsPerSecond": "Milliseconds of each second in which the subtask worked.",
    "idleTimeMsPerSecond": "Milliseconds of each second in which the subtask had nothing to do.",
    "backPressuredTimeMsPerSecond": "Milliseconds of each second in which the subtask waited for those behind it.",
    "currentInputWatermark": "How far event time has come at the input, in milliseconds.",
    "currentOutputWatermark": "How far event time has come at the output, in milliseconds.",
}

READINGS = {
    COUNTER: ("",),
    GAUGE: ("",),
    METER: ("count", "rate"),
    HISTOGRAM: ("count", "min", "max", "mean", "stddev", *QUANTILES),
}
"""The names of the readings of each kind of metric.

Some readings may be missing. The names follow the name of the metric after a dot.
"""


def kind_of(name: str) -> tuple[str, str]:
    """Return the kind and the description of a metric with this name."""
    for kind, table in ((COUNTER, _COUNTERS), (METER, _METERS), (GAUGE, _GAUGES)):
        if name in table:
            return kind, table[name]
    return GAUGE, ""
