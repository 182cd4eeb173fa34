import datetime
import io
import itertools
import json
import pickle
import uuid
from decimal import Decimal

import fastavro
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.common import Row, Types
from penstock.datastream.formats.avro import (
    AvroBulkWriters,
    AvroFormat,
    AvroInputFormat,
    AvroRowDeserializationSchema,
    AvroRowSerializationSchema,
    AvroSchema,
    GenericRecordAvroTypeInfo,
)
from penstock.errors import SchemaMismatch, TypeMismatch, UndecodableRecord
from tests.unit.formats.reading import drain, fail, in_pieces, whole, with_stops, written
from tests.unit.formats.rows import TEXT

PLACE = {"type": "record", "name": "Place", "namespace": "geo", "fields": [{"name": "lat", "type": "double"}]}
PERSON = {
    "type": "record",
    "name": "Person",
    "fields": [
        {"name": "name", "type": "string"},
        {"name": "age", "type": ["null", "int"], "default": None},
        {"name": "home", "type": PLACE},
        {"name": "others", "type": {"type": "array", "items": "geo.Place"}},
        {"name": "scores", "type": {"type": "map", "values": "long"}},
        {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["A", "B"]}},
    ],
}
SCHEMA = AvroSchema.parse_string(json.dumps(PERSON))
PLACES = st.fixed_dictionaries({"lat": st.floats(allow_nan=False)})
RECORDS = st.fixed_dictionaries(
    {
        "name": TEXT,
        "age": st.none() | st.integers(-(2**31), 2**31 - 1),
        "home": PLACES,
        "others": st.lists(PLACES, max_size=3),
        "scores": st.dictionaries(TEXT, st.integers(-(2**63), 2**63 - 1), max_size=3),
        "kind": st.sampled_from("AB"),
    }
)
PERSON_ROW = Types.ROW_NAMED(
    ["name", "age", "home", "others", "scores", "kind"],
    [
        Types.STRING(),
        Types.INT(),
        Types.ROW_NAMED(["lat"], [Types.DOUBLE()]),
        Types.OBJECT_ARRAY(Types.ROW_NAMED(["lat"], [Types.DOUBLE()])),
        Types.MAP(Types.STRING(), Types.LONG()),
        Types.STRING(),
    ],
)


def blocks_of(records, schema=PERSON, sync_interval=1, codec="null"):
    """A file by fastavro, with small blocks."""
    stream = io.BytesIO()
    fastavro.writer(stream, schema, records, codec=codec, sync_interval=sync_interval)
    return stream.getvalue()


# --- files ---
@given(st.lists(RECORDS, max_size=10), st.sampled_from([1, 100, 16_000]), st.data())
@settings(max_examples=100, deadline=None)
def test_every_record_once_whole_in_pieces_and_with_stops(records, sync_interval, cuts):
    data = blocks_of(records, sync_interval=sync_interval)
    cuts = cuts.draw(st.sets(st.integers(0, len(data)), max_size=5))
    for format in (AvroFormat(), AvroFormat(SCHEMA)):
        assert format.splittable
        assert whole(format, data) == records
        assert list(itertools.chain(*in_pieces(format, data, cuts))) == records
        assert with_stops(format, data, 2) == records
    for start, end in itertools.pairwise([0, *sorted(cuts), len(data)]):
        piece = drain(AvroFormat().open(io.BytesIO(data), start, end, None, fail))
        assert with_stops(AvroFormat(), data, 1, start, end) == piece


@given(st.lists(RECORDS, max_size=10))
@settings(max_examples=30, deadline=None)
def test_fastavro_reads_what_is_written(records):
    data = written(AvroBulkWriters.for_generic_record(SCHEMA), records)
    assert list(fastavro.reader(io.BytesIO(data))) == records
    assert whole(AvroFormat(SCHEMA), data) == records


def test_blocks_are_spread_over_the_pieces():
    records = [{"lat": float(i)} for i in range(100)]
    data = blocks_of(records, PLACE, codec="deflate")
    pieces = in_pieces(AvroFormat(), data, range(400, len(data), 400))
    assert len([piece for piece in pieces if piece]) > 3
    assert list(itertools.chain(*pieces)) == records


def test_the_marker_is_found_across_the_reads_of_a_search(monkeypatch):
    records = [{"lat": float(i)} for i in range(20)]
    data = blocks_of(records, PLACE)
    monkeypatch.setattr("penstock.formats.avro.avro_format._SEARCH_BYTES", 7)
    for cut in range(1, len(data)):
        assert list(itertools.chain(*in_pieces(AvroFormat(), data, [cut]))) == records


