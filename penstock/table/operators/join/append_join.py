"""Inner joins of tables that only grow, so that state only grows too."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from penstock.engine.operators.operator import OperatorContext
from penstock.engine.state.backend import KeyedStateBackend
from penstock.engine.state.tables import Layout, Table
from penstock.table.operators.base.output_form import OutputForm
from penstock.table.operators.base.query_batches import Held, make_batch, state_rows
from penstock.table.operators.base.query_state import store
from penstock.table.operators.base.state_matching import (
    Keyed,
    Pairs,
    Partners,
    group_entries,
    matchable,
    pairs_by_key,
    rows_by_key,
    take_rows,
)
from penstock.table.operators.base.table_operator import TwoInputTableOperator
from penstock.table.operators.join.regular_join import JoinSpec
from penstock.table.operators.join.row_pairs import Condition, both_sides

PAGE_ROWS = 64
"""Number of rows of a key in a page. With pages, the cost of adding a row does not grow with the rows of its key."""


class AppendJoin(TwoInputTableOperator):
    """Processes each key of a batch and each stored row in Python, but pairs only in columns.

    A row whose key is NULL never has a match, and is dropped.
    """

    def __init__(self, spec: JoinSpec, form: OutputForm) -> None:
        super().__init__(spec.keys, form)
        self.spec = spec

    def open(self, context: OperatorContext) -> None:
        super().open(context)
        assert self.keyed is not None
        self._sides = [PagedRows(self.keyed, name) for name in ("left", "right")]
        spec = self.spec
        self._condition = Condition(spec.condition, both_sides(*spec.schemas), spec.zone)

    def left(self, batch: pa.RecordBatch) -> None:
        self._take(0, batch)

    def right(self, batch: pa.RecordBatch) -> None:
        self._take(1, batch)

    def _take(self, side: int, batch: pa.RecordBatch) -> None:
        mask = matchable(batch, self.spec.keys[side], self.spec.null_safe)
        if mask is not None:
            batch = batch.filter(pa.array(mask))
        if not batch.num_rows:
            return
        arrived = rows_by_key(batch, self.selectors[side])
        candidates, found = pairs_by_key(arrived.codes, self._sides[1 - side].all_rows(arrived.keys))
        partners = Partners(candidates, self.spec.schemas[1 - side])
        for pairs in found:
            self._send_pairs(side, batch, pairs, partners)
        self._sides[side].add(arrived)

    def _send_pairs(self, side: int, batch: pa.RecordBatch, pairs: Pairs, partners: Partners) -> None:
        own, other = take_rows(batch, pairs.positions).columns, partners.columns(pairs.picks)
        joined = make_batch(own + other if side == 0 else other + own, self.schema, len(pairs.positions))
        self.send(joined.filter(self._condition.mask(joined, self)) if self._condition else joined)


class PagedRows:
    """The rows of one side by key: the newest ones in a tuple, and older ones in full pages.

    If there are pages, their number comes first in the tuple. Adding rows reads and writes only the newest page.
    """

    def __init__(self, backend: KeyedStateBackend, name: str) -> None:
        self._newest = store(backend, name)
        _without_counts(self._newest.table)
        self._pages = store(backend, f"{name} pages", layout=Layout.PANE)

    def all_rows(self, keys: Sequence[Any]) -> list[Sequence[Held] | None]:
        """Return all rows of each key, or None for a key without rows."""
        return [
            newest if newest is None or newest[0].__class__ is tuple else self._whole(key, newest)
            for key, newest in zip(keys, self._newest.get_all(keys), strict=True)
        ]

    def add(self, arrived: Keyed) -> None:
        """Add rows to their keys."""
        keys, rows = arrived.keys, state_rows(arrived.batch)
        before = self._newest.get_all(keys)
        if arrived.unique:
            now = [(row,) if own is None else (*own, row) for own, row in zip(before, rows, strict=True)]
        else:
            now = [(*(before[code] or ()), *more) for code, more in group_entries(arrived.codes, rows)]
        for position, newest in enumerate(now):
            if len(newest) > PAGE_ROWS:
                now[position] = self._turn_pages(keys[position], newest)
        self._newest.put_all(keys, now)

    def _turn_pages(self, key: Any, newest: tuple[Any, ...]) -> tuple[Any, ...]:
        """Move full pages out of the tuple, and return the tuple that remains, with the number of pages in front."""
        number, rows = _parts(newest)
        while len(rows) >= PAGE_ROWS:
            self._pages.put((key, number), rows[:PAGE_ROWS])
            number, rows = number + 1, rows[PAGE_ROWS:]
        return (number, *rows) if number else rows

    def _whole(self, key: Any, newest: tuple[Any, ...]) -> Sequence[Held]:
        number, rows = _parts(newest)
        pages = self._pages.get_all([(key, page) for page in range(number)])
        return [row for page in (*pages, rows) for row in page]


def _parts(newest: tuple[Any, ...]) -> tuple[int, tuple[Held, ...]]:
    """Return the number of pages, and the newest rows."""
    return (0, newest) if newest[0].__class__ is tuple else (newest[0], newest[1:])


def _without_counts(table: Table) -> None:
    """Convert state of an earlier version, which kept rows in a dict with their counts."""
    first = next(iter(table.items()), None)
    if first is not None and isinstance(first[1], dict):
        table.convert(lambda rows: tuple(row for row, entry in rows.items() for _ in range(entry[0])))
