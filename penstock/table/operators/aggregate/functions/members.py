"""DISTINCT of GROUP BY.

Every different value is an entry of state, so that a batch touches only the values it brings.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Collection, Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.engine.records.columns import state_values
from penstock.engine.state.backend import KeyedStateBackend
from penstock.engine.state.tables import Layout
from penstock.table.operators.aggregate.functions.fold import Fold, Part, VectorFold
from penstock.table.operators.aggregate.functions.ordered_folds import Distinct
from penstock.table.operators.aggregate.local_aggregate import aggregate_groups
from penstock.table.operators.base.query_state import AnyStore, store
from penstock.table.types.arrow_forms import arrow_type


class DistinctMembers(VectorFold):
    """Another aggregate over the different values alone. Its accumulator is that of the other aggregate.

    State of (key, value): the number of rows with the value. If rows are never retracted, the number is 1 and is
    written once.
    """

    _members: AnyStore

    def __init__(self, inner: VectorFold, number: int) -> None:
        """Wrap a fold. `number` distinguishes the calls of an aggregate."""
        super().__init__(inner.call, inner.types, inner.signed)
        self.inner = inner
        self.number = number
        self._floats = [pa.types.is_floating(arrow_type(kind)) for kind in self.types]

    def open_state(self, backend: KeyedStateBackend, ttl: int) -> None:
        """Open the table of the values."""
        self._noted: dict[Any, int] = {}
        self._members = store(backend, f"distinct {self.number}", ttl, Layout.PANE)

    def new(self) -> Any:
        return self.inner.new()

    def add(self, accumulator: Any, args: tuple[Any, ...], sign: int) -> Any:
        """Add a value whose first row came, or remove one whose last row went."""
        return self.inner.add(accumulator, args, sign)

    def value(self, accumulator: Any) -> Any:
        return self.inner.value(accumulator)

    def values(self, accumulators: Sequence[Any]) -> list[Any]:
        return self.inner.values(accumulators)

    def parts(self, batch: pa.RecordBatch, signs: pa.Array | None) -> list[Part]:
        """Return nothing. `turns` computes the parts, because they depend on the groups."""
        return []

    def part_types(self) -> list[pa.DataType]:
        return []

    # --- a batch ---
    def turns(
        self, batch: pa.RecordBatch, groups: np.ndarray[Any, Any], keys: Sequence[Any], signs: pa.Array | None
    ) -> list[list[Any]]:
        """Count the values of a batch, and fold those that appeared or disappeared.

        Return the groups of these values, followed by the columns of the inner aggregate's parts. `groups` has the
        group of each row, and `keys` has the key of each group.
        """
        found = self._find_values(batch, groups, signs)
        owners = found.column("group").to_pylist()
        addresses = list(zip(map(keys.__getitem__, owners), self._values(found), strict=True))
        held = self._members.get_all(addresses)
        if signs is None:
            turned = [index for index, count in enumerate(held) if count is None]
            self._members.put_all([addresses[index] for index in turned], [1] * len(turned))
            turning = None
        else:
            turned, ways = self._recount(addresses, held, found.column("sign_sum").to_pylist())
            turning = pa.array(ways, pa.int64())
        positions = found.column("row_min").combine_chunks().take(pa.array(turned, pa.int64()))
        parts = self.inner.parts(batch.take(positions), turning)
        own, sums = aggregate_groups(groups[positions.to_numpy()], parts)
        return [own, *sums]

    def _recount(
        self, addresses: Sequence[Any], held: Sequence[int | None], changes: Sequence[int]
    ) -> tuple[list[int], list[int]]:
        """Change the counts of values.

        Return the positions of values that appeared (1) or disappeared (-1), and these signs.
        """
        turned, ways, counts = list[int](), list[int](), dict[Any, int]()
        for index, (address, before, change) in enumerate(zip(addresses, held, changes, strict=True)):
            now = (before or 0) + change
            if ((before or 0) > 0) is not (now > 0):
                turned.append(index)
                ways.append(1 if now > 0 else -1)
            if now:
                counts[address] = now
            elif before:
                self._members.remove(address)
        self._members.put_all(list(counts), list(counts.values()))
        self._noted = counts
        return turned, ways

    def forget(self, keys: Collection[Any]) -> None:
        """Remove values of groups that have no rows any more, also those that were retracted before they came."""
        gone = set(keys) if self._noted else ()
        self._members.remove_all([address for address in self._noted if address[0] in gone])

    def _find_values(self, batch: pa.RecordBatch, groups: np.ndarray[Any, Any], signs: pa.Array | None) -> pa.Table:
        """Return the different values of each group, with their first rows.

        If there are signs, return their sums too.
        """
        names = [str(number) for number in range(len(self.call.args))]
        columns = {"group": pa.array(groups), "row": pa.array(np.arange(batch.num_rows))}
        columns |= dict(zip(names, (_decode(batch.column(index)) for index in self.call.args), strict=True))
        if signs is not None:
            columns["sign"] = signs
        table = pa.table(columns)
        counts = self._counting(batch)
        if counts is not None:
            table = table.filter(counts)
        for name, is_float in zip(names, self._floats, strict=True):
            if is_float:
                position = table.schema.get_field_index(name)
                table = table.set_column(position, name, _bits(table.column(name)))
        wanted: list[Any] = [("row", "min"), *([("sign", "sum")] if signs is not None else [])]
        return table.group_by(["group", *names], use_threads=False).aggregate(wanted).combine_chunks()

    def _counting(self, batch: pa.RecordBatch) -> pa.Array | None:
        """Return a mask of the rows that count, or None if all do.

        FILTER rejects the others, or an argument is NULL.
        """
        made = [batch.column(index).is_valid() for index in self.call.args if batch.column(index).null_count]
        if self.call.filter is not None:
            made.append(batch.column(self.call.filter).fill_null(False))
        if not made:
            return None
        mask = made[0]
        for other in made[1:]:
            mask = pc.and_(mask, other)
        return mask

    def _values(self, found: pa.Table) -> Iterable[Any]:
        """Return values in the form of state addresses. The value of a single argument is not a tuple."""
        columns = [state_values(found.column(str(number))) for number in range(len(self.call.args))]
        return columns[0] if len(columns) == 1 else zip(*columns, strict=True)

    def fold_all(self, accumulators: Sequence[Any], parts: Sequence[Sequence[Any]]) -> list[Any]:
        """Fold the parts that `turns` returned."""
        now, (groups, *own) = list(accumulators), parts
        changed = self.inner.fold_all([now[group] for group in groups], own) if groups else []
        for group, accumulator in zip(groups, changed, strict=True):
            now[group] = accumulator
        return now

    def begin_all(self, parts: Sequence[Sequence[Any]], count: int) -> list[Any]:
        return self.fold_all([self.new()] * count, parts)


def in_members(folds: Sequence[Fold]) -> list[Fold]:
    """Return the folds of a GROUP BY. DISTINCT gets tables for its values if Arrow can compare them."""
    return [
        DistinctMembers(fold.inner, number)
        if isinstance(fold, Distinct) and isinstance(fold.inner, VectorFold) and _is_comparable(fold)
        else fold
        for number, fold in enumerate(folds)
    ]


def _is_comparable(fold: Distinct) -> bool:
    return bool(fold.types) and not any(pa.types.is_nested(arrow_type(kind)) for kind in fold.types)


def _decode(column: pa.Array) -> pa.Array:
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def _bits(column: pa.ChunkedArray) -> pa.Array:
    """Return the bits of numbers. Equal numbers have equal bits: there is one zero and one NaN."""
    values = column.to_numpy().astype("float64") + 0.0
    values[np.isnan(values)] = np.nan
    return pa.array(values.view("int64"))


def _bits_of(value: Any) -> Any:
    if not isinstance(value, float):
        return value
    return struct.unpack("<q", struct.pack("<d", math.nan if math.isnan(value) else value + 0.0))[0]
