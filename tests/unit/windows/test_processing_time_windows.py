"""Windows by the clock of the machine: with the harness, and in whole programs on a clock that a test sets."""

import pytest

from penstock.datastream import StreamExecutionEnvironment
from penstock.datastream.functions import ProcessWindowFunction
from penstock.datastream.window import (
    ProcessingTimeSessionWindows,
    SlidingProcessingTimeWindows,
    TumblingProcessingTimeWindows,
)
from penstock.engine.records.elements import MAX_TIMESTAMP
from penstock.testing import ManualClock, OperatorHarness, in_process, pause, scripted


class Listed(ProcessWindowFunction):
    def process(self, key, context, elements):
        window = context.window()
        yield key, window.start, window.end, [number for _, number in elements]


def played(assigner, *steps):
    """Each step is (time, key, number), or a time alone; gives what came out at each time."""
    with OperatorHarness(lambda s: s.key_by(0).window(assigner).process(Listed())) as h:
        out = {}
        for step in steps:
            time, record = (step, None) if isinstance(step, int) else (step[0], step[1:])
            h.advance_processing_time(time)
            if record is not None:
                h.push(record)
            if rows := h.output():
                assert all(stamp == row[2] - 1 for row, stamp in rows)
                out[time] = [row for row, _ in rows]
        assert (h.state_entries(), h.timers()) == (0, 0)
        return out


def test_tumbling():
    assert played(
        TumblingProcessingTimeWindows.of(10), (1, "a", 1), (8, "a", 2), (9, "b", 3), (10, "a", 4), 19
    ) == {9: [("a", 0, 10, [1, 2])], 10: [("b", 0, 10, [3])], 19: [("a", 10, 20, [4])]}  # fmt: skip


def test_an_offset():
    assert played(TumblingProcessingTimeWindows.of(10, 4), (2, "a", 1), (4, "a", 2), 50) == {
        4: [("a", -6, 4, [1])],
        50: [("a", 4, 14, [2])],
    }


def test_sliding():
    assert played(SlidingProcessingTimeWindows.of(10, 5), (6, "a", 1), (8, "a", 2), 9, (12, "a", 3), 30) == {
        9: [("a", 0, 10, [1, 2])],
        30: [("a", 5, 15, [1, 2, 3]), ("a", 10, 20, [3])],
    }


def test_sessions_grow_and_end():
    steps = [(1, "a", 1), (4, "a", 2), (4, "b", 3), (7, "a", 4), (8, "c", 6), 11, (12, "a", 5), 30]
    assert played(ProcessingTimeSessionWindows.with_gap(5), *steps) == {
        8: [("b", 4, 9, [3])],
        11: [("a", 1, 12, [1, 2, 4])],
        12: [("c", 8, 13, [6])],
        30: [("a", 12, 17, [5])],
    }


def test_sessions_with_a_dynamic_gap():
    assigner = ProcessingTimeSessionWindows.with_dynamic_gap(lambda record: record[1])
    assert played(assigner, (0, "a", 20), (5, "a", 1), 19, (20, "a", 3), 30) == {
        19: [("a", 0, 20, [20, 1])],
        30: [("a", 20, 23, [3])],
    }


def test_watermarks_do_not_touch_them():
    with OperatorHarness(lambda s: s.key_by(0).window(TumblingProcessingTimeWindows.of(10)).process(Listed())) as h:
        h.push(("a", 1), timestamp=500)
        h.watermark(MAX_TIMESTAMP)
        h.push(("a", 2), timestamp=1)
        assert h.output() == []
        h.advance_processing_time(9)
        assert h.values() == [("a", 0, 10, [1, 2])]


def test_a_window_that_is_not_over_when_the_input_ends_is_not_evaluated():
    with OperatorHarness(lambda s: s.key_by(0).window(TumblingProcessingTimeWindows.of(10)).process(Listed())) as h:
        h.push(("a", 1))
        h.end()
        assert h.values() == []
        assert (h.state_entries(), h.timers()) == (1, 1)


@pytest.mark.parametrize("epoch_records", [1, None])
def test_a_program_wakes_up_for_its_windows(epoch_records):
    clock = ManualClock(1_000)
    with in_process(epoch_records=epoch_records, clock=clock):
        environment = StreamExecutionEnvironment().set_parallelism(1)
        source = scripted(environment, ("a", 1), ("a", 2), pause(), stay=True)
        sums = source.key_by(0).window(TumblingProcessingTimeWindows.of(60_000)).sum(1)
        with sums.execute_and_collect() as results:
            assert next(results) == ("a", 3)
    assert 59_999 <= clock.now() < 120_000
