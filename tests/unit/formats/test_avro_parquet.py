"""Generic Avro records in Parquet; the columns are those of files that Flink's AvroParquetWriters wrote."""

import datetime
import io
import json
import uuid
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from penstock.datastream.formats.avro import AvroSchema
from penstock.datastream.formats.parquet import AvroParquetReaders, AvroParquetWriters
from penstock.errors import TypeMismatch
from tests.unit.formats.reading import whole, with_stops, written


def schema_of(**fields):
    described = [{"name": name, "type": kind} for name, kind in fields.items()]
    return AvroSchema.parse_string(json.dumps({"type": "record", "name": "test", "fields": described}))


def table_of(data):
    return parquet.read_table(io.BytesIO(data))


def check(schema, records):
    """The table in which records are kept, from which they come back."""
    data = written(AvroParquetWriters.for_generic_record(schema), records)
    format = AvroParquetReaders.for_generic_record(schema)
    assert whole(format, data) == records
    assert with_stops(format, data) == records
    return table_of(data)


def read(schema, table):
    stream = io.BytesIO()
    parquet.write_table(table, stream)
    return whole(AvroParquetReaders.for_generic_record(schema), stream.getvalue())


# --- the schemas of PyFlink's tests ---
def test_basic_types_with_a_field_of_nulls():
    names = ["null", "boolean", "int", "long", "float", "double", "string"]
    schema = schema_of(**{name: name for name in names})
    records = [
        dict(zip(names, (None, True, 0, 1, 2.0, 3.0, "s1"), strict=True)),
        dict(zip(names, (None, False, 4, 5, 6.0, 7.0, "s2"), strict=True)),
    ]
    table = check(schema, records)
    assert table.column_names == names[1:], "a field of type null has no column"
    data = written(AvroParquetWriters.for_generic_record(schema), records)
    assert list(whole(AvroParquetReaders.for_generic_record(schema), data)[0]) == names


def test_enums():
    schema = schema_of(suit={"type": "enum", "name": "Suit", "symbols": ["SPADES", "HEARTS", "DIAMONDS"]})
    records = [{"suit": "SPADES"}, {"suit": "DIAMONDS"}]
    check(schema, records)
    as_flink_has_them = pa.table({"suit": pa.array([b"SPADES", b"DIAMONDS"], pa.binary())})
    assert read(schema, as_flink_has_them) == records


def test_unions_are_structs_of_their_branches():
    table = check(schema_of(union=["int", "double", "null"]), [{"union": 1}, {"union": 2.0}, {"union": None}])
    assert table.schema.field("union").type == pa.struct([("member0", pa.int32()), ("member1", pa.float64())])
    assert table.column("union").to_pylist() == [
        {"member0": 1, "member1": None},
        {"member0": None, "member1": 2.0},
        None,
    ]


def test_arrays_and_maps():
    item = {"type": "record", "name": "item", "fields": [{"name": "i", "type": "int"}, {"name": "d", "type": "double"}]}
    schema = schema_of(array={"type": "array", "items": item}, map={"type": "map", "values": "long"})
    check(schema, [{"array": [{"i": 1, "d": 2.0}, {"i": 3, "d": 4.0}], "map": {"a": 1, "b": 2}}])


# --- unions ---
@pytest.mark.parametrize(
    ("union", "values", "column"),
    [
        (["null", "string"], ["x", None], pa.string()),
        (["string", "null"], ["x", None], pa.string()),
        (["int"], [1], pa.struct([("member0", pa.int32())])),
        (["int", "string"], [1, "x"], pa.struct([("member0", pa.int32()), ("member1", pa.string())])),
        (["null", "int", "string"], [1, "x", None], pa.struct([("member0", pa.int32()), ("member1", pa.string())])),
        (["int", "null", "string"], [1, "x", None], pa.struct([("member0", pa.int32()), ("member1", pa.string())])),
    ],
)
def test_columns_of_unions(union, values, column):
    assert check(schema_of(u=union), [{"u": value} for value in values]).schema.field("u").type == column


MEMBERS = pa.struct([("member0", pa.int32()), ("member1", pa.string())])


def test_unions_within_arrays_maps_and_records():
    inner = {
        "type": "record",
        "name": "Inner",
        "fields": [{"name": "n", "type": "null"}, {"name": "u", "type": ["int", "string"]}],
    }
    union = ["null", "int", "string"]
    schema = schema_of(a={"type": "array", "items": union}, m={"type": "map", "values": union}, r=inner)
    records = [{"a": [1, "x", None], "m": {"k": 2, "l": "y", "n": None}, "r": {"n": None, "u": "z"}}]
    table = check(schema, records)
    assert table.schema.field("a").type.value_type == MEMBERS
    assert table.schema.field("m").type.item_type == MEMBERS
    assert table.schema.field("r").type == pa.struct([("u", MEMBERS)])


