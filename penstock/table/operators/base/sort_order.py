"""The order of rows. NULLs come first or last, and any key may be descending."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import total_ordering
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.table.logical.rex import SortKey
from penstock.table.operators.base.query_batches import Held


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


_NEGATED = frozenset({int, float})
"""Types whose negatives have the opposite order. Python compares numbers faster than `Downward` objects."""


def nulls_first(key: SortKey) -> bool:
    """Return True if NULLs come first: as the key says, or else if it is ascending."""
    return not key.descending if key.nulls_first is None else key.nulls_first


def order_of(keys: Sequence[SortKey]) -> Callable[[Held], tuple[Any, ...]]:
    """Return a function from a row, as state holds it, to its sort value."""
    plan = [(key.index, key.descending, (0 if nulls_first(key) else 2,)) for key in keys]

    def order(row: Held) -> tuple[Any, ...]:
        made: list[Any] = []
        for index, descending, place in plan:
            value = row[index]
            if value is None:
                made.append(place)
            elif not descending:
                made.append((1, value))
            else:
                made.append((1, -value if type(value) in _NEGATED else Downward(value)))
        return tuple(made)

    return order


def sort_positions(batch: pa.RecordBatch | pa.Table, keys: Sequence[SortKey]) -> pa.Array:
    """Return the positions of the rows in order. Equal rows keep their order."""
    columns, names, order = list[Any](), list[str](), list[tuple[str, str]]()
    for number, key in enumerate(keys):
        column = batch.column(key.index)
        if pa.types.is_nested(column.type):
            raise TypeError(f"values of {column.type} have no order")
        if column.null_count:
            columns.append(column.is_null())
            names.append(f"null {number}")
            order.append((names[-1], "descending" if nulls_first(key) else "ascending"))
        columns.append(column)
        names.append(f"key {number}")
        order.append((names[-1], "descending" if key.descending else "ascending"))
    return pc.sort_indices(pa.table(columns, names=names), sort_keys=order)
