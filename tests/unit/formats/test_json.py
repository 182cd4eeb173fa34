import datetime
import io
import itertools
import json
import pickle
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.common import Row, Types
from penstock.common.time import Instant
from penstock.datastream.formats.json import (
    JsonLinesEncoder,
    JsonLinesFormat,
    JsonLinesWriters,
    JsonRowDeserializationSchema,
    JsonRowSerializationSchema,
)
from penstock.errors import TypeMismatch, UndecodableRecord
from tests.unit.formats.reading import Rejected, in_pieces, whole, with_stops, written
from tests.unit.formats.rows import BYTES, nested_types, row_types, tables

PERSON = Types.ROW_NAMED(["name", "age"], [Types.STRING(), Types.INT()])


def serializer(declared):
    return JsonRowSerializationSchema.builder().with_type_info(declared).build()


def deserializer(declared):
    return JsonRowDeserializationSchema.builder().type_info(declared).build()


# --- messages ---
@given(tables(row_types(nested_types())))
@settings(max_examples=200, deadline=None)
def test_rows_come_back_as_they_were(table):
    declared, rows = table
    write = pickle.loads(pickle.dumps(serializer(declared)))
    read = pickle.loads(pickle.dumps(deserializer(declared)))
    messages = [write.serialize(row) for row in rows]
    assert [read.deserialize(message) for message in messages] == rows
    assert all(list(json.loads(message)) == declared.get_field_names() for message in messages)
    assert read.get_produced_type() == declared


def test_each_type_has_the_form_that_flink_gives_it():
    declared = Types.ROW_NAMED(
        ["date", "time", "moment", "instant", "decimal", "bytes", "nan", "float", "keys", "pair", "any"],
        [
            Types.SQL_DATE(),
            Types.SQL_TIME(),
            Types.SQL_TIMESTAMP(),
            Types.INSTANT(),
            Types.BIG_DEC(),
            BYTES,
            Types.DOUBLE(),
            Types.FLOAT(),
            Types.MAP(Types.INT(), Types.BOOLEAN()),
            Types.TUPLE([Types.INT(), Types.STRING()]),
            Types.PICKLED_BYTE_ARRAY(),
        ],
    )
    moment = datetime.datetime(2024, 5, 1, 10, 30, 0, 5000)
    row = Row(
        date=moment.date(),
        time=moment.time(),
        moment=moment,
        instant=Instant(1714559400, 5_000_000),
        decimal=Decimal("1.10"),
        bytes=b"\xff\x00",
        nan=float("-inf"),
        float=0.10000000149011612,
        keys={1: True},
        pair=(1, "x"),
        any=[1, None, {"ä": 2}],
    )
    text = serializer(declared).serialize(row).decode()
    assert text == (
        '{"date":"2024-05-01","time":"10:30:00.005Z","moment":"2024-05-01T10:30:00.005Z",'
        '"instant":"2024-05-01T10:30:00.005Z","decimal":1.10,"bytes":"/wA=","nan":"-Infinity","float":0.1,'
        '"keys":{"1":true},"pair":[1,"x"],"any":[1,null,{"ä":2}]}'
    )
    assert deserializer(declared).deserialize(text.encode()) == row


def test_values_are_brought_into_the_form_of_their_type():
    declared = Types.ROW_NAMED(["a", "b"], [Types.DOUBLE(), Types.SQL_DATE()])
    write = serializer(declared)
    moment = datetime.datetime(2024, 5, 1, 10)
    assert write.serialize((1, moment)) == b'{"a":1.0,"b":"2024-05-01"}'
    assert write.serialize({"b": None, "a": 2.5}) == b'{"a":2.5,"b":null}'
    assert write.serialize(Row(b=None, a=2.5)) == b'{"a":2.5,"b":null}'
    zoned = datetime.datetime(2024, 5, 1, 10, tzinfo=datetime.timezone(datetime.timedelta(hours=2)))
    at = Types.ROW_NAMED(["at"], [Types.SQL_TIMESTAMP()])
    assert serializer(at).serialize(Row(at=zoned)) == b'{"at":"2024-05-01T08:00:00Z"}'


@pytest.mark.parametrize(
    ("declared", "value"),
    [
        (Types.INT(), 2**31),
        (Types.INT(), "1"),
        (Types.STRING(), 1),
        (Types.BOOLEAN(), 1),
        (Types.CHAR(), "ab"),
        (Types.LIST(Types.STRING()), "abc"),
        (Types.MAP(Types.STRING(), Types.INT()), [1]),
        (Types.BIG_DEC(), 1.5),
        (PERSON, Row(name="Ann", years=3)),
    ],
)
def test_values_of_another_type_are_refused(declared, value):
    with pytest.raises(TypeMismatch):
        serializer(Types.ROW_NAMED(["f"], [declared])).serialize(Row(f=value))


