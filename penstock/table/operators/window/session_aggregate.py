"""GROUP BY with session windows. Rows of a key that are close together are a run, and are aggregated in columns.

Python processes each run once, to merge it with the open sessions of its key.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import repeat
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from penstock.api.functions.key_selectors import ColumnKeys
from penstock.engine.operators.operator import OperatorContext
from penstock.engine.records.columns import Columns, state_values
from penstock.engine.records.elements import MIN_TIMESTAMP
from penstock.table.operators.aggregate.column_groups import combine_parts
from penstock.table.operators.aggregate.functions.fold import Part, VectorFold
from penstock.table.operators.aggregate.group_aggregate import key_columns, with_counter
from penstock.table.operators.aggregate.local_aggregate import signs_of
from penstock.table.operators.base.chunks import times_of
from penstock.table.operators.base.expirations import Expirations
from penstock.table.operators.base.folding_operator import FoldingOperator
from penstock.table.operators.base.output_form import OutputForm
from penstock.table.operators.base.query_batches import state_rows
from penstock.table.operators.base.query_state import store
from penstock.table.operators.base.table_operator import HoldingTableOperator
from penstock.table.operators.window.slices import Times, last_moments
from penstock.table.operators.window.window_aggregate import WindowKeys
from penstock.table.operators.window.window_assignment import MICROS, instant_of, moments

FEW = 16
"""Batches of at most this many rows are processed row by row, because finding runs would cost more than it saves."""
Session = tuple[int, int, tuple[Any, ...]]
"""(start, end, accumulators). Times are in milliseconds."""


class Runs(NamedTuple):
    """Groups of rows that belong to the same session in any case. Runs of a key are neighbours, in order."""

    keys: Times
    """For each run, the number of its key."""
    rows: pa.RecordBatch
    """For each run, a number, the times of its first and last row, and the parts of every fold."""

    def filter(self, wanted: Times) -> Runs:
        """Return the runs of a mask."""
        return self if wanted.all() else Runs(self.keys[wanted], self.rows.filter(pa.array(wanted)))


class SessionAggregate(FoldingOperator, HoldingTableOperator):
    """State of a key: a tuple of its open sessions in order of time. They do not touch each other.

    A late row is dropped if its session, merged with the sessions that it touches, is already over.
    """

    def __init__(
        self,
        keys: Sequence[int],
        windows: WindowKeys,
        gap: int,
        folds: Sequence[VectorFold],
        signed: bool,
        form: OutputForm,
    ) -> None:
        """Create an operator.

        `keys` are all keys in the order of the output. In the input, bounds are the times of rows.
        """
        super().__init__([keys[position] for position in windows.plain], form)
        self.time = keys[windows.end]
        self.windows = windows
        self.zone = windows.zone
        self.gap = gap
        self.folds: list[VectorFold] = [fold for fold in with_counter(folds, signed) if isinstance(fold, VectorFold)]
        self.results = list(folds)
        self.signed = signed

    def open(self, context: OperatorContext) -> None:
        super().open(context)
        assert self.keyed is not None
        self._sessions = store(self.keyed, "sessions")
        self._late = context.metrics.counter("numLateRecordsDropped")
        self._complete: list[tuple[Any, Session]] = []
        kinds = [kind for fold in self.folds for kind in fold.part_types()]
        numbers = [pa.field(name, pa.int64()) for name in ("run", "first", "last")]
        self._form = pa.schema([*numbers, *(pa.field(f"part {index}", kind) for index, kind in enumerate(kinds))])
        self._due = Expirations()
        waiting = [(self._last_moment(end), key) for key, own in self._sessions.items() for _, end, _ in own]
        self._due.add(np.array([last for last, _ in waiting], "int64"), [key for _, key in waiting])

    # --- input: runs ---
    def whole(self, batch: pa.RecordBatch) -> None:
        if batch.num_rows <= FEW:
            self._add_each(batch)
        else:
            self._add_runs(batch)

    def _add_each(self, batch: pa.RecordBatch) -> None:
        """Add rows one by one, each as a run."""
        assert isinstance(self.key_selector, ColumnKeys)
        signs = signs_of(batch, self.signed)
        by_sign = [1] * batch.num_rows if signs is None else signs.to_pylist()
        added = []
        for fold in self.folds:
            rows = zip(fold.rows(batch), by_sign, fold.chosen(batch) or repeat(True), strict=False)
            added.append([fold.add(fold.new(), args, sign) if chosen else fold.new() for args, sign, chosen in rows])
        keys = state_rows(batch, self.key_selector.positions)
        times = (batch.column(self.time).cast(pa.int64()).to_numpy(zero_copy_only=False) // MICROS).tolist()
        self._add_all(
            (key[0] if len(key) == 1 else key, (time, time + self.gap, tuple(own)))
            for key, time, *own in zip(keys, times, *added, strict=True)
        )

    def _add_runs(self, batch: pa.RecordBatch) -> None:
        found = Columns(batch).keys(self.key_selector)  # type: ignore[arg-type]
        assert found is not None
        codes = found.which.to_numpy(zero_copy_only=False).astype("int64")
        times = batch.column(self.time).cast(pa.int64()).to_numpy(zero_copy_only=False) // MICROS
        signs = signs_of(batch, self.signed)
        parts = [part for fold in self.folds for part in fold.parts(batch, signs)]
        by_key = self._group(codes, times, parts)
        simple = self._simple(by_key)
        self._add_all(self._sessions_of(found.distinct, Runs(times_of(by_key), by_key).filter(simple)))
        if not simple.all():
            others = np.ones(len(found.distinct), bool)
            others[times_of(by_key)[simple]] = False
            rows = np.flatnonzero(others[codes])
            chosen = [Part(None if part.column is None else part.column.take(rows), part.function) for part in parts]
            self._add_all(self._sessions_of(found.distinct, self._find_runs(codes[rows], times[rows], chosen)))

    def _group(self, numbers: Times, times: Times, parts: list[Part]) -> pa.RecordBatch:
        moments = pa.array(times)
        return combine_parts([pa.array(numbers)], [Part(moments, "min"), Part(moments, "max"), *parts], self._form)

    def _simple(self, by_key: pa.RecordBatch) -> Times:
        """Return a mask of the keys whose rows are one run, without a row that would be late alone."""
        first, last = (by_key.column(index).to_numpy(zero_copy_only=False) for index in (1, 2))
        together: Times = last - first <= self.gap
        return together & ~self._late_alone(first)

    def _late_alone(self, times: Times) -> Times:
        """Return a mask of the rows that are late unless they belong to an open session."""
        if self.windows.processing_time:
            return np.zeros(len(times), bool)
        lasts = last_moments(times + self.gap, self.zone, self.windows.shifted)
        late: Times = lasts <= self.current_watermark
        return late

    def _find_runs(self, codes: Times, times: Times, parts: list[Part]) -> Runs:
        """Return the runs of each key. If a row is late alone, each row is a run, in the order of arrival."""
        alone = np.isin(codes, codes[self._late_alone(times)])
        order = np.lexsort((np.where(alone, 0, times), codes))
        by_time, keys = times[order], codes[order]
        begins = np.ones(len(order), bool)
        begins[1:] = (keys[1:] != keys[:-1]) | (np.diff(by_time) > self.gap) | alone[order][1:]
        numbers = np.empty(len(order), "int64")
        numbers[order] = np.cumsum(begins) - 1
        made = self._group(numbers, times, parts)
        return Runs(keys[begins], made.take(pa.array(np.argsort(times_of(made)))))

    # --- input: sessions ---
    def _sessions_of(self, distinct: Sequence[Any], runs: Runs) -> Iterator[tuple[Any, Session]]:
        _, first, last, *columns = map(state_values, runs.rows.columns)
        feed, folded = iter(columns), []
        for fold in self.folds:
            fresh = [fold.new() for _ in first]
            folded.append(fold.fold_all(fresh, [next(feed) for _ in fold.part_types()]))
        accumulators = list(zip(*folded, strict=True)) if folded else [()] * len(first)
        for code, start, latest, own in zip(runs.keys.tolist(), first, last, accumulators, strict=True):
            yield distinct[code], (start, latest + self.gap, own)

    def _add_all(self, arrived: Iterable[tuple[Any, Session]]) -> None:
        over = MIN_TIMESTAMP if self.windows.processing_time else self.current_watermark
        keys, lasts = [], []
        for key, session in arrived:
            apart, whole = self._with_those_open(key, session)
            last = self._last_moment(whole[1])
            if last <= over:
                self._late.inc()
                continue
            self._sessions.put(key, tuple(sorted((*apart, whole), key=itemgetter(0))) if apart else (whole,))
            keys.append(key)
            lasts.append(last)
        self._due.add(np.array(lasts, "int64"), keys)

    def _with_those_open(self, key: Any, session: Session) -> tuple[list[Session], Session]:
        """Return the open sessions that a session does not touch, and the session merged with the others."""
        open_sessions: tuple[Session, ...] | None = self._sessions.get(key)
        if open_sessions is None:
            return [], session
        start, end, _ = session
        touched = [other for other in open_sessions if other[0] <= end and start <= other[1]]
        apart = [other for other in open_sessions if other[0] > end or start > other[1]]
        return apart, self._merge(touched, session) if touched else session

    def _merge(self, touched: list[Session], session: Session) -> Session:
        start, end, own = touched[0]
        for other in (*touched[1:], session):
            start, end = min(start, other[0]), max(end, other[1])
            own = tuple([fold.merge(*pair) for fold, *pair in zip(self.folds, own, other[2], strict=True)])
        return start, end, own

    def _last_moment(self, end: int) -> int:
        return instant_of(end, self.zone, self.windows.shifted) - 1

    # --- time ---
    def watermark(self, timestamp: int) -> None:
        self.do(self.release)
        self.current_watermark = self.timers.watermark = timestamp
        if not self.windows.processing_time:
            self.do(self._close, timestamp)
        self.output.watermark(timestamp)

    def advance_processing_time(self, now: int) -> None:
        if self.windows.processing_time:
            self.do(self._close, now - 1)

    def next_due(self) -> int | None:
        following = self._due.next_time() if self.windows.processing_time else None
        return None if following is None else following + 1

    def _close(self, until: int) -> None:
        """Close sessions that are over, in the order of their ends. A session that has grown is due again later."""
        complete: list[tuple[Any, Session]] = []
        for key in self._due.pop(until):
            sessions: tuple[Session, ...] = self._sessions.get(key) or ()
            over = [session for session in sessions if self._last_moment(session[1]) <= until]
            if over and len(over) == len(sessions):
                self._sessions.remove(key)
            elif over:
                self._sessions.put(key, tuple([one for one in sessions if self._last_moment(one[1]) > until]))
            complete += [(key, session) for session in over]
        self._complete += sorted(complete, key=lambda one: one[1][1])

    # --- output ---
    def flush(self) -> None:
        if not self._complete:
            return
        complete, self._complete = self._complete, []
        if self.signed:
            complete = [(key, session) for key, session in complete if session[2][-1] != 0]
        self.send(self._output_of(complete))

    def _output_of(self, complete: list[tuple[Any, Session]]) -> pa.RecordBatch:
        windows = self.windows
        plain = [self.schema.field(position) for position in windows.plain]
        arrays = dict(zip(windows.plain, key_columns([key for key, _ in complete], plain), strict=True))
        starts = np.array([session[0] for _, session in complete], "int64")
        ends = np.array([session[1] for _, session in complete], "int64")
        bounds = {"start": starts, "end": ends, "time": ends - 1}
        for position, role in zip(windows.window, windows.roles, strict=True):
            arrays[position] = moments(bounds[role], self.schema.field(position).type)
        results = [
            fold.column(fold.values([session[2][number] for _, session in complete]))
            for number, fold in enumerate(self.results)
        ]
        keys = [arrays[position] for position in range(len(arrays))]
        return pa.RecordBatch.from_arrays([*keys, *results], schema=self.schema)
