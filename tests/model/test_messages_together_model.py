"""Messages read at once against the same messages one by one: the same rows, or none, so that one by one tells why."""

import io
import json
from unittest import mock

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.common import Types
from penstock.connectors.source_api import Fetched
from penstock.engine.operators.sources.split_source import _chunk_of
from penstock.engine.records.columns import Columns
from penstock.engine.records.elements import Chunk
from penstock.formats import message_batches as together
from penstock.formats.avro import avro_format as avro
from penstock.formats.avro.avro_format import AvroRowDeserializationSchema, AvroRowSerializationSchema
from penstock.formats.batch_of_rows import BatchOfRows
from penstock.formats.csv.csv_format import (
    CsvReaderFormat,
    CsvRowDeserializationSchema,
    CsvRowSerializationSchema,
    CsvSchema,
)
from penstock.formats.json import json_format
from penstock.formats.json.json_format import JsonLinesFormat, JsonRowDeserializationSchema, JsonRowSerializationSchema
from tests.model.message_parts import (
    DATES,
    KINDS,
    MOMENTS,
    TIMES,
    avro_messages,
    avro_schemas,
    csv_messages,
    fields_of,
    json_messages,
)

EXAMPLES = settings(max_examples=600)


@pytest.fixture(autouse=True)
def all_of_them(monkeypatch):
    """Even one message is read in the fast way, and as columns."""
    monkeypatch.setattr(together, "LEAST_TOGETHER", 1)
    monkeypatch.setattr(together, "LEAST_COLUMNS", 1)
    monkeypatch.setattr(together, "LEAST_BATCH", 1)
    monkeypatch.setattr(avro, "LEAST_WRITTEN", 1)


def row_type(fields):
    return Types.ROW_NAMED([name for name, _ in fields], [KINDS[kind][0] for _, kind in fields])


def one_by_one(schema, messages):
    """Rows, or the first error."""
    try:
        return [schema.deserialize(message) for message in messages]
    except Exception as error:
        return error


def told(declared, rows):
    """What programs would see, to the last bit."""
    return list(map(repr, declared.fit(rows)))


def check(schema, messages):
    """Compare; the rows that were read at once, None if they were not."""
    found = together.MessagesTogether.of(schema).rows(messages)
    expected = one_by_one(schema, messages)
    if found is None:
        return None
    assert not isinstance(expected, Exception), f"one by one: {expected}"
    declared = schema.get_produced_type()
    assert told(declared, list(found)) == told(declared, expected)
    chunk = _chunk_of(Fetched("split", found, list(range(len(messages)))))
    assert list(map(repr, fitted(chunk, declared).values)) == told(declared, expected)
    assert chunk.timestamps == list(range(len(messages)))
    if isinstance(found, BatchOfRows):
        columns = Columns(found.batch).in_form_of(declared)
        assert columns is not None
        assert list(map(repr, columns.rows())) == told(declared, expected)
    return found


def fitted(chunk, declared):
    """The chunk as it leaves its chain."""
    columns = None if chunk.columns is None else chunk.columns.in_form_of(declared)
    return Chunk(declared.fit(chunk.values)) if columns is None else Chunk.of(columns)


@EXAMPLES
@given(st.data(), fields_of(), st.sampled_from(["plain", "strict", "lenient"]))
def test_json(data, fields, mode):
    schema = JsonRowDeserializationSchema(
        row_type(fields), fail_on_missing_field=mode == "strict", ignore_parse_errors=mode == "lenient"
    )
    check(schema, data.draw(json_messages(fields)))


@given(st.data(), fields_of(("LONG", "DOUBLE", "STRING", "BOOLEAN", "ROW")))
def test_json_that_is_sound_is_read_at_once(data, fields):
    schema = JsonRowDeserializationSchema(row_type(fields))
    assert check(schema, data.draw(json_messages(fields, broken=False))) is not None


def test_what_is_json_only_together_is_no_json():
    schema = JsonRowDeserializationSchema(Types.ROW_NAMED(["a"], [Types.LIST(Types.LONG())]))
    for messages in (
        [b'{"a":[1', b"2]}", b"{},{}"],
        [b'{"a":[]', b'"b":1}', b"{},{}"],
        [b'{"x":"', b'"}', b"{},{}"],
        [b"{}]", b"[{}"],
        [b"", b"{},{}"],
    ):
        assert together.MessagesTogether.of(schema).rows(messages) is None
        assert isinstance(one_by_one(schema, messages), Exception)


@EXAMPLES
@given(st.data(), fields_of(("BOOLEAN", "BYTE", "LONG", "DOUBLE", "FLOAT", "STRING", "DATE", "TIMESTAMP", "DECIMAL")))
def test_csv(data, fields):
    builder = CsvRowDeserializationSchema.Builder(row_type(fields))
    if data.draw(st.booleans()):
        builder.set_null_literal("n/a")
    builder.set_allow_comments(data.draw(st.booleans())).set_ignore_parse_errors(data.draw(st.booleans()))
    check(builder.build(), data.draw(csv_messages(fields)))


