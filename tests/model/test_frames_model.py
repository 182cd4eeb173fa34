"""What goes into a FrameBuilder comes out of `deliver`, in order."""

import datetime as dt
import pickle
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.api.latency_marker import LatencyMarker
from penstock.common import Row, RowKind
from penstock.engine.exchange import frames
from penstock.engine.exchange.frames import FrameBuilder, deliver
from penstock.engine.records.elements import MAX_TIMESTAMP, MIN_TIMESTAMP, Chunk


@dataclass
class Reading:
    sensor: str
    value: float


ROWS = st.one_of(
    st.lists(st.integers() | st.text(max_size=3), max_size=3).map(lambda fields: Row(*fields)),
    st.builds(lambda a, b: Row(a=a, b=b), st.integers(), st.none() | st.text(max_size=3)),
    st.builds(lambda kind, a: Row.of_kind(kind, a), st.sampled_from(list(RowKind)), st.integers()),
)
VALUES = st.one_of(
    st.integers(),
    st.text(max_size=5),
    st.none(),
    st.booleans(),
    st.floats(allow_nan=False),
    st.binary(max_size=4),
    st.decimals(allow_nan=False),
    st.dates(),
    st.tuples(st.integers(), st.text(max_size=3)),
    st.lists(st.integers(), max_size=3),
    st.dictionaries(st.text(max_size=2), st.integers(), max_size=2),
    st.builds(Reading, st.text(max_size=2), st.floats(allow_nan=False)),
    ROWS,
    st.tuples(ROWS),
)
STAMPS = st.one_of(st.none(), st.integers(MIN_TIMESTAMP, MAX_TIMESTAMP), st.integers(0, 100))


@st.composite
def chunks(draw):
    values = draw(st.lists(st.one_of(VALUES, ROWS), min_size=1, max_size=6) | st.lists(ROWS, min_size=1, max_size=6))
    stamps = draw(st.none() | st.lists(STAMPS, min_size=len(values), max_size=len(values)))
    return ("chunk", Chunk(values, stamps))


MARKERS = st.builds(LatencyMarker, st.floats(0, 1e13), st.text(max_size=3), st.integers(0, 9))
ELEMENTS = st.lists(
    st.one_of(
        chunks(),
        chunks(),
        st.tuples(st.just("watermark"), st.integers(MIN_TIMESTAMP, MAX_TIMESTAMP)),
        st.tuples(st.just("status"), st.booleans()),
        st.just(("end",)),
        st.tuples(
            st.just("marker"), st.builds(LatencyMarker, st.floats(0, 1e13), st.text(max_size=3), st.integers(0, 9))
        ),
        st.just(("take",)),
    ),
    max_size=15,
)


class Recorder:
    """Writes down what it receives, a line a record."""

    def __init__(self) -> None:
        self.seen: list[Any] = []

    def chunk(self, chunk: Chunk) -> None:
        assert len(chunk), "an empty chunk"
        stamps = [None] * len(chunk) if chunk.timestamps is None else chunk.timestamps
        self.seen.extend(("record", value, stamp) for value, stamp in zip(chunk.values, stamps, strict=True))

    def watermark(self, timestamp: int) -> None:
        self.seen.append(("watermark", timestamp))

    def status(self, idle: bool) -> None:
        self.seen.append(("status", idle))

    def end(self) -> None:
        self.seen.append(("end",))

    def marker(self, marker: LatencyMarker) -> None:
        self.seen.append(("marker", marker))


def flat(elements: list[Any]) -> list[Any]:
    recorder = Recorder()
    for kind, *rest in elements:
        if kind != "take":
            getattr(recorder, kind)(*rest)
    return recorder.seen


def same(left: Any, right: Any) -> bool:
    """Equal, and of the same types: 1 is not True here."""
    return repr(left) == repr(right) and left == right


@given(ELEMENTS, st.integers(1, 12))
def test_a_channel_arrives_as_it_was_sent(elements, frame_records):
    before, frames.FRAME_RECORDS = frames.FRAME_RECORDS, frame_records
    try:
        builder, sent = FrameBuilder(), list[bytes]()
        for kind, *rest in elements:
            if kind == "take":
                sent.extend(builder.take())
            else:
                {"chunk": builder.add}.get(kind, getattr(builder, kind, None))(*rest)
        sent.extend(builder.take())
    finally:
        frames.FRAME_RECORDS = before
    assert builder.take() == []
    recorder = Recorder()
    for frame in sent:
        deliver(frame, recorder)
    assert same(recorder.seen, flat(elements))


@given(st.lists(st.integers(0, 200), min_size=1, max_size=60), st.integers(1, 50))
def test_frames_do_not_grow_beyond_their_size(sizes, frame_records):
    before, frames.FRAME_RECORDS = frames.FRAME_RECORDS, frame_records
    try:
        builder = FrameBuilder()
        for size in sizes:
            builder.extend(list(range(size)), None)
        sent = builder.take()
    finally:
        frames.FRAME_RECORDS = before
    for frame in sent[:-1]:
        assert frame_records <= sum(len(element[1]) for element in pickle.loads(frame)) < frame_records + 200


def test_kinds_names_and_order_of_rows_survive():
    builder, recorder = FrameBuilder(), Recorder()
    rows = [Row(a=1, b=2), Row.of_kind(RowKind.DELETE, a=3, b=4), Row(b=5, a=6), Row(7, 8), Row(), "no row"]
    builder.extend(rows, None)
    deliver(builder.take()[0], recorder)
    arrived = [value for _, value, _ in recorder.seen]
    assert arrived == rows
    assert [getattr(r, "get_row_kind", lambda: None)() for r in arrived[:2]] == [RowKind.INSERT, RowKind.DELETE]
    assert arrived[2].get_field_names() == ["b", "a"]


@pytest.mark.parametrize("wide", [Row(*range(40)), Row(**{f"f{n}": n for n in range(40)})])
def test_rows_of_many_fields(wide):
    builder, recorder = FrameBuilder(), Recorder()
    builder.extend([wide, wide], [1, 2])
    deliver(builder.take()[0], recorder)
    assert recorder.seen == [("record", wide, 1), ("record", wide, 2)]


def test_values_of_a_class_inside_a_function():
    class Local:
        def __init__(self, n):
            self.n = n

    builder, recorder = FrameBuilder(), Recorder()
    builder.extend([Local(3), Decimal(2), dt.date(2024, 1, 1)], None)
    deliver(builder.take()[0], recorder)
    assert recorder.seen[0][1].n == 3


def test_timestamps_beyond_64_bits_become_the_last_one():
    builder, recorder = FrameBuilder(), Recorder()
    builder.extend(["a", "b"], [MAX_TIMESTAMP + 5, 1])
    deliver(builder.take()[0], recorder)
    assert recorder.seen == [("record", "a", MAX_TIMESTAMP), ("record", "b", 1)]
