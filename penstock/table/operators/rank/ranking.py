"""Ranks of rows by key, computed in columns over stored rows and new rows together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from penstock.table.logical.rex import SortKey
from penstock.table.operators.base.query_batches import (
    DELETE,
    INSERT,
    UPDATE_AFTER,
    UPDATE_BEFORE,
    Held,
    batch_of,
    column_of,
    state_rows,
)
from penstock.table.operators.base.sort_order import sort_positions

Numbers = np.ndarray[Any, Any]


def first_of_each(batch: pa.RecordBatch, which: pa.Array, order: Sequence[SortKey], count: int) -> pa.Array:
    """Return the positions, in the order of arrival, of the first `count` rows of each key in this batch."""
    positions, ranks = rank_rows(sort_positions(batch, order).to_numpy(), which.to_numpy(zero_copy_only=False))
    return pa.array(np.sort(positions[ranks < count]))


def rank_rows(in_order: Numbers, groups: Numbers) -> tuple[Numbers, Numbers]:
    """Return the positions of sorted rows, group by group, and their ranks in their groups, from 0."""
    in_group = groups[in_order]
    by_group = np.argsort(in_group, kind="stable")
    sizes = np.bincount(in_group)
    starts = np.cumsum(sizes) - sizes
    return in_order[by_group], np.arange(len(in_order)) - np.repeat(starts, sizes)


class Emitted(NamedTuple):
    """Output rows: their positions, kinds and ranks."""

    positions: Numbers
    """Positions of rows. Stored rows come first, then new rows."""
    kinds: Numbers
    ranks: Numbers

    def deletions_first(self) -> Emitted:
        """Return the same changes without updates: deletions first, then inserts."""
        adding = np.isin(self.kinds, (INSERT, UPDATE_AFTER))
        order = np.argsort(adding, kind="stable")
        kinds = np.where(adding, INSERT, DELETE)
        return Emitted(self.positions[order], kinds[order], self.ranks[order])


class Order:
    """An order of rows that can be columns or tuples."""

    def __init__(self, keys: Sequence[SortKey], schema: pa.Schema) -> None:
        self._indexes = [key.index for key in keys]
        self._keys = [replace(key, index=number) for number, key in enumerate(keys)]
        self._schema = schema

    def positions(self, held: Sequence[Held], batch: pa.RecordBatch) -> Numbers:
        """Return the sorted positions of stored rows followed by the rows of a batch. Equal rows keep their order."""
        columns = []
        for index in self._indexes:
            kind = self._schema.field(index).type
            ahead = column_of([row[index] for row in held], kind)
            columns.append(pa.concat_arrays([ahead, batch.column(index).cast(kind)]))
        both = pa.RecordBatch.from_arrays(columns, names=[str(index) for index in range(len(columns))])
        found: Numbers = sort_positions(both, self._keys).to_numpy().astype("int64")
        return found

    def before(self, limits: Sequence[tuple[int, Held]], batch: pa.RecordBatch, codes: Numbers) -> Numbers:
        """Return a mask of the rows that come before the limit of their code.

        A code without a limit accepts all rows.
        """
        in_order = self.positions([row for _, row in limits], batch)
        places = np.empty(len(in_order), "int64")
        places[in_order] = np.arange(len(in_order))
        latest = np.full(codes.max() + 1 if len(codes) else 0, len(in_order))
        latest[[code for code, _ in limits]] = places[: len(limits)]
        return places[len(limits) :] < latest[codes]


class Contest:
    """A comparison of the stored rows of some groups, in order, with new rows.

    It finds the first `most` of each group.
    """

    def __init__(self, held: Sequence[list[Held]], batch: pa.RecordBatch, groups: Numbers) -> None:
        """Compare rows. `groups` has the group of each row of the batch."""
        self.batch = batch
        self.sizes = np.fromiter(map(len, held), "int64", len(held))
        self.held = list(chain.from_iterable(held))
        self.rows = self.held + state_rows(batch)
        self._starts = np.cumsum(self.sizes) - self.sizes
        self._groups = np.concatenate([np.repeat(np.arange(len(held)), self.sizes), groups])

    def decide(self, order: Order, most: int) -> list[list[Held]]:
        """Return the rows that each group has now."""
        positions, ranks = rank_rows(order.positions(self.held, self.batch), self._groups)
        inside = ranks < most
        self._now, self._ranks = positions[inside], ranks[inside] + 1
        rows = list(map(self.rows.__getitem__, self._now.tolist()))
        ends = np.cumsum(np.bincount(self._groups[self._now], minlength=len(self.sizes))).tolist()
        return [rows[start:end] for start, end in zip([0, *ends[:-1]], ends, strict=True)]

    def came_and_went(self, first: int) -> Emitted:
        """Return the rows that left the ranks from `first` on, then the rows that entered them."""
        count = len(self.rows)
        before, now = np.zeros(count, "int64"), np.zeros(count, "int64")
        before[: len(self.held)] = np.arange(len(self.held)) - np.repeat(self._starts, self.sizes) + 1
        now[self._now] = self._ranks
        turned = np.flatnonzero((before >= first) != (now >= first))
        kinds = np.where(now[turned] >= first, INSERT, DELETE)
        ranks = np.where(kinds == INSERT, now[turned], before[turned])
        order = np.lexsort((ranks, kinds == INSERT, self._groups[turned]))
        return Emitted(turned[order], kinds[order], ranks[order])

    def ranks_changed(self, first: int) -> Emitted:
        """Return the changes of all ranks, from `first` on, that have another row now."""
        shown = self._ranks >= first
        now, ranks = self._now[shown], self._ranks[shown]
        groups = self._groups[now]
        known = ranks <= self.sizes[groups]
        old = np.where(known, self._starts[groups] + ranks - 1, -1)
        changed = ~known
        maybe = np.flatnonzero(known & (old != now))
        rows = self.rows
        pairs = zip(old[maybe].tolist(), now[maybe].tolist(), strict=True)
        changed[maybe] = np.fromiter((rows[one] != rows[other] for one, other in pairs), bool, len(maybe))
        first_kinds = np.where(changed & known, UPDATE_BEFORE, -1)
        second_kinds = np.where(changed, np.where(known, UPDATE_AFTER, INSERT), -1)
        kinds = np.stack([first_kinds, second_kinds], axis=1).reshape(-1)
        positions = np.stack([old, now], axis=1).reshape(-1)
        told = kinds >= 0
        return Emitted(positions[told], kinds[told], np.repeat(ranks, 2)[told])

    def columns_at(self, positions: Numbers, schema: pa.Schema) -> list[pa.Array]:
        """Return the columns of rows. Only stored rows are converted."""
        count = len(self.held)
        was_held = positions < count
        wanted = np.unique(positions[was_held])
        made = batch_of([self.held[position] for position in wanted.tolist()], schema)
        places = pa.array(np.where(was_held, np.searchsorted(wanted, positions), positions - count + len(wanted)))
        return [
            pa.concat_arrays([made.column(index), self.batch.column(index).cast(field.type)]).take(places)
            for index, field in enumerate(schema)
        ]
