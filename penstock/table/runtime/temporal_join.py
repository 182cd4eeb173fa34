"""Temporal joins: every row of the left meets the version of the right row that was valid at the left row's time."""

from __future__ import annotations

from bisect import bisect_right
from typing import Any

import pyarrow as pa

from penstock.runtime.core.columns import Columns
from penstock.runtime.core.operator import OperatorContext
from penstock.table.runtime.batches import DELETE, INSERT, UPDATE_BEFORE, Held, held_rows
from penstock.table.runtime.join import JoinSpec
from penstock.table.runtime.pairs import Condition, both_sides
from penstock.table.runtime.scans import millis_of
from penstock.table.runtime.state import store
from penstock.table.runtime.table_operator import TwoInputTableOperator


class TemporalJoin(TwoInputTableOperator):
    """State of a key: [left rows that wait as (time, row, kind)], [versions as (time, row or None), in order of time].

    A left row waits until the watermark has reached it. Versions that no row can ask for any more are forgotten.
    """

    def __init__(self, spec: JoinSpec, times: tuple[int, int], schema: pa.Schema) -> None:
        super().__init__(spec.keys, schema)
        self.spec = spec
        self.times = times

    def open(self, context: OperatorContext) -> None:
        super().open(context)
        assert self.keyed is not None
        self._waiting = store(self.keyed, "waiting")
        self._versions = store(self.keyed, "versions")
        spec = self.spec
        self._condition = Condition(spec.condition, both_sides(*spec.schemas), spec.zone)
        self._nulls = (None,) * len(spec.schemas[1])

    def left(self, batch: pa.RecordBatch) -> None:
        for key, time, row, kind in self._rows(0, batch):
            waiting = self._waiting.get(key) or []
            waiting.append((time, row, kind))
            self._waiting.put(key, waiting)
            self.timers.event_time.register(max(time, self.current_watermark + 1), key)

    def right(self, batch: pa.RecordBatch) -> None:
        for key, time, row, kind in self._rows(1, batch):
            if kind == UPDATE_BEFORE:
                continue
            versions: list[Any] = self._versions.get(key) or []
            place = bisect_right(versions, time, key=lambda version: version[0])
            version = (time, None if kind == DELETE else row)
            if place and versions[place - 1][0] == time:
                versions[place - 1] = version
            else:
                versions.insert(place, version)
            self._versions.put(key, versions)

    def _rows(self, side: int, batch: pa.RecordBatch) -> Any:
        found = Columns(batch).keys(self.selectors[side])
        assert found is not None
        width = len(self.spec.schemas[side])
        kinds = batch.column(width).to_pylist() if self.spec.changelogs[side] else [INSERT] * batch.num_rows
        times = millis_of(batch.column(self.times[side])).to_pylist()
        keys = (found.distinct[code] for code in found.which.to_pylist())
        return zip(keys, times, held_rows(batch, range(width)), kinds, strict=True)

    def on_event_time(self, time: int, key: Any, namespace: Any) -> None:
        waiting: list[tuple[int, Held, int]] = self._waiting.get(key) or []
        versions = self._versions.get(key) or []
        due = sorted((entry for entry in waiting if entry[0] <= time), key=lambda entry: entry[0])
        left = [entry for entry in waiting if entry[0] > time]
        if left:
            self._waiting.put(key, left)
        else:
            self._waiting.remove(key)
        self._join([(row, self._version(key, versions, when), kind) for when, row, kind in due])
        self._forget(key, versions)

    def _version(self, key: Any, versions: list[Any], time: int) -> Held | None:
        own = (key,) if len(self.spec.null_safe) == 1 else key
        place = bisect_right(versions, time, key=lambda version: version[0])
        if not place or not all(part is not None or safe for part, safe in zip(own, self.spec.null_safe, strict=True)):
            return None
        found: Held | None = versions[place - 1][1]
        return found

    def _join(self, pairs: list[tuple[Held, Held | None, int]]) -> None:
        there = [row + version for row, version, _ in pairs if version is not None]
        accepted = iter(self._condition.accepted(there, self))
        for row, version, kind in pairs:
            if version is not None and next(accepted):
                self.gather(kind, row + version)
            elif self.spec.outer(0):
                self.gather(kind, row + self._nulls)

    def _forget(self, key: Any, versions: list[Any]) -> None:
        """Keep the newest version that the watermark has passed, and those after it."""
        place = bisect_right(versions, self.current_watermark, key=lambda version: version[0])
        if place > 1:
            self._versions.put(key, versions[place - 1 :])
