"""Parquet and ORC: two formats, one contract."""

import datetime
import io
import itertools
import sys
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st
from pyarrow import orc, parquet

from penstock.common import Configuration, Row, Types
from penstock.datastream.formats.avro import AvroSchema, GenericRecordAvroTypeInfo
from penstock.datastream.formats.orc import OrcBulkWriters, OrcColumnarRowInputFormat
from penstock.datastream.formats.parquet import (
    AvroParquetReaders,
    AvroParquetWriters,
    ParquetBulkWriters,
    ParquetColumnarRowInputFormat,
)
from penstock.errors import MissingDependency, SchemaMismatch, TypeMismatch, UndecodableRecord, UnsupportedOperation
from penstock.formats import columnar as _columnar
from tests.unit.formats.reading import drain, fail, in_pieces, whole, with_stops, written
from tests.unit.formats.rows import BYTES, ORDERED, nested_types, row_types, tables

NUMBERED = Types.ROW_NAMED(["n", "text"], [Types.LONG(), Types.STRING()])


class Parquet:
    format = ParquetColumnarRowInputFormat
    writers = ParquetBulkWriters
    simple = st.sampled_from(ORDERED)
    group = "row group"

    @staticmethod
    def data(table, group_rows=4):
        stream = io.BytesIO()
        parquet.write_table(table, stream, row_group_size=group_rows)
        return stream.getvalue()

    @staticmethod
    def table(data):
        return parquet.read_table(io.BytesIO(data))


class Orc:
    format = OrcColumnarRowInputFormat
    writers = OrcBulkWriters
    simple = st.sampled_from([declared for declared in ORDERED if declared != Types.SQL_TIME()])
    group = "stripe"

    @staticmethod
    def data(table, group_rows=4):
        stream = io.BytesIO()
        with orc.ORCWriter(stream, stripe_size=1, batch_size=1) as writer:
            for begin in range(0, max(table.num_rows, 1), group_rows):
                writer.write(table.slice(begin, group_rows))
        return stream.getvalue()

    @staticmethod
    def table(data):
        return orc.ORCFile(io.BytesIO(data)).read()


both = pytest.mark.parametrize("kind", [Parquet, Orc])


@both
@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_rows_come_back_as_they_were(kind, data):
    declared, rows = data.draw(tables(row_types(nested_types(kind.simple))))
    try:
        file = written(kind.writers.for_row_type(declared), rows)
    except UnsupportedOperation:
        assert kind is Orc
        reject()
    format = kind.format(declared, batch_size=data.draw(st.integers(1, 5)))
    assert whole(format, file) == rows
    assert with_stops(format, file, data.draw(st.integers(1, 5))) == rows
    assert format.get_produced_type() == declared
    assert kind.table(file).num_rows == len(rows)


PERSON = Types.ROW_NAMED(["name"], [Types.STRING()])


@pytest.mark.parametrize(
    ("declared", "value"),
    [
        (PERSON, None),
        (Types.LIST(PERSON), [Row(name="a"), None]),
        (Types.MAP(Types.STRING(), PERSON), {"a": None}),
    ],
    ids=repr,
)
def test_values_behind_a_row_that_is_none_are_kept_or_refused(declared, value):
    """Arrow 26 wrote them as empty ones into ORC files."""
    outer = Types.ROW_NAMED(["deep"], [Types.ROW_NAMED(["inner"], [declared])])
    follows = {PERSON: Row(name="there")}.get(declared, value)
    rows = [Row(deep=Row(inner=value)), Row(deep=Row(inner=follows))]
    try:
        file = written(OrcBulkWriters.for_row_type(outer), rows)
    except UnsupportedOperation as refused:
        assert "field 'deep' has a row that is None inside another row" in str(refused)
    else:
        assert whole(OrcColumnarRowInputFormat(outer), file) == rows
    assert whole(Parquet.format(outer), written(Parquet.writers.for_row_type(outer), rows)) == rows


def test_a_row_that_is_none_is_fine_where_it_is_inside_no_other():
    declared = Types.ROW_NAMED(["one", "many"], [PERSON, Types.LIST(PERSON)])
    rows = [Row(one=None, many=[None, Row(name="a")]), Row(one=Row(name="b"), many=None)]
    assert whole(Orc.format(declared), written(Orc.writers.for_row_type(declared), rows)) == rows