PLACE = {"type": "record", "name": "Place", "fields": [{"name": "lat", "type": "double"}]}
PAIR = {"type": "record", "name": "Pair", "fields": [{"name": "p", "type": PLACE}]}
PRICE = {"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": 2}
NAMED = {"type": "record", "name": "Named", "fields": [{"name": "name", "type": ["null", "string"]}]}
TIMESTAMP = {"type": "long", "logicalType": "timestamp-millis"}
MOMENT = datetime.datetime(2024, 5, 1, 10, tzinfo=datetime.UTC)


@pytest.mark.parametrize(
    ("union", "members"),
    [
        (["boolean", "int", "long", "double"], [True, 1, 2**40, 1.5]),
        (["string", "bytes", {"type": "fixed", "name": "Two", "size": 2}], ["x", b"abc"]),
        ([{"type": "fixed", "name": "Two", "size": 2}, "bytes"], [b"ab", b"abc"]),
        ([{"type": "enum", "name": "E", "symbols": ["A"]}, "string"], ["A", "B"]),
        ([{"type": "array", "items": "int"}, {"type": "map", "values": ["null", "int"]}], [[1], {"k": None}]),
        ([{"type": "array", "items": "int"}, {"type": "array", "items": "string"}], [[1, 2], ["x"]]),
        ([PLACE, NAMED], [{"lat": 1.5}, {"name": "x"}]),
        (["string", PAIR], ["x", {"p": {"lat": 1.0}}]),
        ([{"type": "int", "logicalType": "date"}, TIMESTAMP], [MOMENT.date(), MOMENT]),
        ([PRICE, {"type": "int", "logicalType": "time-millis"}], [Decimal("1.50"), datetime.time(10, 30)]),
        ([{"type": "string", "logicalType": "uuid"}, "int"], [uuid.UUID(int=7), 7]),
    ],
)
def test_each_value_goes_to_the_first_branch_that_it_fits(union, members):
    table = check(schema_of(u=["null", *union]), [{"u": value} for value in [*members, None]])
    chosen = [[name for name, part in value.items() if part is not None] for value in table["u"].to_pylist()[:-1]]
    assert chosen == [[f"member{index}"] for index in range(len(members))]


@given(
    st.lists(st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text() | st.lists(st.text()), max_size=8)
)
@settings(deadline=None)
def test_any_mixture_comes_back(values):
    schema = schema_of(u=["null", "boolean", "int", "long", "string", {"type": "array", "items": "string"}])
    check(schema, [{"u": value} for value in values])


def test_a_value_of_no_branch_is_refused():
    schema = schema_of(u=["null", "int", {"type": "enum", "name": "Suit", "symbols": ["HEARTS"]}])
    for value in (2.5, 2**31, "SPADES", True, b"x", [1], {}):
        with pytest.raises(TypeMismatch, match="the Avro union of int, Suit"):
            written(AvroParquetWriters.for_generic_record(schema), [{"u": value}])


def test_the_schema_is_noted_for_flink():
    schema = schema_of(u=["int", "string"])
    metadata = check(schema, [{"u": 1}]).schema.metadata
    assert json.loads(metadata[b"parquet.avro.schema"]) == json.loads(str(schema))


def test_older_forms_of_lists_are_read():
    """Flink writes lists without a group for the element."""
    schema = schema_of(u={"type": "array", "items": ["int", "string"]})
    items = pa.array([[{"member0": 1, "member1": None}, {"member0": None, "member1": "x"}]], pa.list_(MEMBERS))
    stream = io.BytesIO()
    parquet.write_table(pa.table({"u": items}), stream, use_compliant_nested_type=False)
    assert whole(AvroParquetReaders.for_generic_record(schema), stream.getvalue()) == [{"u": [1, "x"]}]


# --- nulls without a form ---
@pytest.mark.parametrize("make", [AvroParquetReaders, AvroParquetWriters])
@pytest.mark.parametrize("kind", [["null"], {"type": "array", "items": "null"}, {"type": "map", "values": "null"}])
def test_nulls_that_parquet_has_no_form_for_are_refused(make, kind):
    with pytest.raises(TypeError, match="Parquet has no form for the Avro type null"):
        make.for_generic_record(schema_of(i="int", n=kind))


@pytest.mark.parametrize("make", [AvroParquetReaders, AvroParquetWriters])
def test_a_file_needs_a_column(make):
    with pytest.raises(ValueError, match="at least one column"):
        make.for_generic_record(schema_of(n="null"))
    with pytest.raises(ValueError, match="must be a record"):
        make.for_generic_record(AvroSchema.parse_string('"string"'))
