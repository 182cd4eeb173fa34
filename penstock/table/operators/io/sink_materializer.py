"""Materializers before a sink that holds one row of each key. They choose a row if the query has several.

The rules are those of Flink's SinkUpsertMaterializer and WatermarkCompactingSinkMaterializer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import repeat
from typing import Any

import pyarrow as pa

from penstock.engine.operators.operator import OperatorContext
from penstock.engine.records.columns import Columns
from penstock.engine.records.elements import MAX_TIMESTAMP, Chunk
from penstock.engine.records.failures import USER_ERRORS
from penstock.errors import RecordError
from penstock.table.operators.base.output_form import OutputForm
from penstock.table.operators.base.query_batches import DELETE, INSERT, UPDATE_AFTER, Held, adds, state_rows
from penstock.table.operators.base.query_state import store
from penstock.table.operators.base.state_matching import group_entries, rows_by_key
from penstock.table.operators.base.table_operator import KeyedTableOperator, TableOperator
from penstock.table.operators.base.update_pairs import with_pairs_of_keys

Change = tuple[bool, Held]
"""True if the row is added, and the row."""


class Rows:
    """The rows of one key of the sink, the oldest first."""

    def __init__(self, rows: Sequence[Held], identity: Callable[[Held], Any]) -> None:
        self.rows = list(rows)
        self._identity = identity

    def add(self, row: Held) -> None:
        """Add a row. It takes the place of the row with the same identity, or else becomes the youngest."""
        place = self._place(row) if self._identity is not _itself else None
        if place is None:
            self.rows.append(row)
        else:
            self.rows[place] = row

    def remove(self, row: Held) -> int | None:
        """Remove a row, and return its place, or None if it is not there."""
        place = self._place(row)
        if place is not None:
            del self.rows[place]
        return place

    def _place(self, row: Held) -> int | None:
        own = self._identity(row)
        return next((place for place, one in enumerate(self.rows) if self._identity(one) == own), None)


def _itself(row: Held) -> Held:
    return row


class _PerKey(KeyedTableOperator):
    """The base of both materializers. `upsert_key` has the columns of the query's key, or is None if it has no key."""

    def __init__(
        self, keys: Sequence[int], upsert_key: Sequence[int] | None, form: OutputForm, changelog: bool, ttl: int = 0
    ) -> None:
        """Create an operator. `changelog` is True if the input has kinds of change. The output always has them."""
        super().__init__(keys, form)
        self.keys = tuple(keys)
        self.upsert_key = tuple(upsert_key or ())
        self.signed = changelog
        self.ttl = ttl

    def _identity(self) -> Callable[[Held], Any]:
        """Return a function that gives the identity of a row of the query."""
        positions = self.upsert_key
        return (lambda row: [row[position] for position in positions]) if positions else _itself

    def _changes(self, batch: pa.RecordBatch) -> list[Change]:
        rows = state_rows(batch, range(len(self.schema) - 1))
        return list(zip(adds(batch).to_pylist() if self.signed else repeat(True), rows, strict=False))


class SinkMaterializer(_PerKey):
    """Sends the newest row of each key. When it is retracted, the previous row comes back.

    State of a key: its rows, the oldest first.
    """

    def open(self, context: OperatorContext) -> None:
        super().open(context)
        assert self.keyed is not None
        self._rows = store(self.keyed, "values", self.ttl)

    def batch(self, batch: pa.RecordBatch) -> None:
        arrived = rows_by_key(batch, self.key_selector)  # type: ignore[arg-type]
        held = self._rows.get_all(arrived.keys)
        left: list[Any] = [None] * len(arrived.keys)
        identity = self._identity()
        for number, changes in group_entries(arrived.codes, self._changes(batch)):
            rows = Rows(held[number] or (), identity)
            for comes, row in changes:
                self._change(rows, row, comes)
            left[number] = rows.rows
        now = [number for number, rows in enumerate(left) if rows]
        self._rows.put_all([arrived.keys[number] for number in now], [left[number] for number in now])
        self._rows.remove_all([key for key, rows in zip(arrived.keys, left, strict=True) if not rows])

    def _change(self, rows: Rows, row: Held, comes: bool) -> None:
        if comes:
            kind = UPDATE_AFTER if rows.rows else INSERT
            rows.add(row)
            self.gather(kind, row)
            return
        place = rows.remove(row)
        if place is None:
            return
        if not rows.rows:
            self.gather(DELETE, row)
        elif place == len(rows.rows):
            self.gather(UPDATE_AFTER, rows.rows[-1])


