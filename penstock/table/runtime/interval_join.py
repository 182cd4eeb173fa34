"""Interval joins: rows of two inputs whose times are near each other, so that old rows can be forgotten."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from penstock.runtime.core.columns import Columns
from penstock.runtime.core.elements import MAX_TIMESTAMP, MIN_TIMESTAMP
from penstock.runtime.core.operator import OperatorContext
from penstock.table.runtime.batches import INSERT, Held, batch_of, held_rows
from penstock.table.runtime.due import Due
from penstock.table.runtime.join import JoinSpec
from penstock.table.runtime.pairs import Condition, both_sides
from penstock.table.runtime.scans import millis_of
from penstock.table.runtime.state import store
from penstock.table.runtime.table_operator import TwoInputTableOperator

Kept = list[Any]
"""[time, row, whether it has been sent with a match]."""


@dataclass(frozen=True)
class Interval:
    """The time of the right is between that of the left plus `lower` and plus `upper`, in milliseconds."""

    times: tuple[int, int]
    """The time columns of the sides."""
    lower: int
    upper: int
    processing_time: bool = False

    def around(self, side: int, time: int) -> tuple[int, int]:
        """Between which times a row's matches on the other side are."""
        return (time + self.lower, time + self.upper) if side == 0 else (time - self.upper, time - self.lower)

    def reach(self, side: int) -> int:
        """How long after its own time a row can still find matches."""
        return self.upper if side == 0 else -self.lower


