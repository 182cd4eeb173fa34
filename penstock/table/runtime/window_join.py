"""Window joins: rows of the same key and window meet when the window ends."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from penstock.runtime.core.columns import Columns
from penstock.runtime.core.operator import OperatorContext
from penstock.state.tables import Layout
from penstock.table.runtime.batches import INSERT, Held, held_rows
from penstock.table.runtime.join import JoinSpec
from penstock.table.runtime.pairs import Condition, both_sides
from penstock.table.runtime.state import store
from penstock.table.runtime.table_operator import TwoInputTableOperator
from penstock.table.runtime.windows import MICROS, instant_of


class WindowJoin(TwoInputTableOperator):
    """State of a key and window: [rows of the left, rows of the right]. Rows of windows that are over are dropped."""

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
        self._nulls = ((None,) * len(spec.schemas[0]), (None,) * len(spec.schemas[1]))
        self._late = context.metrics.counter("numLateRecordsDropped")

    def left(self, batch: pa.RecordBatch) -> None:
        self._take(0, batch)

    def right(self, batch: pa.RecordBatch) -> None:
        self._take(1, batch)

    def _take(self, side: int, batch: pa.RecordBatch) -> None:
        found = Columns(batch).keys(self.selectors[side])
        assert found is not None
        start, end = self.bounds[side]
        rows = held_rows(batch, range(len(self.spec.schemas[side])))
        for code, row in zip(found.which.to_pylist(), rows, strict=True):
            window = (row[start], row[end])
            last = instant_of(row[end] // MICROS, self.zone, self.shifted) - 1
            if not self.processing_time and last <= self.current_watermark:
                self._late.inc()
                continue
            key = found.distinct[code]
            pane = self._panes.get((key, window))
            if pane is None:
                pane = [[], []]
                queue = self.timers.processing_time if self.processing_time else self.timers.event_time
                queue.register(last, key, window)
            pane[side].append(row)
            self._panes.put((key, window), pane)

    def on_event_time(self, time: int, key: Any, namespace: Any) -> None:
        left, right = self._panes.get((key, namespace)) or ([], [])
        self._panes.remove((key, namespace))
        matches = self._matches(key, left, right)
        if self.spec.one_sided:
            wanted = self.spec.kind == "SEMI"
            for row, matched in zip(left, matches, strict=True):
                if any(matched) is wanted:
                    self.gather(INSERT, row)
            return
        self._join(left, right, matches)

    on_processing_time = on_event_time

    def _matches(self, key: Any, left: list[Held], right: list[Held]) -> list[list[bool]]:
        """For each row on the left, which rows on the right match."""
        own = (key,) if len(self.spec.null_safe) == 1 else key
        if not all(part is not None or safe for part, safe in zip(own, self.spec.null_safe, strict=True)):
            return [[False] * len(right) for _ in left]
        accepted = self._condition.accepted([one + other for one in left for other in right], self)
        width = len(right)
        return [accepted[index * width : (index + 1) * width] for index in range(len(left))]

    def _join(self, left: list[Held], right: list[Held], matches: list[list[bool]]) -> None:
        for row, matched in zip(left, matches, strict=True):
            for other, match in zip(right, matched, strict=True):
                if match:
                    self.gather(INSERT, row + other)
            if not any(matched) and self.spec.outer(0):
                self.gather(INSERT, row + self._nulls[1])
        if self.spec.outer(1):
            for index, other in enumerate(right):
                if not any(matched[index] for matched in matches):
                    self.gather(INSERT, self._nulls[0] + other)
