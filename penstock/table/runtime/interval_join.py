"""Interval joins: rows of two inputs whose times are near each other, so that old rows can be forgotten."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from penstock.runtime.core.columns import Columns
from penstock.runtime.core.elements import MAX_TIMESTAMP, MIN_TIMESTAMP
from penstock.runtime.core.operator import OperatorContext
from penstock.table.runtime.batches import INSERT, Held, held_rows
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
        candidates = [self._candidates(side, key, time) for key, time in zip(keys, times, strict=True)]
        accepted = iter(self._accepted(side, rows, candidates))
        for key, time, row, others in zip(keys, times, rows, candidates, strict=True):
            matched = [other for other in others if next(accepted)]
            self._join(side, key, time, row, matched)

    def _candidates(self, side: int, key: Any, time: int | None) -> list[Kept]:
        if time is None or not self._matchable(key):
            return []
        low, high = self.interval.around(side, time)
        return [other for other in self._sides[1 - side].get(key) or () if low <= other[0] <= high]

    def _matchable(self, key: Any) -> bool:
        if len(self.spec.null_safe) == 1:
            return key is not None or self.spec.null_safe[0]
        return all(part is not None or safe for part, safe in zip(key, self.spec.null_safe, strict=True))

    def _accepted(self, side: int, rows: list[Held], candidates: list[list[Kept]]) -> list[bool]:
        if not self._condition:
            return [True] * sum(map(len, candidates))
        pairs = [
            self._pair(side, row, other[1]) for row, others in zip(rows, candidates, strict=True) for other in others
        ]
        return self._condition.accepted(pairs, self)

    def _join(self, side: int, key: Any, time: int | None, row: Held, matched: list[Kept]) -> None:
        for other in matched:
            self.gather(INSERT, self._pair(side, row, other[1]))
            other[2] = True
        if matched and self.spec.outer(1 - side):
            self._sides[1 - side].put(key, self._sides[1 - side].get(key))
        if time is not None and self._matchable(key) and self._now() < time + self.interval.reach(side):
            kept = self._sides[side].get(key) or []
            kept.append([time, row, bool(matched)])
            self._sides[side].put(key, kept)
            self._queue().register(time + self.interval.reach(side) + self._slack + 1, key, side)
        elif not matched:
            self._pad(side, row)

    def _pair(self, side: int, row: Held, other: Held) -> Held:
        return row + other if side == 0 else other + row

    def _pad(self, side: int, row: Held) -> None:
        if self.spec.outer(side):
            self.gather(INSERT, self._pair(side, row, self._nulls[1 - side]))

    # --- time ---
    def watermark(self, timestamp: int) -> None:
        """What is joined may be as old as the interval is long, so that event time goes on with that delay."""
        self.current_watermark = self.timers.watermark = timestamp
        self.do(self.timers.event_time.fire, timestamp, self.on_event_time)
        delay = max(self.interval.upper, -self.interval.lower, 0)
        late = timestamp if timestamp == MAX_TIMESTAMP or self.interval.processing_time else timestamp - delay
        if late > MIN_TIMESTAMP:
            self.output.watermark(late)

    def _now(self) -> int:
        if self.interval.processing_time:
            return self.context.clock.now
        return MIN_TIMESTAMP if self.context.batch else self.current_watermark

    def _queue(self) -> Any:
        return self.timers.processing_time if self.interval.processing_time else self.timers.event_time

    def on_event_time(self, time: int, key: Any, namespace: Any) -> None:
        self._expire(namespace, key, self.current_watermark)

    def on_processing_time(self, time: int, key: Any, namespace: Any) -> None:
        self._expire(namespace, key, self.context.clock.now)

    def _expire(self, side: int, key: Any, now: int) -> None:
        """Forget the rows whose time for matches has passed."""
        limit = MAX_TIMESTAMP if now == MAX_TIMESTAMP else now - self.interval.reach(side) - 1
        left = []
        for kept in self._sides[side].get(key) or ():
            if kept[0] > limit:
                left.append(kept)
            elif not kept[2]:
                self._pad(side, kept[1])
        if left:
            self._sides[side].put(key, left)
        else:
            self._sides[side].remove(key)