@EXAMPLES
@given(st.data(), avro_schemas())
def test_avro(data, schema_and_records):
    schema, records = schema_and_records
    messages = data.draw(avro_messages(schema, records))
    check(AvroRowDeserializationSchema(avro_schema_string=json.dumps(schema)), messages)


def test_avro_that_is_sound_is_read_as_columns():
    schema = {"type": "record", "name": "r", "fields": [{"name": "a", "type": ["null", "long"]}]}
    found = check(AvroRowDeserializationSchema(avro_schema_string=json.dumps(schema)), [b"\x00", b"\x02\x04"])
    assert isinstance(found, BatchOfRows)


def test_what_columns_cannot_hold_stays_rows():
    texts = JsonRowDeserializationSchema(Types.ROW_NAMED(["a"], [Types.STRING()]))
    for half in (b'"\\ud800"', b'"\\\\ud83d\\ude00"', b'"\\uDE00\\uD83D"'):
        assert check(texts, [b'{"a":%s}' % half, b"{}"]) is None
    assert isinstance(check(texts, [b'{"a":"\\ud83d\\ude00"}', b'{"a":"\\\\ud800"}']), BatchOfRows)
    times = JsonRowDeserializationSchema(Types.ROW_NAMED(["a"], [Types.SQL_TIME()]))
    assert isinstance(check(times, [b'{"a":"10:00+02:00"}', b"{}"]), list)


def test_texts_of_avro_are_utf_8():
    schema = {"type": "record", "name": "r", "fields": [{"name": "a", "type": "string"}]}
    reading = AvroRowDeserializationSchema(avro_schema_string=json.dumps(schema))
    assert check(reading, [b"\x02a", b"\x02\xff"]) is None
    assert check(reading, [b"\x02a", b"\x04\xc3\xa4"]) is not None


# --- writing ---
COLUMNS = {
    "BOOLEAN": (pa.bool_(), st.booleans()),
    "BYTE": (pa.int8(), st.integers(-128, 127)),
    "INT": (pa.int32(), st.integers(-(2**31), 2**31 - 1)),
    "LONG": (pa.int64(), st.integers(-(2**63), 2**63 - 1) | st.integers(-70, 70)),
    "FLOAT": (pa.float32(), st.floats(width=32)),
    "DOUBLE": (pa.float64(), st.floats()),
    "STRING": (pa.string(), st.text(max_size=4) | st.sampled_from(["", 'q"q', "a,b", "#", "a\nb\n", "n/a"])),
    "BYTES": (pa.binary(), st.binary(max_size=4)),
    "DATE": (pa.date32(), st.sampled_from(DATES)),
    "TIME": (pa.time64("us"), st.sampled_from(TIMES)),
    "TIMESTAMP": (pa.timestamp("us"), st.sampled_from(MOMENTS)),
}
AVRO_TYPES = {
    "BOOLEAN": ["boolean"],
    "BYTE": ["int", "long"],
    "INT": ["int", "long"],
    "LONG": ["long", "int"],
    "FLOAT": ["float", "double"],
    "DOUBLE": ["double", "float"],
    "STRING": ["string", {"type": "enum", "name": "e", "symbols": ["a", "b"]}],
    "BYTES": ["bytes"],
    "DATE": [{"type": "int", "logicalType": "date"}],
    "TIME": [{"type": "int", "logicalType": "time-millis"}, {"type": "long", "logicalType": "time-micros"}],
    "TIMESTAMP": [
        {"type": "long", "logicalType": f"{zone}timestamp-{unit}"}
        for zone in ("", "local-")
        for unit in ("millis", "micros")
    ],
}