def test_a_writer_flushes():
    stream = io.BytesIO()
    writer = AvroBulkWriters.for_generic_record(AvroSchema.parse_string(json.dumps(PLACE))).create(stream)
    writer.add_element({"lat": 1.0})
    before = stream.tell()
    writer.flush()
    assert stream.tell() > before
    assert list(fastavro.reader(io.BytesIO(stream.getvalue()))) == [{"lat": 1.0}]


def test_records_are_read_as_another_schema_would_have_them():
    data = blocks_of([{"lat": 1.0}], PLACE)
    other = {**PLACE, "fields": [*PLACE["fields"], {"name": "lon", "type": "double", "default": 0.5}]}
    assert whole(AvroFormat(AvroSchema.parse_string(json.dumps(other))), data) == [{"lat": 1.0, "lon": 0.5}]
    other["fields"][0] = {"name": "lat", "type": "string"}
    with pytest.raises(SchemaMismatch, match="do not fit the schema"):
        whole(AvroFormat(AvroSchema.parse_string(json.dumps(other))), data)


def test_broken_files_are_named():
    data = blocks_of([{"lat": float(i)} for i in range(10)], PLACE)
    for broken in (b"", b"PAR1 is something else", data[:20]):
        with pytest.raises(UndecodableRecord, match="not an Avro file"):
            whole(AvroFormat(), broken)
    with pytest.raises(UndecodableRecord, match=r"block at byte .* is broken"):
        whole(AvroFormat(), data[:-5])
    with pytest.raises(UndecodableRecord, match=r"block at byte .* is broken"):
        whole(AvroFormat(), data[:-40] + b"?" * 40)


def test_errors_of_the_file_system_pass():
    class Failing(io.BytesIO):
        def read(self, *args):
            if self.tell() > 500:
                raise PermissionError(13, "not allowed")
            return super().read(*args)

    data = blocks_of([{"lat": float(i)} for i in range(100)], PLACE)
    reader = AvroFormat().open(Failing(data), 0, len(data), None, fail)
    with pytest.raises(PermissionError):
        drain(reader)


def test_what_does_not_fit_the_schema_is_refused():
    with pytest.raises(TypeMismatch, match="Avro schema"):
        written(AvroBulkWriters.for_generic_record(SCHEMA), [{"name": 1}])
    with pytest.raises(TypeError, match="AvroSchema"):
        AvroBulkWriters.for_generic_record("x")


# --- schemas ---
def test_schemas_are_read_from_files_and_checked(tmp_path):
    path = tmp_path / "person.avsc"
    path.write_text(json.dumps(PERSON))
    assert AvroSchema.parse_file(str(path)) == SCHEMA
    assert json.loads(str(SCHEMA)) == PERSON
    assert SCHEMA.row_type() == PERSON_ROW
    for bad in ("{", '{"type": "thing"}', '{"type": "record"}'):
        with pytest.raises(ValueError, match="not an Avro schema"):
            AvroSchema.parse_string(bad)


def test_generic_records_as_a_type():
    declared = pickle.loads(pickle.dumps(GenericRecordAvroTypeInfo(SCHEMA)))
    assert declared == GenericRecordAvroTypeInfo(SCHEMA)
    assert declared.fit([{"a": 1}, None]) == [{"a": 1}, None]
    assert repr(declared) == "GENERIC_RECORD(Person)"
    with pytest.raises(TypeMismatch):
        declared.fit([1])
    assert AvroFormat(SCHEMA).get_produced_type() == declared
    assert AvroFormat().get_produced_type() is None
    format = AvroInputFormat("/some/path", SCHEMA)
    assert (format.path, format.format, format.get_produced_type()) == ("/some/path", AvroFormat(SCHEMA), declared)


# --- messages ---
def as_row(record):
    rows = {"home": Row(**record["home"]), "others": [Row(**other) for other in record["others"]]}
    return Row(**{name: rows.get(name, record[name]) for name in PERSON_ROW.field_names})


@given(RECORDS)
@settings(deadline=None)
def test_rows_as_messages(record):
    row = as_row(record)
    writing = pickle.loads(pickle.dumps(AvroRowSerializationSchema(avro_schema_string=str(SCHEMA))))
    reading = pickle.loads(pickle.dumps(AvroRowDeserializationSchema(avro_schema_string=str(SCHEMA))))
    message = writing.serialize(row)
    assert fastavro.schemaless_reader(io.BytesIO(message), PERSON, None) == record
    assert reading.deserialize(message) == row
    assert writing.serialize(tuple(row)) == message
    assert reading.get_produced_type() == PERSON_ROW


