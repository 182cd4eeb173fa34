"""What goes into a frame, when frames are cut, and what they say of a record that cannot travel."""

import pickle
import threading
from array import array

import pytest

from penstock.common import Row, Types
from penstock.engine.exchange import frames
from penstock.engine.exchange.frames import FRAME_RECORDS, FrameBuilder, Unpicklable, deliver
from penstock.engine.exchange.writers import BroadcastWriter, SingleWriter
from penstock.engine.observe.slot_activity import Traffic
from penstock.engine.records.columns import Columns
from penstock.engine.records.elements import Chunk


@pytest.mark.parametrize("record", [("bad", threading.Lock()), Row("bad", threading.Lock())], ids=["tuple", "row"])
def test_a_record_that_cannot_be_sent_is_named(record):
    good = type(record)(("good", 1)) if isinstance(record, tuple) else Row("good", 1)
    builder = FrameBuilder()
    builder.extend([good, record], None)
    with pytest.raises(Unpicklable) as raised:
        builder.take()
    assert raised.value.record[0] == "bad"


def test_a_frame_is_cut_as_soon_as_it_is_full():
    builder = FrameBuilder()
    builder.extend([1] * (FRAME_RECORDS - 1), None)
    builder.settle()
    builder.extend([1], None)
    assert len(builder._frames) == 0
    builder.settle()
    assert (len(builder._frames), builder.waiting()) == (1, FRAME_RECORDS)


@pytest.mark.parametrize(("writer", "sent"), [(BroadcastWriter, 5), (SingleWriter, 5)])
def test_a_record_that_goes_to_several_targets_counts_once(writer, sent):
    made = writer(None, 0, [0, 1, 2])
    made.chunk(Chunk([1, 2, 3], None))
    made.take()
    made.chunk(Chunk([4, 5], None))
    assert made.count_sent() == 3
    made.take()
    assert made.count_sent() == sent


class Received:
    """Notes the chunks and control elements of frames."""

    def __init__(self):
        self.seen = []

    def chunk(self, chunk):
        self.seen.append((list(chunk.values), chunk.timestamps))

    def watermark(self, timestamp):
        self.seen.append(timestamp)

    def status(self, idle):
        self.seen.append(idle)


def columns(*numbers, timed=False):
    row_type = Types.ROW_NAMED(["n"], [Types.LONG()])
    return Chunk.of(Columns.of_rows([Row(n=n) for n in numbers], list(numbers) if timed else None, row_type))


def received(frames):
    receiver = Received()
    return [deliver(frame, receiver) for frame in frames], receiver.seen


def test_an_empty_builder_has_nothing():
    builder = FrameBuilder()
    assert (builder.waiting(), builder.take()) == (0, [])
    builder.settle()
    assert (builder.waiting(), builder.take()) == (0, [])


def test_whatever_has_been_added_waits_until_it_is_taken():
    builder = FrameBuilder()
    builder.extend([1, 2, 3], None)
    assert builder.waiting() == 3
    builder.watermark(5)
    assert builder.waiting() == 4
    builder.extend([4], [7])
    assert builder.waiting() == 5
    builder.add(columns(1, 2))
    assert builder.waiting() == 7
    builder.status(True)
    assert builder.waiting() == 8
    assert len(builder.take()) == 1 and builder.waiting() == 0
    builder.extend([1], None)
    assert builder.waiting() == 1


@pytest.mark.parametrize("form", ["watermarks", "columns", "values before a watermark"])
def test_a_frame_is_cut_whatever_has_filled_it(form, monkeypatch):
    monkeypatch.setattr(frames, "FRAME_RECORDS", 4)
    builder = FrameBuilder()
    if form == "watermarks":
        for timestamp in range(4):
            builder.settle()
            builder.watermark(timestamp)
    elif form == "columns":
        builder.add(columns(1, 2, 3))
        builder.settle()
        builder.add(columns(4))
    else:
        builder.extend([1, 2, 3], None)
        builder.settle()
        builder.watermark(1)
    assert builder._frames == []
    builder.settle()
    assert len(builder._frames) == 1 and builder.waiting() == 4
    builder.watermark(9)
    assert builder.waiting() == 5, "the next frame begins at nothing"


def test_records_and_bytes_of_frames_are_counted():
    sent = Traffic()
    builder = FrameBuilder(sent)
    builder.extend([1, 2], None)
    builder.add(columns(1, 2, 3))
    builder.watermark(1)
    assert sent.bytes == 0
    made = builder.take()
    assert (sent.records, sent.bytes) == (5, sum(map(len, made)))
    builder.extend([3], None)
    made += builder.take()
    assert (sent.records, sent.bytes) == (6, sum(map(len, made)))


def test_the_records_of_a_frame_are_counted_when_it_arrives():
    builder = FrameBuilder()
    builder.extend(["a", "b"], None)
    builder.extend([Row(1), Row(2), Row(3)], [1, 2, None])
    builder.add(columns(1, 2, 3, 4))
    builder.watermark(3)
    counts, _ = received(builder.take())
    assert counts == [9]


def test_chunks_of_one_kind_arrive_as_one():
    builder = FrameBuilder()
    builder.extend([1], None)
    builder.extend([2], None)
    builder.extend([3], [5])
    builder.extend([4], [None])
    builder.extend([5], None)
    builder.add(columns(6))
    builder.extend([7], None)
    builder.add(columns(8, timed=True))
    builder.add(columns(9))
    row = lambda n: Row(n=n)  # noqa: E731
    _, seen = received(builder.take())
    assert seen[:3] == [([1, 2], None), ([3, 4], [5, None]), ([5], None)]
    assert seen[3:] == [([row(6)], None), ([7], None), ([row(8)], [8]), ([row(9)], None)]


@pytest.mark.parametrize(
    ("values", "kind"),
    [([Row(1), Row(2)], frames._ROWS), ([Row(1), 2], frames._VALUES), ([1, Row(2)], frames._VALUES)],
)
def test_rows_travel_as_columns_where_all_are_rows(values, kind):
    builder = FrameBuilder()
    builder.extend(values, None)
    ((element,),) = [pickle.loads(frame) for frame in builder.take()]
    assert element[0] == kind


def test_timestamps_travel_as_numbers_where_all_are_known():
    builder = FrameBuilder()
    builder.extend([1], [5])
    ((element,),) = [pickle.loads(frame) for frame in builder.take()]
    assert element[2] == array("q", [5])


def test_the_cause_of_a_record_that_cannot_be_sent_is_told():
    builder = FrameBuilder()
    builder.watermark(1)
    builder.extend([1, threading.Lock()], None)
    with pytest.raises(Unpicklable, match=r"cannot be sent to another slot \(TypeError: .*lock.*emit plain data"):
        builder.take()
