"""Temporal joins: every left row meets the version of the right row that was valid at the left row's time."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.engine.operators.operator import OperatorContext
from penstock.table.operators.base.expirations import Expirations
from penstock.table.operators.base.output_form import OutputForm
from penstock.table.operators.base.query_batches import (
    DELETE,
    INSERT,
    UPDATE_BEFORE,
    Held,
    batch_of,
    column_of,
    state_rows,
)
from penstock.table.operators.base.query_state import store
from penstock.table.operators.base.state_matching import Keyed, group_entries, rows_by_key
from penstock.table.operators.base.table_operator import TwoInputTableOperator
from penstock.table.operators.base.update_pairs import without_pairs
from penstock.table.operators.io.row_conversions import millis_of
from penstock.table.operators.join.regular_join import JoinSpec
from penstock.table.operators.join.row_pairs import Condition, both_sides

Waiting = tuple[int, Held, int]
"""(time, row, kind)."""
Version = tuple[int, Held | None]
"""(start of validity, row). The row is None if the key has no row from then on."""


class TemporalJoin(TwoInputTableOperator):
    """State of a key: waiting left rows, and versions in order of time.

    A left row waits until the watermark has reached it. Versions that no row can need any more are removed. If state
    expires, both sides of a key expire together, when neither side was used for that time.
    """

    def __init__(self, spec: JoinSpec, times: tuple[int, int], form: OutputForm, ttl: int = 0) -> None:
        super().__init__(spec.keys, form)
        self.spec = spec
        self.times = times
        self.ttl = ttl

    def open(self, context: OperatorContext) -> None:
        super().open(context)
        assert self.keyed is not None
        self._waiting = store(self.keyed, "waiting", self.ttl)
        self._versions = store(self.keyed, "versions", self.ttl)
        spec = self.spec
        self._condition = Condition(spec.condition, both_sides(*spec.schemas), spec.zone)
        self._due = Expirations()
        restored = [(entry[0], key) for key, entries in self._waiting.items() for entry in entries]
        self._due.add(np.array([time for time, _ in restored], np.int64), [key for _, key in restored])

    # --- input ---
    def left(self, batch: pa.RecordBatch) -> None:
        arrived, entries = self._arrivals(0, batch)
        before = self._waiting.get_all(arrived.keys)
        now = [[*(before[code] or ()), *more] for code, more in group_entries(arrived.codes, entries)]
        self._waiting.put_all(arrived.keys, now)
        self._due.add(np.array([time for time, _, _ in entries], np.int64), arrived.key_of_each())
        self._keep_young(self._versions, arrived.keys)

    def right(self, batch: pa.RecordBatch) -> None:
        arrived, entries = self._arrivals(1, batch)
        before = self._versions.get_all(arrived.keys)
        now = [_with_versions(before[code], more) for code, more in group_entries(arrived.codes, entries)]
        changed = [(key, own) for key, own in zip(arrived.keys, now, strict=True) if own]
        self._versions.put_all([key for key, _ in changed], [own for _, own in changed])
        self._keep_young(self._waiting, arrived.keys)

    def _arrivals(self, side: int, batch: pa.RecordBatch) -> tuple[Keyed, list[Waiting]]:
        width = len(self.spec.schemas[side])
        kinds = batch.column(width).to_pylist() if self.spec.changelogs[side] else [INSERT] * batch.num_rows
        times = millis_of(batch.column(self.times[side])).to_pylist()
        entries = list(zip(times, state_rows(batch, range(width)), kinds, strict=True))
        return rows_by_key(batch, self.selectors[side]), entries

    def _keep_young(self, other: Any, keys: Sequence[Any]) -> None:
        """Renew the time to live of the other side of these keys."""
        if self.ttl:
            there = [(key, own) for key, own in zip(keys, other.get_all(keys), strict=True) if own is not None]
            other.put_all([key for key, _ in there], [own for _, own in there])

    # --- time ---
    def watermark(self, timestamp: int) -> None:
        """Send the joined rows up to the watermark before it is passed on."""
        self.current_watermark = self.timers.watermark = timestamp
        self.do(self._join_due, self._due.pop(timestamp), timestamp)
        self.do(self.timers.event_time.fire, timestamp, self.on_event_time)
        self.output.watermark(timestamp)

    def on_event_time(self, time: int, key: Any, namespace: Any) -> None:
        """Ignore a timer of an earlier version. Its rows have been joined already."""

    def _join_due(self, keys: list[Any], time: int) -> None:
        joined: list[tuple[Waiting, Held | None]] = []
        waiting, versions = self._waiting.get_all(keys), self._versions.get_all(keys)
        for key, entries, known in zip(keys, waiting, versions, strict=True):
            due = [entry for entry in entries or () if entry[0] <= time]
            left = [entry for entry in entries or () if entry[0] > time]
            if left:
                self._waiting.put(key, left)
            else:
                self._waiting.remove(key)
            usable = known if known and self._matchable(key) else ()
            joined += [(entry, _version_at(usable, entry[0])) for entry in due]
            self._forget(key, known or [])
        if joined:
            joined.sort(key=lambda pair: pair[0][0])
            self._send_joined(joined)

    def _matchable(self, key: Any) -> bool:
        if len(self.spec.null_safe) == 1:
            return key is not None or self.spec.null_safe[0]
        return all(part is not None or safe for part, safe in zip(key, self.spec.null_safe, strict=True))

    def _send_joined(self, pairs: list[tuple[Waiting, Held | None]]) -> None:
        """Send left rows with their versions.

        A LEFT JOIN pads a row without an accepted version, other joins drop it.
        """
        nulls = (None,) * len(self.spec.schemas[1])
        left = batch_of([entry[1] for entry, _ in pairs], self.spec.schemas[0]).columns
        right = batch_of([nulls if version is None else version for _, version in pairs], self.spec.schemas[1]).columns
        found = pa.array([version is not None for _, version in pairs])
        if self._condition:
            both = pa.RecordBatch.from_arrays(left + right, schema=both_sides(*self.spec.schemas))
            found = pc.and_(found, self._condition.mask(both, self))
            right = [pc.if_else(found, column, pa.nulls(len(pairs), column.type)) for column in right]
        kinds = [without_pairs(column_of([entry[2] for entry, _ in pairs], pa.int8()))] if self.changelog else []
        joined = pa.RecordBatch.from_arrays([*left, *right, *kinds], schema=self.schema)
        self.send(joined if self.spec.outer(0) else joined.filter(found))

    def _forget(self, key: Any, versions: Sequence[Version]) -> None:
        """Remove versions before the newest one that the watermark has passed."""
        place = bisect_right(versions, self.current_watermark, key=lambda version: version[0])
        if place > 1 or (versions and self.ttl):
            self._versions.put(key, list(versions[max(place - 1, 0) :]))


def _with_versions(versions: Sequence[Version] | None, more: Sequence[Waiting]) -> list[Version]:
    """Return versions with new ones. A version replaces another one of the same time."""
    known = list(versions or ())
    for time, row, kind in more:
        if kind == UPDATE_BEFORE:
            continue
        place = bisect_right(known, time, key=lambda version: version[0])
        version = (time, None if kind == DELETE else row)
        if place and known[place - 1][0] == time:
            known[place - 1] = version
        else:
            known.insert(place, version)
    return known


def _version_at(versions: Sequence[Version], time: int) -> Held | None:
    place = bisect_right(versions, time, key=lambda version: version[0])
    return versions[place - 1][1] if place else None
