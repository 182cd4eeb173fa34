"""Windows against what is known of Flink: lateness, order, sessions."""

from __future__ import annotations

import datetime
from typing import Any

import pytest

from penstock.table.logical.building import aggregate
from penstock.table.logical.nodes import ROWTIME, Column, GroupWindow, Relation, Watermark, WindowTable
from penstock.table.logical.rex import AggregateCall
from penstock.table.types.data_types import TimestampType
from tests.table.runtime.table_programs import INT, STRING, TS, ref, run, values

START = datetime.datetime(2024, 3, 1, 9)


def at(seconds: float) -> datetime.datetime:
    return START + datetime.timedelta(seconds=seconds)


def events(rows: list[tuple[Any, ...]], delay: int = 0, **types: Any) -> Watermark:
    """Rows that begin with a time in seconds, with a watermark that much behind."""
    table = values([(at(row[0]), *row[1:], at(row[0] - delay)) for row in rows], ts=TS, **types, mark=TS)
    columns = (Column("ts", TS, ROWTIME), *table.columns[1:])
    return Watermark(columns, table, 0, ref(table, "mark"))


def windows(input: Relation, kind: str, size: int, slide: int = 0, partition: tuple[int, ...] = ()) -> WindowTable:
    bound = TimestampType(3, False)
    made = (Column("window_start", bound), Column("window_end", bound), Column("window_time", bound, ROWTIME))
    return WindowTable(input.columns + made, input, kind, 0, size * 1000, slide * 1000, 0, partition)


def sums(table: WindowTable, *keys: str, value: str = "v") -> Relation:
    positions = [table.names().index(name) for name in ("window_start", "window_end", *keys)]
    return aggregate(table, positions, [AggregateCall("SUM", (table.names().index(value),), INT, "s")])


def seconds(log: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Times as seconds after START."""
    return [
        tuple((v - START).total_seconds() if isinstance(v, datetime.datetime) else v for v in row[1:]) for row in log
    ]


EXACT = {"pipeline.auto-watermark-interval": "0 ms"}


def result(plan: Relation, parallelism: int = 1, **how: Any) -> list[tuple[Any, ...]]:
    from tests.table.runtime.table_programs import environment

    return seconds(run(plan, environment(parallelism), **how, **EXACT))


LATE = [(1, "a", 1), (12, "a", 2), (3, "a", 100), (9, "b", 7), (25, "b", 3), (19, "a", 50), (21, "a", 5), (40, "a", 6)]


@pytest.mark.parametrize("cut", [None, 1, 3])
def test_late_rows_are_dropped_from_tumbling_windows(cut: int | None) -> None:
    table = windows(events(LATE, 2, k=STRING, v=INT), "TUMBLE", 10)
    assert result(sums(table, "k"), epoch_records=cut) == [
        (0, 10, "a", 1), (10, 20, "a", 2), (20, 30, "b", 3), (20, 30, "a", 5), (40, 50, "a", 6),
    ]  # fmt: skip


def test_a_late_row_enters_the_windows_that_are_open() -> None:
    table = windows(events([(1, 1), (11, 2), (4, 4), (23, 8), (9, 16), (30, 32)], v=INT), "HOP", 20, 10)
    assert result(sums(table)) == [(-10, 10, 1), (0, 20, 7), (10, 30, 10), (20, 40, 40), (30, 50, 32)]


def test_cumulating_windows_fire_every_step() -> None:
    table = windows(events([(3, 1), (47, 2), (95, 4)], v=INT), "CUMULATE", 60, 20)
    assert result(sums(table)) == [
        (0, 20, 1), (0, 40, 1), (0, 60, 3), (60, 100, 4), (60, 120, 4),
    ]  # fmt: skip


def test_sessions_merge_out_of_order() -> None:
    rows = [(0, "a", 1), (20, "a", 2), (10, "a", 4), (5, "b", 1), (40, "a", 8), (15, "a", 16), (60, "b", 2)]
    table = windows(events(rows, 30, k=STRING, v=INT), "SESSION", 12, partition=(1,))
    assert sorted(result(sums(table, "k"))) == [(0, 32, "a", 23), (5, 17, "b", 1), (40, 52, "a", 8), (60, 72, "b", 2)]


@pytest.mark.parametrize("kind", ["TUMBLE", "SESSION"])
def test_the_time_of_a_window_is_its_last_millisecond(kind: str) -> None:
    size, partition = (10, ()) if kind == "TUMBLE" else (4, (1,))
    table = windows(
        events([(1, "a", 1), (4, "a", 2), (30, "a", 4)], 2, k=STRING, v=INT), kind, size, partition=partition
    )
    bounds = [table.names().index(f"window_{bound}") for bound in ("start", "end", "time")]
    plan = aggregate(table, [*bounds, 1], [AggregateCall("SUM", (2,), INT, "s")])
    end = 10 if kind == "TUMBLE" else 8
    first, *_ = result(plan)
    assert first[1:] == (end, end - 0.001, "a", 3)


def test_sessions_that_touch_are_one() -> None:
    table = windows(
        events([(0, "a", 1), (8, "a", 2), (17, "a", 4), (25, "a", 8), (40, "a", 16)], 2, k=STRING, v=INT),
        "SESSION", 8, partition=(1,),
    )  # fmt: skip
    assert result(sums(table, "k")) == [(0, 16, "a", 3), (17, 33, "a", 12), (40, 48, "a", 16)]


def test_two_phases_give_the_same() -> None:
    table = windows(events(LATE, 2, k=STRING, v=INT), "HOP", 20, 10)
    assert sorted(result(sums(table, "k"), parallelism=3)) == sorted(result(sums(table, "k")))


def test_group_windows_have_properties() -> None:
    table = events(LATE, 2, k=STRING, v=INT)
    bound = TimestampType(3, False)
    columns = (Column("k", STRING), Column("s", INT), Column("e", bound), Column("r", bound, ROWTIME))
    calls = (AggregateCall("SUM", (2,), INT, "s"),)
    plan = GroupWindow(columns, table, "TUMBLE", 0, 10_000, 0, (1,), calls, ("end", "rowtime"))
    assert result(plan)[:2] == [("a", 1, 10, 9.999), ("a", 2, 20, 19.999)]


def test_batch_mode_knows_no_late_rows() -> None:
    table = windows(events(LATE, 2, k=STRING, v=INT), "TUMBLE", 10)
    assert sorted(result(sums(table, "k"), batch=True)) == [
        (0, 10, "a", 101), (0, 10, "b", 7), (10, 20, "a", 52), (20, 30, "a", 5), (20, 30, "b", 3), (40, 50, "a", 6),
    ]  # fmt: skip
