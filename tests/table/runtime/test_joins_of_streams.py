"""Joins of streams against nested loops over all rows so far: random batches, late rows, restarts and rescales."""

from __future__ import annotations

import datetime
import random
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from penstock.common import Row, RowKind
from penstock.table.builders import Planner
from penstock.table.logical.building import join
from penstock.table.logical.nodes import ROWTIME, Column, Relation, StreamScan, Watermark, WindowTable
from penstock.table.logical.rex import Call, InputRef, Literal, Rex, conjunction
from penstock.table.types.data_types import BooleanType, DayTimeIntervalType, TimestampType
from penstock.testing import OperatorHarness
from tests.table.runtime.table_programs import INT, STRING, TS, Options, call, columns

START = datetime.datetime(2024, 3, 1)
KINDS = ["INNER", "LEFT", "RIGHT", "FULL"]
Values = tuple[Any, ...]
BOOL, SPAN = BooleanType(), DayTimeIntervalType(nullable=False)
WIDTH = 3


def at(seconds: int) -> datetime.datetime:
    return START + datetime.timedelta(seconds=seconds)


def seconds(moment: datetime.datetime) -> int:
    return int((moment - START).total_seconds())


def millis(time: int) -> int:
    epoch = datetime.datetime(1970, 1, 1)
    return int((at(time) - epoch).total_seconds()) * 1000


def timed(stream: Any, name: str, changelog: bool) -> Relation:
    """(ts, k, v), with the watermarks that the stream has."""
    scan = StreamScan(columns(ts=TS, k=STRING, v=INT), stream, name, changelog)
    return Watermark((Column("ts", TS, ROWTIME), *scan.columns[1:]), scan, 0, None)


@dataclass
class Shape:
    """What a join joins."""

    kind: str
    interval: tuple[int, int] | None = None
    null_safe: bool = False
    unequal: bool = False
    changelog: bool = False

    def condition(self) -> Rex | None:
        equal = "IS NOT DISTINCT FROM" if self.null_safe else "="
        parts: list[Rex] = [call(equal, InputRef(STRING, 1), InputRef(STRING, WIDTH + 1))]
        if self.unequal:
            parts.append(call("<", InputRef(INT, 2), InputRef(INT, WIDTH + 2)))
        for operator, bound in zip((">=", "<="), self.interval or (), strict=False):
            limit = Call(TS, "+", (InputRef(TS, 0), Literal(SPAN, bound * 1000)))
            parts.append(Call(BOOL, operator, (InputRef(TS, WIDTH), limit)))
        return conjunction(parts)

    def match(self, left: Values, right: Values) -> bool:
        if left[1] != right[1] or (left[1] is None and not self.null_safe):
            return False
        if self.unequal and not left[2] < right[2]:
            return False
        return self.interval is None or self.interval[0] <= right[0] - left[0] <= self.interval[1]

    def plan(self, *streams: Any) -> Any:
        left, right = (timed(stream, f"input {n}", self.changelog) for n, stream in enumerate(streams))
        plan = join(left, right, self.kind, self.condition())
        return Planner(streams[0].get_execution_environment(), Options(), False).rows(plan)


def plain(row: Row) -> tuple[str, Values]:
    values = [seconds(value) if isinstance(value, datetime.datetime) else value for value in row]
    return str(row.get_row_kind()), tuple(values)