class WatermarkTimestamps(TableOperator):
    """Gives every row the current watermark as its timestamp."""

    def batch(self, batch: pa.RecordBatch) -> None:
        if batch.num_rows:
            times = pa.repeat(pa.scalar(self.current_watermark, pa.int64()), batch.num_rows)
            self.emit_chunk(Chunk.of(Columns(batch, times)))


class CompactingMaterializer(_PerKey):
    """Sends the remaining row of each key when the watermark advances, for ON CONFLICT DO ERROR or NOTHING.

    If several rows remain, that is an error, or the first one stays. State of a key: its waiting changes, as (watermark
    at their arrival, True if the row is added, row), and the current row of the sink.
    """

    def __init__(
        self,
        keys: Sequence[int],
        upsert_key: Sequence[int] | None,
        form: OutputForm,
        changelog: bool,
        ttl: int,
        fails: bool,
    ) -> None:
        """Create an operator. If `fails`, a conflict is an error."""
        super().__init__(keys, upsert_key, form, changelog, ttl)
        self.fails = fails

    def open(self, context: OperatorContext) -> None:
        super().open(context)
        assert self.keyed is not None
        self._waiting = store(self.keyed, "waiting", self.ttl + 5000 if self.ttl else 0)
        self._current = store(self.keyed, "current", self.ttl)

    def chunk(self, chunk: Chunk) -> None:
        assert chunk.columns is not None and chunk.columns.times is not None
        try:
            self._take_timed(chunk.columns.batch, chunk.columns.times.to_pylist())
        except USER_ERRORS as error:
            raise self.failure(error, []) from error

    def _take_timed(self, batch: pa.RecordBatch, times: list[int]) -> None:
        arrived = rows_by_key(batch, self.key_selector)  # type: ignore[arg-type]
        waiting = self._waiting.get_all(arrived.keys)
        timed = list(zip(times, self._changes(batch), strict=True))
        for number, entries in group_entries(arrived.codes, timed):
            key, own = arrived.keys[number], list(waiting[number] or ())
            for time, (comes, row) in entries:
                if (time, not comes, row) in own:
                    own.remove((time, not comes, row))
                else:
                    own.append((time, comes, row))
                self.timers.event_time.register(min(time, MAX_TIMESTAMP - 1) + 1, key)
            self._waiting.put(key, own)

    def on_event_time(self, time: int, key: Any, namespace: Any) -> None:
        own = sorted(self._waiting.get(key) or (), key=lambda entry: entry[0])
        due = [entry for entry in own if entry[0] < time]
        later = own[len(due) :]
        if later:
            self._waiting.put(key, later)
        else:
            self._waiting.remove(key)
        before = self._current.get(key)
        rows = Rows(() if before is None else (before,), self._identity())
        for _, comes, row in due:
            if comes:
                rows.add(row)
            else:
                rows.remove(row)
        self._settle(key, before, rows.rows)

    def _settle(self, key: Any, before: Held | None, rows: list[Held]) -> None:
        """Send the change of a key's row to the sink."""
        if len(rows) > 1 and self.fails:
            raise RecordError(self._conflict(rows[0]))
        if not rows:
            if before is not None:
                self.gather(DELETE, before)
                self._current.remove(key)
        elif before is None:
            self.gather(INSERT, rows[0])
            self._current.put(key, rows[0])
        elif len(rows) == 1 and rows[0] != before:
            self.gather(UPDATE_AFTER, rows[0])
            self._current.put(key, rows[0])

    def _conflict(self, row: Held) -> str:
        key = ", ".join(f"{self.schema.names[position]}={row[position]}" for position in self.keys)
        return (
            "Primary key constraint violation: multiple distinct records with the same primary key detected. "
            f"Conflicting key: [{key}]. Use ON CONFLICT DO NOTHING to keep the first record."
        )


class SinkShuffle(TableOperator):
    """Passes rows on, after an exchange by the key of the sink, which may separate the two rows of an update."""

    def __init__(self, key: Sequence[int], form: OutputForm, changelog: bool) -> None:
        super().__init__(form)
        self.key = tuple(key)
        self.changelog = changelog

    def batch(self, batch: pa.RecordBatch) -> None:
        self.send(with_pairs_of_keys(batch, self.key) if self.changelog else batch)
