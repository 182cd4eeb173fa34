"""Top-N and deduplication within windows: the rows of a window are sent, ranked, when it ends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.api.functions.key_selectors import ColumnKeys
from penstock.engine.operators.operator import OperatorContext
from penstock.engine.records.columns import Columns
from penstock.table.operators.base.chunks import Chunks, times_of
from penstock.table.operators.base.equal_rows import Positions, key_codes
from penstock.table.operators.base.output_form import OutputForm
from penstock.table.operators.base.query_batches import Held, batch_of, state_rows
from penstock.table.operators.base.sort_order import order_of, sort_positions
from penstock.table.operators.base.table_operator import HoldingTableOperator
from penstock.table.operators.rank.top_n import TopNSpec
from penstock.table.operators.window.window_assignment import MICROS, WindowTime
from penstock.table.operators.window.window_base import Due, WindowOperator


class WindowTopN(HoldingTableOperator, WindowOperator):
    """Keeps rows in columns. State of a key and window: the rows that can be sent, in order."""

    def __init__(
        self,
        keys: Sequence[int],
        bounds: Sequence[int],
        end: int,
        spec: TopNSpec,
        time: WindowTime,
        form: OutputForm,
    ) -> None:
        super().__init__(keys, form)
        self.zone, self.shifted, self.processing_time = time.zone, time.shifted, time.processing_time
        self.bounds = tuple(bounds)
        self.end = end
        self.spec = spec

    def open(self, context: OperatorContext) -> None:
        super().open(context)
        columns = list(self.schema)[:-1] if self.spec.rank_column else list(self.schema)
        self._chunks = Chunks(pa.schema([pa.field("end", pa.int64()), *columns]), self._first)
        self.stores = (self._chunks,)
        assert isinstance(self.key_selector, ColumnKeys)
        self._partition = [1 + position for position in (*self.bounds, *self.key_selector.positions)]
        self._sort_keys = [replace(key, index=1 + key.index) for key in self.spec.order]
        self._order = order_of(self.spec.order)
        self.restore()

    # --- input ---
    def whole(self, batch: pa.RecordBatch) -> None:
        if batch.column(self.end).null_count:
            batch = batch.filter(batch.column(self.end).is_valid())
        ends = pa.array(batch.column(self.end).cast(pa.int64()).to_numpy(zero_copy_only=False) // MICROS)
        rows = pa.RecordBatch.from_arrays([ends, *batch.columns], schema=self._chunks.schema)
        self._chunks.add(self.in_time(rows))

    def _first(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows that can be sent, in the order of arrival."""
        positions, ranks = self._rank(rows)
        last = self.spec.last
        return rows if last is None else rows.take(pa.array(np.sort(positions[ranks < last])))

    def _rank(self, rows: pa.RecordBatch) -> tuple[Positions, Positions]:
        """Return the positions of rows by partition and then in order, and their ranks, which count from 0."""
        columns = [rows.column(position) for position in self._partition]
        codes, _ = key_codes(columns, [column.slice(0, 0) for column in columns])
        in_order = sort_positions(rows, self._sort_keys).to_numpy()
        positions = in_order[np.argsort(codes[in_order], kind="stable")]
        grouped = codes[positions]
        begins = np.ones(len(grouped), bool)
        begins[1:] = grouped[1:] != grouped[:-1]
        starts = np.flatnonzero(begins)
        return positions, np.arange(len(grouped)) - np.repeat(starts, np.diff(np.append(starts, len(grouped))))

    # --- state ---
    def write(self) -> None:
        if not self._chunks.fresh:
            return
        batch = self._chunks.settle(self.away())
        rows = pa.RecordBatch.from_arrays(batch.columns[1:], schema=self._chunks.schema.remove(0))
        found = Columns(rows).keys(self.key_selector)  # type: ignore[arg-type]
        assert found is not None
        groups: dict[tuple[Any, Any], list[Held]] = {}
        for code, row in zip(found.which.to_pylist(), state_rows(rows), strict=True):
            bounds = tuple([row[position] for position in self.bounds])
            groups.setdefault((found.distinct[code], bounds), []).append(row)
        for address, own in groups.items():
            held = self.panes.get(address)
            if held is None:
                self.note(own[0][self.end] // MICROS, address)
            self.panes.put(address, sorted([*(held or []), *own], key=self._order)[: self.spec.last])

    def end_of(self, address: Any, value: Any) -> int:
        return int(value[0][self.end]) // MICROS

    def put_back(self, entries: list[tuple[Any, Any]]) -> None:
        rows = [(self.end_of(address, own), *row) for address, own in entries for row in own]
        self._chunks.restore(batch_of(rows, self._chunks.schema))

    # --- output ---
    def fire(self, due: Due) -> None:
        rows = self._chunks.take(due.slices_to_take(), due.kept)
        positions, ranks = self._rank(rows)
        wanted = ranks >= self.spec.first - 1
        if self.spec.last is not None:
            wanted &= ranks < self.spec.last
        positions, ranks = positions[wanted], ranks[wanted]
        by_window = np.argsort(times_of(rows)[positions], kind="stable")
        columns = rows.take(pa.array(positions[by_window])).columns[1:]
        if self.spec.rank_column:
            columns.append(pa.array(ranks[by_window] + 1).cast(self.schema.field(len(columns)).type))
        self.complete.append(pa.RecordBatch.from_arrays(columns, schema=self.schema))
