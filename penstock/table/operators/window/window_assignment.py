"""Window table functions: every row gets its windows as columns."""

from __future__ import annotations

import datetime
from bisect import insort
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.engine.operators.operator import OperatorContext
from penstock.engine.records.columns import Columns
from penstock.table.logical.kinds import WindowKind
from penstock.table.operators.base.output_form import OutputForm
from penstock.table.operators.base.query_batches import DELETE, UPDATE_BEFORE, Held, state_rows
from penstock.table.operators.base.query_state import store
from penstock.table.operators.base.table_operator import KeyedTableOperator, TableOperator
from penstock.table.operators.base.update_pairs import with_pairs_of_rows
from penstock.table.operators.io.row_conversions import millis_of

MICROS = 1000


@dataclass(frozen=True)
class WindowSpec:
    """A window function. Times are in milliseconds."""

    kind: WindowKind
    size: int
    slide: int = 0
    offset: int = 0

    def bounds(self, times: np.ndarray[Any, Any]) -> list[tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]]:
        """Return a pair (starts, ends) of arrays for each possible window of a row.

        A row may have fewer windows than there are pairs. In the pairs that it does not need, the end of the window is
        not after the row's time.
        """
        if self.kind == WindowKind.TUMBLE:
            start = self._floor(times, self.size)
            return [(start, start + self.size)]
        if self.kind == WindowKind.HOP:
            last = self._floor(times, self.slide)
            first = range(-(-self.size // self.slide) - 1, -1, -1)
            return [(last - n * self.slide, last - n * self.slide + self.size) for n in first]
        start = self._floor(times, self.size)
        steps = range(1, -(-self.size // self.slide) + 1)
        return [(start, np.minimum(start + n * self.slide, start + self.size)) for n in steps]

    def _floor(self, times: np.ndarray[Any, Any], by: int) -> np.ndarray[Any, Any]:
        floored: np.ndarray[Any, Any] = times - (times - self.offset) % by
        return floored


def local_millis(column: pa.Array, zone: str) -> pa.Array:
    """Return the times of a column in milliseconds. A TIMESTAMP_LTZ becomes the local time of the zone."""
    if pa.types.is_timestamp(column.type) and column.type.tz is not None and zone != "UTC":
        return millis_of(pc.local_timestamp(column.cast(pa.timestamp("us", zone))))
    return millis_of(column)


def instant_of(millis: int, zone: str, shifted: bool) -> int:
    """Return the moment at which clocks of the zone show a time, or the time itself if windows follow no time zone."""
    if not shifted or zone == "UTC":
        return millis
    naive = datetime.datetime(1970, 1, 1) + datetime.timedelta(milliseconds=millis)
    return int(naive.replace(tzinfo=ZoneInfo(zone)).timestamp() * 1000)


def moments(millis: np.ndarray[Any, Any], kind: pa.DataType) -> pa.Array:
    """Return milliseconds as a column of TIMESTAMP."""
    return pa.array(millis * MICROS).cast(kind)


@dataclass(frozen=True)
class WindowTime:
    """The time of the windows of an operator."""

    zone: str = "UTC"
    shifted: bool = False
    """True if bounds are times on the zone's clock."""
    processing_time: bool = False


class WindowTableOperator(TableOperator):
    """TUMBLE, HOP and CUMULATE: a row is sent once for each of its windows. Rows without a time are dropped."""

    def __init__(self, spec: WindowSpec, time: int | None, form: OutputForm, changelog: bool, zone: str) -> None:
        """Create an operator. `time` is the column, or None for processing time."""
        super().__init__(form)
        self.spec = spec
        self.time = time
        self.changelog = changelog
        self.zone = zone

    def batch(self, batch: pa.RecordBatch) -> None:
        kept = None
        if self.time is None:
            times = np.full(batch.num_rows, self.context.clock.now, "int64")
        else:
            if batch.column(self.time).null_count:
                valid = batch.column(self.time).is_valid()
                batch, kept = batch.filter(valid), np.flatnonzero(valid)
            times = local_millis(batch.column(self.time), self.zone).to_numpy(zero_copy_only=False)
        pairs = self.spec.bounds(times)
        if len(pairs) == 1 and (pairs[0][1] > times).all():
            self._send(self._with_pairs(batch, kept), *pairs[0])
            return
        starts, ends = (np.stack(side, axis=1) for side in zip(*pairs, strict=True))
        inside = ends > times[:, None]
        rows, _ = np.nonzero(inside)
        made_of = rows if kept is None else np.asarray(kept)[rows]
        self._send(self._with_pairs(batch.take(pa.array(rows)), made_of), starts[inside], ends[inside])

    def _with_pairs(self, batch: pa.RecordBatch, made_of: Any) -> pa.RecordBatch:
        return with_pairs_of_rows(batch, made_of) if self.changelog and made_of is not None else batch

    def _send(self, batch: pa.RecordBatch, starts: np.ndarray[Any, Any], ends: np.ndarray[Any, Any]) -> None:
        width = len(self.schema) - 3 - (1 if self.changelog else 0)
        kinds = [self.schema.field(width + n).type for n in range(3)]
        made = [moments(times, kind) for times, kind in zip((starts, ends, ends - 1), kinds, strict=True)]
        rest = batch.columns[width:]
        self.send(pa.RecordBatch.from_arrays([*batch.columns[:width], *made, *rest], schema=self.schema))


class SessionTableOperator(KeyedTableOperator):
    """SESSION: holds rows until their session is over, and then sends them with its bounds.

    State of a key: a list of [start, end, rows] that do not touch each other. A row is dropped if its session, merged
    with the sessions that it touches, is already over.
    """

    def __init__(
        self, keys: Sequence[int], gap: int, time: int | None, form: OutputForm, changelog: bool, zone: str
    ) -> None:
        super().__init__(keys, form)
        self.gap = gap
        self.time = time
        self.changelog = changelog
        self.zone = zone

    def open(self, context: OperatorContext) -> None:
        super().open(context)
        assert self.keyed is not None
        self._sessions = store(self.keyed, "sessions")
        self._late = context.metrics.counter("numLateRecordsDropped")

    def batch(self, batch: pa.RecordBatch) -> None:
        found = Columns(batch).keys(self.key_selector)  # type: ignore[arg-type]
        assert found is not None
        if self.time is None:
            times = [self.context.clock.now] * batch.num_rows
        else:
            times = local_millis(batch.column(self.time), self.zone).to_pylist()
        for code, time, row in zip(found.which.to_pylist(), times, state_rows(batch), strict=True):
            if time is not None:
                self._add(found.distinct[code], time, row)

    def _add(self, key: Any, time: int, row: Held) -> None:
        sessions: list[Any] = self._sessions.get(key) or []
        start, end, rows = time, time + self.gap, list[Held]()
        apart = []
        for session in sessions:
            if session[0] <= time + self.gap and time <= session[1]:
                start, end, rows = min(start, session[0]), max(end, session[1]), rows + session[2]
            else:
                apart.append(session)
        rows.append(row)
        if self.time is not None and end - 1 <= self.current_watermark:
            self._late.inc()
            return
        insort(apart, [start, end, rows], key=lambda session: session[0])
        self._sessions.put(key, apart)
        if self.time is None:
            self.timers.processing_time.register(end, key)
        else:
            self.timers.event_time.register(end - 1, key)

    def on_event_time(self, time: int, key: Any, namespace: Any) -> None:
        self._close(key, time + 1)

    def on_processing_time(self, time: int, key: Any, namespace: Any) -> None:
        self._close(key, time)

    def _close(self, key: Any, end: int) -> None:
        left = []
        for session in self._sessions.get(key) or []:
            if session[1] == end:
                self._emit(session)
            else:
                left.append(session)
        if left:
            self._sessions.put(key, left)
        else:
            self._sessions.remove(key)

    def _emit(self, session: list[Any]) -> None:
        start, end, rows = session
        bounds = (start * MICROS, end * MICROS, (end - 1) * MICROS)
        for row in rows:
            values, kind = (
                (row[:-1], (DELETE if row[-1] == UPDATE_BEFORE else row[-1],)) if self.changelog else (row, ())
            )
            self.gathered.append((*values, *bounds, *kind))
