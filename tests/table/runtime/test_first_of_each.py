"""What is sorted out of a batch before Top-N looks at it could not have come out."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from penstock.table.logical.rex import SortKey
from penstock.table.operators.base.sort_order import order_of
from penstock.table.operators.rank.ranking import first_of_each

ROWS = st.lists(st.tuples(st.integers(0, 3), st.none() | st.integers(-3, 3), st.sampled_from("abc")), min_size=1)
KEYS = st.lists(st.builds(SortKey, st.sampled_from([1, 2]), st.booleans(), st.booleans()), min_size=1, max_size=2)


@given(ROWS, KEYS, st.integers(1, 4))
def test_the_first_rows_of_each_key_are_kept(rows, keys, count):
    columns = [pa.array(column) for column in zip(*rows, strict=True)]
    batch = pa.RecordBatch.from_arrays([columns[0], columns[1].cast(pa.int64()), columns[2]], names=["k", "n", "s"])
    kept = first_of_each(batch, columns[0].dictionary_encode().indices, keys, count).to_pylist()
    order = order_of(keys)
    wanted = []
    for key in {row[0] for row in rows}:
        own = [position for position, row in enumerate(rows) if row[0] == key]
        wanted += sorted(own, key=lambda position: order(rows[position]))[:count]
    assert kept == sorted(wanted)
