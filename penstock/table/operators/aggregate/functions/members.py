"""DISTINCT of GROUP BY: every different value is an entry of state, so that a batch touches only those it brings."""

from __future__ import annotations

import math
import struct
from collections.abc import Collection, Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.engine.records.columns import held_values
from penstock.engine.state.backend import KeyedStateBackend
from penstock.engine.state.tables import Layout
from penstock.table.operators.aggregate.functions.fold import Fold, Part, VectorFold
from penstock.table.operators.aggregate.functions.ordered_folds import Distinct
from penstock.table.operators.aggregate.local_aggregate import aggregated
from penstock.table.operators.base.query_state import AnyStore, store
from penstock.table.types.arrow_forms import arrow_type


class DistinctMembers(VectorFold):
    """Another aggregate over the different values alone, whose accumulator is that of the other one.

    State of (key, value): how often the value is there. If rows stay, it is 1, and never written again.
    """

    _members: AnyStore

    def __init__(self, inner: VectorFold, number: int) -> None:
        """`number` tells the calls of an aggregate apart."""
        super().__init__(inner.call, inner.types, inner.signed)
        self.inner = inner
        self.number = number
        self._floats = [pa.types.is_floating(arrow_type(kind)) for kind in self.types]

    def open_state(self, backend: KeyedStateBackend, ttl: int) -> None:
        self._noted: dict[Any, int] = {}
        self._members = store(backend, f"distinct {self.number}", ttl, Layout.PANE)

    def new(self) -> Any:
        return self.inner.new()

    def add(self, accumulator: Any, args: tuple[Any, ...], sign: int) -> Any:
        """Fold in a value that came, or one that went, altogether."""
        return self.inner.add(accumulator, args, sign)

    def value(self, accumulator: Any) -> Any:
        return self.inner.value(accumulator)

    def values(self, accumulators: Sequence[Any]) -> list[Any]:
        return self.inner.values(accumulators)

    def parts(self, batch: pa.RecordBatch, signs: pa.Array | None) -> list[Part]:
        """None: which rows count is known only when the groups are."""
        return []

    def part_types(self) -> list[pa.DataType]:
        return []

    # --- a batch ---
    def turns(
        self, batch: pa.RecordBatch, groups: np.ndarray[Any, Any], keys: Sequence[Any], signs: pa.Array | None
    ) -> list[list[Any]]:
        """Note the values of a batch; of those that came or went altogether: their groups, and the inner parts.

        `groups` has the group of each row, `keys` the key of each group.
        """
        found = self._found(batch, groups, signs)
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
        own, sums = aggregated(groups[positions.to_numpy()], parts)
        return [own, *sums]

    def _recount(
        self, addresses: Sequence[Any], held: Sequence[int | None], changes: Sequence[int]
    ) -> tuple[list[int], list[int]]:
        """Change how often values are there. Which of them came or went, as positions, with 1 or -1."""
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
        """Groups have no rows any more: what was taken away and never came is not remembered against them."""
        gone = set(keys) if self._noted else ()
        self._members.remove_all([address for address in self._noted if address[0] in gone])

    def _found(self, batch: pa.RecordBatch, groups: np.ndarray[Any, Any], signs: pa.Array | None) -> pa.Table:
        """The different values of each group, with their first rows, and with signs how many more there are."""
        names = [str(number) for number in range(len(self.call.args))]
        columns = {"group": pa.array(groups), "row": pa.array(np.arange(batch.num_rows))}
        columns |= dict(zip(names, (_decoded(batch.column(index)) for index in self.call.args), strict=True))
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
        """Which rows count: FILTER lets them, and no argument is NULL. None if all do."""
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
        """Values as they stand in addresses; those of a single argument are no tuples."""
        columns = [held_values(found.column(str(number))) for number in range(len(self.call.args))]
        return columns[0] if len(columns) == 1 else zip(*columns, strict=True)

    def fold_all(self, accumulators: Sequence[Any], parts: Sequence[Sequence[Any]]) -> list[Any]:
        """The parts are those that `turns` gave."""
        now, (groups, *own) = list(accumulators), parts
        changed = self.inner.fold_all([now[group] for group in groups], own) if groups else []
        for group, accumulator in zip(groups, changed, strict=True):
            now[group] = accumulator
        return now

    def begin_all(self, parts: Sequence[Sequence[Any]], count: int) -> list[Any]:
        return self.fold_all([self.new()] * count, parts)

    # --- state of an earlier layout ---
    def taken_over(self, key: Any, accumulator: Any) -> Any:
        """Accumulators used to be [numbers of values, inner accumulator]."""
        if not isinstance(accumulator, list):
            return accumulator
        counts, inner = accumulator
        for args, count in counts.items():
            if None not in args:
                values = tuple(map(_bits_of, args))
                address = (key, values[0] if len(values) == 1 else values)
                self._members.put(address, count if self.signed else 1)
        return inner


def in_members(folds: Sequence[Fold]) -> list[Fold]:
    """Folds of a GROUP BY, with the values of DISTINCT in tables of their own where Arrow can tell them apart."""
    return [
        DistinctMembers(fold.inner, number)
        if isinstance(fold, Distinct) and isinstance(fold.inner, VectorFold) and _told_apart(fold)
        else fold
        for number, fold in enumerate(folds)
    ]


def _told_apart(fold: Distinct) -> bool:
    return bool(fold.types) and not any(pa.types.is_nested(arrow_type(kind)) for kind in fold.types)


def _decoded(column: pa.Array) -> pa.Array:
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def _bits(column: pa.ChunkedArray) -> pa.Array:
    """Numbers that are equal have equal bits: there is one zero, and one NaN."""
    values = column.to_numpy().astype("float64") + 0.0
    values[np.isnan(values)] = np.nan
    return pa.array(values.view("int64"))


def _bits_of(value: Any) -> Any:
    if not isinstance(value, float):
        return value
    return struct.unpack("<q", struct.pack("<d", math.nan if math.isnan(value) else value + 0.0))[0]
