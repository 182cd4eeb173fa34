"""Columns against values: whatever form a stream has, the same records arrive in the same places and order."""

import datetime as dt
import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.api.functions.key_selectors import key_selector
from penstock.api.latency_marker import LatencyMarker
from penstock.common import Row, Types
from penstock.engine.exchange import frames
from penstock.engine.exchange.frames import FrameBuilder, deliver
from penstock.engine.exchange.writers import (
    BroadcastWriter,
    CustomWriter,
    KeyCheck,
    KeyGroupWriter,
    Owner,
    RoundRobinWriter,
    ShuffleWriter,
    SingleWriter,
)
from penstock.engine.records.columns import Columns
from penstock.engine.records.elements import MAX_TIMESTAMP, MIN_TIMESTAMP, Chunk
from penstock.engine.records.failures import OperatorFailed

MARKER = LatencyMarker(12.5, "source", 3)

OWNER = Owner("w", "u")
KEYS = {
    "long": (Types.LONG(), pa.int64(), st.integers(-(2**63), 2**63 - 1) | st.integers(0, 4)),
    "byte": (Types.BYTE(), pa.int8(), st.integers(-3, 3)),
    "double": (Types.DOUBLE(), pa.float64(), st.sampled_from([0.0, -0.0, 1.0, 1.5, -2.25, math.inf])),
    "string": (Types.STRING(), pa.string(), st.text(max_size=3)),
    "boolean": (Types.BOOLEAN(), pa.bool_(), st.booleans()),
    "bytes": (Types.PRIMITIVE_ARRAY(Types.BYTE()), pa.binary(), st.binary(max_size=2)),
    "date": (Types.SQL_DATE(), pa.date32(), st.dates()),
    "timestamp": (
        Types.SQL_TIMESTAMP(),
        pa.timestamp("us"),
        st.datetimes(dt.datetime(1970, 1, 1)).map(lambda time: time.replace(fold=0)),
    ),
    "decimal": (
        Types.BIG_DEC(),
        pa.decimal128(38, 18),
        st.decimals(-100, 100, places=2).map(lambda d: Decimal(d).quantize(Decimal(1).scaleb(-18))),
    ),
}


@st.composite
def streams(draw, kinds=tuple(KEYS)):
    """A stream in two forms, elements of which some are chunks: of rows, and of rows or the same rows in columns."""
    kind = draw(st.sampled_from(kinds))
    declared, arrow, keys = KEYS[kind]
    schema = pa.schema([("key", arrow), ("number", pa.int64())])
    row_type = Types.ROW_NAMED(["key", "number"], [declared, Types.LONG()])
    rows, mixed, number = [], [], 0
    for _ in range(draw(st.integers(0, 8))):
        if draw(st.integers(0, 3)) == 0:
            controls = [("watermark", 5), ("status", True), ("status", False), ("marker", MARKER), ("take",)]
            control = draw(st.sampled_from(controls))
            rows.append(control)
            mixed.append(control)
            continue
        part = draw(st.lists(keys | st.none(), min_size=1, max_size=9))
        values = [Row(key=key, number=number + i) for i, key in enumerate(part)]
        number += len(part)
        stamp = st.none() | st.integers(MIN_TIMESTAMP, MAX_TIMESTAMP)
        stamps = draw(st.none() | st.lists(stamp, min_size=len(part), max_size=len(part)))
        rows.append(("chunk", Chunk(values, stamps)))
        mixed.append(("chunk", draw(st.sampled_from([in_columns, as_values]))(values, stamps, schema, row_type)))
    return rows, mixed


def in_columns(values: list[Any], stamps: Any, schema: Any, row_type: Any) -> Chunk:
    arrays = [pa.array([row[i] for row in values], field.type) for i, field in enumerate(schema)]
    times = None if stamps is None else pa.array(stamps, pa.int64())
    return Chunk.of(Columns(pa.RecordBatch.from_arrays(arrays, schema=schema), times, row_type))


def as_values(values: list[Any], stamps: Any, *_: Any) -> Chunk:
    return Chunk(values, stamps)


class Recorder:
    def __init__(self) -> None:
        self.seen: list[Any] = []
        self.columns = 0

    def chunk(self, chunk: Chunk) -> None:
        assert len(chunk), "an empty chunk"
        self.columns += chunk.columns is not None
        assert len(chunk) == len(chunk.values)
        stamps = [None] * len(chunk) if chunk.timestamps is None else chunk.timestamps
        self.seen.extend(("record", repr(value), stamp) for value, stamp in zip(chunk.values, stamps, strict=True))

    def watermark(self, timestamp: int) -> None:
        self.seen.append(("watermark", timestamp))

    def status(self, idle: bool) -> None:
        self.seen.append(("status", idle))

    def end(self) -> None:
        self.seen.append(("end",))

    def marker(self, marker: LatencyMarker) -> None:
        self.seen.append(("marker", marker))


def arrived(writer: Any, stream: list[Any]) -> dict[int, list[Any]]:
    recorders = {target: Recorder() for target in writer.builders}
    for kind, *rest in [*stream, ("take",)]:
        if kind != "take":
            getattr(writer, kind)(*rest)
            continue
        for target, sent in writer.take().items():
            for frame in sent:
                deliver(frame, recorders[target])
    return {target: recorder.seen for target, recorder in recorders.items()}


