"""Window joins: rows of the same key and window meet when the window ends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.runtime.core.elements import MIN_TIMESTAMP
from penstock.runtime.core.operator import OperatorContext
from penstock.state.tables import Layout
from penstock.table.runtime.batches import Held, batch_of, held_rows, made
from penstock.table.runtime.expirations import Expirations
from penstock.table.runtime.join import JoinSpec
from penstock.table.runtime.matching import Mask, Pairs, Partners, gathered, keyed, pairs_by_key, taken
from penstock.table.runtime.pairs import Condition, both_sides
from penstock.table.runtime.state import store
from penstock.table.runtime.table_operator import TwoInputTableOperator
from penstock.table.runtime.windows import MICROS, instant_of
from penstock.vocabulary.functions.key_selectors import ColumnKeys

Window = tuple[int, int]
Pane = tuple[Sequence[Held], Sequence[Held]]
"""The rows of a key and window: those of the left, and those of the right."""


class WindowJoin(TwoInputTableOperator):
    """State of a key and window: its pane. Rows of windows that are over are dropped.

    Python meets every key and window of a batch; the panes that end with a watermark are joined at once.
    """

    zone = "UTC"
    shifted = False
    processing_time = False

    def __init__(self, spec: JoinSpec, bounds: tuple[tuple[int, int], tuple[int, int]], schema: pa.Schema) -> None:
        """`bounds` are start and end on both sides."""
        super().__init__(spec.keys, schema)
        self.spec = spec
        self.bounds = bounds

    def open(self, context: OperatorContext) -> None:
        super().open(context)
        assert self.keyed is not None
        self._panes = store(self.keyed, "panes", layout=Layout.PANE)
        spec = self.spec
        self._condition = Condition(spec.condition, both_sides(*spec.schemas), spec.zone)
        self._late = context.metrics.counter("numLateRecordsDropped")
        self._ends = Expirations()
        restored = [address for address, _ in self._panes.items()]
        self._ends.add(np.array([self._last(window) for _, window in restored], np.int64), restored)

    def left(self, batch: pa.RecordBatch) -> None:
        self._take(0, batch)

    def right(self, batch: pa.RecordBatch) -> None:
        self._take(1, batch)

    # --- input ---
    def _take(self, side: int, batch: pa.RecordBatch) -> None:
        found = keyed(batch, ColumnKeys((*self.spec.keys[side], *self.bounds[side])))
        addresses = [_address(key) for key in found.keys]
        lasts = {window: self._last(window) for window in {window for _, window in addresses}}
        over = MIN_TIMESTAMP if self.processing_time else self.current_watermark
        arrived: dict[Any, Sequence[Held]] = {}
        for code, rows in gathered(found.codes, held_rows(batch, range(len(self.spec.schemas[side])))):
            if lasts[addresses[code][1]] > over:
                arrived[addresses[code]] = rows
            else:
                self._late.inc(len(rows))
        self._keep(side, arrived)
        self._ends.add(np.array([lasts[window] for _, window in arrived], np.int64), list(arrived))

    def _last(self, window: Window) -> int:
        """The last moment of a window."""
        return instant_of(window[1] // MICROS, self.zone, self.shifted) - 1

    def _keep(self, side: int, arrived: dict[Any, Sequence[Held]]) -> None:
        addresses = list(arrived)
        panes = [pane or ((), ()) for pane in self._panes.get_all(addresses)]
        rows = [(*pane[side], *more) for pane, more in zip(panes, arrived.values(), strict=True)]
        both = [(own, pane[1]) if side == 0 else (pane[0], own) for own, pane in zip(rows, panes, strict=True)]
        self._panes.put_all(addresses, both)

    # --- windows that end ---
    def watermark(self, timestamp: int) -> None:
        if not self.processing_time:
            self.current_watermark = self.timers.watermark = timestamp
            self.do(self._end, timestamp)
        super().watermark(timestamp)

    def advance_processing_time(self, now: int) -> None:
        if self.processing_time:
            self.do(self._end, now)
        super().advance_processing_time(now)

    def next_due(self) -> int | None:
        return self._ends.next_time() if self.processing_time else None

    def on_event_time(self, time: int, key: Any, namespace: Any) -> None:
        """A timer that an earlier version left. What waited for it has been joined."""

    on_processing_time = on_event_time

    def _end(self, now: int) -> None:
        ended = sorted(self._ends.pop(now), key=lambda address: address[1][1])
        panes = [(address, pane) for address in ended if (pane := self._panes.get(address)) is not None]
        self._panes.remove_all([address for address, _ in panes])
        # Rows that cannot match have no partners, but may come out alone; they are behind those that can.
        can = [pane for (key, _), pane in panes if self._matchable(key)]
        cannot = [pane for (key, _), pane in panes if not self._matchable(key)]
        if panes:
            self._join(can, cannot)

    def _matchable(self, key: Any) -> bool:
        if len(self.spec.null_safe) == 1:
            return key is not None or self.spec.null_safe[0]
        return all(part is not None or safe for part, safe in zip(key, self.spec.null_safe, strict=True))

    def _join(self, can: list[Pane], cannot: list[Pane]) -> None:
        left = batch_of([row for pane in (*can, *cannot) for row in pane[0]], self.spec.schemas[0])
        right = [row for pane in (*can, *cannot) for row in pane[1]]
        codes = np.repeat(np.arange(len(can) + len(cannot)), [len(pane[0]) for pane in (*can, *cannot)])
        _, found = pairs_by_key(codes, [*(pane[1] for pane in can), *(None for _ in cannot)])
        met = np.zeros(left.num_rows, np.bool_), np.zeros(len(right), np.bool_)
        partners = Partners(right, self.spec.schemas[1])
        for some in found:
            pairs = self._send_pairs(left, some, partners)
            met[0][pairs.positions] = True
            met[1][pairs.picks] = True
        if self.spec.one_sided:
            self.send(left.filter(pa.array(met[0] == (self.spec.kind == "SEMI"))))
        self._send_alone(0, left, ~met[0])
        if self.spec.outer(1):
            self._send_alone(1, batch_of(right, self.spec.schemas[1]), ~met[1])

    def _send_pairs(self, left: pa.RecordBatch, pairs: Pairs, partners: Partners) -> Pairs:
        """Send the pairs that the condition accepts, unless only the left is wanted; returns these pairs."""
        arrays = taken(left, pairs.positions).columns + partners.columns(pairs.picks)
        joined = made(arrays, both_sides(*self.spec.schemas), len(pairs.positions))
        if self._condition:
            mask = self._condition.mask(joined, self)
            joined, pairs = joined.filter(mask), pairs.where(mask.to_numpy(zero_copy_only=False))
        if not self.spec.one_sided:
            self.send(made(joined.columns, self.schema, joined.num_rows))
        return pairs

    def _send_alone(self, side: int, batch: pa.RecordBatch, alone: Mask) -> None:
        """Send rows without a match, if that is wanted."""
        if self.spec.outer(side) and alone.any():
            own = batch.filter(pa.array(alone))
            missing = [pa.nulls(own.num_rows, field.type) for field in self.spec.schemas[1 - side]]
            arrays = own.columns + missing if side == 0 else missing + own.columns
            self.send(made(arrays, self.schema, own.num_rows))


def _address(key: tuple[Any, ...]) -> tuple[Any, Window]:
    """The address of a pane: its key is one value, or a tuple of any other number."""
    *parts, start, end = key
    return parts[0] if len(parts) == 1 else tuple(parts), (start, end)
