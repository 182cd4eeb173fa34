"""Order of rows: NULL has a place of its own, and any key may be descending."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import total_ordering
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.table.plan.rex import SortKey
from penstock.table.runtime.batches import Held


@total_ordering
class Downward:
    """A value in descending order."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Downward) and self.value == other.value

    def __lt__(self, other: Downward) -> bool:
        return bool(other.value < self.value)

    def __hash__(self) -> int:
        return hash(self.value)


def nulls_first(key: SortKey) -> bool:
    return not key.descending if key.nulls_first is None else key.nulls_first


def order_of(keys: Sequence[SortKey]) -> Callable[[Held], tuple[Any, ...]]:
    """A function that gives rows, as state holds them, values to sort by."""
    plan = [(key.index, key.descending, 0 if nulls_first(key) else 2) for key in keys]

    def order(row: Held) -> tuple[Any, ...]:
        made: list[Any] = []
        for index, descending, place in plan:
            value = row[index]
            if value is None:
                made.append((place,))
            else:
                made.append((1, Downward(value) if descending else value))
        return tuple(made)

    return order


def sort_positions(batch: pa.RecordBatch | pa.Table, keys: Sequence[SortKey]) -> pa.Array:
    """The positions of the rows in order; rows that are equal stay in theirs."""
    columns, names, order = list[Any](), list[str](), list[tuple[str, str]]()
    for number, key in enumerate(keys):
        column = batch.column(key.index)
        if pa.types.is_nested(column.type):
            raise TypeError(f"values of {column.type} have no order")
        for name, values, direction in (
            (f"null {number}", column.is_null(), "descending" if nulls_first(key) else "ascending"),
            (f"key {number}", column, "descending" if key.descending else "ascending"),
        ):
            columns.append(values)
            names.append(name)
            order.append((name, direction))
    return pc.sort_indices(pa.table(columns, names=names), sort_keys=order)
