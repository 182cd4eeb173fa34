"""Aggregation that stays in Arrow: rows with equal keys become one row, and no key becomes a Python object."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from penstock.table.operators.aggregate.functions.fold import Fold, Part, VectorFold
from penstock.table.types import data_types as t

_COMPARED_OTHERWISE = (t.FloatType, t.DoubleType, t.NullType, t.ArrayType, t.MapType, t.MultisetType, t.RowType)
"""Types that Python and Arrow compare differently, or that Arrow cannot group by."""


def groups_in_arrow(keys: Sequence[t.DataType], folds: Sequence[Fold]) -> bool:
    """Return True if groups with these keys and folds can be computed in Arrow alone."""
    return not any(isinstance(kind, _COMPARED_OTHERWISE) for kind in keys) and all(
        isinstance(fold, VectorFold) and not any(isinstance(kind, t.NullType) for kind in fold.types) for fold in folds
    )


def combine_parts(keys: Sequence[pa.Array], parts: Sequence[Part], schema: pa.Schema) -> pa.RecordBatch:
    """Return one row for each key, in the order of their first rows: the key, then its parts, cast to `schema`."""
    names = [f"key {index}" for index in range(len(keys))]
    own = {f"part {index}": part for index, part in enumerate(parts) if part.column is not None}
    wanted: list[Any] = [(name, part.function) for name, part in own.items()]
    wanted += [([], function) for function in {part.function for part in parts if part.column is None}]
    table = pa.table([*keys, *(part.column for part in own.values())], names=[*names, *own])
    made = table.group_by(names, use_threads=False).aggregate(wanted)
    made_as = [
        part.function if part.column is None else f"part {index}_{part.function}" for index, part in enumerate(parts)
    ]
    arrays = [flat(made.column(name)) for name in (*names, *made_as)]
    pairs = zip(arrays, schema, strict=True)
    return pa.RecordBatch.from_arrays(
        [array if array.type == field.type else array.cast(field.type) for array, field in pairs], schema=schema
    )


def flat(column: pa.ChunkedArray) -> pa.Array:
    """Return a column as a single array."""
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
