"""Deduplication: the first or the last row of each key, by time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.runtime.core.columns import Columns
from penstock.runtime.core.elements import MIN_TIMESTAMP
from penstock.runtime.core.operator import OperatorContext
from penstock.table.runtime.batches import INSERT, UPDATE_AFTER, UPDATE_BEFORE, Held, held_rows
from penstock.table.runtime.scans import millis_of
from penstock.table.runtime.state import store
from penstock.table.runtime.table_operator import HoldingTableOperator


class DeduplicateOperator(HoldingTableOperator):
    """Of each key and batch, only the one row that can matter is looked at in Python."""

    def __init__(self, keys: Sequence[int], time: int | None, schema: pa.Schema, ranked: bool, ttl: int = 0) -> None:
        """`time` is None for processing time: rows come in its order. `ranked`: the rank, 1, is the last column."""
        super().__init__(keys, schema)
        self.time = time
        self.rank: tuple[int, ...] = (1,) if ranked else ()
        self.ttl = ttl

    def open(self, context: OperatorContext) -> None:
        super().open(context)
        assert self.keyed is not None
        self._kept = store(self.keyed, "kept", self.ttl)

    def chosen(self, batch: pa.RecordBatch, last: bool) -> Iterator[tuple[Any, int, Held]]:
        """For each key its first or last row, with the row's time; of equal times the first or last one that came."""
        found = Columns(batch).keys(self.key_selector)  # type: ignore[arg-type]
        assert found is not None
        codes = found.which.to_numpy(zero_copy_only=False)
        times = self._times(batch)
        order = np.lexsort((np.arange(len(codes)), times, codes))
        of_code = codes[order]
        edges = np.flatnonzero(of_code[1:] != of_code[:-1])
        picked = np.append(order[edges], order[-1:]) if last else np.insert(order[edges + 1], 0, order[0])
        picked = np.sort(picked)
        rows = held_rows(batch.take(pa.array(picked)))
        return zip((found.distinct[code] for code in codes[picked]), times[picked].tolist(), rows, strict=True)

    def _times(self, batch: pa.RecordBatch) -> np.ndarray[Any, Any]:
        if self.time is None:
            return np.full(batch.num_rows, self.context.clock.now, "int64")
        made: np.ndarray[Any, Any] = millis_of(batch.column(self.time)).to_numpy(zero_copy_only=False)
        return made


class KeepLast(DeduplicateOperator):
    """State of a key: (time, row). A row that is not older replaces it, however late it is."""

    def whole(self, batch: pa.RecordBatch) -> None:
        chosen = list(self.chosen(batch, last=True))
        before = self._kept.get_all([key for key, _, _ in chosen])
        keys, entries, gathered = list[Any](), list[Any](), self.gathered
        for (key, time, row), held in zip(chosen, before, strict=True):
            if held is None:
                gathered.append((*row, *self.rank, INSERT))
            elif held[0] > time:
                continue
            elif held[1] != row:
                gathered.append((*held[1], *self.rank, UPDATE_BEFORE))
                gathered.append((*row, *self.rank, UPDATE_AFTER))
            keys.append(key)
            entries.append((time, row))
        self._kept.put_all(keys, entries)


class KeepFirst(DeduplicateOperator):
    """State of a key: (time, row) until the watermark has passed the row, and () when it has come out.

    By processing time the first row that comes is the first one. In event time, rows behind the watermark are dropped.
    """

    def whole(self, batch: pa.RecordBatch) -> None:
        if self.time is not None and self.current_watermark != MIN_TIMESTAMP:
            in_time = self._times(batch) >= self.current_watermark
            if not in_time.all():
                batch = batch.filter(pa.array(in_time))
        if not batch.num_rows:
            return
        for key, time, row in self.chosen(batch, last=False):
            held = self._kept.get(key)
            if held == ():
                continue
            if self.time is None:
                self._kept.put(key, ())
                self.gather(INSERT, row + self.rank)
            elif held is None or time < held[0]:
                if held is not None:
                    self.timers.event_time.delete(held[0], key)
                self._kept.put(key, (time, row))
                self.timers.event_time.register(time, key)

    def on_event_time(self, time: int, key: Any, namespace: Any) -> None:
        held = self._kept.get(key)
        if held:
            self._kept.put(key, ())
            self.gather(INSERT, held[1] + self.rank)