def test_numbers_and_booleans_may_be_strings_and_strings_anything():
    declared = Types.ROW_NAMED(
        ["i", "d", "b", "s", "t"],
        [Types.INT(), Types.DOUBLE(), Types.BOOLEAN(), Types.STRING(), Types.SQL_TIMESTAMP()],
    )
    message = b'{"i": "7", "d": 2, "b": "TRUE", "s": {"x": [1]}, "t": "2024-05-01T12:00:00+02:00", "more": 1}'
    moment = datetime.datetime(2024, 5, 1, 10)
    assert deserializer(declared).deserialize(message) == Row(i=7, d=2.0, b=True, s='{"x":[1]}', t=moment)
    assert deserializer(declared).deserialize(b"{}") == Row(i=None, d=None, b=None, s=None, t=None)


@pytest.mark.parametrize(
    ("message", "problem"),
    [
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b'{"name": "Ann"} x', "text after the value"),
        (b"[1]", r"\[1\] is not a JSON object"),
        (b'{"age": "old"}', "field 'age': \"old\" is not INT"),
        (b'{"age": 1.5}', "field 'age': 1.5 is not INT"),
        (b'{"age": true}', "field 'age': true is not INT"),
        (b'{"age": 2147483648}', "field 'age'"),
        (b'{"name": "\xe9"}', "not UTF-8"),
        (b"[" * 100_000, "not JSON"),
        (b'{"age": ' + b"9" * 5000 + b"}", "not JSON"),
    ],
)
def test_what_cannot_be_decoded_is_named_or_passed_over(message, problem):
    with pytest.raises(UndecodableRecord, match=problem):
        deserializer(PERSON).deserialize(message)
    lenient = JsonRowDeserializationSchema.builder().type_info(PERSON).ignore_parse_errors().build()
    assert pickle.loads(pickle.dumps(lenient)).deserialize(message) is None


def test_the_place_of_an_error_within_rows_is_named():
    declared = Types.ROW_NAMED(["people"], [Types.LIST(PERSON)])
    with pytest.raises(UndecodableRecord, match="field 'people': field 'age'"):
        deserializer(declared).deserialize(b'{"people": [{"age": 1}, {"age": []}]}')


def test_missing_fields_may_be_errors():
    builder = JsonRowDeserializationSchema.builder().type_info(PERSON).fail_on_missing_field()
    strict = pickle.loads(pickle.dumps(builder.build()))
    assert strict.deserialize(b'{"name": null, "age": 1}') == Row(name=None, age=1)
    with pytest.raises(UndecodableRecord, match="'age' is missing"):
        strict.deserialize(b'{"name": "Ann"}')
    with pytest.raises(ValueError, match="exclude each other"):
        builder.ignore_parse_errors().build()


def test_no_message_is_no_row():
    assert deserializer(PERSON).deserialize(None) is None


def test_builders_say_what_is_missing():
    with pytest.raises(ValueError, match="with_type_info"):
        JsonRowSerializationSchema.builder().build()
    with pytest.raises(ValueError, match="json_schema"):
        JsonRowDeserializationSchema.builder().build()
    with pytest.raises(TypeError, match="type of a row"):
        serializer(Types.STRING())
    with pytest.raises(TypeError, match="no form in JSON"):
        serializer(Types.ROW([Types.DATACLASS(Instant)]))
    with pytest.raises(TypeError, match="keys of a JSON object"):
        deserializer(Types.ROW([Types.MAP(PERSON, Types.INT())]))


def test_a_json_schema_gives_the_row_type():
    schema = {
        "type": "object",
        "definitions": {"place": {"type": "object", "properties": {"lat": {"type": "number"}}}},
        "properties": {
            "name": {"type": ["string", "null"]},
            "age": {"type": "integer"},
            "born": {"type": "string", "format": "date"},
            "seen": {"type": "string", "format": "date-time"},
            "at": {"type": "string", "format": "time"},
            "photo": {"type": "string", "contentEncoding": "base64"},
            "home": {"$ref": "#/definitions/place"},
            "tags": {"type": "array", "items": {"type": "string"}},
            "pair": {"type": "array", "items": [{"type": "boolean"}, {"type": "string"}], "additionalItems": False},
            "either": {"oneOf": [{"type": "null"}, {"type": "boolean"}]},
        },
    }
    read = JsonRowDeserializationSchema.builder().json_schema(json.dumps(schema)).build()
    assert read.get_produced_type() == Types.ROW_NAMED(
        list(schema["properties"]),
        [
            Types.STRING(),
            Types.BIG_DEC(),
            Types.SQL_DATE(),
            Types.SQL_TIMESTAMP(),
            Types.SQL_TIME(),
            BYTES,
            Types.ROW_NAMED(["lat"], [Types.BIG_DEC()]),
            Types.BASIC_ARRAY(Types.STRING()),
            Types.ROW([Types.BOOLEAN(), Types.STRING()]),
            Types.BOOLEAN(),
        ],
    )
    row = read.deserialize(b'{"age": 7, "home": {"lat": 52.123456789012345678}, "pair": [true, "x"]}')
    assert row.pair == Row(f0=True, f1="x")
    assert row.age == Decimal(7)
    assert row.home.lat == Decimal("52.123456789012345678")


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        ("{", "not JSON"),
        ('{"type": "string"}', "must describe an object"),
        ('{"properties": {"a": {}}}', "<root>/a"),
        ('{"properties": {"a": {"type": "point"}}}', "point"),
        ('{"properties": {"a": {"type": ["string", "boolean"]}}}', "one type"),
        ('{"properties": {"a": {"$ref": "#"}}}', "itself"),
        ('{"properties": {"a": {"$ref": "#/definitions/b"}}}', "does not exist"),
        ('{"properties": {"a": {"$ref": "http://b"}}}', "outside of the schema"),
        ('{"properties": {"a": {"type": "array"}}}', "without items"),
        ('{"properties": {"a": {"type": "array", "items": [{"type": "string"}]}}}', "additionalItems"),
    ],
)
def test_json_schemas_that_are_not_understood(schema, problem):
    with pytest.raises(ValueError, match=problem):
        JsonRowDeserializationSchema.builder().json_schema(schema)