@both
@given(rows=st.integers(0, 30), group_rows=st.integers(1, 9), cuts=st.data())
@settings(max_examples=60, deadline=None)
def test_every_row_once_in_pieces(kind, rows, group_rows, cuts):
    table = pa.table(
        {"n": pa.array(range(rows), pa.int64()), "text": pa.array([str(n) for n in range(rows)], pa.string())}
    )
    data = kind.data(table, group_rows)
    cuts = cuts.draw(st.sets(st.integers(0, len(data)), max_size=5))
    expected = [Row(n=n, text=str(n)) for n in range(rows)]
    format = kind.format(NUMBERED, batch_size=3)
    assert format.splittable
    assert list(itertools.chain(*in_pieces(format, data, cuts, 2))) == expected
    for start, end in itertools.pairwise([0, *sorted(cuts), len(data)]):
        piece = drain(format.open(io.BytesIO(data), start, end, None, fail))
        assert with_stops(format, data, 2, start, end) == piece


@both
def test_groups_are_spread_over_the_pieces(kind):
    table = pa.table({"n": pa.array(range(40_000), pa.int64())})
    data = kind.data(table, 4000)
    size = len(data)
    pieces = in_pieces(kind.format(), data, [size // 4, size // 2, 3 * size // 4], 10_000)
    assert [len(piece) > 0 for piece in pieces] == [True] * 4
    assert sum(map(len, pieces)) == 40_000


@both
def test_without_a_row_type_all_columns_are_read(kind):
    table = pa.table(
        {"i": pa.array([1], pa.int16()), "s": ["x"], "p": [{"x": 1.5, "y": [True]}], "d": [Decimal("1.25")]}
    )
    assert whole(kind.format(), kind.data(table)) == [Row(i=1, s="x", p=Row(x=1.5, y=[True]), d=Decimal("1.25"))]
    assert kind.format().get_produced_type() is None


@both
def test_columns_are_chosen_by_name(kind):
    data = kind.data(pa.table({"a": [1, 2], "b": ["x", "y"], "c": [{"p": 1, "q": "z"}, None]}))
    declared = Types.ROW_NAMED(["c", "a"], [Types.ROW_NAMED(["q"], [Types.STRING()]), Types.LONG()])
    assert whole(kind.format(declared), data) == [Row(c=Row(q="z"), a=1), Row(c=None, a=2)]
    upper = Types.ROW_NAMED(["A"], [Types.LONG()])
    assert whole(kind.format(upper, is_case_sensitive=False), data) == [Row(A=1), Row(A=2)]
    with pytest.raises(SchemaMismatch, match="column 'A': not there, wanted LONG; found a, b, c"):
        whole(kind.format(upper), data)


@both
@pytest.mark.parametrize(
    ("found", "wanted", "problem"),
    [
        (pa.array([1]), Types.STRING(), "column 'a': found int64, wanted STRING"),
        (pa.array([1]), Types.INT(), "found int64, wanted INT"),
        (pa.array(["x"]), Types.LONG(), "found string, wanted LONG"),
        (pa.array([1.5]), Types.FLOAT(), "found double, wanted FLOAT"),
        (pa.array([[1]]), Types.LIST(Types.STRING()), r"column 'a\[\]': found int64"),
        (pa.array([{"x": 1}]), Types.ROW_NAMED(["y"], [Types.LONG()]), r"column 'a.y': not there"),
        (pa.array([{"x": 1}]), Types.ROW_NAMED(["x"], [Types.SQL_DATE()]), r"column 'a.x': found int64"),
        (pa.array([{"x": 1}]), Types.MAP(Types.STRING(), Types.LONG()), "column 'a': found struct"),
    ],
)
def test_another_type_of_column_is_named(kind, found, wanted, problem):
    with pytest.raises(SchemaMismatch, match=problem):
        whole(kind.format(Types.ROW_NAMED(["a"], [wanted])), kind.data(pa.table({"a": found})))


@both
@pytest.mark.parametrize(
    ("found", "wanted", "value"),
    [
        (pa.array([1], pa.int8()), Types.LONG(), 1),
        (pa.array([1], pa.int32()), Types.BIG_DEC(), Decimal(1)),
        (pa.array([1], pa.int64()), Types.BIG_INT(), 1),
        (pa.array([1.5], pa.float32()), Types.DOUBLE(), 1.5),
        (pa.array([Decimal("1.5")], pa.decimal128(5, 2)), Types.BIG_DEC(), Decimal("1.5")),
        (pa.array([None], pa.string()), Types.STRING(), None),
        (pa.array([b"ab"], pa.binary()), BYTES, b"ab"),
        (
            pa.array([1_714_559_400_000_000_007], pa.timestamp("ns", "UTC")),
            Types.SQL_TIMESTAMP(),
            datetime.datetime(2024, 5, 1, 10, 30),
        ),
        (pa.array([datetime.date(2024, 5, 1)]), Types.SQL_DATE(), datetime.date(2024, 5, 1)),
    ],
)
def test_narrower_columns_are_widened(kind, found, wanted, value):
    declared = Types.ROW_NAMED(["a"], [wanted])
    assert whole(kind.format(declared), kind.data(pa.table({"a": found}))) == [Row(a=value)]


@both
def test_outsiders_read_what_is_written(kind):
    declared = Types.ROW_NAMED(
        ["i", "s", "l", "m", "r", "at"],
        [
            Types.INT(),
            Types.STRING(),
            Types.LIST(Types.DOUBLE()),
            Types.MAP(Types.STRING(), Types.INT()),
            Types.ROW_NAMED(["x"], [Types.BOOLEAN()]),
            Types.SQL_TIMESTAMP(),
        ],
    )
    moment = datetime.datetime(2024, 5, 1, 10, 30)
    zoned = moment.replace(tzinfo=datetime.timezone(datetime.timedelta(hours=2)))
    rows = [(1, "x", [0.5], {"k": 1}, Row(x=True), moment), (None, None, None, None, None, zoned)]
    table = kind.table(written(kind.writers.for_row_type(declared), rows))
    first, second = table.to_pylist()
    assert first == {"i": 1, "s": "x", "l": [0.5], "m": [("k", 1)], "r": {"x": True}, "at": moment}
    assert second["at"] == datetime.datetime(2024, 5, 1, 8, 30)
    assert table.schema.field("i").type == pa.int32()


@both
def test_many_rows_make_batches_and_groups(kind, monkeypatch):
    monkeypatch.setattr(_columnar, "BATCH_ROWS", 100)
    monkeypatch.setattr(_columnar, "GROUP_BYTES", 3000)
    rows = [Row(n=n, text=str(n)) for n in range(1000)]
    stream = io.BytesIO()
    writer = kind.writers.for_row_type(NUMBERED).create(stream)
    for row in rows:
        writer.add_element(row)
    if kind is Parquet:
        assert stream.tell() > 1000, "groups are written when they are large enough"
    writer.finish()
    data = stream.getvalue()
    assert whole(kind.format(NUMBERED), data) == rows
    if kind is Parquet:
        assert parquet.ParquetFile(io.BytesIO(data)).metadata.num_row_groups == 5


@both
def test_broken_files_are_named(kind):
    data = kind.data(pa.table({"n": pa.array(range(1000), pa.int64())}), 1000)
    for broken in (b"", b"something else entirely", data[:-20], data[: len(data) // 2]):
        with pytest.raises(UndecodableRecord, match="broken one"):
            whole(kind.format(), broken)
    torn = data[:4] + b"?" * 60 + data[64:]
    with pytest.raises(UndecodableRecord, match=f"{kind.group} 0 of the"):
        whole(kind.format(), torn)


@both
def test_errors_of_the_file_system_pass(kind):
    class Failing(io.BytesIO):
        def read(self, *args):
            raise PermissionError(13, "not allowed")

    with pytest.raises(PermissionError):
        kind.format().open(Failing(b"x" * 1000), 0, 1000, None, fail)


@both
def test_what_cannot_be_written_is_refused(kind):
    with pytest.raises(TypeMismatch, match="column 'd'"):
        written(kind.writers.for_row_type(Types.ROW_NAMED(["d"], [Types.BIG_DEC()])), [(Decimal("1e30"),)])
    with pytest.raises(TypeMismatch, match="does not fit LONG"):
        written(kind.writers.for_row_type(NUMBERED), [("x", "y")])
    for bad in (Types.STRING(), "n BIGINT"):
        with pytest.raises(TypeError, match="must be a RowTypeInfo"):
            kind.writers.for_row_type(bad)
        with pytest.raises(TypeError, match="must be a RowTypeInfo"):
            kind.format(bad)
    with pytest.raises(TypeError, match="no form in a columnar file"):
        kind.writers.for_row_type(Types.ROW([Types.PICKLED_BYTE_ARRAY()]))
    with pytest.raises(ValueError, match="at least one column"):
        kind.writers.for_row_type(Types.ROW([]))
    with pytest.raises(ValueError, match="batch size"):
        kind.format(NUMBERED, batch_size=0)


def test_orc_has_no_time_of_day():
    with pytest.raises(TypeError, match="time of day"):
        OrcBulkWriters.for_row_type(Types.ROW([Types.LIST(Types.SQL_TIME())]))


def test_orc_writer_properties():
    config = Configuration().set_string("orc.compress", "SNAPPY")
    data = written(OrcBulkWriters.for_row_type(NUMBERED, config), [(1, "x")])
    assert orc.ORCFile(io.BytesIO(data)).compression == "SNAPPY"
    with pytest.raises(ValueError, match="NONE, ZLIB, SNAPPY, LZ4, ZSTD, not 'RAR'"):
        OrcBulkWriters.for_row_type(NUMBERED, {"orc.compress": "RAR"})


def test_parquet_timestamps_can_be_marked_as_utc():
    declared = Types.ROW_NAMED(["at"], [Types.SQL_TIMESTAMP()])
    row = Row(at=datetime.datetime(2024, 5, 1, 10))
    data = written(ParquetBulkWriters.for_row_type(declared, utc_timestamp=True), [row])
    assert Parquet.table(data).schema.field("at").type == pa.timestamp("us", "UTC")
    assert whole(ParquetColumnarRowInputFormat(declared), data) == [row]


def test_other_types_of_arrow_are_understood():
    table = pa.table(
        {
            "u": pa.array([2**64 - 1], pa.uint64()),
            "d": pa.array(["x"]).dictionary_encode(),
            "t": pa.array([1000], pa.time32("ms")),
            "f": pa.array([[1, 2]], pa.list_(pa.int32(), 2)),
            "z": pa.array([datetime.datetime(2024, 6, 1, 12)], pa.timestamp("ms", "Europe/Berlin")),
            "n": pa.array([None], pa.null()),
        }
    )
    assert whole(ParquetColumnarRowInputFormat(), Parquet.data(table)) == [
        Row(u=2**64 - 1, d="x", t=datetime.time(0, 0, 1), f=[1, 2], z=datetime.datetime(2024, 6, 1, 12), n=None)
    ]
    with pytest.raises(SchemaMismatch, match=r"column 'd': found duration.*no corresponding type"):
        whole(ParquetColumnarRowInputFormat(), Parquet.data(pa.table({"d": pa.array([1], pa.duration("s"))})))


# --- generic records ---
AVRO = AvroSchema.parse_string(
    """{"type": "record", "name": "Event", "fields": [
        {"name": "id", "type": "long"},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
        {"name": "place", "type": ["null", {"type": "record", "name": "Place", "fields": [
            {"name": "lat", "type": "double"}]}]},
        {"name": "counts", "type": {"type": "map", "values": "int"}},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}}]}"""
)


def test_generic_records_in_parquet():
    moment = datetime.datetime(2024, 5, 1, 10, tzinfo=datetime.UTC)
    records = [
        {"id": 1, "tags": ["x"], "place": {"lat": 1.5}, "counts": {"a": 1}, "at": moment},
        {"id": 2, "tags": [], "place": None, "counts": {}, "at": moment},
    ]
    data = written(AvroParquetWriters.for_generic_record(AVRO), records)
    format = AvroParquetReaders.for_generic_record(AVRO)
    assert whole(format, data) == records
    assert with_stops(format, data) == records
    assert Parquet.table(data).column_names == ["id", "tags", "place", "counts", "at"]
    assert format.get_produced_type() == GenericRecordAvroTypeInfo(AVRO)
    with pytest.raises(TypeMismatch, match="generic record"):
        written(AvroParquetWriters.for_generic_record(AVRO), [(1,)])
    with pytest.raises(SchemaMismatch, match="column 'id'"):
        whole(format, Parquet.data(pa.table({"x": [1]})))
    for make in (AvroParquetReaders, AvroParquetWriters):
        with pytest.raises(TypeError, match="AvroSchema"):
            make.for_generic_record("x")


@pytest.mark.parametrize(
    ("module", "build", "extra"),
    [
        ("pyarrow", lambda: ParquetColumnarRowInputFormat(NUMBERED), r"penstock\[files\]"),
        ("fastavro", lambda: AvroSchema.parse_string('"bytes"'), r"penstock\[avro\]"),
    ],
)
def test_a_missing_library_is_named_with_its_extra(module, build, extra, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingDependency, match=extra):
        build()
