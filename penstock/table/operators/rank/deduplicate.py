"""Deduplication: the first or the last row of each key, by time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from penstock.engine.operators.operator import OperatorContext
from penstock.engine.records.columns import Columns
from penstock.engine.records.elements import MIN_TIMESTAMP
from penstock.table.operators.base.due_times import Due
from penstock.table.operators.base.output_form import OutputForm
from penstock.table.operators.base.query_batches import INSERT, UPDATE_AFTER, UPDATE_BEFORE, Held, batch_of, state_rows
from penstock.table.operators.base.query_state import store
from penstock.table.operators.base.table_operator import HoldingTableOperator
from penstock.table.operators.io.row_conversions import millis_of

Entry = tuple[int, Held]
"""The time of a row, and the row."""


class Chosen(NamedTuple):
    """One row of each key."""

    keys: list[Any]
    times: list[int]
    batch: pa.RecordBatch

    def entries(self) -> list[Entry]:
        """Return the rows with their times."""
        return list(zip(self.times, state_rows(self.batch), strict=True))


class DeduplicateOperator(HoldingTableOperator):
    """The base of deduplication.

    Python processes only one row of each key and batch: the one that can change the result.
    """

    def __init__(
        self,
        keys: Sequence[int],
        time: int | None,
        form: OutputForm,
        ranked: bool,
        ttl: int = 0,
        every_version: bool = False,
    ) -> None:
        """Create an operator.

        `time` is a column, or None for processing time. `ranked` adds the rank, 1, as the last column. With
        `every_version`, each row that was the last one is sent, even if another row of the same batch replaces it.
        """
        super().__init__(keys, form)
        self.time = time
        self.ranked = ranked
        self.ttl = ttl
        self.every_version = every_version

    def open(self, context: OperatorContext) -> None:
        super().open(context)
        assert self.keyed is not None
        self._kept = store(self.keyed, "kept", self.ttl)
        self._input = pa.schema(list(self.schema)[: len(self.schema) - self.changelog - self.ranked])

    def chosen(self, batch: pa.RecordBatch, last: bool) -> Chosen:
        """Return for each key its first or last row. The order of arrival decides between equal times."""
        found = Columns(batch).keys(self.key_selector)  # type: ignore[arg-type]
        assert found is not None
        codes = found.which.to_numpy(zero_copy_only=False)
        times = self._times(batch)
        if len(found.distinct) == len(codes):
            picked = np.arange(len(codes))
        else:
            order = np.lexsort((times, codes))
            of_code = codes[order]
            edges = np.flatnonzero(of_code[1:] != of_code[:-1])
            picked = np.append(order[edges], order[-1:]) if last else np.insert(order[edges + 1], 0, order[0])
            picked = np.sort(picked)
            batch, codes, times = batch.take(pa.array(picked)), codes[picked], times[picked]
        return Chosen(list(map(found.distinct.__getitem__, codes.tolist())), times.tolist(), batch)

    def _times(self, batch: pa.RecordBatch) -> np.ndarray[Any, Any]:
        if self.time is None:
            return np.full(batch.num_rows, self.context.clock.now, "int64")
        made: np.ndarray[Any, Any] = millis_of(batch.column(self.time)).to_numpy(zero_copy_only=False)
        return made

    def send_rows(self, batch: pa.RecordBatch, kinds: np.ndarray[Any, Any] | None = None) -> None:
        """Send rows. They are inserts unless `kinds` has other kinds."""
        arrays = [column.cast(field.type) for column, field in zip(batch.columns, self._input, strict=True)]
        if self.ranked:
            arrays.append(pa.repeat(pa.scalar(1, pa.int64()), batch.num_rows))
        if self.changelog:
            arrays.append(pa.array(np.full(batch.num_rows, INSERT) if kinds is None else kinds, pa.int8()))
        self.send(pa.RecordBatch.from_arrays(arrays, schema=self.schema))


class KeepLast(DeduplicateOperator):
    """State of a key: (time, row). A row that is not older replaces it, even if it is late."""

    def whole(self, batch: pa.RecordBatch) -> None:
        if self.every_version:
            self._one_by_one(batch)
            return
        chosen = self.chosen(batch, last=True)
        held: list[Entry | None] = self._kept.get_all(chosen.keys)
        if held.count(None) == len(held):
            self._kept.put_all(chosen.keys, chosen.entries())
            self.send_rows(chosen.batch)
        else:
            self._replace(chosen, held)

    def _one_by_one(self, batch: pa.RecordBatch) -> None:
        found = Columns(batch).keys(self.key_selector)  # type: ignore[arg-type]
        assert found is not None
        held: list[Entry | None] = self._kept.get_all(found.distinct)
        rank = (1,) if self.ranked else ()
        rows = zip(found.which.to_pylist(), self._times(batch).tolist(), state_rows(batch), strict=True)
        for code, time, row in rows:
            before = held[code]
            if before is not None and before[0] > time:
                continue
            held[code] = time, row
            if before is None:
                self.gather(INSERT, (*row, *rank))
            elif before[1] != row:
                self.gather(UPDATE_BEFORE, (*before[1], *rank))
                self.gather(UPDATE_AFTER, (*row, *rank))
        self._kept.put_all(found.distinct, held)

    def _replace(self, chosen: Chosen, held: list[Entry | None]) -> None:
        entries, replaced, stale = chosen.entries(), list[Held](), set[int]()
        before_kinds, kinds = [-1] * len(entries), [INSERT] * len(entries)
        for index, before in enumerate(held):
            if before is not None:
                time, row = entries[index]
                if before[0] > time:
                    stale.add(index)
                    kinds[index] = -1
                elif before[1] == row:
                    kinds[index] = -1
                else:
                    replaced.append(before[1])
                    before_kinds[index], kinds[index] = UPDATE_BEFORE, UPDATE_AFTER
        keys = chosen.keys
        if stale:
            fit = [index for index in range(len(keys)) if index not in stale]
            keys, entries = [keys[index] for index in fit], [entries[index] for index in fit]
        self._kept.put_all(keys, entries)
        self._send_changes(chosen.batch, replaced, np.array([before_kinds, kinds], "int8").T)

    def _send_changes(self, batch: pa.RecordBatch, replaced: list[Held], kinds: np.ndarray[Any, Any]) -> None:
        """Send rows and the rows they replace.

        For each row, `kinds` has the kind of the replaced row and its own, -1 for none.
        """
        old = batch_of(replaced, self._input)
        positions = np.empty(kinds.shape, "int64")
        positions[:, 1] = np.arange(len(kinds))
        positions[kinds[:, 0] >= 0, 0] = len(kinds) + np.arange(len(replaced))
        told = kinds.reshape(-1) >= 0
        places = pa.array(positions.reshape(-1)[told])
        arrays = [
            pa.concat_arrays([batch.column(index).cast(field.type), old.column(index)]).take(places)
            for index, field in enumerate(self._input)
        ]
        self.send_rows(pa.RecordBatch.from_arrays(arrays, schema=self._input), kinds.reshape(-1)[told])


class KeepFirst(DeduplicateOperator):
    """State of a key: (time, row) in `waiting` until the watermark passes the row, and () in `kept` after its output.

    In processing time, the first row that comes is the result. In event time, rows behind the watermark are dropped.
    """

    def open(self, context: OperatorContext) -> None:
        super().open(context)
        assert self.keyed is not None
        self._waiting = store(self.keyed, "waiting", self.ttl)
        self._due = Due()
        for key, (time, _) in self._waiting.items():
            self._due.add(time, key)

    def whole(self, batch: pa.RecordBatch) -> None:
        if self.time is not None and self.current_watermark != MIN_TIMESTAMP:
            in_time = self._times(batch) >= self.current_watermark
            if not in_time.all():
                batch = batch.filter(pa.array(in_time))
        if not batch.num_rows:
            return
        chosen = self.chosen(batch, last=False)
        out = self._kept.get_all(chosen.keys)
        if self.time is None:
            fresh = [index for index, known in enumerate(out) if known is None]
            self._kept.put_all([chosen.keys[index] for index in fresh], [()] * len(fresh))
            self.send_rows(chosen.batch.take(pa.array(fresh, pa.int64())))
        else:
            self._wait(chosen, out)

    def _wait(self, chosen: Chosen, out: list[Any]) -> None:
        keys, times, entries = chosen.keys, chosen.times, chosen.entries()
        held: list[Entry | None] = self._waiting.get_all(keys)
        if held.count(None) + out.count(None) < 2 * len(keys):
            fit = [
                index
                for index, (known, before) in enumerate(zip(out, held, strict=True))
                if known is None and (before is None or times[index] < before[0])
            ]
            keys, times = [keys[index] for index in fit], [times[index] for index in fit]
            entries = [entries[index] for index in fit]
        self._waiting.put_all(keys, entries)
        by_time: dict[int, list[Any]] = {}
        for time, key in zip(times, keys, strict=True):
            by_time.setdefault(time, []).append(key)
        for time, own in by_time.items():
            self._due.extend(time, own)

    def watermark(self, timestamp: int) -> None:
        self.do(self.release)
        self.do(self._pass, timestamp)
        super().watermark(timestamp)

    def _pass(self, until: int) -> None:
        """Send rows in the order of their times.

        An earlier row may have replaced a row, so that its key is due twice.
        """
        keys, times = list[Any](), list[int]()
        for time, noted in self._due.pop(until):
            keys += noted
            times += [time] * len(noted)
        entries: list[Entry | None] = self._waiting.get_all(keys)
        due = {
            key: entry[1]
            for key, time, entry in zip(keys, times, entries, strict=True)
            if entry is not None and entry[0] == time
        }
        if due:
            self._waiting.remove_all(due)
            self._kept.put_all(list(due), [()] * len(due))
            self.send_rows(batch_of(list(due.values()), self._input))
