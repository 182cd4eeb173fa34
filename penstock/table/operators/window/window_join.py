"""Window joins: when a window ends, its rows with the same key are joined, all at once and in columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from penstock.engine.operators.operator import OperatorContext
from penstock.engine.records.columns import Columns
from penstock.table.logical.kinds import JoinKind
from penstock.table.operators.base.chunks import Chunks, times_of
from penstock.table.operators.base.compiled_expressions import evaluator, moment_of, truth
from penstock.table.operators.base.equal_rows import Positions, equal_pairs, key_codes, without_nulls
from penstock.table.operators.base.output_form import OutputForm
from penstock.table.operators.base.query_batches import Held, batch_of, state_rows
from penstock.table.operators.base.table_operator import TwoInputTableOperator
from penstock.table.operators.join.regular_join import JoinSpec
from penstock.table.operators.join.row_pairs import both_sides
from penstock.table.operators.window.window_assignment import MICROS, WindowTime
from penstock.table.operators.window.window_base import Due, WindowOperator

_END = pa.field("end", pa.int64())


class WindowJoin(TwoInputTableOperator, WindowOperator):
    """Keeps rows of both sides in columns. State of a key and window: (left rows, right rows)."""

    def __init__(
        self, spec: JoinSpec, bounds: tuple[tuple[int, int], tuple[int, int]], time: WindowTime, form: OutputForm
    ) -> None:
        """Create an operator. `bounds` are the columns of start and end on both sides."""
        super().__init__(spec.keys, form)
        self.zone, self.shifted, self.processing_time = time.zone, time.shifted, time.processing_time
        self.spec = spec
        self.bounds = bounds

    def open(self, context: OperatorContext) -> None:
        super().open(context)
        spec = self.spec
        self._condition = None if spec.condition is None else evaluator(spec.condition)
        self._pairs = both_sides(*spec.schemas)
        left, right = (Chunks(pa.schema([_END, *schema])) for schema in spec.schemas)
        self.stores = (left, right)
        self.restore()

    # --- input ---
    def left(self, batch: pa.RecordBatch) -> None:
        self._take(0, batch)

    def right(self, batch: pa.RecordBatch) -> None:
        self._take(1, batch)

    def _take(self, side: int, batch: pa.RecordBatch) -> None:
        end = self.bounds[side][1]
        if batch.column(end).null_count:
            batch = batch.filter(batch.column(end).is_valid())
        ends = batch.column(end).cast(pa.int64()).to_numpy(zero_copy_only=False) // MICROS
        chunks, width = self.stores[side], len(self.spec.schemas[side])
        rows = pa.RecordBatch.from_arrays([pa.array(ends), *batch.columns[:width]], schema=chunks.schema)
        chunks.add(self.in_time(rows))

    # --- state ---
    def write(self) -> None:
        for side, chunks in enumerate(self.stores):
            if chunks.fresh:
                self._write(side, chunks.settle(self.away()))

    def _write(self, side: int, batch: pa.RecordBatch) -> None:
        start, end = self.bounds[side]
        rows = _rows(batch)
        found = Columns(rows).keys(self.selectors[side])
        assert found is not None
        groups: dict[Any, list[Held]] = {}
        for code, row in zip(found.which.to_pylist(), state_rows(rows), strict=True):
            groups.setdefault((found.distinct[code], (row[start], row[end])), []).append(row)
        for address, own in groups.items():
            pane = self.panes.get(address)
            if pane is None:
                pane = ((), ())
                self.note(address[1][1] // MICROS, address)
            rows_now = (*pane[side], *own)
            self.panes.put(address, (rows_now, pane[1]) if side == 0 else (pane[0], rows_now))

    def end_of(self, address: Any, value: Any) -> int:
        return int(address[1][1]) // MICROS

    def put_back(self, entries: list[tuple[Any, Any]]) -> None:
        for side, chunks in enumerate(self.stores):
            rows = [(self.end_of(address, pane), *row) for address, pane in entries for row in pane[side]]
            if rows:
                chunks.restore(batch_of(rows, chunks.schema))

    # --- output ---
    def fire(self, due: Due) -> None:
        taken = due.slices_to_take()
        left, right = (chunks.take(taken, due.kept) for chunks in self.stores)
        one, other = self._matches(left, right)
        if self.spec.one_sided:
            met = np.zeros(left.num_rows, bool)
            met[one] = True
            self._send_rows(left, right, np.flatnonzero(met == (self.spec.kind == JoinKind.SEMI)), None)
            return
        if self.spec.outer(0):
            alone = _missing(one, left.num_rows)
            one, other = np.concatenate((one, alone)), np.concatenate((other, np.full(len(alone), -1)))
        if self.spec.outer(1):
            alone = _missing(other, right.num_rows)
            one, other = np.concatenate((one, np.full(len(alone), -1))), np.concatenate((other, alone))
        self._send_rows(left, right, one, other)

    def _matches(self, left: pa.RecordBatch, right: pa.RecordBatch) -> tuple[Positions, Positions]:
        """Return the positions of rows that match."""
        plain = self._keys(left, 0), self._keys(right, 1)
        windows = [[batch.column(0), batch.column(1 + self.bounds[s][0])] for s, batch in enumerate((left, right))]
        codes = key_codes([*windows[0], *plain[0]], [*windows[1], *plain[1]])
        safe = self.spec.null_safe
        able = without_nulls(plain[0], safe, left.num_rows), without_nulls(plain[1], safe, right.num_rows)
        found = [self._accept(left, right, *pairs) for pairs in equal_pairs(*codes, able)]
        none = np.empty(0, "int64")
        return np.concatenate([none, *(one for one, _ in found)]), np.concatenate([none, *(two for _, two in found)])

    def _keys(self, batch: pa.RecordBatch, side: int) -> list[pa.Array]:
        return [batch.column(1 + position) for position in self.spec.keys[side]]

    def _accept(
        self, left: pa.RecordBatch, right: pa.RecordBatch, one: Positions, other: Positions
    ) -> tuple[Positions, Positions]:
        """Return the pairs that the condition accepts."""
        if self._condition is None or not len(one):
            return one, other
        columns = [*_rows(left).take(pa.array(one)).columns, *_rows(right).take(pa.array(other)).columns]
        pairs = pa.RecordBatch.from_arrays(columns, schema=self._pairs)
        mask = truth(self._condition(pairs, moment_of(self, self.spec.zone))).to_numpy(zero_copy_only=False)
        return one[mask], other[mask]

    def _send_rows(self, left: pa.RecordBatch, right: pa.RecordBatch, one: Positions, other: Positions | None) -> None:
        """Add left rows, and right rows if `other` has them, to the output. -1 stands for no row.

        Windows are in order.
        """
        sides = [(left, one)] if other is None else [(left, one), (right, other)]
        ends = np.full(len(one), np.iinfo("int64").min)
        for batch, rows in sides:
            ends[rows >= 0] = times_of(batch)[rows[rows >= 0]]
        in_order = np.lexsort((np.where(one < 0, len(one) + left.num_rows, one), ends))
        columns: list[pa.Array] = []
        for batch, rows in sides:
            chosen = rows[in_order]
            columns += _rows(batch).take(pa.array(chosen, mask=chosen < 0)).columns
        self.complete.append(pa.RecordBatch.from_arrays(columns, schema=self.schema))


def _rows(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return a batch without the first column, the ends of windows."""
    return pa.RecordBatch.from_arrays(batch.columns[1:], schema=batch.schema.remove(0))


def _missing(found: Positions, count: int) -> Positions:
    """Return the positions below a count that are not in `found`."""
    there = np.zeros(count, bool)
    there[found[found >= 0]] = True
    return np.flatnonzero(~there)