class IntervalJoin(TwoInputTableOperator):
    """State of a key, for each side: rows that may still find matches. Rows that never did are padded at the end.

    As in Flink, rows are cleaned up some time after they could, so that late rows may still meet them.
    """

    def __init__(self, spec: JoinSpec, interval: Interval, schema: pa.Schema) -> None:
        super().__init__(spec.keys, schema)
        self.spec = spec
        self.interval = interval

    def open(self, context: OperatorContext) -> None:
        super().open(context)
        assert self.keyed is not None
        self._sides = [store(self.keyed, name) for name in ("left", "right")]
        spec = self.spec
        self._condition = Condition(spec.condition, both_sides(*spec.schemas), spec.zone)
        self._nulls = ((None,) * len(spec.schemas[0]), (None,) * len(spec.schemas[1]))
        self._slack = max((self.interval.upper - self.interval.lower) // 2, 0)
        self._due = Due()
        for side, kept in enumerate(self._sides):
            reach = self.interval.reach(side) + self._slack + 1
            for key, entries in kept.items():
                for entry in entries:
                    self._due.add(entry[0] + reach, (side, key))

    def left(self, batch: pa.RecordBatch) -> None:
        self._take(0, batch)

    def right(self, batch: pa.RecordBatch) -> None:
        self._take(1, batch)

    # --- input ---
    def _take(self, side: int, batch: pa.RecordBatch) -> None:
        found = Columns(batch).keys(self.selectors[side])
        assert found is not None
        rows = held_rows(batch, range(len(self.spec.schemas[side])))
        if self.interval.processing_time:
            times = [self.context.clock.now] * len(rows)
        else:
            times = millis_of(batch.column(self.interval.times[side])).to_pylist()
        keys = [found.distinct[code] for code in found.which.to_pylist()]
        positions, others = self._matches(side, keys, times)
        if self._condition and others:
            pairs = [self._pair(side, rows[own], other[1]) for own, other in zip(positions, others, strict=True)]
            accepted = self._condition.accepted(pairs, self)
            positions = [own for own, kept in zip(positions, accepted, strict=True) if kept]
            others = [other for other, kept in zip(others, accepted, strict=True) if kept]
        self._send_pairs(side, batch, positions, [other[1] for other in others])
        if self.spec.outer(1 - side):
            for own, other in zip(positions, others, strict=True):
                other[2] = True
                self._sides[1 - side].put(keys[own], self._sides[1 - side].get(keys[own]))
        self._keep_all(side, list(zip(keys, times, rows, strict=True)), set(positions))

    def _matches(self, side: int, keys: list[Any], times: list[int]) -> tuple[list[int], list[Kept]]:
        """Pairs of a position and a row of the other side that is near enough."""
        get, (lower, upper) = self._sides[1 - side].get, self.interval.around(side, 0)
        positions, others = list[int](), list[Kept]()
        for position, key in enumerate(keys):
            kept = get(key)
            if kept and self._matchable(key) and times[position] is not None:
                low, high = times[position] + lower, times[position] + upper
                for other in kept:
                    if low <= other[0] <= high:
                        positions.append(position)
                        others.append(other)
        return positions, others

    def _matchable(self, key: Any) -> bool:
        if len(self.spec.null_safe) == 1:
            return key is not None or self.spec.null_safe[0]
        return all(part is not None or safe for part, safe in zip(key, self.spec.null_safe, strict=True))

    def _send_pairs(self, side: int, batch: pa.RecordBatch, positions: list[int], others: list[Held]) -> None:
        """Columns of the rows that came are taken as they are; those of the other side are made of what was kept."""
        if not positions:
            return
        own = batch.take(pa.array(positions)).columns[: len(self.spec.schemas[side])]
        other = list(batch_of(others, self.spec.schemas[1 - side]).columns)
        self.send(pa.RecordBatch.from_arrays(own + other if side == 0 else other + own, schema=self.schema))

    def _keep_all(self, side: int, arrived: list[tuple[Any, int | None, Held]], matched: set[int]) -> None:
        store_of, now, reach = self._sides[side], self._now(), self.interval.reach(side)
        get, put, due = store_of.get, store_of.put, dict[int, list[Any]]()
        for position, (key, time, row) in enumerate(arrived):
            if time is not None and now < time + reach and self._matchable(key):
                kept = get(key)
                entry = [time, row, position in matched]
                if kept is None:
                    put(key, [entry])
                else:
                    kept.append(entry)
                    put(key, kept)
                due.setdefault(time + reach + self._slack + 1, []).append((side, key))
            elif position not in matched:
                self._pad(side, row)
        for time_due, addresses in due.items():
            self._due.extend(time_due, addresses)

    def _pair(self, side: int, row: Held, other: Held) -> Held:
        return row + other if side == 0 else other + row

    def _pad(self, side: int, row: Held) -> None:
        if self.spec.outer(side):
            self.gather(INSERT, self._pair(side, row, self._nulls[1 - side]))

    # --- time ---
    def watermark(self, timestamp: int) -> None:
        """What is joined may be as old as the interval is long, so that event time goes on with that delay."""
        self.current_watermark = self.timers.watermark = timestamp
        if not self.interval.processing_time:
            self.do(self._expire_all, timestamp)
        delay = max(self.interval.upper, -self.interval.lower, 0)
        late = timestamp if timestamp == MAX_TIMESTAMP or self.interval.processing_time else timestamp - delay
        if late > MIN_TIMESTAMP:
            self.output.watermark(late)

    def advance_processing_time(self, now: int) -> None:
        if self.interval.processing_time:
            self.do(self._expire_all, now)

    def next_due(self) -> int | None:
        return self._due.next_time() if self.interval.processing_time else None

    def _now(self) -> int:
        if self.interval.processing_time:
            return self.context.clock.now
        return MIN_TIMESTAMP if self.context.batch else self.current_watermark

    def _expire_all(self, now: int) -> None:
        for _, addresses in self._due.pop(now):
            for side, key in addresses:
                self._expire(side, key, now)

    def _expire(self, side: int, key: Any, now: int) -> None:
        """Forget the rows whose time for matches has passed."""
        kept = self._sides[side].get(key)
        if kept is None:
            return
        limit = MAX_TIMESTAMP if now == MAX_TIMESTAMP else now - self.interval.reach(side) - 1
        left = [entry for entry in kept if entry[0] > limit]
        if self.spec.outer(side):
            for entry in kept:
                if entry[0] <= limit and not entry[2]:
                    self._pad(side, entry[1])
        if left:
            self._sides[side].put(key, left)
        else:
            self._sides[side].remove(key)
