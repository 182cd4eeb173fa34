"""Windows by processing time end when their last millisecond is over: rows that come in it still belong to them."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.common import Row
from penstock.datastream import DataStream
from penstock.table.builders import Planner
from penstock.table.logical.building import aggregate
from penstock.table.logical.nodes import PROCTIME, Column, StreamScan, WindowTable
from penstock.table.logical.rex import AggregateCall
from penstock.table.types.data_types import TimestampType
from penstock.testing import OperatorHarness
from tests.table.runtime.table_programs import INT, STRING, TS, Options

SIZE = 5_000
INPUT = (Column("k", STRING), Column("v", INT), Column("ts", TS, PROCTIME))
BOUND = TimestampType(3, False)


def of_rows(stream: DataStream) -> StreamScan:
    return StreamScan(INPUT, stream, "input")


def of_a_changelog(stream: DataStream) -> StreamScan:
    return StreamScan(INPUT, stream, "input", changelog=True)


@pytest.mark.parametrize("kind", ["TUMBLE", "HOP", "CUMULATE"])
@pytest.mark.parametrize("scan", [of_rows, of_a_changelog])
def test_rows_of_the_last_millisecond_belong_to_the_window(kind: str, scan: Any) -> None:
    def summed(stream: DataStream) -> DataStream:
        made = (Column("window_start", BOUND), Column("window_end", BOUND), Column("window_time", BOUND, PROCTIME))
        slide = 0 if kind == "TUMBLE" else SIZE
        table = WindowTable(INPUT + made, scan(stream), kind, 2, SIZE, slide, 0)
        plan = aggregate(table, [3, 4, 0], [AggregateCall("SUM", (1,), INT, "s")])
        return Planner(stream.get_execution_environment(), Options(), False).rows(plan)

    def sums(harness: OperatorHarness) -> list[tuple[Any, ...]]:
        return [tuple(row)[2:] for row in harness.values()]

    with OperatorHarness(summed) as h:
        h.advance_processing_time(1_000)
        h.push(Row("a", 1, None))
        h.advance_processing_time(SIZE - 1)
        h.push(Row("a", 2, None))
        assert (sums(h), h.next_due()) == ([], SIZE)
        h.advance_processing_time(SIZE)
        assert sums(h) == [("a", 3)]
        assert h.next_due() is None
        h.push(Row("a", 4, None))
        h.advance_processing_time(2 * SIZE)
        assert sums(h) == [("a", 4)]
