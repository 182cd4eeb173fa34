"""What a frame says of a record that cannot travel."""

import threading

import pytest

from penstock.common import Row
from penstock.runtime.exchange.frames import FrameBuilder, Unpicklable


@pytest.mark.parametrize("record", [("bad", threading.Lock()), Row("bad", threading.Lock())], ids=["tuple", "row"])
def test_a_record_that_cannot_be_sent_is_named(record):
    good = type(record)(("good", 1)) if isinstance(record, tuple) else Row("good", 1)
    builder = FrameBuilder()
    builder.extend([good, record], None)
    with pytest.raises(Unpicklable) as raised:
        builder.take()
    assert raised.value.record[0] == "bad"
