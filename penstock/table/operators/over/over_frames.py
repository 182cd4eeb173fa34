"""Frames of OVER windows over whole partitions, with any order and any frame."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from penstock.engine.records.columns import state_values
from penstock.table.logical.rex import OverSpec
from penstock.table.operators.aggregate.functions.fold import Fold
from penstock.table.operators.aggregate.functions.positions import ranks_of

Arguments = tuple[Any, ...]
"""For each fold, the arguments of a row, or None if FILTER rejects the row."""


def arguments_of(folds: Sequence[Fold], batch: pa.RecordBatch) -> list[Arguments]:
    """Return for each row the arguments of all folds."""
    by_fold = []
    for fold in folds:
        rows, chosen = fold.rows(batch), fold.chosen(batch)
        by_fold.append(
            rows if chosen is None else [row if own else None for row, own in zip(rows, chosen, strict=True)]
        )
    return list(zip(*by_fold, strict=True))


class Frames:
    """Computes the calls of an OVER window."""

    def __init__(self, window: OverSpec, folds: Sequence[Fold]) -> None:
        self.window = window
        self.folds = folds

    def results(self, ordered: pa.RecordBatch, partitions: Sequence[Sequence[int]]) -> list[list[Any]]:
        """Return for each call the values of all rows.

        `partitions` are positions of rows. Rows and positions are in order.
        """
        self._unit = 1000 if self._is_time(ordered) else 1
        orders = [state_values(ordered.column(key.index)) for key in self.window.order]
        places = list(zip(*orders, strict=True)) if orders else [()] * ordered.num_rows
        args = arguments_of(self.folds, ordered)
        results: list[list[Any]] = [[None] * ordered.num_rows for _ in self.folds]
        for positions in partitions:
            own = [places[position] for position in positions]
            inside = [args[position] for position in positions]
            for number, fold in enumerate(self.folds):
                values = ranks_of(fold.call, own, [one[number] for one in inside], self.folds[0].call.function)
                if values is None:
                    values = self._aggregate_frames(fold, own, [one[number] for one in inside])
                for position, value in zip(positions, values, strict=True):
                    results[number][position] = value
        return results

    def _is_time(self, batch: pa.RecordBatch) -> bool:
        """Return True if the order is by time. Bounds on time are milliseconds, and times are held as microseconds."""
        order = self.window.order
        return bool(order) and pa.types.is_timestamp(batch.schema.field(order[0].index).type)

    def _aggregate_frames(self, fold: Fold, places: list[Any], args: list[Any]) -> list[Any]:
        """Return the values of an aggregate over the frame of each row. Frames only move forward."""
        accumulator, first, last, values = fold.new(), 0, 0, []
        for index in range(len(places)):
            start, stop = self._frame(places, index)
            if start < first or stop < last:
                accumulator, first, last = fold.new(), start, start
            while last < stop:
                if args[last] is not None:
                    accumulator = fold.add(accumulator, args[last], 1)
                last += 1
            while first < min(start, last):
                if args[first] is not None:
                    accumulator = fold.add(accumulator, args[first], -1)
                first += 1
            first = max(first, start)
            last = max(last, first)
            values.append(fold.value(accumulator))
        return values

    def _frame(self, places: list[Any], index: int) -> tuple[int, int]:
        """Return the rows of a frame, as a range of positions in the partition."""
        frame, count = self.window.frame, len(places)
        if frame.rows:
            start = 0 if frame.start is None else index + frame.start
            stop = count if frame.end is None else index + frame.end + 1
            return min(max(start, 0), count), min(max(stop, 0), count)
        return self._range(places, index, frame.start, before=True), self._range(places, index, frame.end, before=False)

    def _range(self, places: list[Any], index: int, bound: int | None, before: bool) -> int:
        if bound is None or not self.window.order:
            return 0 if before else len(places)
        own = places[index]
        if bound == 0 or own[0] is None:
            matching = [position for position, place in enumerate(places) if place == own]
            return matching[0] if before else matching[-1] + 1
        descending = self.window.order[0].descending
        sign = -1 if descending else 1
        keys = [None if place[0] is None else sign * place[0] for place in places]
        there = [key for key in keys if key is not None]
        offset = keys.index(there[0])
        aim = sign * own[0] + bound * self._unit
        found = bisect_left(there, aim) if before else bisect_right(there, aim)
        return offset + found
