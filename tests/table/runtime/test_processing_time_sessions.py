"""Sessions by processing time: what they make of rows, and when they have to be looked at again."""

from __future__ import annotations

from typing import Any

from penstock.common import Row
from penstock.datastream import DataStream
from penstock.table.builders import Planner
from penstock.table.logical.building import aggregate
from penstock.table.logical.nodes import PROCTIME, Column, StreamScan, WindowTable
from penstock.table.logical.rex import AggregateCall
from penstock.table.types.data_types import TimestampType
from penstock.testing import OperatorHarness
from tests.table.runtime.table_programs import INT, STRING, TS, Options

GAP = 5_000
INPUT = (Column("k", STRING), Column("v", INT), Column("ts", TS, PROCTIME))
BOUND = TimestampType(3, False)


def summed(stream: DataStream) -> DataStream:
    """The sums of v, by k and session."""
    scan = StreamScan(INPUT, stream, "input")
    made = (Column("window_start", BOUND), Column("window_end", BOUND), Column("window_time", BOUND, PROCTIME))
    table = WindowTable(INPUT + made, scan, "SESSION", 2, GAP, 0, 0, (0,))
    plan = aggregate(table, [3, 4, 0], [AggregateCall("SUM", (1,), INT, "s")])
    return Planner(stream.get_execution_environment(), Options(), False).rows(plan)


def sums(harness: OperatorHarness) -> list[tuple[Any, ...]]:
    return [tuple(row)[2:] for row in harness.values()]


def test_a_session_asks_for_an_epoch_when_its_gap_is_over() -> None:
    with OperatorHarness(summed) as h:
        assert h.next_due() is None
        h.advance_processing_time(1_000)
        h.push(Row("a", 1, None))
        assert h.next_due() == 1_000 + GAP
        h.advance_processing_time(3_000)
        h.push(Row("a", 2, None))
        h.push(Row("b", 4, None))
        assert sums(h) == []
        # The first session has grown: the epoch that was asked for finds nothing to do.
        h.advance_processing_time(1_000 + GAP)
        assert sums(h) == []
        assert h.next_due() == 3_000 + GAP
        h.advance_processing_time(3_000 + GAP - 1)
        assert sums(h) == []
        h.advance_processing_time(3_000 + GAP)
        assert sorted(sums(h)) == [("a", 3), ("b", 4)]
        assert (h.next_due(), h.state_entries()) == (None, 0)
