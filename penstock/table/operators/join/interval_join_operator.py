"""Interval joins: rows of two inputs match if their times are close together, so that old rows can be removed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.engine.operators.operator import OperatorContext
from penstock.engine.records.elements import MAX_TIMESTAMP, MIN_TIMESTAMP
from penstock.table.operators.base.expirations import Expirations
from penstock.table.operators.base.output_form import OutputForm
from penstock.table.operators.base.query_batches import batch_of, state_rows
from penstock.table.operators.base.state_matching import (
    Keyed,
    Mask,
    Numbers,
    Pairs,
    Partners,
    group_entries,
    matchable,
    pairs_by_time,
    rows_by_key,
    take_rows,
)
from penstock.table.operators.base.table_operator import TwoInputTableOperator
from penstock.table.operators.io.row_conversions import millis_of
from penstock.table.operators.join.regular_join import JoinSpec
from penstock.table.operators.join.row_pairs import Condition, both_sides
from penstock.table.operators.join.timed_rows import Kept, TimedRows


@dataclass(frozen=True)
class Interval:
    """The bounds of an interval join. The right time is from the left time plus `lower` to the left time plus `upper`.

    Bounds are in milliseconds.
    """

    times: tuple[int, int]
    """The positions of the time columns on both sides."""
    lower: int
    upper: int
    processing_time: bool = False

    def around(self, side: int) -> tuple[int, int]:
        """Return the offsets, in milliseconds, from a row's time to its earliest and latest match on the other side."""
        return (self.lower, self.upper) if side == 0 else (-self.upper, -self.lower)

    def reach(self, side: int) -> int:
        """Return how long, in milliseconds, a row can still find matches after its own time."""
        return self.upper if side == 0 else -self.lower


