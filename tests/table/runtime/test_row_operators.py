"""Operators of queries that keep rows, by hand: first and last rows, top rows, and interval joins."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from penstock.engine.operators.operator import Clock, OperatorContext
from penstock.engine.records.columns import Columns
from penstock.engine.records.elements import MAX_TIMESTAMP, MIN_TIMESTAMP, Chunk
from penstock.table.logical.rex import SortKey
from penstock.table.operators.base.output_form import OutputForm
from penstock.table.operators.base.query_batches import KIND_FIELD
from penstock.table.operators.join.interval_join_operator import Interval, IntervalJoin
from penstock.table.operators.join.regular_join import JoinSpec
from penstock.table.operators.rank import top_n
from penstock.table.operators.rank.deduplicate import KeepFirst, KeepLast
from penstock.table.operators.rank.top_n import TopN, TopNSpec

PLUS, BEFORE, AFTER, MINUS = range(4)
ROWS = pa.schema([("k", pa.string()), ("v", pa.int64()), ("t", pa.timestamp("us"))])
RANK = pa.field("rank", pa.int64())


class Sent:
    """What an operator sends: rows as tuples, with watermarks between them."""

    def __init__(self) -> None:
        self.seen: list[Any] = []

    def chunk(self, chunk: Chunk) -> None:
        assert chunk.columns is not None
        columns = [numbers(column).to_pylist() for column in chunk.columns.batch.columns]
        self.seen.extend(zip(*columns, strict=True))

    def watermark(self, timestamp: int) -> None:
        self.seen.append(timestamp)

    def status(self, idle: bool) -> None:
        self.seen.append("idle" if idle else "active")


def numbers(column: pa.Array) -> pa.Array:
    """Timestamps as milliseconds."""
    if pa.types.is_timestamp(column.type):
        return column.cast(pa.timestamp("ms")).cast(pa.int64())
    return column


def rows(*given: tuple[Any, ...], schema: pa.Schema = ROWS) -> Chunk:
    """Rows, whose times are milliseconds."""
    columns = []
    for index, field in enumerate(schema):
        values = [row[index] for row in given]
        stamps = pa.types.is_timestamp(field.type)
        made = pa.array(values, pa.int64() if stamps else field.type)
        columns.append(made.cast(pa.timestamp("ms")).cast(field.type) if stamps else made)
    return Chunk.of(Columns(pa.RecordBatch.from_arrays(columns, schema=schema)))


class Operated:
    """An open operator, and what it sends."""

    def __init__(self, operator: Any, **more: Any) -> None:
        self.operator, self.sent, self.clock = operator, Sent(), Clock(more.pop("now", 0))
        context = OperatorContext("Query", "q", 0, 1, 128, self.sent, {}, self.clock, **more)  # type: ignore[arg-type]
        operator.open(context)

    def taken(self) -> list[Any]:
        seen, self.sent.seen = self.sent.seen, []
        return seen

    def epoch(self, *given: tuple[Any, ...], side: int | None = None, schema: pa.Schema = ROWS) -> list[Any]:
        """Take rows, and end the epoch."""
        take = self.operator.chunk if side is None else self.operator.inputs()[side]
        take(rows(*given, schema=schema))
        self.operator.end_epoch()
        return self.taken()

    def watermark(self, timestamp: int) -> list[Any]:
        self.operator.watermark(timestamp)
        return self.taken()

    def state(self) -> int:
        return sum(len(table.entries) for table in self.operator.keyed.tables.values())


# --- the last row of each key ---
def keep_last(time: int | None = 2, ranked: bool = False, every: bool = False, **more: Any) -> Operated:
    schema = pa.schema([*ROWS, *([RANK] if ranked else []), KIND_FIELD])
    operator = KeepLast([0], time, OutputForm(schema), ranked, every_version=every)
    return Operated(operator, **more)


@pytest.mark.parametrize("every", [False, True])
def test_a_row_that_is_not_older_replaces_the_last_one(every: bool) -> None:
    made = keep_last(every=every)
    assert made.epoch(("a", 1, 10), ("b", 2, 10)) == [("a", 1, 10, PLUS), ("b", 2, 10, PLUS)]
    assert made.epoch(("a", 0, 9), ("b", 3, 10)) == [("b", 2, 10, BEFORE), ("b", 3, 10, AFTER)]
    assert made.epoch(("b", 3, 10)) == [], "the same row"
    assert made.epoch(("c", 1, 5), ("a", 4, 11)) == [("c", 1, 5, PLUS), ("a", 1, 10, BEFORE), ("a", 4, 11, AFTER)]
    assert made.epoch(("a", 5, 10), ("c", 7, 4)) == []


def test_only_the_last_row_of_a_batch_is_told_unless_each_is_asked_for() -> None:
    batch = [("a", 1, 10), ("b", 9, 1), ("a", 2, 12), ("a", 3, 11), ("a", 4, 12)]
    assert keep_last().epoch(*batch) == [("b", 9, 1, PLUS), ("a", 4, 12, PLUS)]
    assert keep_last(every=True).epoch(*batch) == [
        ("a", 1, 10, PLUS), ("b", 9, 1, PLUS), ("a", 1, 10, BEFORE), ("a", 2, 12, AFTER), ("a", 2, 12, BEFORE),
        ("a", 4, 12, AFTER),
    ]  # fmt: skip


@pytest.mark.parametrize("every", [False, True])
def test_the_rank_of_the_last_row_is_one(every: bool) -> None:
    made = keep_last(ranked=True, every=every)
    assert made.epoch(("a", 1, 10), ("b", 1, 10)) == [("a", 1, 10, 1, PLUS), ("b", 1, 10, 1, PLUS)]
    assert made.epoch(("a", 2, 11)) == [("a", 1, 10, 1, BEFORE), ("a", 2, 11, 1, AFTER)]


def test_in_processing_time_the_last_arrival_is_the_last_row() -> None:
    made = keep_last(time=None, now=100)
    assert made.epoch(("a", 1, 10), ("a", 2, 9), ("b", 1, 1)) == [("a", 2, 9, PLUS), ("b", 1, 1, PLUS)]
    assert made.epoch(("a", 3, 8)) == [("a", 2, 9, BEFORE), ("a", 3, 8, AFTER)]
    assert {key: held[0] for key, held in made.operator._kept.items()} == {"a": 100, "b": 100}


def test_rows_are_held_back_until_the_watermark() -> None:
    made = keep_last()
    made.operator.chunk(rows(("a", 1, 10)))
    assert made.taken() == []
    assert made.watermark(5) == [("a", 1, 10, PLUS), 5]
    made.operator.chunk(rows(("b", 1, 10)))
    made.operator.status(True)
    assert made.taken() == [("b", 1, 10, PLUS), "idle"]
    made.operator.chunk(rows(("c", 1, 10)))
    made.operator.finish()
    assert made.taken() == [("c", 1, 10, PLUS)]


# --- the first row of each key ---
def keep_first(time: int | None = 2, ranked: bool = False, **more: Any) -> Operated:
    return Operated(KeepFirst([0], time, OutputForm(pa.schema([*ROWS, *([RANK] if ranked else [])])), ranked), **more)


def test_the_first_row_is_known_when_the_watermark_has_passed_it() -> None:
    made = keep_first()
    assert made.epoch(("a", 1, 10), ("a", 2, 8), ("b", 3, 9), ("a", 4, 8)) == []
    assert made.epoch(("b", 5, 9), ("b", 6, 11)) == [], "of one time the first counts"
    assert made.watermark(7) == [7]
    assert made.epoch(("a", 0, 7), ("b", 0, 6)) == [], "the second one is late"
    assert made.watermark(8) == [("a", 0, 7), 8]
    assert made.watermark(9) == [("b", 3, 9), 9]
    assert made.epoch(("a", 9, 20), ("b", 9, 20), ("c", 1, 9)) == []
    assert made.watermark(MAX_TIMESTAMP) == [("c", 1, 9), MAX_TIMESTAMP]
    assert made.state() == 3 and not list(made.operator._waiting.items())


def test_first_rows_leave_in_the_order_of_their_times() -> None:
    made = keep_first(ranked=True)
    made.epoch(("a", 1, 12), ("b", 2, 10), ("c", 3, 11), ("d", 4, 10))
    assert made.watermark(12) == [("b", 2, 10, 1), ("d", 4, 10, 1), ("c", 3, 11, 1), ("a", 1, 12, 1), 12]


def test_in_processing_time_the_first_arrival_is_the_first_row() -> None:
    made = keep_first(time=None)
    assert made.epoch(("a", 1, 10), ("a", 2, 9), ("b", 1, 1)) == [("a", 1, 10), ("b", 1, 1)]
    assert made.epoch(("a", 3, 8), ("c", 1, 1)) == [("c", 1, 1)]
    made.operator._backlog.add(rows(("d", 1, 1)).columns.batch)  # type: ignore[union-attr]
    assert made.watermark(MIN_TIMESTAMP + 1) == [("d", 1, 1), MIN_TIMESTAMP + 1]


def test_before_the_first_watermark_no_row_is_late() -> None:
    made = keep_first()
    assert made.operator.current_watermark == MIN_TIMESTAMP
    assert made.epoch(("a", 1, -(10**12))) == [] and made.watermark(0)[0] == ("a", 1, -(10**12))


# --- the first rows in an order ---
ORDER = (SortKey(1),)


def top(last: int | None = 2, first: int = 1, rank: bool = False, signed: bool = False, **more: Any) -> Operated:
    has_keys, batch = more.pop("rows_have_keys", False), more.pop("batch", False)
    spec = TopNSpec(more.pop("order", ORDER), first, last, rank, signed, has_keys)
    kinds = [] if batch else [KIND_FIELD]
    schema = pa.schema([("k", pa.string()), ("v", pa.int64()), ("n", pa.int64()), *([RANK] if rank else []), *kinds])
    return Operated(TopN([0], spec, OutputForm(schema)), batch=batch)


PLAIN = pa.schema([("k", pa.string()), ("v", pa.int64()), ("n", pa.int64())])
SIGNED = pa.schema([*PLAIN, KIND_FIELD])


def few_and_many(monkeypatch: pytest.MonkeyPatch, many: bool) -> None:
    monkeypatch.setattr(top_n, "MANY", 0 if many else 10**6)


@pytest.mark.parametrize("many", [False, True])
class TestInserts:
    def test_rows_that_are_among_the_first_replace_others(self, many: bool, monkeypatch: pytest.MonkeyPatch) -> None:
        few_and_many(monkeypatch, many)
        made = top()
        assert sorted(made.epoch(("a", 5, 1), ("a", 3, 2), ("b", 9, 3), schema=PLAIN)) == [
            ("a", 3, 2, PLUS), ("a", 5, 1, PLUS), ("b", 9, 3, PLUS),
        ]  # fmt: skip
        assert sorted(made.epoch(("a", 4, 4), ("a", 6, 5), ("b", 9, 6), schema=PLAIN)) == [
            ("a", 4, 4, PLUS), ("a", 5, 1, MINUS), ("b", 9, 6, PLUS),
        ]  # fmt: skip
        assert made.epoch(("a", 4, 7), ("b", 9, 8), schema=PLAIN) == [], "of equal rows those that came first stay"
        assert made.epoch(("a", 1, 9), ("a", 2, 10), ("a", 2, 11), schema=PLAIN)[:2] != []
        assert made.operator._partitions.get("a") == [("a", 1, 9), ("a", 2, 10)]

    def test_ranks(self, many: bool, monkeypatch: pytest.MonkeyPatch) -> None:
        few_and_many(monkeypatch, many)
        made = top(last=3, rank=True)
        assert made.epoch(("a", 5, 1), ("a", 3, 2), schema=PLAIN) == [("a", 3, 2, 1, PLUS), ("a", 5, 1, 2, PLUS)]
        assert made.epoch(("a", 4, 3), schema=PLAIN) == [
            ("a", 5, 1, 2, BEFORE), ("a", 4, 3, 2, AFTER), ("a", 5, 1, 3, PLUS),
        ]  # fmt: skip
        assert made.epoch(("a", 9, 4), schema=PLAIN) == []

    def test_a_range_of_ranks(self, many: bool, monkeypatch: pytest.MonkeyPatch) -> None:
        few_and_many(monkeypatch, many)
        made = top(first=2, last=3, rank=True)
        assert made.epoch(("a", 5, 1), schema=PLAIN) == []
        assert made.epoch(("a", 3, 2), schema=PLAIN) == [("a", 5, 1, 2, PLUS)]
        assert made.epoch(("a", 1, 3), schema=PLAIN) == [
            ("a", 5, 1, 2, BEFORE), ("a", 3, 2, 2, AFTER), ("a", 5, 1, 3, PLUS),
        ]  # fmt: skip

    def test_rows_with_keys_leave_before_they_come_again(self, many: bool, monkeypatch: pytest.MonkeyPatch) -> None:
        few_and_many(monkeypatch, many)
        made = top(last=2, rank=True, rows_have_keys=True)
        made.epoch(("a", 5, 1), ("a", 3, 2), schema=PLAIN)
        assert made.epoch(("a", 4, 3), schema=PLAIN) == [("a", 5, 1, 2, MINUS), ("a", 4, 3, 2, PLUS)]
        found = made.epoch(("a", 1, 4), schema=PLAIN)
        assert found[:2] == [("a", 3, 2, 1, MINUS), ("a", 4, 3, 2, MINUS)]
        assert sorted(found[2:]) == [("a", 1, 4, 1, PLUS), ("a", 3, 2, 2, PLUS)]


def changes(made: Operated, *given: tuple[Any, ...]) -> list[Any]:
    return made.epoch(*given, schema=SIGNED)


def test_rows_that_are_retracted_let_others_move_up() -> None:
    made = top(last=2, signed=True)
    changes(made, *[("a", value, value, PLUS) for value in (4, 2, 3, 1)])
    assert changes(made, ("a", 2, 2, MINUS)) == [("a", 2, 2, MINUS), ("a", 3, 3, PLUS)]
    assert changes(made, ("a", 4, 4, BEFORE), ("a", 0, 4, AFTER)) == [("a", 3, 3, MINUS), ("a", 0, 4, PLUS)]
    assert changes(made, ("a", 77, 7, MINUS)) == [], "there is no such row"
    assert changes(made, ("a", 5, 5, PLUS), ("a", 5, 5, MINUS)) == []


def test_ranks_of_rows_that_are_retracted() -> None:
    made = top(last=None, rank=True, signed=True)
    assert changes(made, ("a", 1, 1, PLUS), ("a", 2, 2, PLUS)) == [("a", 1, 1, 1, PLUS), ("a", 2, 2, 2, PLUS)]
    assert changes(made, ("a", 1, 1, MINUS)) == [
        ("a", 1, 1, 1, BEFORE), ("a", 2, 2, 1, AFTER), ("a", 2, 2, 2, MINUS),
    ]  # fmt: skip
    assert changes(made, ("a", 2, 2, MINUS)) == [("a", 2, 2, 1, MINUS)] and made.state() == 0


def test_a_batch_tells_the_end_alone() -> None:
    made = top(last=1, batch=True)
    assert made.epoch(("a", 5, 1), schema=PLAIN) == [] == made.epoch(("a", 3, 2), schema=PLAIN)
    made.operator.finish()
    assert made.taken() == [("a", 3, 2)]


# --- interval joins ---
LEFT = pa.schema([("k", pa.string()), ("t", pa.timestamp("us")), ("l", pa.int64())])
RIGHT = pa.schema([("k2", pa.string()), ("t2", pa.timestamp("us")), ("r", pa.int64())])


class Joined(Operated):
    """An interval join whose right time is from the left time plus `lower` to the left time plus `upper`."""

    def __init__(self, kind: str, lower: int, upper: int, processing_time: bool = False, **more: Any) -> None:
        spec = JoinSpec(kind, ([0], [0]), [False], None, (LEFT, RIGHT))
        interval = Interval((1, 1), lower, upper, processing_time)
        super().__init__(IntervalJoin(spec, interval, OutputForm(pa.schema([*LEFT, *RIGHT]))), **more)

    def left(self, *given: tuple[Any, ...]) -> list[Any]:
        return [(row[2], row[5]) for row in self.epoch(*given, side=0, schema=LEFT)]

    def right(self, *given: tuple[Any, ...]) -> list[Any]:
        return [(row[2], row[5]) for row in self.epoch(*given, side=1, schema=RIGHT)]

    def pass_on(self, timestamp: int) -> list[Any]:
        return [one if isinstance(one, int) else (one[2], one[5]) for one in self.watermark(timestamp)]


@pytest.mark.parametrize("right_first", [False, True])
def test_both_bounds_of_an_interval_belong_to_it(right_first: bool) -> None:
    made = Joined("INNER", -2, 3)
    rights = [("a", time, time) for time in (7, 8, 13, 14)] + [("b", 10, 99)]
    if right_first:
        assert made.right(*rights) == [] and made.left(("a", 10, 1), (None, 10, 2)) == [(1, 8), (1, 13)]
    else:
        assert made.left(("a", 10, 1), (None, 10, 2)) == [] and made.right(*rights) == [(1, 8), (1, 13)]


def test_rows_that_can_match_nothing_more_are_not_kept() -> None:
    made = Joined("INNER", -2, 3)
    made.pass_on(10)
    made.right(("a", 9, 1), ("a", 8, 2))
    assert made.left(("a", 7, 1), ("a", 8, 2)) == [(1, 1), (1, 2), (2, 1), (2, 2)] or made.state() > 0
    assert sorted(entry[0] for _, head in made.operator._sides[1]._heads.items() for entry in head) == [9]
    assert sorted(entry[0] for _, head in made.operator._sides[0]._heads.items() for entry in head) == [8]


@pytest.mark.parametrize(
    ("kind", "padded"), [("INNER", []), ("LEFT", [(2, None)]), ("RIGHT", [(None, 4)]), ("FULL", 2)]
)
def test_rows_without_a_match_are_padded_when_their_time_is_over(kind: str, padded: Any) -> None:
    made = Joined(kind, 0, 4)
    made.left(("a", 10, 1), ("a", 20, 2))
    assert made.right(("a", 12, 3), ("b", 10, 4)) == [(1, 3)]
    found = [one for one in made.pass_on(1000) if not isinstance(one, int)]
    assert (sorted(found, key=repr) == padded) if isinstance(padded, list) else (set(found) == {(2, None), (None, 4)})
    assert made.state() == 0


def test_when_rows_are_padded_and_removed() -> None:
    """Rows stay for half of the interval longer than they can match, as in Flink."""
    made = Joined("LEFT", 0, 4)
    made.left(("a", 10, 1))
    assert made.pass_on(16) == [12]
    assert made.pass_on(17) == [(1, None), 13] and made.state() == 0
    made.left(("a", 20, 2), ("a", 23, 3))
    assert made.pass_on(27) == [(2, None), 23], "the second one may still find a match"
    assert made.pass_on(30) == [(3, None), 26]


@pytest.mark.parametrize(("lower", "upper", "delay"), [(-7, 3, 7), (-2, 5, 5), (3, 5, 5), (-5, -3, 5), (0, 0, 0)])
def test_the_watermark_is_late_by_the_interval(lower: int, upper: int, delay: int) -> None:
    made = Joined("INNER", lower, upper)
    assert made.pass_on(100) == [100 - delay]
    assert made.pass_on(MAX_TIMESTAMP) == [MAX_TIMESTAMP]


def test_a_watermark_before_the_beginning_of_time_is_not_passed_on() -> None:
    made = Joined("INNER", -7, 3)
    assert made.pass_on(MIN_TIMESTAMP + 7) == [] and made.pass_on(MIN_TIMESTAMP + 8) == [MIN_TIMESTAMP + 1]


def test_rows_that_come_too_late_to_match_are_padded_at_once() -> None:
    made = Joined("FULL", 0, 4)
    made.pass_on(20)
    assert made.left(("a", 16, 1), ("a", 17, 2)) == [(1, None)]
    assert made.right(("b", 20, 3), ("b", 21, 4)) == [(None, 3)]


def test_rows_without_a_key_or_a_time_match_nothing() -> None:
    made = Joined("FULL", 0, 4)
    assert made.left((None, 10, 1), ("a", None, 2)) == [(1, None), (2, None)]
    assert made.right((None, 10, 3), ("a", 10, 4)) == [(None, 3)]
    assert made.left(("a", 10, 5)) == [(5, 4)]


def test_a_match_is_remembered_on_both_sides() -> None:
    made = Joined("FULL", 0, 4)
    made.left(("a", 10, 1))
    assert made.right(("a", 11, 2), ("a", 12, 3)) == [(1, 2), (1, 3)]
    assert [one for one in made.pass_on(1000) if not isinstance(one, int)] == []


def test_an_interval_of_processing_time() -> None:
    made = Joined("LEFT", 0, 4, processing_time=True, now=100)
    assert made.operator.next_due() is None
    made.left(("a", None, 1), ("b", None, 2))
    assert made.operator.next_due() == 107
    made.clock.now = 104
    assert made.right(("a", None, 3)) == [(1, 3)]
    assert made.pass_on(5000) == [5000], "event time has no part in it"
    made.clock.now = 105
    assert made.right(("b", None, 4)) == []
    made.clock.now = 106
    made.operator.advance_processing_time(106)
    assert made.taken() == []
    made.clock.now = 107
    made.operator.advance_processing_time(107)
    assert [(row[2], row[5]) for row in made.taken()] == [(2, None)]


def test_in_batch_mode_no_row_is_late() -> None:
    made = Joined("LEFT", 0, 4, batch=True)
    made.operator.current_watermark = 1000
    made.left(("a", 10, 1))
    assert made.right(("a", 11, 2)) == [(1, 2)]
