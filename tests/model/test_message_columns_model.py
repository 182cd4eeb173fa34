"""Records of Kafka as batches of a table, read at once against one by one: the same batch, or the same error."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.connectors.kafka.decoding import Messages
from penstock.formats.avro import avro_format as avro
from penstock.table.connectors import declare_table, kafka_records, message_columns
from penstock.table.connectors.kafka_table import Kafka, UpsertKafka
from penstock.table.connectors.message_formats import avro_schema
from penstock.table.logical.nodes import Column
from penstock.table.operators.base.records import FromRecords
from penstock.table.operators.io.row_conversions import ToRows, values_batch
from penstock.table.types.data_types import DataTypes
from tests.model.message_parts import DATES, KINDS, MOMENTS, avro_messages, csv_messages, fields_of, json_messages

EXAMPLES = settings(max_examples=400)
METADATA = {
    "partition": DataTypes.INT(),
    "offset": DataTypes.BIGINT(),
    "topic": DataTypes.STRING(),
    "timestamp": DataTypes.TIMESTAMP_LTZ(3),
    "headers": DataTypes.MAP(DataTypes.STRING(), DataTypes.BYTES()),
    "timestamp-type": DataTypes.STRING(),
    "leader-epoch": DataTypes.INT(),
}
TYPES = {
    "BOOLEAN": DataTypes.BOOLEAN(),
    "BYTE": DataTypes.TINYINT(),
    "SHORT": DataTypes.SMALLINT(),
    "INT": DataTypes.INT(),
    "LONG": DataTypes.BIGINT(),
    "FLOAT": DataTypes.FLOAT(),
    "DOUBLE": DataTypes.DOUBLE(),
    "STRING": DataTypes.STRING(),
    "DATE": DataTypes.DATE(),
    "TIME": DataTypes.TIME(),
    "TIMESTAMP": DataTypes.TIMESTAMP(6),
    "INSTANT": DataTypes.TIMESTAMP_LTZ(6),
    "DECIMAL": DataTypes.DECIMAL(10, 2),
    "BYTES": DataTypes.BYTES(),
    "LIST": DataTypes.ARRAY(DataTypes.BIGINT()),
    "MAP": DataTypes.MAP(DataTypes.STRING(), DataTypes.BIGINT()),
    "ROW": DataTypes.ROW([DataTypes.FIELD("x", DataTypes.BIGINT()), DataTypes.FIELD("y", DataTypes.STRING())]),
}


class Message:
    """A message as far as readers look at it."""

    def __init__(self, value, key=None, offset=0):
        self._value, self._key, self._offset = value, key, offset

    def value(self):
        return self._value

    def key(self):
        return self._key

    def offset(self):
        return self._offset

    def topic(self):
        return "topic"

    def partition(self):
        return 3

    def headers(self):
        return [("h", b"%d" % self._offset)]

    def timestamp(self):
        return 1, 1_700_000_000_000 + self._offset


@pytest.fixture(autouse=True)
def all_of_them(monkeypatch):
    monkeypatch.setattr(kafka_records, "LEAST_ROWS", 1)
    monkeypatch.setattr(message_columns, "LEAST_BATCH", 1)
    monkeypatch.setattr(avro, "LEAST_WRITTEN", 1)


def table_of(columns, metadata=(), key=(), **options):
    """A table as its connector sees it."""
    found = {name.replace("__", "-").replace("_", "."): value for name, value in options.items()}
    whole = (*columns, *(Column(f"meta {name}", METADATA[name]) for name in metadata))
    places = tuple((len(columns) + index, name) for index, name in enumerate(metadata))
    return declare_table("t", found, whole, places, key)


def columns_of(fields):
    return tuple(Column(name, TYPES[kind]) for name, kind in fields)


def made(table, connector, messages):
    """What a source of single rows gives to the rest of the query: a batch, or an error."""
    reading = connector._reading(table)
    operator = FromRecords(table.columns, (), connector.upserts)
    operator._schema = kafka_records.arrow_schema(table.columns, connector.upserts)
    operator._fields = range(len(table.columns))
    operator._names = [column.name for column in table.columns]
    operator._single_raw = False
    try:
        rows = [row for record in messages.records() for row in reading.deserialize(record)]
        return operator._batch(rows, None) if rows else operator._schema.empty_table()
    except Exception as error:
        return error


def check(table, messages, connector=None):
    connector = connector or Kafka()
    given = Messages(messages, Message)
    found = connector._reading(table).deserialize_batch(given)
    if found is None:
        return None
    expected = made(table, connector, given)
    assert not isinstance(expected, Exception), f"one by one: {expected!r}"
    assert found.batch.schema.equals(expected.schema)
    found.batch.validate(full=True)
    assert repr(found.batch.to_pylist()) == repr(expected.to_pylist())
    return found


@st.composite
def some_metadata(draw):
    return draw(st.lists(st.sampled_from(list(METADATA)), unique=True, max_size=3))


@EXAMPLES
@given(st.data(), fields_of(), some_metadata(), st.sampled_from(["", "strict", "lenient"]))
def test_json(data, fields, metadata, mode):
    options = {"strict": {"json_fail__on__missing__field": "true"}, "lenient": {"json_ignore__parse__errors": "true"}}
    table = table_of(columns_of(fields), metadata, format="json", **options.get(mode, {}))
    values = data.draw(json_messages(fields)) + data.draw(st.sampled_from([[], [], [None], [b""]]))
    check(table, [Message(value, None, offset) for offset, value in enumerate(values)])


@given(st.data(), fields_of(("LONG", "DOUBLE", "STRING", "BOOLEAN", "ROW", "DATE")), some_metadata())
def test_json_that_is_sound_is_read_at_once(data, fields, metadata):
    table = table_of(columns_of(fields), metadata, format="json")
    values = data.draw(json_messages(fields, broken=False))
    assert check(table, [Message(value, None, offset) for offset, value in enumerate(values)]) is not None


@EXAMPLES
@given(st.data(), fields_of(), st.sampled_from(["all", "EXCEPT_KEY"]))
def test_keys(data, fields, include):
    fields = [("k", "LONG"), *fields]
    options = {"key_format": "json", "key_fields": "k", "value_format": "json", "value_fields__include": include}
    table = table_of(columns_of(fields), **options)
    values = data.draw(json_messages(fields if include == "all" else fields[1:]))
    keys = [data.draw(st.none() | json_messages(fields[:1]).map(lambda some: some[0])) for _ in values]
    check(table, [Message(value, key) for value, key in zip(values, keys, strict=True)])


@EXAMPLES
@given(st.data(), fields_of())
def test_upserts_and_deletes(data, fields):
    fields = [("k", "LONG"), *fields]
    table = table_of(columns_of(fields), key=("k",), key_format="json", value_format="json")
    values = [data.draw(st.none() | st.just(value)) for value in data.draw(json_messages(fields))]
    keys = [data.draw(st.integers(0, 3).map(lambda key: b'{"k":%d}' % key)) for _ in values]
    check(table, [Message(value, key) for value, key in zip(values, keys, strict=True)], UpsertKafka())


@EXAMPLES
@given(st.data(), fields_of(("BOOLEAN", "BYTE", "LONG", "DOUBLE", "FLOAT", "STRING", "DATE", "TIMESTAMP", "DECIMAL")))
def test_csv(data, fields):
    options = data.draw(st.sampled_from([{}, {"csv_null__literal": "n/a"}, {"csv_ignore__parse__errors": "true"}]))
    values = data.draw(csv_messages(fields))
    check(table_of(columns_of(fields), format="csv", **options), [Message(value) for value in values])


AVRO = {
    "BOOLEAN": st.booleans(),
    "BYTE": st.integers(-130, 130),
    "INT": st.integers(-(2**31), 2**31 - 1),
    "LONG": st.integers(-(2**63), 2**63 - 1),
    "FLOAT": st.floats(width=32),
    "DOUBLE": st.floats(),
    "STRING": st.text(max_size=4),
    "BYTES": st.binary(max_size=4),
    "DECIMAL": st.decimals(-100, 100, places=2),
    "LIST": st.lists(st.integers(0, 9), max_size=2),
    "TIMESTAMP": st.integers(0, 2**50),
    "INSTANT": st.integers(0, 2**50),
    "ROW": st.fixed_dictionaries({"x": st.integers(0, 9) | st.none(), "y": st.text(max_size=2) | st.none()}),
}


@EXAMPLES
@given(st.data(), fields_of(tuple(AVRO)))
def test_avro(data, fields):
    columns = columns_of(fields)
    records = st.fixed_dictionaries({name: AVRO[kind] | st.none() for name, kind in fields})
    messages = data.draw(avro_messages(json.loads(avro_schema(columns)), records))
    check(table_of(columns, format="avro"), [Message(message) for message in messages])


@given(
    st.lists(st.text(max_size=3).map(str.encode) | st.binary(max_size=3), min_size=1),
    st.sampled_from(["STRING", "BYTES"]),
)
def test_raw(values, kind):
    check(table_of((Column("a", TYPES[kind]),), format="raw"), [Message(value) for value in values])


def test_all_kinds_are_types_of_tables():
    assert set(TYPES) == set(KINDS)


# --- writing ---
WRITTEN = {
    "BOOLEAN": st.booleans(),
    "BYTE": st.integers(-128, 127),
    "LONG": st.integers(-(2**63), 2**63 - 1),
    "DOUBLE": st.floats(),
    "STRING": st.text(max_size=3) | st.sampled_from(["", 'q"', "a,b", "x\n"]),
    "DATE": st.sampled_from(DATES),
    "TIMESTAMP": st.sampled_from(MOMENTS),
}


@EXAMPLES
@given(st.data(), fields_of(tuple(WRITTEN)), st.sampled_from(["json", "csv", "avro"]), st.booleans())
def test_what_is_written(data, fields, format, keyed):
    """Columns become the messages that rows would."""
    fields = [("k", "LONG"), *fields]
    keys = {"key_format": "json", "key_fields": "k", "value_format": format, "value_fields__include": "EXCEPT_KEY"}
    table = table_of(columns_of(fields), **(keys if keyed else {"format": format}))
    count = data.draw(st.integers(1, 4))
    values = [data.draw(st.lists(WRITTEN[kind] | st.none(), min_size=count, max_size=count)) for _, kind in fields]
    batch = values_batch(table.columns, list(zip(*values, strict=True)))
    rows = ToRows(table.columns, False)._rows(batch)
    for part in Kafka()._writing(table):
        if part is not None:
            assert part.write_batch(batch) == [part.serialize(row) for row in rows]
