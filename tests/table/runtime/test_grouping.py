"""Rows that all have a key of their own are grouped without grouping, and nobody can tell."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from penstock.table.operators.aggregate.functions.fold import Part
from penstock.table.operators.aggregate.local_aggregate import _aggregate, _of_single_rows

VALUES: list[tuple[pa.DataType, Any]] = [
    (pa.int8(), st.integers(-128, 127)),
    (pa.int32(), st.integers(-(2**31), 2**31 - 1)),
    (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    (pa.float32(), st.floats(width=32, allow_nan=False)),
    (pa.float64(), st.floats(allow_nan=False)),
    (pa.decimal128(10, 2), st.integers(-(10**9), 10**9).map(lambda number: Decimal(number).scaleb(-2))),
]


@given(st.sampled_from(VALUES).flatmap(lambda kind: st.tuples(st.just(kind[0]), st.lists(st.none() | kind[1]))))
def test_a_row_alone_is_what_arrow_makes_of_it(given: tuple[pa.DataType, list[Any]]) -> None:
    kind, values = given
    column, codes = pa.array(values, kind), pa.array(range(len(values)), pa.int32())
    parts = [Part(None, "count_all"), *(Part(column, name) for name in ("count", "sum", "min", "max", "list"))]
    alone, grouped = _of_single_rows(codes, parts), _aggregate(codes, parts)
    assert alone.schema.types == grouped.schema.types
    assert alone.to_pydict() == grouped.to_pydict()