def test_rows_with_other_names_go_by_position():
    fields = [{"name": "id", "type": "int"}, {"name": "name", "type": "string"}]
    text = json.dumps({"type": "record", "name": "r", "fields": fields})
    written = AvroRowSerializationSchema(avro_schema_string=text).serialize(Row(f0=1, f1="hi"))
    assert AvroRowDeserializationSchema(avro_schema_string=text).deserialize(written) == Row(id=1, name="hi")
    assert AvroRowSerializationSchema(avro_schema_string=text).serialize(Row(name="hi", id=1)) == written
    with pytest.raises(TypeMismatch, match="name"):
        AvroRowSerializationSchema(avro_schema_string=text).serialize(Row(id=1, f1="hi"))


def test_logical_types_of_rows():
    fields = [
        ("date", {"type": "int", "logicalType": "date"}, datetime.date(2024, 5, 1), Types.SQL_DATE()),
        ("time", {"type": "int", "logicalType": "time-millis"}, datetime.time(10, 30), Types.SQL_TIME()),
        (
            "at",
            {"type": "long", "logicalType": "timestamp-micros"},
            datetime.datetime(2024, 5, 1, 10, 30, 0, 7),
            Types.SQL_TIMESTAMP(),
        ),
        (
            "local",
            {"type": "long", "logicalType": "local-timestamp-millis"},
            datetime.datetime(2024, 5, 1, 10, 30),
            Types.SQL_TIMESTAMP(),
        ),
        (
            "price",
            {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2},
            Decimal("1.50"),
            Types.BIG_DEC(),
        ),
        ("id", {"type": "string", "logicalType": "uuid"}, str(uuid.UUID(int=7)), Types.STRING()),
        ("raw", {"type": "fixed", "name": "Two", "size": 2}, b"ab", Types.PRIMITIVE_ARRAY(Types.BYTE())),
        ("any", ["null", "string", "long"], 7, Types.PICKLED_BYTE_ARRAY()),
        (
            "times",
            {"type": "map", "values": {"type": "long", "logicalType": "timestamp-millis"}},
            {"a": datetime.datetime(2024, 5, 1)},
            Types.MAP(Types.STRING(), Types.SQL_TIMESTAMP()),
        ),
    ]
    schema = {"type": "record", "name": "R", "fields": [{"name": name, "type": kind} for name, kind, *_ in fields]}
    reading = AvroRowDeserializationSchema(avro_schema_string=json.dumps(schema))
    writing = AvroRowSerializationSchema(avro_schema_string=json.dumps(schema))
    row = Row(**{name: value for name, _, value, _ in fields})
    message = writing.serialize(row)
    assert reading.deserialize(message) == row
    assert reading.get_produced_type().get_field_types() == [declared for *_, declared in fields]
    assert fastavro.schemaless_reader(io.BytesIO(message), schema, None)["at"] == row.at.replace(tzinfo=datetime.UTC)


def test_messages_that_do_not_fit():
    reading = AvroRowDeserializationSchema(avro_schema_string=json.dumps(PLACE))
    assert reading.deserialize(None) is None
    with pytest.raises(UndecodableRecord, match="not a record"):
        reading.deserialize(b"123")
    with pytest.raises(UndecodableRecord, match="1 bytes follow"):
        reading.deserialize(b"123456789")
    writing = AvroRowSerializationSchema(avro_schema_string=json.dumps(PLACE))
    for value in (Row(lat="x"), Row(lon=1.0), (1.0, 2.0), 5):
        with pytest.raises(TypeMismatch, match="Avro schema"):
            writing.serialize(value)


def test_schemas_of_rows_that_are_refused():
    with pytest.raises(TypeError, match=r"Java class 'a\.B'"):
        AvroRowSerializationSchema("a.B")
    with pytest.raises(TypeError, match="missing"):
        AvroRowDeserializationSchema()
    with pytest.raises(ValueError, match="must be a record"):
        AvroRowDeserializationSchema(avro_schema_string='"string"')
    tree = {"type": "record", "name": "Tree", "fields": [{"name": "left", "type": ["null", "Tree"]}]}
    with pytest.raises(ValueError, match="contains itself"):
        AvroRowSerializationSchema(avro_schema_string=json.dumps(tree))
