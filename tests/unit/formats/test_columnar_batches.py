"""What is read from a columnar file stays a batch, and is written as one: the rows are the same as without."""

import io

import pyarrow as pa
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st
from pyarrow import parquet

from penstock.common import Row, Types
from penstock.common.time import Instant
from penstock.datastream.formats.arrow import ArrowBulkWriters, ArrowColumnarRowInputFormat
from penstock.datastream.formats.orc import OrcBulkWriters, OrcColumnarRowInputFormat
from penstock.datastream.formats.parquet import ParquetBulkWriters, ParquetColumnarRowInputFormat
from penstock.errors import UndecodableRecord, UnsupportedOperation
from penstock.formats.batch_of_rows import BatchOfRows
from penstock.formats.columnar import Projection
from penstock.formats.decimal_values import DECIMAL
from tests.unit.formats.reading import fail, in_pieces, whole, with_stops, written
from tests.unit.formats.rows import ORDERED, nested_types, row_types, tables

KINDS = {
    "parquet": (ParquetColumnarRowInputFormat, ParquetBulkWriters, ORDERED),
    "arrow": (ArrowColumnarRowInputFormat, ArrowBulkWriters, ORDERED),
    "orc": (OrcColumnarRowInputFormat, OrcBulkWriters, [kind for kind in ORDERED if kind != Types.SQL_TIME()]),
}


def records_of(format, data, most=1000):
    """What the reader hands out, read by read."""
    reader, found = format.open(io.BytesIO(data), 0, len(data), None, fail), []
    while not reader.finished:
        found.append(reader.read(most))
    return found


def written_in_batches(factory, parts):
    """The bytes of a file, and whether all of it was written as batches."""
    stream = io.BytesIO()
    writer, taken = factory.create(stream), True
    for part in parts:
        if not isinstance(part, BatchOfRows) or not writer.add_batch(part.batch):
            taken = False
            for row in part:
                writer.add_element(row)
    writer.finish()
    return stream.getvalue(), taken


@pytest.mark.parametrize("name", list(KINDS))
@settings(max_examples=10, deadline=None)
@given(data=st.data())
def test_batches_have_the_rows_of_the_file(name, data):
    format, writers, simple = KINDS[name]
    declared, rows = data.draw(tables(row_types(nested_types(st.sampled_from(simple)))))
    try:
        file = written(writers.for_row_type(declared), rows)
    except UnsupportedOperation:
        reject()
    parts = records_of(format(declared, batch_size=data.draw(st.integers(1, 5))), file, data.draw(st.integers(1, 5)))
    assert [row for part in parts for row in part] == rows
    again, _ = written_in_batches(writers.for_row_type(declared), parts)
    assert whole(format(declared), again) == rows
    assert [row for part in records_of(format(), file) for row in part] == whole(format(), file)


def parquet_of(**columns):
    stream = io.BytesIO()
    parquet.write_table(pa.table(columns), stream)
    return stream.getvalue()


SIMPLE = Types.ROW_NAMED(["n", "text", "x"], [Types.LONG(), Types.STRING(), Types.DOUBLE()])


def test_what_is_read_and_written_as_it_is_makes_no_rows(monkeypatch):
    file = parquet_of(text=["a", None], n=pa.array([1, 2], pa.int32()), x=pa.array([0.5, None], pa.float32()))
    monkeypatch.setattr(Projection, "rows", lambda *_: pytest.fail("rows were made"))
    (part,) = records_of(ParquetColumnarRowInputFormat(SIMPLE), file)
    assert [str(field.type) for field in part.batch.schema] == ["int64", "string", "double"]
    data, taken = written_in_batches(ParquetBulkWriters.for_row_type(SIMPLE), [part])
    assert taken and parquet.read_table(io.BytesIO(data)).to_pylist() == [
        {"n": 1, "text": "a", "x": 0.5},
        {"n": 2, "text": None, "x": None},
    ]