class IntervalJoin(TwoInputTableOperator):
    """State of a key, for each side: rows that may still find matches. Rows without any match are padded at the end.

    A batch is matched as a whole: Python processes its keys and the stored rows, but pairs only in columns. As in
    Flink, rows are removed some time after they expire, so that late rows may still meet them.
    """

    def __init__(self, spec: JoinSpec, interval: Interval, form: OutputForm) -> None:
        super().__init__(spec.keys, form)
        self.spec = spec
        self.interval = interval

    def open(self, context: OperatorContext) -> None:
        super().open(context)
        assert self.keyed is not None
        span = self.interval.upper - self.interval.lower
        self._sides = [TimedRows(self.keyed, name, span) for name in ("left", "right")]
        spec = self.spec
        self._condition = Condition(spec.condition, both_sides(*spec.schemas), spec.zone)
        slack = max((self.interval.upper - self.interval.lower) // 2, 0)
        self._delays = [self.interval.reach(side) + slack + 1 for side in (0, 1)]
        """For each side, the time in milliseconds from a row's time to the removal of all expired rows of its key."""
        self._expirations = (Expirations(), Expirations())
        for side, kept in enumerate(self._sides):
            restored = list(kept.times())
            times = np.fromiter((time for time, _ in restored), np.int64, len(restored))
            self._expirations[side].add(times + self._delays[side], [key for _, key in restored])

    def left(self, batch: pa.RecordBatch) -> None:
        self._take(0, batch)

    def right(self, batch: pa.RecordBatch) -> None:
        self._take(1, batch)

    # --- input ---
    def _take(self, side: int, batch: pa.RecordBatch) -> None:
        batch = self._usable(side, batch)
        if not batch.num_rows:
            return
        arrived, times = rows_by_key(batch, self.selectors[side]), self._times(side, batch)
        matched = self._match(side, arrived, times)
        lasting = times + self.interval.reach(side) > self._now()
        if not lasting.all():
            self._pad(side, batch.filter(pa.array(~lasting & ~matched)))
            kept = batch.filter(pa.array(lasting))
            if not kept.num_rows:
                return
            arrived, times, matched = rows_by_key(kept, self.selectors[side]), times[lasting], matched[lasting]
        self._keep(side, arrived, times, matched)

    def _usable(self, side: int, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows that can have matches, and pad the others at once."""
        mask = matchable(batch, self.spec.keys[side], self.spec.null_safe)
        moments = batch.column(self.interval.times[side])
        if moments.null_count and not self.interval.processing_time:
            timed = moments.is_valid().to_numpy(zero_copy_only=False)
            mask = timed if mask is None else mask & timed
        if mask is None:
            return batch
        self._pad(side, batch.filter(pa.array(~mask)))
        return batch.filter(pa.array(mask))

    def _times(self, side: int, batch: pa.RecordBatch) -> Numbers:
        if self.interval.processing_time:
            return np.full(batch.num_rows, self.context.clock.now, np.int64)
        times: Numbers = millis_of(batch.column(self.interval.times[side])).to_numpy(zero_copy_only=False)
        return times

    def _match(self, side: int, arrived: Keyed, times: Numbers) -> Mask:
        """Send all pairs of these rows. Return a mask of the rows that have a match."""
        before, after = self.interval.around(side)
        low, high = times + before, times + after
        groups = self._sides[1 - side].near(arrived.keys, int(low.min()), int(high.max()))
        matched = np.zeros(len(times), np.bool_)
        if not any(groups):
            return matched
        candidates, found = pairs_by_time(arrived.codes, groups, low, high)
        partners = Partners([entry[1] for entry in candidates], self.spec.schemas[1 - side])
        met: dict[int, list[Kept]] = {}
        for some in found:
            pairs = self._send_pairs(side, arrived, some, partners)
            matched[pairs.positions] = True
            if self.spec.outer(1 - side):
                self._note(pairs, candidates, arrived, met)
        for code, entries in met.items():
            self._sides[1 - side].store_changes(arrived.keys[code], entries)
        return matched

    def _note(self, pairs: Pairs, candidates: list[Any], arrived: Keyed, met: dict[int, list[Kept]]) -> None:
        """Mark entries of the other side that have found their first match.

        Add them to `met`, under the code of their key.
        """
        picks, firsts = np.unique(pairs.picks, return_index=True)
        codes = arrived.codes[pairs.positions[firsts]]
        for pick, code in zip(picks.tolist(), codes.tolist(), strict=True):
            if not candidates[pick][2]:
                candidates[pick][2] = True
                met.setdefault(code, []).append(candidates[pick])

    def _send_pairs(self, side: int, arrived: Keyed, pairs: Pairs, partners: Partners) -> Pairs:
        """Send the pairs that the condition accepts, and return them."""
        if not len(pairs.positions):
            return pairs
        own = take_rows(arrived.batch, pairs.positions).columns[: len(self.spec.schemas[side])]
        other = partners.columns(pairs.picks)
        joined = pa.RecordBatch.from_arrays(own + other if side == 0 else other + own, schema=self.schema)
        if self._condition:
            mask = self._condition.mask(joined, self)
            joined, pairs = joined.filter(mask), pairs.where(mask.to_numpy(zero_copy_only=False))
        self.send(joined)
        return pairs

    def _keep(self, side: int, arrived: Keyed, times: Numbers, matched: Mask) -> None:
        rows, moments = state_rows(arrived.batch, range(len(self.spec.schemas[side]))), times.tolist()
        entries: list[Kept] = list(zip(moments, rows, strict=True))
        if self.spec.outer(side):
            entries = [[*entry, own] for entry, own in zip(entries, matched.tolist(), strict=True)]
        if arrived.unique:
            self._sides[side].add(arrived.keys, [(entry,) for entry in entries])
        else:
            by_key = list(group_entries(arrived.codes, entries))
            self._sides[side].add([arrived.keys[code] for code, _ in by_key], [own for _, own in by_key])
        self._expirations[side].add(times + self._delays[side], arrived.key_of_each())

    def _pad(self, side: int, batch: pa.RecordBatch) -> None:
        """Send rows without a match if the join is outer on their side."""
        if self.spec.outer(side) and batch.num_rows:
            own = batch.columns[: len(self.spec.schemas[side])]
            missing = [pa.nulls(batch.num_rows, field.type) for field in self.spec.schemas[1 - side]]
            arrays = own + missing if side == 0 else missing + own
            self.send(pa.RecordBatch.from_arrays(arrays, schema=self.schema))

    # --- time ---
    def watermark(self, timestamp: int) -> None:
        """Pass the watermark on with the delay of the interval, because joined rows may be that old."""
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
        if not self.interval.processing_time:
            return None
        times = [time for one in self._expirations if (time := one.next_time()) is not None]
        return min(times, default=None)

    def _now(self) -> int:
        if self.interval.processing_time:
            return self.context.clock.now
        return MIN_TIMESTAMP if self.context.batch else self.current_watermark

    def _expire_all(self, now: int) -> None:
        for side, expirations in enumerate(self._expirations):
            keys = expirations.pop(now)
            if keys:
                self._expire(side, keys, now)

    def _expire(self, side: int, keys: list[Any], now: int) -> None:
        """Remove the expired rows of some keys, if one of their rows is due."""
        last = now == MAX_TIMESTAMP
        limit = MAX_TIMESTAMP if last else now - self.interval.reach(side) - 1
        due = MAX_TIMESTAMP if last else now - self._delays[side]
        removed = self._sides[side].expire(keys, due, limit)
        if self.spec.outer(side):
            self._pad(side, batch_of([entry[1] for entry in removed if not entry[2]], self.spec.schemas[side]))
