"""The first phase of aggregation: rows with equal keys become one row, in Arrow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.api.functions.key_selectors import ColumnKeys
from penstock.engine.records.columns import Columns, state_values
from penstock.table.operators.aggregate.functions.fold import Fold, Part, VectorFold
from penstock.table.operators.base.query_batches import adds


class Groups(NamedTuple):
    """The groups of some rows, in the order of their first rows."""

    keys: Sequence[Any]
    firsts: pa.Array
    """For each group, the position of its first row."""
    parts: list[list[list[Any]] | None]
    """For each fold, the results of the first phase as a list for each part, or None for a fold that sees rows."""
    positions: list[list[int]] | None
    """For each group, the positions of its rows. None if no fold sees rows."""
    columns: list[pa.Array]
    """The parts as columns, in the order of the folds."""
    which: pa.Array
    """For each row, the number of its key."""
    codes: pa.Array
    """For each group, the number of its key."""

    def of_rows(self) -> np.ndarray[Any, Any]:
        """Return the group of each row."""
        which, codes = self.which.to_numpy(zero_copy_only=False), self.codes.to_numpy(zero_copy_only=False)
        groups = np.empty(len(codes), "int64")
        groups[codes] = np.arange(len(codes))
        found: np.ndarray[Any, Any] = groups[which]
        return found


def signs_of(batch: pa.RecordBatch, signed: bool) -> pa.Array | None:
    """Return 1 for rows that add and -1 for rows that retract, or None if all rows add."""
    return pc.if_else(adds(batch), 1, -1) if signed else None


def group_rows(
    batch: pa.RecordBatch, keys: ColumnKeys, folds: Sequence[Fold], signs: pa.Array | None, held: bool = True
) -> Groups:
    """Group the rows of a batch by key.

    `held` is True if Python needs the parts, and False if their columns are enough.
    """
    return _group(
        batch, keys, [fold.parts(batch, signs) if isinstance(fold, VectorFold) else None for fold in folds], held
    )


def regroup_parts(batch: pa.RecordBatch, width: int, folds: Sequence[VectorFold]) -> Groups:
    """Group the output of the first phase: keys, then parts. Several subtasks may have sent the same key."""
    feed = iter(batch.columns[width:])
    parts: list[list[Part] | None] = [[Part(next(feed), function) for function in fold.functions()] for fold in folds]
    return _group(batch, ColumnKeys(tuple(range(width))), parts, held=True)


def _group(batch: pa.RecordBatch, keys: ColumnKeys, parts: list[list[Part] | None], held: bool) -> Groups:
    found = Columns(batch).keys(keys)
    assert found is not None
    with_rows = any(part is None for part in parts)
    wanted: list[Part] = [Part(_positions(batch), "min"), *(one for part in parts if part for one in part)]
    if with_rows:
        wanted.append(Part(_positions(batch), "list"))
    alone = len(found.distinct) == batch.num_rows
    result = _of_single_rows(found.which, wanted) if alone else _aggregate(found.which, wanted)
    codes = result.column(0)
    in_order = result.columns[1:]
    columns = in_order[1 : len(in_order) - (1 if with_rows else 0)]
    return Groups(
        _in_order(found.distinct, codes),
        in_order[0],
        _by_fold(parts, columns) if held else [],
        in_order[-1].to_pylist() if with_rows else None,
        columns,
        found.which,
        codes,
    )


def _in_order(keys: Sequence[Any], codes: pa.Array) -> Sequence[Any]:
    """Return the keys of groups, in the order of the groups' numbers."""
    if np.array_equal(codes.to_numpy(zero_copy_only=False), np.arange(len(keys))):
        return keys
    return [keys[code] for code in codes.to_pylist()]


def aggregate_groups(groups: np.ndarray[Any, Any], parts: Sequence[Part]) -> tuple[list[int], list[list[Any]]]:
    """Return the groups that occur among the rows, and their parts. `groups` has the group of each row."""
    made = _aggregate(pa.array(groups), parts)
    return made.column(0).to_pylist(), [state_values(column) for column in made.columns[1:]]


def _positions(batch: pa.RecordBatch) -> pa.Array:
    return pa.array(np.arange(batch.num_rows))


def _aggregate(codes: pa.Array, parts: Sequence[Part]) -> pa.RecordBatch:
    """Return one row for each code: the code, then the parts."""
    columns, names, wanted = [codes], ["code"], list[Any]()
    for index, part in enumerate(parts):
        if part.column is None:
            wanted.append(([], part.function))
        else:
            columns.append(part.column)
            names.append(f"part {index}")
            wanted.append((f"part {index}", part.function))
    made = pa.table(columns, names=names).group_by("code", use_threads=False).aggregate(wanted)
    arrays = [made.column("code"), *(made.column(_name(index, part)) for index, part in enumerate(parts))]
    return pa.RecordBatch.from_arrays(
        [_flat(array) for array in arrays], names=[str(index) for index in range(len(arrays))]
    )


def _of_single_rows(codes: pa.Array, parts: Sequence[Part]) -> pa.RecordBatch:
    """Return one row for each code, for rows that all have different codes."""
    arrays = [codes, *(_of_single(part, len(codes)) for part in parts)]
    return pa.RecordBatch.from_arrays(arrays, names=[str(index) for index in range(len(arrays))])


def _of_single(part: Part, count: int) -> pa.Array:
    """Return the result of an Arrow function for each value alone."""
    if part.column is None:
        return pa.repeat(pa.scalar(1, pa.int64()), count)
    match part.function:
        case "count":
            return part.column.is_valid().cast(pa.int64())
        case "sum":
            return part.column.cast(_total(part.column.type))
        case "list":
            return pa.ListArray.from_arrays(pa.array(np.arange(count + 1), pa.int32()), part.column)
    return part.column


def _total(kind: pa.DataType) -> pa.DataType:
    """Return the type of Arrow's sums."""
    if pa.types.is_decimal(kind):
        return pa.decimal128(38, kind.scale)
    return pa.float64() if pa.types.is_floating(kind) else pa.int64()


def _name(index: int, part: Part) -> str:
    return part.function if part.column is None else f"part {index}_{part.function}"


def _flat(array: pa.ChunkedArray) -> pa.Array:
    return array.chunk(0) if array.num_chunks == 1 else array.combine_chunks()


def _by_fold(parts: Sequence[list[Part] | None], columns: Sequence[pa.Array]) -> list[list[list[Any]] | None]:
    feed = iter(columns)
    return [None if part is None else [state_values(next(feed)) for _ in part] for part in parts]
