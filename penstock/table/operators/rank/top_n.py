"""Top-N: the first rows of each partition in some order, over inserts or a changelog."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.engine.operators.operator import OperatorContext
from penstock.engine.records.columns import Columns, Keys
from penstock.table.logical.rex import SortKey
from penstock.table.operators.base.output_form import OutputForm
from penstock.table.operators.base.query_batches import DELETE, INSERT, UPDATE_AFTER, UPDATE_BEFORE, Held, state_rows
from penstock.table.operators.base.query_state import store
from penstock.table.operators.base.sort_order import order_of
from penstock.table.operators.base.table_operator import HoldingTableOperator
from penstock.table.operators.rank.ordered_rows import OrderedRows
from penstock.table.operators.rank.ranking import Contest, Order, first_of_each

MANY = 64
"""Batches of more than this number of rows are filtered in columns first."""


@dataclass(frozen=True)
class TopNSpec:
    """The order of a partition, and the range of ranks that is sent."""

    order: tuple[SortKey, ...]
    first: int
    last: int | None
    """The last rank, or None for no limit. Ranks count from 1."""
    rank_column: bool
    signed: bool
    """True if rows can be retracted."""
    rows_have_keys: bool = False
    """True if rows have a key of their own, which they keep when their rank changes."""


class TopN(HoldingTableOperator):
    """State of a partition: its rows in order.

    Without retractions, it has only the rows that can be sent, as a list.
    """

    def __init__(self, keys: Sequence[int], spec: TopNSpec, form: OutputForm, ttl: int = 0) -> None:
        super().__init__(keys, form)
        self.spec = spec
        self.ttl = ttl

    def open(self, context: OperatorContext) -> None:
        super().open(context)
        assert self.keyed is not None
        self._order = order_of(self.spec.order)
        self._bounded = not self.spec.signed and self.spec.last is not None
        if self._bounded:
            self._partitions = store(self.keyed, "rows", self.ttl)
        else:
            self._all_rows = OrderedRows(self.keyed, "rows", self._order, self.ttl)
        self._input = pa.schema(list(self.schema)[: len(self.schema) - self.changelog - self.spec.rank_column])
        self._column_order = Order(self.spec.order, self._input)
        self.only_final = context.batch

    def _keys(self, batch: pa.RecordBatch) -> Keys:
        found = Columns(batch).keys(self.key_selector)  # type: ignore[arg-type]
        assert found is not None
        return found

    def whole(self, batch: pa.RecordBatch) -> None:
        if self._bounded and self.changelog and batch.num_rows > MANY:
            self._many(batch)
        else:
            self._few(batch)

    # --- rows that stay, in columns ---
    def _many(self, batch: pa.RecordBatch) -> None:
        """Process a large batch. Drop the rows that cannot get one of the first ranks.

        Other rows of the batch or stored rows rank higher than these.
        """
        most = self.spec.last
        assert most is not None
        batch = batch.take(first_of_each(batch, self._keys(batch).which, self.spec.order, most))
        found = self._keys(batch)
        codes = found.which.to_numpy(zero_copy_only=False)
        held: list[list[Held] | None] = self._partitions.get_all(found.distinct)
        full = [(code, rows[-1]) for code, rows in enumerate(held) if rows is not None and len(rows) >= most]
        if full:
            inside = self._column_order.before(full, batch, codes)
            batch, codes = batch.filter(pa.array(inside)), codes[inside]
        if batch.num_rows:
            touched, groups = np.unique(codes, return_inverse=True)
            contest = Contest([held[code] or [] for code in touched.tolist()], batch, groups)
            now = contest.decide(self._column_order, most)
            self._partitions.put_all([found.distinct[code] for code in touched.tolist()], now)
            self._send(contest)

    def _send(self, contest: Contest) -> None:
        spec = self.spec
        out = contest.ranks_changed(spec.first) if spec.rank_column else contest.came_and_went(spec.first)
        if spec.rank_column and spec.rows_have_keys:
            out = out.deletions_first()
        arrays = contest.columns_at(out.positions, self._input)
        if spec.rank_column:
            arrays.append(pa.array(out.ranks, pa.int64()))
        arrays.append(pa.array(out.kinds, pa.int8()))
        self.send(pa.RecordBatch.from_arrays(arrays, schema=self.schema))

    # --- row by row ---
    def _few(self, batch: pa.RecordBatch) -> None:
        found = self._keys(batch)
        width = batch.num_columns - (1 if self.spec.signed else 0)
        rows = state_rows(batch, range(width))
        kinds = batch.column(width).to_pylist() if self.spec.signed else None
        by_key: dict[int, list[int]] = {}
        for position, code in enumerate(found.which.to_pylist()):
            by_key.setdefault(code, []).append(position)
        for code, positions in by_key.items():
            self._change(found.distinct[code], rows, kinds, positions)

    def _change(self, key: Any, rows: list[Held], kinds: list[int] | None, positions: list[int]) -> None:
        if self._bounded:
            self._change_first(key, [rows[position] for position in positions])
        else:
            adds = [kinds is None or kinds[position] in {INSERT, UPDATE_AFTER} for position in positions]
            self._change_all(key, [rows[position] for position in positions], adds)

    def _change_first(self, key: Any, rows: list[Held]) -> None:
        """Process rows without retractions. State has only the first rows of a partition."""
        held: list[Held] = self._partitions.get(key) or []
        before, changed = self._visible_rows(held), False
        for row in rows:
            changed |= self._insert(held, row)
        if changed:
            self._partitions.put(key, held)
            self._tell(before, self._visible_rows(held))

    def _insert(self, held: list[Held], row: Held) -> bool:
        """Insert a row if it is among the first. Return True if it is."""
        order, last = self._order, self.spec.last
        assert last is not None
        if len(held) >= last:
            if order(row) >= order(held[-1]):
                return False
            held.pop()
        held.insert(bisect_right(held, order(row), key=order), row)
        return True

    def _change_all(self, key: Any, rows: list[Held], adds: list[bool]) -> None:
        held, changed = self._all_rows.read(key), False
        before = self._visible_rows(held.first(self.spec.last))
        for row, comes in zip(rows, adds, strict=True):
            if comes:
                held.insert(row)
                changed = True
            else:
                changed |= held.remove(row)
        if changed:
            now = self._visible_rows(held.first(self.spec.last))
            self._all_rows.write(key, held)
            self._tell(before, now)

    def _visible_rows(self, held: list[Held]) -> list[Held]:
        return held[self.spec.first - 1 : self.spec.last]

    def _tell(self, before: list[Held], now: list[Held]) -> None:
        if now != before:
            self._emit(before, now)

    def _emit(self, before: list[Held], now: list[Held]) -> None:
        if self.spec.rank_column:
            self._emit_ranks(before, now)
            return
        gone, new = Counter(before), Counter(now)
        for row in (gone - new).elements():
            self.gather(DELETE, row)
        for row in (new - gone).elements():
            self.gather(INSERT, row)

    def _emit_ranks(self, before: list[Held], now: list[Held]) -> None:
        """Send each rank that has another row now. If rows have keys, deletions are sent first."""
        if self.spec.rows_have_keys:
            self._emit_rows_of_ranks(before, now)
            return
        for index in range(max(len(before), len(now))):
            rank = self.spec.first + index
            old = before[index] if index < len(before) else None
            new = now[index] if index < len(now) else None
            if old == new:
                continue
            if old is not None:
                self.gather(DELETE if new is None else UPDATE_BEFORE, (*old, rank))
            if new is not None:
                self.gather(INSERT if old is None else UPDATE_AFTER, (*new, rank))

    def _emit_rows_of_ranks(self, before: list[Held], now: list[Held]) -> None:
        first = self.spec.first
        gone = [(*row, rank) for rank, row in enumerate(before, first)]
        come = [(*row, rank) for rank, row in enumerate(now, first)]
        staying = set(gone) & set(come)
        for row in gone:
            if row not in staying:
                self.gather(DELETE, row)
        for row in come:
            if row not in staying:
                self.gather(INSERT, row)