# --- files ---
@given(tables(row_types(nested_types())), st.data())
@settings(max_examples=100, deadline=None)
def test_files_of_rows_whole_in_pieces_and_with_stops(table, cuts):
    declared, rows = table
    data = written(JsonLinesWriters.for_row_type(declared), rows)
    format = JsonLinesFormat(declared)
    cuts = cuts.draw(st.sets(st.integers(0, len(data)), max_size=4))
    assert whole(format, data) == rows
    assert list(itertools.chain(*in_pieces(format, data, cuts))) == rows
    assert with_stops(format, data, 2) == rows


def test_files_of_plain_values():
    values = [{"a": 1, "b": [1.5, None]}, "text", 7, None, True]
    data = written(JsonLinesWriters.for_values(), values)
    assert data == b'{"a":1,"b":[1.5,null]}\n"text"\n7\nnull\ntrue\n'
    assert whole(JsonLinesFormat(), data) == values
    assert whole(JsonLinesFormat(Types.STRING()), b'"a"\n1\nnull\n') == ["a", "1", None]


def test_blank_lines_are_passed_over():
    assert whole(JsonLinesFormat(), b'\n\r\n{"a": 1}\r\n   \n\n2\n\n', most=1) == [{"a": 1}, 2]


def test_bad_lines_are_rejected_with_their_place():
    data = b'{"name": "A", "age": 1}\nbroken\n{"name": "B", "age": "x"}\r\n[]\n\xff\n{"name": "C"}\n'
    rejected = Rejected()
    assert whole(JsonLinesFormat(PERSON), data, rejected) == [Row(name="A", age=1), Row(name="C", age=None)]
    assert [position for _, position in rejected] == [f"line at byte {at}" for at in (24, 31, 58, 61)]
    assert [raw for raw, _ in rejected] == [b"broken", b'{"name": "B", "age": "x"}', b"[]", b"\xff"]
    rejected = Rejected()
    assert whole(JsonLinesFormat(Types.INT()), b"1\n\n[]\n3", rejected) == [1, 3]
    assert rejected == [(b"[]", "line at byte 3")]
    rejected = Rejected()
    assert whole(JsonLinesFormat(PERSON, fail_on_missing_field=True), data[-14:], rejected) == []
    assert len(rejected) == 1


def test_lines_that_are_only_json_together_are_rejected():
    rejected = Rejected()
    assert whole(JsonLinesFormat(), b"[1\n2]\n3,4\n5", rejected) == [5]
    assert len(rejected) == 3


def test_an_encoder_for_row_wise_sinks():
    plain = pickle.loads(pickle.dumps(JsonLinesEncoder()))
    assert plain.encode({"a": Decimal("1.5"), "at": datetime.date(2024, 5, 1)}) == b'{"a":"1.5","at":"2024-05-01"}\n'
    assert plain.encode(Row(a=1, b=Row(2, b"x"))) == b'{"a":1,"b":[2,"eA=="]}\n'
    assert plain.encode(("Ann", 3), PERSON) == b'{"name":"Ann","age":3}\n'
    assert JsonLinesEncoder(PERSON).encode({"age": 3, "name": "Ann"}) == b'{"name":"Ann","age":3}\n'
    with pytest.raises(TypeError, match="unless its type is declared"):
        plain.encode(object())


def test_a_writer_buffers_and_flushes():
    stream = io.BytesIO()
    writer = JsonLinesWriters.for_values().create(stream)
    writer.add_element(1)
    assert stream.tell() == 0
    writer.flush()
    assert stream.getvalue() == b"1\n"
    for number in range(2000):
        writer.add_element(number)
    assert stream.tell() > 1000
