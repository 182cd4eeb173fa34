"""Aggregates over the rows before each row, for many keys at once: sums and counts in columns, others row by row."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from penstock.table.logical.rex import Frame
from penstock.table.operators.aggregate.functions.fold import Fold
from penstock.table.operators.aggregate.functions.number_folds import Count, Extreme, ExtremeOfChanges, Sum, is_whole
from penstock.table.operators.aggregate.functions.positions import RowNumber
from penstock.table.operators.base.query_batches import Held
from penstock.table.operators.over.over_frames import Arguments

Numbers = np.ndarray[Any, Any]
Waiting = tuple[int, Held, Arguments]
Framed = tuple[int, Arguments]
_MOST = 1 << 62


class Ready(NamedTuple):
    """The rows of a key to process, in order of time, and the rows in its frame before them."""

    framed: list[Framed]
    rows: list[Waiting]


class Sequences:
    """The rows of each key, one key after the other: first those of its frame, then the ready ones.

    For each ready row, `starts` and `ends` are the bounds of its frame as positions. The end is exclusive.
    """

    def __init__(self, ready: Sequence[Ready], frame: Frame, peers: bool) -> None:
        """Create sequences. `peers` is True if rows of the same time see each other."""
        self.ready = ready
        held = np.fromiter((len(one.framed) for one in ready), "int64", len(ready))
        counts = np.fromiter((len(one.rows) for one in ready), "int64", len(ready))
        self.sizes = held + counts
        self.bounds = np.cumsum(self.sizes) - self.sizes
        """For each key, the position of its first row."""
        self.firsts = self.bounds + held
        """For each key, the position of its first ready row."""
        keys = np.repeat(np.arange(len(ready)), self.sizes)
        total = len(keys)
        times = np.fromiter((row[0] for one in ready for row in chain(one.framed, one.rows)), "int64", total)
        places = np.arange(total)
        self.positions = places[places >= np.repeat(self.firsts, self.sizes)]
        self.keys = keys[self.positions]
        self.times = times[self.positions]
        self.ends = self._ends(keys, times)[self.positions] if peers else self.positions + 1
        self.starts = self._starts(frame, keys, times)

    def _ends(self, keys: Numbers, times: Numbers) -> Numbers:
        """Return for each row the position behind the last row of the same key and time."""
        last = np.append((keys[1:] != keys[:-1]) | (times[1:] != times[:-1]), True)
        edges = np.flatnonzero(last) + 1
        return np.repeat(edges, np.diff(edges, prepend=0))

    def _starts(self, frame: Frame, keys: Numbers, times: Numbers) -> Numbers:
        found: Numbers = self.bounds[self.keys]
        if frame.start is not None and frame.rows:
            found = np.maximum(found, self.positions + frame.start)
        elif frame.start is not None:
            least = int(times.min())
            span = int(times.max()) - least + 1 - frame.start
            if span * (len(self.ready) + 1) > _MOST:
                return np.concatenate([self._search(number, frame.start, times) for number in range(len(self.ready))])
            earliest = np.maximum(self.times + frame.start - least, 0)
            found = np.searchsorted(keys * span + (times - least), self.keys * span + earliest)
        return found

    def _search(self, number: int, start: int, times: Numbers) -> Numbers:
        """Return the frame starts of one key. Times are too far apart for one number of key and time."""
        begin, end = self.bounds[number], self.bounds[number] + self.sizes[number]
        found: Numbers = begin + np.searchsorted(times[begin:end], times[self.firsts[number] : end] + start)
        return found

    def lasts(self) -> Numbers:
        """Return for each key the index of its last row among the ready ones."""
        found: Numbers = np.cumsum(self.bounds + self.sizes - self.firsts) - 1
        return found

    def rows_in_frame(self) -> list[list[Framed]]:
        """Return the rows of each key that are in the frame of its last row."""
        kept = []
        for one, start in zip(self.ready, (self.starts[self.lasts()] - self.bounds).tolist(), strict=True):
            there = len(one.framed)
            rows = [(row[0], row[2]) for row in one.rows[max(start - there, 0) :]]
            kept.append([*one.framed[start:], *rows])
        return kept

    def arguments(self, number: int) -> list[Any]:
        """Return for each row the arguments of a fold, or None if FILTER rejects the row."""
        return [args[number] for one in self.ready for *_, args in chain[Any](one.framed, one.rows)]


Results = tuple[list[Any], list[Any]]
"""The value of each ready row, and the accumulator of each key."""


def results(fold: Fold, number: int, rows: Sequences, frame: Frame, accumulators: list[Any]) -> Results:
    """Return the results of the fold with this number. `accumulators` are those of the rows in the frames."""
    args = rows.arguments(number)
    if isinstance(fold, RowNumber):
        return _number_rows(rows, accumulators)
    if isinstance(fold, Count):
        return _count_rows(args, rows, frame, accumulators)
    if isinstance(fold, Sum) and is_whole(fold.types[0]):
        found = _sum_rows(fold, args, rows, frame, accumulators)
        if found is not None:
            return found
    if isinstance(fold, Extreme | ExtremeOfChanges) and is_whole(fold.types[0]):
        return _extremes(fold, args, rows, frame, accumulators)
    return row_by_row(fold, args, rows, accumulators)


def _number_rows(rows: Sequences, accumulators: list[Any]) -> Results:
    known = np.array(accumulators, "int64")
    values = (known - rows.firsts)[rows.keys] + rows.ends
    return values.tolist(), (known + rows.bounds + rows.sizes - rows.firsts).tolist()


def _over(sums: Numbers, rows: Sequences, frame: Frame, known: Numbers) -> Numbers:
    """Return sums over frames, given running sums. A frame without a start includes the known sum of its key."""
    found: Numbers = sums[rows.ends] - sums[rows.starts]
    return found + known[rows.keys] if frame.start is None else found


def _up_to(values: Numbers) -> Numbers:
    sums = np.zeros(len(values) + 1, "int64")
    np.cumsum(values, out=sums[1:])
    return sums


def _count_rows(args: list[Any], rows: Sequences, frame: Frame, accumulators: list[Any]) -> Results:
    counts = np.fromiter((own is not None and None not in own for own in args), "int64", len(args))
    found = _over(_up_to(counts), rows, frame, np.array(accumulators, "int64"))
    return found.tolist(), found[rows.lasts()].tolist()


def _sum_rows(fold: Sum, args: list[Any], rows: Sequences, frame: Frame, accumulators: list[Any]) -> Results | None:
    """Return sums, or None if numbers are too large."""
    there = [own is not None and own[0] is not None for own in args]
    numbers = [own[0] if known else 0 for own, known in zip(args, there, strict=True)]
    totals = [accumulator[0] for accumulator in accumulators]
    if sum(map(abs, numbers)) + max(map(abs, totals), default=0) >= _MOST:
        return None
    sums = _over(_up_to(np.array(numbers, "int64")), rows, frame, np.array(totals, "int64"))
    known = np.array([accumulator[1] for accumulator in accumulators], "int64")
    counts = _over(_up_to(np.array(there, "int64")), rows, frame, known)
    by_row = list(zip(sums.tolist(), counts.tolist(), strict=True))
    return fold.values(by_row), [by_row[last] for last in rows.lasts().tolist()]


def _extremes(
    fold: Extreme | ExtremeOfChanges, args: list[Any], rows: Sequences, frame: Frame, accumulators: list[Any]
) -> Results:
    """Return the least or greatest value of each frame. NULL is replaced by a number that never wins."""
    better, never = (np.minimum, 2 * _MOST - 1) if fold.call.function == "MIN" else (np.maximum, -2 * _MOST)
    there = [own is not None and own[0] is not None for own in args]
    numbers = np.array([own[0] if known else never for own, known in zip(args, there, strict=True)], "int64")
    counts = _up_to(np.array(there, "int64"))
    found, any_there = _best(better, numbers, rows.starts, rows.ends), counts[rows.ends] > counts[rows.starts]
    if frame.start is None:
        known = np.array([never if own is None else own for own in accumulators], "int64")
        found = better(found, known[rows.keys])
        any_there |= np.array([own is not None for own in accumulators], bool)[rows.keys]
    pairs = zip(found.tolist(), any_there.tolist(), strict=True)
    values = [number if known else None for number, known in pairs]
    if frame.start is not None:
        return values, [fold.new() for _ in accumulators]  # the rows of the frame are enough to continue
    return values, [values[last] for last in rows.lasts().tolist()]


def _best(better: np.ufunc, numbers: Numbers, starts: Numbers, ends: Numbers) -> Numbers:
    """Return the best number between each start and end.

    The best numbers of all stretches with a power of two as length are computed first. Two of these stretches, which
    may overlap, cover any other one.
    """
    lengths = ends - starts
    found, level, width = np.empty(len(starts), "int64"), numbers, 1
    while True:
        own = (lengths >= width) & (lengths < 2 * width)
        found[own] = better(level[starts[own]], level[ends[own] - width])
        if 2 * width > lengths.max(initial=0):
            return found
        level = better(level[:-width], level[width:])
        width *= 2


def row_by_row(fold: Fold, args: list[Any], rows: Sequences, accumulators: list[Any]) -> Results:
    """Return the results of any fold."""
    values, now = list[Any](), list[Any]()
    frames = iter(zip(rows.keys.tolist(), rows.starts.tolist(), rows.ends.tolist(), strict=True))
    first = last = -1
    of_key = -1
    for key, start, end in frames:
        if key != of_key:
            now.append(accumulators[key])
            of_key, first, last = key, int(rows.bounds[key]), int(rows.firsts[key])
            seen = -1
        for position in range(last, end):
            if args[position] is not None:
                now[-1] = fold.add(now[-1], args[position], 1)
        for position in range(first, start):
            if args[position] is not None:
                now[-1] = fold.add(now[-1], args[position], -1)
        first, last = max(first, start), max(last, end)
        values.append(values[-1] if seen == end else fold.value(now[-1]))
        seen = end
    return values, now
