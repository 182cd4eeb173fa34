"""Updates in a changelog. A -U stands directly before the +U that replaces its row; a -U without a +U becomes -D.

This is the contract of every batch with kinds of change, see docs/decisions/0030-changelogs.md. Operators that keep
kinds of their input, but drop or multiply rows, use these functions to keep the contract.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from penstock.table.operators.base.query_batches import (
    DELETE,
    INSERT,
    UPDATE_AFTER,
    UPDATE_BEFORE,
    kinds_of,
    state_rows,
)

Numbers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


def with_pairs(kinds: pa.Array, positions: pa.Array | Numbers | None = None, keys: Mask | None = None) -> pa.Array:
    """Return kinds in which each -U without its +U directly behind it is a -D.

    `positions` has for each row the input row from which it is made: an update remains if its two rows come from
    neighbours. `keys` tells for each row whether it has the same key as the next one.
    """
    values = kinds.to_numpy(zero_copy_only=False)
    before = values == UPDATE_BEFORE
    if not before.any():
        return kinds
    paired = np.zeros(len(values), np.bool_)
    paired[:-1] = values[1:] == UPDATE_AFTER
    if positions is not None:
        places = np.asarray(positions, np.int64)
        paired[:-1] &= np.diff(places) == 1
    if keys is not None:
        paired &= keys
    lone = before & ~paired
    return pa.array(np.where(lone, DELETE, values), pa.int8()) if lone.any() else kinds


def with_pairs_of_rows(batch: pa.RecordBatch, positions: pa.Array | Numbers) -> pa.RecordBatch:
    """Return a changelog with valid pairs. `positions` are the input rows from which its rows are made."""
    kinds = kinds_of(batch)
    mended = with_pairs(kinds, positions)
    return batch if mended is kinds else _with_kinds(batch, mended)


def with_pairs_of_keys(batch: pa.RecordBatch, keys: Sequence[int]) -> pa.RecordBatch:
    """Return a changelog in which the two rows of each update are neighbours with the same key."""
    values = kinds_of(batch).to_numpy(zero_copy_only=False)
    if not (values == UPDATE_BEFORE).any():
        return batch
    return _with_kinds(batch, with_pairs(kinds_of(batch), None, same_as_next(batch, keys)))


def updates_side_by_side(
    kinds: pa.Array, positions: Numbers, picks: Numbers, turn: Numbers
) -> tuple[Numbers, pa.Array]:
    """Return an order of pairs in which both rows of an update are neighbours, and the kinds of the pairs in it.

    `kinds` are the kinds of the input. A pair consists of an input row and an entry that it meets, and may occur
    several times, in turns. If only one row of an update meets the entry, it becomes a -D or stays a +U.
    """
    values = kinds.to_numpy(zero_copy_only=False)
    follows = np.zeros(len(values), np.bool_)
    follows[1:] = (values[1:] == UPDATE_AFTER) & (values[:-1] == UPDATE_BEFORE)
    update = np.arange(len(values)) - follows
    order = np.lexsort((positions, turn, picks, update[positions]))
    same = np.zeros(len(order), np.bool_)
    places = (update[positions][order], picks[order], turn[order])
    same[:-1] = np.logical_and.reduce([place[1:] == place[:-1] for place in places])
    return order, with_pairs(pa.array(values[positions[order]], pa.int8()), None, same)


def without_pairs(kinds: pa.Array) -> pa.Array:
    """Return kinds with -D in place of each -U, for rows that may be separated from their neighbours."""
    return pc.if_else(pc.equal(kinds, UPDATE_BEFORE), pa.scalar(DELETE, pa.int8()), kinds)


def same_as_next(batch: pa.RecordBatch, columns: Sequence[int]) -> Mask:
    """Return for each row whether the next one has the same values in some columns. NULL equals NULL."""
    same = np.zeros(batch.num_rows, np.bool_)
    if batch.num_rows > 1:
        rows = state_rows(batch, columns)
        same[:-1] = [one == other for one, other in pairwise(rows)]
    return same


def upserts(batch: pa.RecordBatch, keys: Sequence[int]) -> pa.RecordBatch:
    """Return a changelog of +I, +U and -D for a table that holds one row of each key.

    A retracted row is left out if a later row of the batch has its key. Otherwise its key is deleted.
    """
    values = kinds_of(batch).to_numpy(zero_copy_only=False)
    gone = (values == UPDATE_BEFORE) | (values == DELETE)
    if not gone.any():
        return batch
    last = dict[object, int]()
    rows = state_rows(batch, keys)
    for position in np.flatnonzero(~gone).tolist():
        last[rows[position]] = position
    replaced = np.zeros(len(values), np.bool_)
    for position in np.flatnonzero(gone).tolist():
        replaced[position] = last.get(rows[position], -1) > position
    kinds = pa.array(np.where(gone, DELETE, values), pa.int8())
    return _with_kinds(batch, kinds).filter(pa.array(~replaced))


def _with_kinds(batch: pa.RecordBatch, kinds: pa.Array) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([*batch.columns[:-1], kinds], schema=batch.schema)


# --- checking ---
class ChangelogBroken(AssertionError):
    """The error for an operator that breaks the contract of changelogs."""


Held = tuple[object, ...]


class ChangelogCheck:
    """Checks the batches that an operator sends, one after the other.

    `keys` are sets of columns, each of which makes a row unique at any time: an update keeps them, and a row of a key
    is retracted before another one comes, also across batches. The contents of rows are compared within a batch only,
    because a column such as PROCTIME has another value when the row is retracted. If `remembers` is False, each batch
    is checked alone.
    """

    def __init__(self, keys: Sequence[Sequence[int]] = (), remembers: bool = True) -> None:
        self._keys = keys
        self._remembers = remembers
        self._there = [dict[Held, bool]() for _ in keys]
        """For each known key, whether it has a row."""

    def check(self, batch: pa.RecordBatch) -> None:
        """Raise ChangelogBroken if a batch with kinds breaks the contract."""
        kinds = kinds_of(batch).to_pylist()
        rows = state_rows(batch, range(batch.num_columns - 1))
        _check_updates(kinds, rows, self._keys)
        for key, there in zip(self._keys, self._there, strict=True):
            _check_order(kinds, rows, key, there)
            if not self._remembers:
                there.clear()


def _check_updates(kinds: list[int], rows: list[Held], keys: Sequence[Sequence[int]]) -> None:
    """Check that each -U has its +U behind it, and that both have the same keys."""
    for position, kind in enumerate(kinds):
        if kind == UPDATE_BEFORE:
            if kinds[position + 1 : position + 2] != [UPDATE_AFTER]:
                raise ChangelogBroken(f"a -U without a +U after it: {_describe(kinds, rows)}")
            for key in keys:
                if any(rows[position][index] != rows[position + 1][index] for index in key):
                    raise ChangelogBroken(f"an update changes the key {list(key)}: {_describe(kinds, rows)}")


def _check_order(kinds: list[int], rows: list[Held], key: Sequence[int], there: dict[Held, bool]) -> None:
    """Check that insertions and retractions of a key alternate, and that each retraction names the current row.

    Update `there`.
    """
    last = dict[Held, Held]()
    for kind, row in zip(kinds, rows, strict=True):
        own = tuple(row[index] for index in key)
        comes = kind in {INSERT, UPDATE_AFTER}
        if comes and there.get(own):
            raise ChangelogBroken(f"a second row with the key {own}: {_describe(kinds, rows)}")
        if not comes and (not there.get(own, True) or last.get(own, row) != row):
            raise ChangelogBroken(f"a deletion of the key {own}, which has no row: {_describe(kinds, rows)}")
        there[own] = comes
        last[own] = row


def _describe(kinds: list[int], rows: list[tuple[object, ...]]) -> str:
    words = ("+I", "-U", "+U", "-D")
    return ", ".join(f"{words[kind]}{row}" for kind, row in zip(kinds, rows, strict=True))
