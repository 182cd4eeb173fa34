"""A search for the entries of state that the rows of a batch meet, for the whole batch at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from penstock.api.functions.key_selectors import ColumnKeys
from penstock.engine.records.columns import Columns
from penstock.table.operators.base.query_batches import Held, batch_of

Numbers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
MOST_PAIRS = 1 << 17
"""Number of pairs that are made at once, unless a single row has more partners."""


class Keyed(NamedTuple):
    """The rows of a batch by key."""

    batch: pa.RecordBatch
    keys: Sequence[Any]
    """Every key once, in the order of their first rows."""
    codes: Numbers
    """For each row, the number of its key."""

    @property
    def unique(self) -> bool:
        """Return True if all rows have different keys, so that keys are in the order of rows."""
        return len(self.keys) == len(self.codes)

    def key_of_each(self) -> Sequence[Any]:
        """Return the key of each row."""
        return self.keys if self.unique else [self.keys[code] for code in self.codes.tolist()]


def rows_by_key(batch: pa.RecordBatch, selector: ColumnKeys) -> Keyed:
    """Return the rows of a batch by key."""
    found = Columns(batch).keys(selector)
    assert found is not None
    return Keyed(batch, found.distinct, found.which.to_numpy(zero_copy_only=False).astype(np.int64))


def matchable(batch: pa.RecordBatch, keys: Sequence[int], null_safe: Sequence[bool]) -> Mask | None:
    """Return a mask of the rows that can have matches, or None if all can. NULL matches only if `null_safe` says so."""
    mask: Mask | None = None
    for key, safe in zip(keys, null_safe, strict=True):
        column = batch.column(key)
        if not safe and column.null_count:
            valid = column.is_valid().to_numpy(zero_copy_only=False)
            mask = valid if mask is None else mask & valid
    return mask


def group_entries(codes: Numbers, entries: Sequence[Any]) -> Iterator[tuple[int, Sequence[Any]]]:
    """Yield for each key its number and the entries of its rows, in their order."""
    order = np.argsort(codes, kind="stable")
    in_order = codes[order]
    cuts = np.flatnonzero(np.diff(in_order)) + 1
    starts, stops = np.concatenate(([0], cuts)).tolist(), [*cuts.tolist(), len(codes)]
    sorted_entries = [entries[position] for position in order.tolist()]
    numbers = in_order[starts].tolist() if len(codes) else []
    for number, start, stop in zip(numbers, starts, stops, strict=bool(numbers)):
        yield number, sorted_entries[start:stop]


# --- pairs ---
class Pairs(NamedTuple):
    """Rows of a batch, and the entries that they meet."""

    positions: Numbers
    picks: Numbers
    """For each pair, the position of the entry among the candidates."""

    def where(self, mask: Mask) -> Pairs:
        """Return the pairs for which the mask is true."""
        return Pairs(self.positions[mask], self.picks[mask])


def pairs_by_key(codes: Numbers, groups: Sequence[Sequence[Any] | None]) -> tuple[list[Any], Iterator[Pairs]]:
    """Return the candidates, and pairs of every row with every entry of its key.

    `groups` has the entries of each key.
    """
    lengths = _lengths(groups)
    candidates = [entry for group in groups if group for entry in group]
    firsts = np.cumsum(lengths) - lengths
    return candidates, _expand(firsts[codes], lengths[codes]) if candidates else iter(())


def pairs_by_time(
    codes: Numbers, groups: Sequence[Sequence[Any] | None], low: Numbers, high: Numbers
) -> tuple[list[Any], Iterator[Pairs]]:
    """Return the candidates, and pairs of every row with the entries of its key whose time is between `low` and `high`.

    Entries begin with their time. `low` and `high` have a limit for each row.
    """
    candidates = [entry for group in groups if group for entry in group]
    if not candidates:
        return candidates, iter(())
    lengths = _lengths(groups)
    times = np.fromiter((entry[0] for entry in candidates), np.int64, len(candidates))
    if lengths.max() == 1:
        firsts = (np.cumsum(lengths) - lengths)[codes]
        at = times[np.minimum(firsts, len(times) - 1)]
        near = (lengths[codes] == 1) & (low <= at) & (at <= high)
        return candidates, iter((Pairs(np.flatnonzero(near), firsts[near]),))
    # Candidates of a row are neighbours in the order of key and time. Bisection finds the first and the last of them.
    known = np.unique(times)
    places = np.repeat(np.arange(len(groups)), lengths) * (len(known) + 1) + np.searchsorted(known, times)
    order = np.argsort(places, kind="stable")
    places, base = places[order], codes * (len(known) + 1)
    firsts = np.searchsorted(places, base + np.searchsorted(known, low))
    stops = np.searchsorted(places, base + np.searchsorted(known, high, "right"))
    return [candidates[position] for position in order.tolist()], _expand(firsts, np.maximum(stops - firsts, 0))


def _lengths(groups: Sequence[Sequence[Any] | None]) -> Numbers:
    return np.fromiter((len(group) if group else 0 for group in groups), np.int64, len(groups))


def _expand(firsts: Numbers, counts: Numbers) -> Iterator[Pairs]:
    """Yield pairs of every row with a number of candidates from its first one on, piece by piece."""
    ends, start = np.cumsum(counts), 0
    while start < len(counts):
        before = int(ends[start - 1]) if start else 0
        stop = max(int(np.searchsorted(ends, before + MOST_PAIRS, "right")), start + 1)
        own = counts[start:stop]
        total = int(ends[stop - 1]) - before
        if total:
            offsets = np.arange(total) - np.repeat(np.cumsum(own) - own, own)
            yield Pairs(np.repeat(np.arange(start, stop), own), np.repeat(firsts[start:stop], own) + offsets)
        start = stop


class Partners:
    """Rows that state holds, converted to columns when they are needed."""

    def __init__(self, rows: Sequence[Held], schema: pa.Schema) -> None:
        self._rows = rows
        self._schema = schema
        self._whole: pa.RecordBatch | None = None

    def columns(self, picks: Numbers) -> list[pa.Array]:
        """Return the columns of the rows at these positions. Each row is converted once if most rows are needed."""
        if self._whole is None and len(picks) < len(self._rows):
            rows = self._rows
            return list(batch_of([rows[pick] for pick in picks.tolist()], self._schema).columns)
        if self._whole is None:
            self._whole = batch_of(self._rows, self._schema)
        return list(take_rows(self._whole, picks).columns)


def take_rows(batch: pa.RecordBatch, positions: Numbers) -> pa.RecordBatch:
    """Return the rows at these positions. If these are all rows in their order, return the batch itself."""
    count = len(positions)
    if count == batch.num_rows and (count == 1 or bool((positions[1:] - positions[:-1] == 1).all())):
        return batch
    return batch.take(pa.array(positions))