@pytest.mark.parametrize(
    ("declared", "column", "value"),
    [
        (Types.INSTANT(), pa.array([1_500_000_000], pa.timestamp("ns")), Instant(1, 500_000_000)),
        (Types.BIG_INT(), pa.array([7], pa.int64()), 7),
        (DECIMAL(4, 1), pa.array(["12.35"]).cast(pa.decimal128(5, 2)), "12.4"),
        (Types.TUPLE([Types.LONG()]), pa.array([{"f0": 3}]), (3,)),
    ],
)
def test_values_that_their_column_does_not_tell_are_read_one_by_one(declared, column, value):
    (part,) = records_of(ParquetColumnarRowInputFormat(Types.ROW_NAMED(["v"], [declared])), parquet_of(v=column))
    assert isinstance(part, list)
    assert str(part[0]["v"]) == str(value) and type(part[0]["v"]) is not float


def test_rows_and_batches_are_written_in_their_order():
    factory = ParquetBulkWriters.for_row_type(SIMPLE)
    (part,) = records_of(ParquetColumnarRowInputFormat(SIMPLE), parquet_of(n=[2, 3], text=["b", "c"], x=[1.0, 2.0]))
    data, _ = written_in_batches(factory, [[Row(n=1, text="a", x=0.0)], part, part[1:], [Row(n=4, text="d", x=0.0)]])
    assert [row["n"] for row in whole(ParquetColumnarRowInputFormat(SIMPLE), data)] == [1, 2, 3, 3, 4]


@pytest.mark.parametrize("name", list(KINDS))
def test_slices_of_rows_within_rows_are_written_as_they_are(name):
    """Arrow 26 wrote a row that is None, and not the first of its batch, as a row of Nones into ORC files."""
    format, writers, _ = KINDS[name]
    declared = Types.ROW_NAMED(["v"], [Types.ROW_NAMED(["a"], [Types.STRING()])])
    rows = [Row(v=Row(a=None)), Row(v=None), Row(v=Row(a="a"))]
    (part,) = records_of(format(declared), written(writers.for_row_type(declared), rows))
    data, taken = written_in_batches(writers.for_row_type(declared), [part[:1], part[1:2], part[2:]])
    assert taken and whole(format(declared), data) == rows


@pytest.mark.parametrize(
    "columns",
    [
        {"text": ["a"], "n": [1], "x": [0.5]},
        {"n": ["1"], "text": ["a"], "x": [0.5]},
        {"n": [1], "text": ["a"]},
    ],
)
def test_a_batch_of_other_columns_is_not_taken(columns):
    writer = ParquetBulkWriters.for_row_type(SIMPLE).create(io.BytesIO())
    assert not writer.add_batch(pa.RecordBatch.from_pydict(columns))


def test_a_slice_of_a_batch_of_rows():
    rows = BatchOfRows(pa.RecordBatch.from_pydict({"n": [1, 2, 3]}))
    assert len(rows) == 3 and rows[2] == Row(n=3) and list(rows[1:]) == [Row(n=2), Row(n=3)] and not rows[3:]
    made = BatchOfRows(rows.batch, lambda: [Row("made")] * 3)
    assert list(made[:2]) == [Row("made")] * 2


# --- Arrow files ---
@pytest.mark.parametrize("compression", [None, "lz4", "zstd"])
@pytest.mark.parametrize("cuts", [[], [100], [1, 300, 301, 900]])
def test_arrow_files_are_read_in_pieces_and_with_stops(compression, cuts):
    rows = [Row(n=n, text=str(n), x=None) for n in range(20)]
    stream = io.BytesIO()
    writer = ArrowBulkWriters.for_row_type(SIMPLE, compression).create(stream)
    for row in rows:
        writer.add_element(row)
        if row["n"] % 6 == 5:
            writer.flush()
    writer.finish()
    data, format = stream.getvalue(), ArrowColumnarRowInputFormat(SIMPLE, batch_size=4)
    assert [row for piece in in_pieces(format, data, cuts) for row in piece] == rows
    assert with_stops(format, data, most=3) == rows


def test_a_broken_arrow_file_is_named_as_such():
    data = written(ArrowBulkWriters.for_row_type(SIMPLE), [Row(n=1, text="a", x=0.5)])
    with pytest.raises(UndecodableRecord, match="not an Arrow file"):
        whole(ArrowColumnarRowInputFormat(SIMPLE), data[:-20])
    with pytest.raises(ValueError, match="lz4, zstd or None, not 'gzip'"):
        ArrowBulkWriters.for_row_type(SIMPLE, "gzip")