def by_name(row: Row) -> Any:
    return row["key"]


def choose(key: Any, width: int) -> int:
    return len(repr(key)) % width


WRITERS = {
    "single": lambda subtask, width: SingleWriter(OWNER, subtask, [width - 1]),
    "broadcast": lambda subtask, width: BroadcastWriter(OWNER, subtask, range(width)),
    "round robin": lambda subtask, width: RoundRobinWriter(OWNER, subtask, range(width)),
    "shuffle": lambda subtask, width: ShuffleWriter(OWNER, subtask, range(width)),
    "custom": lambda subtask, width: CustomWriter(OWNER, subtask, range(width), choose, by_name),
    "key by name": lambda subtask, width: KeyGroupWriter(OWNER, subtask, range(width), key_selector("key"), 128),
    "key by position": lambda subtask, width: KeyGroupWriter(OWNER, subtask, range(width), key_selector(0), 128),
    "key by function": lambda subtask, width: KeyGroupWriter(OWNER, subtask, range(width), by_name, 128),
}


@pytest.mark.parametrize("name", list(WRITERS))
@settings(max_examples=40)
@given(streams(), st.integers(0, 3), st.integers(1, 4))
def test_every_exchange_gives_columns_the_way_of_values(name, stream, subtask, width):
    rows, mixed = stream
    make = WRITERS[name]
    assert arrived(make(subtask, width), mixed) == arrived(make(subtask, width), rows)


@given(streams(), st.integers(1, 12))
def test_a_channel_of_both_forms_arrives_as_it_was_sent(stream, frame_records):
    before, frames.FRAME_RECORDS = frames.FRAME_RECORDS, frame_records
    try:
        assert arrived(WRITERS["single"](0, 1), stream[1]) == arrived(WRITERS["single"](0, 1), stream[0])
    finally:
        frames.FRAME_RECORDS = before


@given(streams())
def test_rows_become_columns_and_rows_again(stream):
    for kind, *rest in stream[1]:
        if kind == "chunk" and rest[0].columns is not None:
            columns = rest[0].columns
            again = Columns.of_rows(columns.rows(), columns.timestamps(), columns.row_type)
            assert repr(again.rows()) == repr(columns.rows())
            assert again.timestamps() == columns.timestamps()


def readings(keys: list[Any], kind: Any = None) -> Chunk:
    return Chunk.of(Columns(pa.RecordBatch.from_pydict({"key": pa.array(keys, kind), "n": list(range(len(keys)))})))


def has_rows(chunk: Chunk) -> bool:
    """Whether the rows of a chunk were made; looking does not make them."""
    try:
        object.__getattribute__(chunk, "values")
    except AttributeError:
        return False
    return True


def test_rows_are_made_once_and_only_when_they_are_wanted():
    chunk = readings([1, 2])
    assert len(chunk) == 2 and not has_rows(chunk)
    assert chunk.timestamps is None and not has_rows(chunk)
    assert chunk.values == [Row(key=1, n=0), Row(key=2, n=1)]
    assert chunk.values is chunk.values and has_rows(chunk)
    with pytest.raises(AttributeError, match="'value'"):
        chunk.value


def test_columns_stay_columns_through_an_exchange_by_a_column():
    writer = KeyGroupWriter(OWNER, 0, range(2), key_selector("key"), 128)
    chunk = readings([f"k{n % 7}" for n in range(50)])
    writer.chunk(chunk)
    recorder = Recorder()
    for sent in writer.take().values():
        for frame in sent:
            deliver(frame, recorder)
    assert recorder.columns == 2 and len(recorder.seen) == 50
    assert not has_rows(chunk)


def test_neighbouring_columns_travel_as_one():
    builder = FrameBuilder()
    for part in range(20):
        builder.add(readings([part] * 10))
    recorder = Recorder()
    for frame in builder.take():
        deliver(frame, recorder)
    assert recorder.columns == 1 and len(recorder.seen) == 200


def test_a_small_part_of_columns_is_sent_without_the_rest():
    columns = readings(list(range(100_000))).columns
    builder = FrameBuilder()
    builder.add_columns(columns.slice(5, 3))
    assert sum(map(len, builder.take())) < 2000


@pytest.mark.parametrize("bad", [math.nan, [1, 2]])
@pytest.mark.parametrize("checked", [True, False])
def test_a_bad_key_in_a_column_is_named_with_its_record(bad, checked):
    keys = [[3], bad] if isinstance(bad, list) else [1.5, bad]
    where = Recorder()
    receiver = KeyCheck(OWNER, where, key_selector("key"))
    if not checked:
        receiver = KeyGroupWriter(OWNER, 0, range(2), key_selector("key"), 128)
    with pytest.raises(OperatorFailed, match="cannot be a key") as raised:
        receiver.chunk(readings(keys))
    assert f"key={bad if not isinstance(bad, list) else [3]!r}" in raised.value.failure.record.replace("'", "")


def test_good_keys_pass_the_check_as_columns():
    recorder = Recorder()
    KeyCheck(OWNER, recorder, key_selector("key")).chunk(readings([1, None, 2]))
    assert recorder.columns == 1 and len(recorder.seen) == 3
