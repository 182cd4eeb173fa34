"""Translation of TUMBLE, HOP and CUMULATE to Spark SQL, where a row appears once for each of its windows."""

from __future__ import annotations

from penstock.spark.sql.relation_frames import Frame, FrameBuilder
from penstock.table.logical.kinds import WindowKind
from penstock.table.logical.nodes import PROCTIME, WindowTable
from penstock.table.types import data_types as t

MOST_WINDOWS = 64
"""Most windows of one row in Spark SQL. With more, the text would be long, and our own operator is used."""


def window_table(builder: FrameBuilder, relation: WindowTable) -> Frame | None:
    """Translate a window table function."""
    column = relation.input.columns[relation.time]
    bounds = bounds_texts(relation, "at_ms")
    made_types = [made.type for made in relation.columns[len(relation.input.columns) :]]
    timed = all(isinstance(kind, t.TimestampType) for kind in (column.type, *made_types))
    if not bounds or not timed or column.time == PROCTIME:
        return None
    frame = builder.frame(relation.input)
    own, time = frame.names[: len(relation.input.columns)], frame.names[relation.time]
    # The session is in UTC, where a TIMESTAMP and the same moment as TIMESTAMP_LTZ have the same number.
    data = frame.data.filter(f"{time} IS NOT NULL").selectExpr(*own, f"unix_millis(CAST({time} AS TIMESTAMP)) AS at_ms")
    windows = ", ".join(f"struct({start} AS first_ms, {end} AS last_ms)" for start, end in bounds)
    data = data.selectExpr(*own, "at_ms", f"inline(array({windows}))").filter("last_ms > at_ms")
    moments = [f"CAST(timestamp_millis({text}) AS TIMESTAMP_NTZ)" for text in ("first_ms", "last_ms", "last_ms - 1L")]
    return Frame(data, ()).select([*own, *moments])


def bounds_texts(relation: WindowTable, time: str) -> list[tuple[str, str]]:
    """Return start and end of the windows that may contain a time.

    A window whose end is not after the time does not contain it. Return an empty list for windows that Spark SQL cannot
    express.
    """
    size, slide = relation.size, relation.slide
    if relation.kind == WindowKind.TUMBLE:
        start = _floor(time, size, relation.offset)
        return [(start, f"{start} + {size}L")]
    if relation.kind == WindowKind.HOP and -(-size // slide) <= MOST_WINDOWS:
        last = _floor(time, slide, relation.offset)
        starts = [f"{last} - {number * slide}L" for number in range(-(-size // slide) - 1, -1, -1)]
        return [(start, f"{start} + {size}L") for start in starts]
    if relation.kind == WindowKind.CUMULATE and -(-size // slide) <= MOST_WINDOWS:
        start = _floor(time, size, relation.offset)
        return [(start, f"{start} + {min(number * slide, size)}L") for number in range(1, -(-size // slide) + 1)]
    return []


def _floor(time: str, by: int, offset: int) -> str:
    return f"{time} - pmod({time} - {offset}L, {by}L)"
