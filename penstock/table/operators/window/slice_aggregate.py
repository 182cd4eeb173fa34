"""GROUP BY with windows in columns: rows are aggregated into slices, and slices into the windows that end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.engine.operators.operator import OperatorContext
from penstock.engine.records.columns import state_values
from penstock.table.logical.kinds import WindowKind
from penstock.table.operators.aggregate.column_groups import combine_parts
from penstock.table.operators.aggregate.functions.fold import Part, VectorFold
from penstock.table.operators.aggregate.group_aggregate import key_columns, with_counter
from penstock.table.operators.aggregate.local_aggregate import signs_of
from penstock.table.operators.base.chunks import Chunks, times_of
from penstock.table.operators.base.folding_operator import FoldingOperator
from penstock.table.operators.base.output_form import OutputForm
from penstock.table.operators.base.table_operator import HoldingTableOperator
from penstock.table.operators.window.slices import Slicing, Times
from penstock.table.operators.window.window_aggregate import WindowKeys
from penstock.table.operators.window.window_assignment import MICROS, moments
from penstock.table.operators.window.window_base import Due, WindowOperator

MOST_ROWS = 1 << 21
"""Approximate number of rows of slices that are merged at once."""


class SliceAggregate(FoldingOperator, HoldingTableOperator, WindowOperator):
    """Keeps a row for each key and slice: the end of the slice, the key, and the parts of every fold.

    State of a key and slice: accumulators. For a slice that is a window, the state is that of WindowAggregate.
    """

    def __init__(
        self,
        keys: Sequence[int],
        windows: WindowKeys,
        slicing: Slicing,
        folds: Sequence[VectorFold],
        signed: bool,
        form: OutputForm,
        parts_come: bool = False,
    ) -> None:
        """Create an operator. `keys` are all keys in the order of the output.

        `parts_come` is True if the first phase runs before the exchange.
        """
        super().__init__([keys[position] for position in windows.plain], form)
        self.all_keys = tuple(keys)
        self.windows = windows
        self.slicing = slicing
        self.zone, self.shifted, self.processing_time = windows.zone, windows.shifted, windows.processing_time
        self.folds: list[VectorFold] = [fold for fold in with_counter(folds, signed) if isinstance(fold, VectorFold)]
        self.results = list(folds)
        self.signed = signed
        self.parts_come = parts_come

    def open(self, context: OperatorContext) -> None:
        super().open(context)
        keys = [self.schema.field(position) for position in self.windows.plain]
        kinds = [kind for fold in self.folds for kind in fold.part_types()]
        parts = [pa.field(f"part {number}", kind) for number, kind in enumerate(kinds)]
        self._form = pa.schema([pa.field("end", pa.int64()), *keys, *parts])
        self._width = 1 + len(keys)
        self._functions = [function for fold in self.folds for function in fold.functions()]
        self._chunks = Chunks(self._form, self._combine)
        self.stores = (self._chunks,)
        self.restore()

    # --- input ---
    def whole(self, batch: pa.RecordBatch) -> None:
        positions = tuple(range(len(self.all_keys))) if self.parts_come else self.all_keys
        end = positions[self.windows.end]
        if batch.column(end).null_count:
            batch = batch.filter(batch.column(end).is_valid())
        keys = [batch.column(positions[position]) for position in self.windows.plain]
        made = combine_parts([batch.column(end), *keys], self._parts(batch), self._form)
        in_millis = pa.array(times_of(made) // MICROS)
        self._chunks.add(self.in_time(made.set_column(0, self._form.field(0), in_millis)))

    def _parts(self, batch: pa.RecordBatch) -> list[Part]:
        if self.parts_come:
            return list(map(Part, batch.columns[len(self.all_keys) :], self._functions))
        signs = signs_of(batch, self.signed)
        return [part for fold in self.folds for part in fold.parts(batch, signs)]

    def _combine(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Merge rows with the same time and key."""
        parts = list(map(Part, rows.columns[self._width :], self._functions))
        return combine_parts(rows.columns[: self._width], parts, self._form)

    # --- state ---
    def write(self) -> None:
        if not self._chunks.fresh:
            return
        fresh = self._chunks.settle(self.away())
        ends = times_of(fresh).tolist()
        names = {end: self._namespace(end) for end in set(ends)}
        addresses = [(key, names[end]) for key, end in zip(self._keys(fresh), ends, strict=True)]
        entries = self.panes.get_all(addresses)
        self.panes.put_all(addresses, self._fold_parts(fresh, entries))
        for end, address, entry in zip(ends, addresses, entries, strict=True):
            if entry is None:
                self.note(end, address)

    def _keys(self, rows: pa.RecordBatch) -> list[Any]:
        columns = [state_values(column) for column in rows.columns[1 : self._width]]
        if len(columns) == 1:
            return columns[0]
        return list(zip(*columns, strict=True)) if columns else [()] * rows.num_rows

    def _fold_parts(self, rows: pa.RecordBatch, entries: list[Any]) -> list[Any]:
        """Return accumulators with the parts of rows folded in."""
        feed, now = iter(rows.columns[self._width :]), []
        for number, fold in enumerate(self.folds):
            before = [fold.new() if entry is None else entry[number] for entry in entries]
            now.append(fold.fold_all(before, [state_values(next(feed)) for _ in fold.part_types()]))
        return list(zip(*now, strict=True)) if now else [()] * len(entries)

    def _namespace(self, end: int) -> tuple[int, ...]:
        """Return the namespace of a slice in state: its end, or all bounds that are keys if it is a window."""
        if self.slicing.is_shared:
            return (end * MICROS,)
        start = int(self.slicing.starts(np.array([end]))[0])
        bounds = {"start": start, "end": end, "time": end - 1}
        return tuple([bounds[role] * MICROS for role in self.windows.roles])

    def end_of(self, address: Any, value: Any) -> int:
        position = 0 if self.slicing.is_shared else self.windows.roles.index("end")
        return int(address[1][position]) // MICROS

    def put_back(self, entries: list[tuple[Any, Any]]) -> None:
        arrays = [pa.array([self.end_of(address, value) for address, value in entries], pa.int64())]
        arrays += key_columns([key for (key, _), _ in entries], list(self._form)[1 : self._width])
        for number, fold in enumerate(self.folds):
            arrays += fold.unfold([value[number] for _, value in entries])
        self._chunks.restore(pa.RecordBatch.from_arrays(arrays, schema=self._form))

    # --- output ---
    def fire(self, due: Due) -> None:
        rows = self._chunks.take(due.slices_to_take(), due.kept)
        if not self.slicing.is_shared:
            self._put_together(rows)
            return
        for now in _some_windows(rows, due):
            self._put_together(_in_windows(rows, due, now))
        if self.slicing.kind == WindowKind.CUMULATE:
            over = np.unique(due.windows[due.now])
            self._chunks.rename(lambda ends: self.slicing.later_alike(ends, over))

    def _put_together(self, rows: pa.RecordBatch) -> None:
        """Merge the rows of windows, and add an output row for each key and window. Windows are in order."""
        made = self._combine(rows)
        if self.signed:
            made = made.filter(pc.not_equal(made.columns[-1], 0))
        ends = times_of(made)
        if len(ends) > 1 and (np.diff(ends) < 0).any():
            made = made.take(pa.array(np.argsort(ends, kind="stable")))
        self.complete.append(self._output_of(made))

    def _output_of(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        ends, windows = times_of(rows), self.windows
        bounds = {"start": self.slicing.starts(ends), "end": ends, "time": ends - 1}
        arrays: dict[int, pa.Array] = dict(zip(windows.plain, rows.columns[1 : self._width], strict=True))
        for position, role in zip(windows.window, windows.roles, strict=True):
            arrays[position] = moments(bounds[role], self.schema.field(position).type)
        feed = iter(rows.columns[self._width :])
        results = [fold.result([next(feed) for _ in fold.part_types()]) for fold in self.results]
        keys = [arrays[position] for position in range(len(self.all_keys))]
        return pa.RecordBatch.from_arrays([*keys, *results], schema=self.schema)


def _some_windows(rows: pa.RecordBatch, due: Due) -> Iterator[Times]:
    """Yield the windows that end now, in groups whose slices together have a limited number of rows."""
    counts = np.bincount(np.searchsorted(due.ends, times_of(rows)), minlength=len(due.ends))
    slices, _ = np.nonzero(due.now)
    windows, which = np.unique(due.windows[due.now], return_inverse=True)
    totals = np.cumsum(np.bincount(which, counts[slices], len(windows)))
    turns = np.maximum(totals - 1, 0) // MOST_ROWS
    for turn in np.unique(turns):
        yield due.now & np.isin(due.windows, windows[turns == turn])


def _in_windows(rows: pa.RecordBatch, due: Due, now: Times) -> pa.RecordBatch:
    """Repeat the rows of slices for every window of their slice."""
    slices = np.searchsorted(due.ends, times_of(rows))
    by_slice = now.sum(axis=1)
    counts = by_slice[slices]
    which = np.repeat(np.arange(len(slices)), counts)
    turn = np.arange(len(which)) - np.repeat(np.cumsum(counts) - counts, counts)
    first: Times = np.cumsum(by_slice) - by_slice
    windows = due.windows[now][first[slices[which]] + turn]
    return rows.take(pa.array(which)).set_column(0, rows.schema.field(0), pa.array(windows))
