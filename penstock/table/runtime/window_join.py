"""Window joins: rows of the same key and window meet when the window ends."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from penstock.runtime.core.operator import OperatorContext
from penstock.state.tables import Layout
from penstock.table.runtime.batches import Held, batch_of, held_rows, made
from penstock.table.runtime.join import JoinSpec
from penstock.table.runtime.matching import Mask, Pairs, Partners, gathered, keyed, pairs_by_key
from penstock.table.runtime.pairs import Condition, both_sides
from penstock.table.runtime.state import store
from penstock.table.runtime.table_operator import TwoInputTableOperator
from penstock.table.runtime.windows import MICROS, instant_of
from penstock.vocabulary.functions.key_selectors import ColumnKeys


class Pane(NamedTuple):
    """The rows of a key and window, when the window has ended."""

    left: list[Held]
    right: list[Held]
    matchable: bool


class WindowJoin(TwoInputTableOperator):
    """State of a key and window: [rows of the left, rows of the right]. Rows of windows that are over are dropped.

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
        self._ended: list[Pane] = []

    def left(self, batch: pa.RecordBatch) -> None:
        self._take(0, batch)

    def right(self, batch: pa.RecordBatch) -> None:
        self._take(1, batch)

    # --- input ---
    def _take(self, side: int, batch: pa.RecordBatch) -> None:
        found = keyed(batch, ColumnKeys((*self.spec.keys[side], *self.bounds[side])))
        rows = held_rows(batch, range(len(self.spec.schemas[side])))
        for code, own in gathered(found.codes, rows):
            *parts, start, end = found.keys[code]
            last = instant_of(end // MICROS, self.zone, self.shifted) - 1
            if not self.processing_time and last <= self.current_watermark:
                self._late.inc(len(own))
            else:
                self._keep(side, parts[0] if len(parts) == 1 else tuple(parts), (start, end), last, own)

    def _keep(self, side: int, key: Any, window: tuple[int, int], last: int, rows: Any) -> None:
        pane = self._panes.get((key, window))
        if pane is None:
            pane = [[], []]
            queue = self.timers.processing_time if self.processing_time else self.timers.event_time
            queue.register(last, key, window)
        pane[side].extend(rows)
        self._panes.put((key, window), pane)

    # --- windows that end ---
    def on_event_time(self, time: int, key: Any, namespace: Any) -> None:
        left, right = self._panes.get((key, namespace)) or ([], [])
        self._panes.remove((key, namespace))
        parts = (key,) if len(self.spec.null_safe) == 1 else key
        pairs = zip(parts, self.spec.null_safe, strict=True)
        self._ended.append(Pane(left, right, all(part is not None or safe for part, safe in pairs)))

    on_processing_time = on_event_time

    def do(self, how: Callable[..., None], *what: Any) -> None:
        super().do(self._and_join, how, *what)

    def _and_join(self, how: Callable[..., None], *what: Any) -> None:
        """Join the panes that end while something is done."""
        how(*what)
        if self._ended:
            ended, self._ended = self._ended, []
            self._join(ended)

    def _join(self, panes: list[Pane]) -> None:
        """Rows that cannot match have no partners, but may come out alone; they are behind those that can."""
        panes.sort(key=lambda pane: not pane.matchable)
        left = batch_of([row for pane in panes for row in pane.left], self.spec.schemas[0])
        right = [row for pane in panes for row in pane.right]
        codes = np.repeat(np.arange(len(panes)), [len(pane.left) for pane in panes])
        _, found = pairs_by_key(codes, [pane.right if pane.matchable else None for pane in panes])
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
        arrays = left.take(pa.array(pairs.positions)).columns + partners.columns(pairs.picks)
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