# --- interval joins ---
@dataclass
class Model:
    """An interval join, row by row. A kept row is [row, whether it has a match]."""

    shape: Shape
    sides: tuple[dict[Any, list[Any]], dict[Any, list[Any]]] = field(default_factory=lambda: ({}, {}))
    marks: list[int] = field(default_factory=lambda: [-(10**6)] * 2)

    def outer(self, side: int) -> bool:
        return self.shape.kind in {"FULL", ("LEFT", "RIGHT")[side]}

    def reach(self, side: int) -> int:
        assert self.shape.interval is not None
        return self.shape.interval[1] if side == 0 else -self.shape.interval[0]

    def pair(self, side: int, row: Values, other: Values) -> Values:
        return row + other if side == 0 else other + row

    def padded(self, side: int, row: Values) -> list[Values]:
        return [self.pair(side, row, (None,) * WIDTH)] if self.outer(side) else []

    def push(self, side: int, row: Values) -> list[Values]:
        met = [kept for kept in self.sides[1 - side].get(row[1], []) if self._match(side, row, kept[0])]
        for kept in met:
            kept[1] = True
        found = [self.pair(side, row, kept[0]) for kept in met]
        joinable = row[1] is not None or self.shape.null_safe
        if joinable and min(self.marks) < row[0] + self.reach(side):
            self.sides[side].setdefault(row[1], []).append([row, bool(met)])
        elif not met:
            found += self.padded(side, row)
        return found

    def _match(self, side: int, row: Values, other: Values) -> bool:
        return self.shape.match(row, other) if side == 0 else self.shape.match(other, row)

    def watermark(self, side: int, time: int) -> list[Values]:
        """Rows are cleaned up when one of their key has been of no use for half the length of the interval."""
        assert self.shape.interval is not None
        before, found = min(self.marks), list[Values]()
        self.marks[side] = max(self.marks[side], time)
        now, slack = min(self.marks), (self.shape.interval[1] - self.shape.interval[0]) * 1000 // 2
        for own in (0, 1) if now > before else ():
            for key, kept in list(self.sides[own].items()):
                if any((row[0] + self.reach(own)) * 1000 + slack + 1 <= now * 1000 for row, _ in kept):
                    gone = [one for one in kept if (one[0][0] + self.reach(own)) * 1000 + 1 <= now * 1000]
                    self.sides[own][key] = [one for one in kept if one not in gone]
                    found += [padded for row, met in gone if not met for padded in self.padded(own, row)]
        return found


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("most", [2, 64])
def test_an_interval_join_is_a_nested_loop(kind: str, seed: int, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """However few rows a page holds."""
    monkeypatch.setattr("penstock.table.operators.join.timed_rows.PAGE_ROWS", most)
    rng = random.Random(f"{kind} {seed}")
    low = rng.randrange(-4, 3)
    shape = Shape(kind, (low, low + rng.randrange(5)), rng.random() < 0.3, rng.random() < 0.5)
    model, number = Model(shape), 0
    with OperatorHarness(shape.plan, 2) as harness:
        for turn in range(30):
            side = rng.randrange(2)
            batch = []
            for _ in range(rng.choice([1, 2, 12])):
                number += 1
                time = max(turn + rng.randrange(-8, 4), 0)
                batch.append((time, rng.choice(["a", "b", None]), rng.choice([number, rng.randrange(9)])))
            harness.push_all([Row(at(time), *rest) for time, *rest in batch], side + 1)
            expected = [found for row in batch for found in model.push(side, row)]
            found = [plain(row) for row in harness.values()]
            assert {one for one, _ in found} <= {"+I"} and Counter(row for _, row in found) == Counter(expected)
            side, time = rng.randrange(2), turn + rng.randrange(-3, 2)
            expected = model.watermark(side, time)
            harness.watermark(millis(time), side + 1)
            assert Counter(row for _, row in map(plain, harness.values())) == Counter(expected)
        expected = []
        for side in (0, 1):
            expected += model.watermark(side, 10**6)
            harness.watermark(millis(10**6), side + 1)
        assert Counter(row for _, row in map(plain, harness.values())) == Counter(expected)
        assert harness.state_entries() == 0


# --- regular joins ---
def nested_loop(shape: Shape, left: list[Values], right: list[Values]) -> Counter[Values]:
    found = [one + two for one in left for two in right if shape.match(one, two)]
    if shape.kind in {"LEFT", "FULL"}:
        found += [(*one, *(None,) * WIDTH) for one in left if not any(shape.match(one, two) for two in right)]
    if shape.kind in {"RIGHT", "FULL"}:
        found += [(*(None,) * WIDTH, *two) for two in right if not any(shape.match(one, two) for one in left)]
    return Counter(found)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("changelog", [False, True])
@pytest.mark.parametrize("most", [2, 128])
def test_a_regular_join_is_a_nested_loop(
    kind: str, changelog: bool, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After every batch, what came out adds up to the join of all rows so far, however few rows an entry holds."""
    monkeypatch.setattr("penstock.table.operators.join.join_state.MOST_TOGETHER", most)
    monkeypatch.setattr("penstock.table.operators.join.append_join.PAGE_ROWS", most)
    rng = random.Random(f"{kind} {changelog} {most}")
    shape = Shape(kind, None, rng.random() < 0.3, rng.random() < 0.5, changelog)
    sides: tuple[list[Values], list[Values]] = ([], [])
    left: Counter[Values] = Counter()
    with OperatorHarness(shape.plan, 2) as harness:
        for _ in range(25):
            side, batch = rng.randrange(2), []
            for _ in range(rng.choice([1, 3, 10])):
                if changelog and sides[side] and rng.random() < 0.45:
                    row = sides[side].pop(rng.randrange(len(sides[side])))
                    batch.append(Row.of_kind(rng.choice([RowKind.UPDATE_BEFORE, RowKind.DELETE]), at(row[0]), *row[1:]))
                else:
                    row = (rng.randrange(3), rng.choice(["a", "b", None]), rng.randrange(4))
                    sides[side].append(row)
                    batch.append(Row(at(row[0]), *row[1:]))
            harness.push_all(batch, side + 1)
            for change, row in map(plain, harness.values()):
                left[row] += 1 if change[0] == "+" else -1
            assert +left == nested_loop(shape, *sides) and not -left


# --- window joins ---
SIZE = 5


def windowed(relation: Relation) -> WindowTable:
    bound = TimestampType(3, False)
    bounds = (Column("window_start", bound), Column("window_end", bound), Column("window_time", bound, ROWTIME))
    return WindowTable(relation.columns + bounds, relation, "TUMBLE", 0, SIZE * 1000)


def window_join(kind: str, unequal: bool) -> Any:
    def program(*streams: Any) -> Any:
        left, right = (windowed(timed(stream, f"input {n}", False)) for n, stream in enumerate(streams))
        width = len(left.columns)
        parts = [call("=", left.ref(i), InputRef(left.columns[i].type, width + i)) for i in (1, WIDTH, WIDTH + 1)]
        if unequal:
            parts.append(call("<", InputRef(INT, 2), InputRef(INT, width + 2)))
        plan = join(left, right, kind, conjunction(parts))
        return Planner(streams[0].get_execution_environment(), Options(), False).rows(plan)

    return program


@pytest.mark.parametrize("kind", [*KINDS, "SEMI", "ANTI"])
def test_a_window_join_is_a_nested_loop(kind: str) -> None:
    rng = random.Random(kind)
    sides: tuple[list[Values], list[Values]] = ([], [])
    marks, found = [-1, -1], list[Values]()
    unequal = rng.random() < 0.5
    with OperatorHarness(window_join(kind, unequal), 2) as harness:
        for turn in range(40):
            side = rng.randrange(2)
            batch = [
                (max(turn + rng.randrange(-9, 5), 0), rng.choice(["a", "b", None]), rng.randrange(4))
                for _ in range(rng.choice([1, 2, 8]))
            ]
            harness.push_all([Row(at(time), *rest) for time, *rest in batch], side + 1)
            sides[side].extend(row for row in batch if row[0] // SIZE * SIZE + SIZE > min(marks))
            side = rng.randrange(2)
            marks[side] = max(marks[side], turn - 2)
            harness.watermark(millis(marks[side]), side + 1)
        for side in (1, 2):
            harness.watermark(millis(10**6), side)
        found = [row for _, row in map(plain, harness.values())]
        assert harness.state_entries() == 0 and harness.timers() == 0
    keys = [[(row[1], row[0] // SIZE) for row in side] for side in sides]
    left = [[(*row, key) for row, key in zip(side, own, strict=True)] for side, own in zip(sides, keys, strict=True)]

    def match(one: Values, two: Values) -> bool:
        return one[1] is not None and one[3] == two[3] and (not unequal or one[2] < two[2])

    if kind in {"SEMI", "ANTI"}:
        expected = [one[:3] for one in left[0] if any(match(one, two) for two in left[1]) is (kind == "SEMI")]
        assert Counter(row[:3] for row in found) == Counter(expected)
        return
    expected = [one[:3] + two[:3] for one in left[0] for two in left[1] if match(one, two)]
    if kind in {"LEFT", "FULL"}:
        expected += [(*one[:3], *[None] * 3) for one in left[0] if not any(match(one, two) for two in left[1])]
    if kind in {"RIGHT", "FULL"}:
        expected += [(*[None] * 3, *two[:3]) for two in left[1] if not any(match(one, two) for one in left[0])]
    assert Counter(row[:3] + row[6:9] for row in found) == Counter(expected)


# --- temporal joins ---
def temporal_join(kind: str, unequal: bool, **options: str) -> Any:
    def program(*streams: Any) -> Any:
        left, right = timed(streams[0], "rows", False), timed(streams[1], "versions", True)
        assert isinstance(right, Watermark) and isinstance(right.input, StreamScan)
        right = replace(right, input=replace(right.input, primary_key=(1,)))
        plan = replace(join(left, right, kind, Shape(kind, unequal=unequal).condition()), temporal=0)
        return Planner(streams[0].get_execution_environment(), Options(options), False).rows(plan)

    return program


@pytest.mark.parametrize("kind", ["INNER", "LEFT"])
@pytest.mark.parametrize("unequal", [False, True])
def test_a_temporal_join_finds_the_newest_version(kind: str, unequal: bool) -> None:
    rng = random.Random(f"{kind} {unequal}")
    rows, versions, found = list[Values](), dict[tuple[int, Any], tuple[str, int]](), list[Values]()
    with OperatorHarness(temporal_join(kind, unequal), 2) as harness:
        for turn in range(30):
            own = [(turn + rng.randrange(8), rng.choice(["a", "b", None]), rng.randrange(9)) for _ in range(4)]
            rows += own
            harness.push_all([Row(at(time), *rest) for time, *rest in own], 1)
            for _ in range(rng.randrange(4)):
                time, key, value = turn + rng.randrange(8), rng.choice(["a", "b"]), rng.randrange(9)
                change = rng.choice(["INSERT", "UPDATE_AFTER", "DELETE"])
                versions[time, key] = change, value
                harness.push(Row.of_kind(RowKind[change], at(time), key, value), input=2)
                harness.push(Row.of_kind(RowKind.UPDATE_BEFORE, at(time), key, value), input=2)
            for side in (1, 2):
                harness.watermark(millis(turn), side)
            found += [row for _, row in map(plain, harness.values())]
            assert all(row[0] <= turn for row in found), "rows wait for the watermark"
        for side in (1, 2):
            harness.watermark(millis(10**6), side)
        found += [row for _, row in map(plain, harness.values())]
    expected = []
    for row in rows:
        times = [time for time, key in versions if key == row[1] and time <= row[0]]
        change, value = versions[max(times), row[1]] if times else ("DELETE", 0)
        if change != "DELETE" and (not unequal or row[2] < value):
            expected.append((*row, max(times), row[1], value))
        elif kind == "LEFT":
            expected.append((*row, None, None, None))
    assert Counter(found) == Counter(expected)


def test_both_sides_of_a_temporal_join_expire_together() -> None:
    with OperatorHarness(temporal_join("LEFT", False, **{"table.exec.state.ttl": "1 s"}), 2) as harness:
        harness.push(Row(at(0), "a", 7), input=2)

        def version_at(now: int, time: int) -> Any:
            harness.advance_processing_time(now)
            harness.push(Row(at(time), "a", 1))
            for side in (1, 2):
                harness.watermark(millis(time), side)
            [(_, row)] = map(plain, harness.values())
            return row[-1]

        assert [version_at(800, 1), version_at(1_600, 2), version_at(2_400, 3)] == [7, 7, 7]
        assert version_at(3_500, 4) is None, "nobody has asked for a second"
        harness.advance_processing_time(9_000)
        assert harness.state_entries() == 0
