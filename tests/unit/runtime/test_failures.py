"""What a user sees of a failure."""

import os

import penstock
from penstock.common import Types
from penstock.engine.records.failures import failure_of


def test_frames_of_any_part_of_penstock_are_left_out():
    """The error comes out of penstock/common, whose frames help a user as little as those of the runtime."""
    try:
        Types.INT().fit(["no number"])
    except Exception as error:
        traceback = failure_of(error, "op", "uid", 0).traceback
    assert "test_frames_of_any_part" in traceback and os.path.dirname(penstock.__file__) not in traceback
