"""What a frame says of a record that cannot travel."""

import threading

import pytest

from penstock.common import Row
from penstock.engine.exchange.frames import FRAME_RECORDS, FrameBuilder, Unpicklable
from penstock.engine.exchange.writers import BroadcastWriter, SingleWriter
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