@st.composite
def batches(draw, fields):
    """A batch, some of them cut from larger ones."""
    count, first = draw(st.integers(1, 6)), draw(st.integers(0, 2))
    values = [
        draw(st.lists(COLUMNS[kind][1] | st.none(), min_size=count + first, max_size=count + first))
        for _, kind in fields
    ]
    arrays = [pa.array(own, COLUMNS[kind][0]) for own, (_, kind) in zip(values, fields, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, [name for name, _ in fields]).slice(first)


def check_written(schema, declared, batch):
    """The messages, if they were written at once."""
    found = schema.write_batch(batch)
    if found is not None:
        assert found == [schema.serialize(row) for row in Columns(batch).in_form_of(declared).rows()]
    return found


@EXAMPLES
@given(st.data(), fields_of(tuple(COLUMNS)))
def test_json_is_written_at_once(data, fields):
    declared = row_type(fields)
    assert check_written(JsonRowSerializationSchema(declared), declared, data.draw(batches(fields))) is not None


@EXAMPLES
@given(st.data(), fields_of(tuple(COLUMNS)))
def test_csv_is_written_at_once(data, fields):
    declared = row_type(fields)
    builder = CsvRowSerializationSchema.Builder(declared)
    if data.draw(st.booleans()):
        builder.set_null_literal("n/a")
    if data.draw(st.integers(0, 4)) == 0:
        builder.disable_quote_character()
    check_written(builder.build(), declared, data.draw(batches(fields)))


@EXAMPLES
@given(st.data(), fields_of(tuple(COLUMNS)), st.booleans())
def test_avro_is_written_at_once(data, fields, nested):
    parts = []
    for number, (name, kind) in enumerate(fields):
        own = data.draw(st.sampled_from(AVRO_TYPES[kind]))
        if isinstance(own, dict) and own["type"] == "enum":
            own = own | {"name": f"e{number}"}
        parts.append({"name": name, "type": data.draw(st.sampled_from([own, ["null", own], [own, "null"]]))})
    declared, batch, schema = (
        row_type(fields),
        data.draw(batches(fields)),
        {"type": "record", "name": "r", "fields": parts},
    )
    if nested:
        struct = pa.StructArray.from_arrays(batch.columns, batch.schema.names, mask=data.draw(masks(batch)))
        batch = pa.RecordBatch.from_arrays([struct], ["n"])
        schema = {"type": "record", "name": "o", "fields": [{"name": "n", "type": ["null", schema]}]}
        declared = Types.ROW_NAMED(["n"], [declared])
    writing = AvroRowSerializationSchema(avro_schema_string=json.dumps(schema))
    try:
        expected = [writing.serialize(row) for row in Columns(batch).in_form_of(declared).rows()]
    except Exception:
        assert writing.write_batch(batch) is None
    else:
        assert writing.write_batch(batch) in (None, expected)


@st.composite
def masks(draw, batch):
    return pa.array(draw(st.lists(st.booleans(), min_size=batch.num_rows, max_size=batch.num_rows)), pa.bool_())


def test_avro_that_is_plain_is_written_as_columns():
    schema = {
        "type": "record",
        "name": "r",
        "fields": [{"name": "a", "type": ["null", "long"]}, {"name": "b", "type": "string"}],
    }
    batch = pa.record_batch({"b": ["x", "äö"], "a": [None, 300]})
    writing = AvroRowSerializationSchema(avro_schema_string=json.dumps(schema))
    assert writing.write_batch(batch) == [writing.serialize(row) for row in Columns(batch).rows()]


def test_a_schema_with_its_own_way_to_read_is_asked_for_each_message():
    class Own(JsonRowDeserializationSchema):
        def deserialize(self, message):
            return None

    assert together.MessagesTogether.of(Own(Types.ROW_NAMED(["a"], [Types.LONG()]))) is None


def test_what_fails_again_and_again_is_tried_less_and_less():
    reading = together.MessagesTogether.of(JsonRowDeserializationSchema(Types.ROW_NAMED(["a"], [Types.LONG()])))
    tries, read = [], reading._read
    reading._read = lambda messages: tries.append(1) or read(messages)
    for _ in range(200):
        assert reading.rows([b"nonsense"]) is None
    assert len(tries) < 10
    for _ in range(200):
        reading.rows([b"{}"])
    assert len(tries) > 100


# --- files ---
def lines_read(format, content):
    """What a reader finds in a file: rows, and what it has rejected."""
    rejected, rows = [], []
    reader = format.open(
        io.BytesIO(content), 0, len(content), None, lambda *found: rejected.append((found[0], str(found[1]), found[2]))
    )
    while not reader.finished:
        rows.extend(reader.read(4))
    return list(map(repr, rows)), rejected


@EXAMPLES
@given(st.data(), fields_of(), st.booleans())
def test_lines_of_json(data, fields, strict):
    separator = data.draw(st.sampled_from([b"\n", b"\r\n", b"\n\n", b"\n \n"]))
    messages = data.draw(json_messages(fields)) + data.draw(json_messages(fields))
    content = separator.join(message.replace(b"\n", b"") for message in messages)
    format = JsonLinesFormat(row_type(fields), strict)
    with mock.patch.object(json_format, "LEAST_TOGETHER", 1):
        found = lines_read(format, content)
    with mock.patch.object(json_format, "LEAST_TOGETHER", 1000):
        assert found == lines_read(format, content)


@EXAMPLES
@given(st.data(), fields_of(("BOOLEAN", "BYTE", "LONG", "DOUBLE", "FLOAT", "STRING", "DATE", "TIMESTAMP", "DECIMAL")))
def test_lines_of_csv(data, fields):
    schema = CsvSchema.builder()
    for name, kind in fields:
        schema.add_column(name, KINDS[kind][0])
    content = b"".join(data.draw(csv_messages(fields)))
    format = CsvReaderFormat.for_schema(schema.build())
    found = lines_read(format, content)
    with mock.patch.object(together, "LEAST_COLUMNS", 1000):
        assert found == lines_read(format, content)
