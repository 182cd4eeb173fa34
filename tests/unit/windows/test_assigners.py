"""Which windows a record falls into: the assigners, their spellings on streams, and assigners of one's own."""

import datetime

import pytest

from penstock.common import Duration, Time
from penstock.datastream import StreamExecutionEnvironment, TimeCharacteristic
from penstock.datastream.functions import ProcessAllWindowFunction, ProcessWindowFunction
from penstock.datastream.window import (
    CountSlidingWindowAssigner,
    CountTrigger,
    CountTumblingWindowAssigner,
    DynamicEventTimeSessionWindows,
    EventTimeSessionWindows,
    EventTimeTrigger,
    GlobalWindow,
    GlobalWindows,
    MergingWindowAssigner,
    ProcessingTimeSessionWindows,
    PurgingTrigger,
    SessionWindowTimeGapExtractor,
    SlidingEventTimeWindows,
    SlidingProcessingTimeWindows,
    TimeWindow,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
    Window,
    WindowAssigner,
)
from penstock.testing import OperatorHarness


class Listed(ProcessWindowFunction):
    def process(self, key, context, elements):
        yield key, context.window(), sorted(number for _, number, *_ in elements)


class ListedAll(ProcessAllWindowFunction):
    def process(self, context, elements):
        yield context.window(), sorted(number for _, number in elements)


def windows(assigner, timestamp, element=None):
    return [(w.start, w.end) for w in assigner.assign_windows(element, timestamp, None)]


@pytest.mark.parametrize(
    ("timestamp", "offset", "expected"),
    [(0, 0, (0, 10)), (9, 0, (0, 10)), (10, 0, (10, 20)), (-1, 0, (-10, 0)), (2, 3, (-7, 3)), (3, 3, (3, 13)),
     (-8, -3, (-13, -3)), (7, -3, (7, 17))],
)  # fmt: skip
def test_tumbling(timestamp, offset, expected):
    assert windows(TumblingEventTimeWindows.of(10, offset), timestamp) == [expected]


@pytest.mark.parametrize(
    ("size", "slide", "offset", "expected"),
    [
        (10, 5, 0, [(10, 20), (5, 15)]),
        (10, 4, 0, [(12, 22), (8, 18), (4, 14)]),
        (10, 4, 1, [(9, 19), (5, 15)]),
        (10, 4, -1, [(11, 21), (7, 17), (3, 13)]),
        (2, 5, 0, []),
        (3, 5, 0, [(10, 13)]),
        (10, 10, 0, [(10, 20)]),
    ],
)
def test_sliding(size, slide, offset, expected):
    """Timestamp 12; the latest window first."""
    assert windows(SlidingEventTimeWindows.of(size, slide, offset), 12) == expected


def test_sessions_start_as_long_as_their_gap():
    assert windows(EventTimeSessionWindows.with_gap(Time.seconds(2)), 7) == [(7, 2007)]
    dynamic = EventTimeSessionWindows.with_dynamic_gap(lambda element: element * 2)
    assert isinstance(dynamic, DynamicEventTimeSessionWindows)
    assert windows(dynamic, 7, 5) == [(7, 17)]

    class ByLength(SessionWindowTimeGapExtractor):
        def extract(self, element):
            return len(element)

    assert windows(DynamicEventTimeSessionWindows.with_dynamic_gap(ByLength()), -1, "abc") == [(-1, 2)]


@pytest.mark.parametrize("five_seconds", [5000, Time.seconds(5), Duration.of_seconds(5), datetime.timedelta(seconds=5)])
def test_lengths_of_time_in_any_spelling(five_seconds):
    assert windows(TumblingEventTimeWindows.of(five_seconds), 0) == [(0, 5000)]
    assert windows(SlidingEventTimeWindows.of(five_seconds, five_seconds), 0) == [(0, 5000)]
    assert windows(EventTimeSessionWindows.with_gap(five_seconds), 0) == [(0, 5000)]


def test_assigners_know_their_time_and_print_what_they_are():
    known = {
        TumblingEventTimeWindows.of(10): (True, "TumblingEventTimeWindows(10)"),
        TumblingProcessingTimeWindows.of(10, 3): (False, "TumblingProcessingTimeWindows(10, offset 3)"),
        SlidingEventTimeWindows.of(10, 5): (True, "SlidingEventTimeWindows(10, 5)"),
        SlidingProcessingTimeWindows.of(10, 5): (False, "SlidingProcessingTimeWindows(10, 5)"),
        EventTimeSessionWindows.with_gap(7): (True, "EventTimeSessionWindows(7)"),
        ProcessingTimeSessionWindows.with_gap(7): (False, "ProcessingTimeSessionWindows(7)"),
        EventTimeSessionWindows.with_dynamic_gap(len): (True, "DynamicEventTimeSessionWindows(dynamic)"),
        GlobalWindows.create(): (False, "GlobalWindows()"),
        CountTumblingWindowAssigner.of(3): (False, "CountTumblingWindowAssigner(3, 3)"),
        CountSlidingWindowAssigner.of(4, 2): (False, "CountSlidingWindowAssigner(4, 2)"),
    }
    assert {assigner: (assigner.is_event_time(), repr(assigner)) for assigner in known} == known


# --- the spellings on streams ---
def fed(build):
    """Four records in both keys, at 1, 2, 11 and 12 ms of both clocks; then time passes."""
    with OperatorHarness(build) as h:
        for time, key in ((1, "a"), (2, "b"), (11, "a"), (12, "a")):
            h.advance_processing_time(time)
            h.push((key, time), time)
        h.watermark(100)
        h.advance_processing_time(100)
        return h.values()


TUMBLING = [("a", TimeWindow(0, 10), [1]), ("b", TimeWindow(0, 10), [2]), ("a", TimeWindow(10, 20), [11, 12])]


def test_windows_of_keys():
    assert fed(lambda s: s.key_by(0).window(TumblingEventTimeWindows.of(10)).process(Listed())) == TUMBLING
    assert fed(lambda s: s.key_by(0).time_window(Time.milliseconds(10)).process(Listed())) == TUMBLING
    assert fed(lambda s: s.key_by(0).window(TumblingProcessingTimeWindows.of(10)).process(Listed())) == TUMBLING


def test_windows_of_the_whole_stream():
    expected = [(TimeWindow(0, 10), [1, 2]), (TimeWindow(10, 20), [11, 12])]
    assert fed(lambda s: s.window_all(TumblingEventTimeWindows.of(10)).process(ListedAll())) == expected
    assert fed(lambda s: s.time_window_all(10).process(ListedAll())) == expected
    assert fed(lambda s: s.key_by(0).window_all(TumblingEventTimeWindows.of(10)).process(ListedAll())) == expected
    assert fed(lambda s: s.window_all(GlobalWindows.create()).process(ListedAll())) == []


def test_sliding_time_windows():
    expected = [
        (TimeWindow(-5, 5), [1, 2]),
        (TimeWindow(0, 10), [1, 2]),
        (TimeWindow(5, 15), [11, 12]),
        (TimeWindow(10, 20), [11, 12]),
    ]
    assert fed(lambda s: s.time_window_all(10, 5).process(ListedAll())) == expected
    assert fed(lambda s: s.window_all(SlidingProcessingTimeWindows.of(10, 5)).process(ListedAll())) == expected


def test_time_windows_follow_the_time_characteristic():
    environment = StreamExecutionEnvironment()
    assert environment.from_elements(1).time_window_all(5)._assigner.is_event_time()
    environment.set_stream_time_characteristic(TimeCharacteristic.ProcessingTime)
    assert not environment.from_elements(1).time_window_all(5)._assigner.is_event_time()
    assert not environment.from_elements(1).key_by(lambda v: v).time_window(5, 1)._assigner.is_event_time()


def test_count_windows():
    class Numbers(ProcessAllWindowFunction):
        def process(self, context, elements):
            yield [number for _, number in elements]

    assert fed(lambda s: s.count_window_all(2).process(Numbers())) == [[1, 2], [11, 12]]
    assert fed(lambda s: s.count_window_all(3, 1).process(Numbers())) == [[1, 2, 11], [2, 11, 12]]
    assert fed(lambda s: s.count_window_all(1, 2).process(Numbers())) == [[1], [11]]
    assert [row[::2] for row in fed(lambda s: s.key_by(0).count_window(2).process(Listed()))] == [("a", [1, 11])]
    assert [row[::2] for row in fed(lambda s: s.key_by(0).count_window(2, 1).process(Listed()))] == [
        ("a", [1, 11]),
        ("a", [11, 12]),
    ]


def test_an_all_window_runs_in_one_subtask(run):
    class Size(ProcessAllWindowFunction):
        def process(self, context, elements):
            yield len(elements)

    assert run(lambda env: env.from_sequence(1, 100).count_window_all(100).process(Size()), parallelism=3) == [100]


# --- assigners of one's own ---
class ByName(Window):
    """A window of a user: not even time."""

    def __init__(self, name):
        self.name = name

    def max_timestamp(self):
        return 10 * len(self.name) - 1

    def __eq__(self, other):
        return isinstance(other, ByName) and self.name == other.name

    def __hash__(self):
        return hash(self.name)


class Initials(WindowAssigner):
    """Every prefix of the element is a window; an empty element has none."""

    def assign_windows(self, element, timestamp, context):
        assert context.get_current_processing_time() == 0
        assert context.get_runtime_context().get_task_name() == "Window Apply"
        return [ByName(element[: n + 1]) for n in range(len(element))]

    def get_default_trigger(self, env):
        return EventTimeTrigger.create()

    def is_event_time(self):
        return True


def test_a_custom_assigner():
    def build(stream):
        return stream.key_by(len).window(Initials()).apply(lambda key, window, elements: [(window.name, elements)])

    with OperatorHarness(build) as h:
        for word in ("ab", "ac", "", "x"):
            h.push(word, timestamp=0)
        assert (h.state_entries(), h.timers()) == (4, 4)
        h.watermark(9)
        assert h.output() == [(("a", ["ab", "ac"]), 9), (("x", ["x"]), 9)]
        h.watermark(19)
        assert h.output() == [(("ab", ["ab"]), 19), (("ac", ["ac"]), 19)]
        assert (h.state_entries(), h.timers()) == (0, 0)


class SameTens(MergingWindowAssigner):
    """Windows of one millisecond, merged with all others of the same ten."""

    def assign_windows(self, element, timestamp, context):
        return [TimeWindow(timestamp, timestamp + 1)]

    def merge_windows(self, windows, callback):
        tens = {}
        for window in windows:
            tens.setdefault(window.start // 10, set()).add(window)
        for group in tens.values():
            if len(group) > 1:
                callback.merge(group, TimeWindow(min(w.start for w in group), max(w.end for w in group)))

    def get_default_trigger(self, env):
        return EventTimeTrigger.create()

    def is_event_time(self):
        return True


def test_a_custom_merging_assigner():
    with OperatorHarness(lambda s: s.key_by(0).window(SameTens()).process(Listed())) as h:
        for time in (5, 12, 1, 3, 17, 29):
            h.push(("a", time), time)
        assert (h.state_entries(), h.timers()) == (4, 3)
        h.watermark(17)
        assert h.values() == [("a", TimeWindow(1, 6), [1, 3, 5]), ("a", TimeWindow(12, 18), [12, 17])]
        h.end()
        assert h.values() == [("a", TimeWindow(29, 30), [29])]
        assert (h.state_entries(), h.timers()) == (0, 0)


def test_the_global_window_is_one():
    assert GlobalWindows.create().assign_windows(1, None, None) == [GlobalWindow.get()]


class Gap(SessionWindowTimeGapExtractor):
    def extract(self, element):
        return element[2]


@pytest.mark.parametrize("empty", [0, 20, 40])
def test_a_session_that_joins_three_others_of_which_one_is_empty(empty):
    """Two elements empty a window, and a long one makes all windows one."""
    sessions = DynamicEventTimeSessionWindows.with_dynamic_gap(Gap())
    trigger = PurgingTrigger.of(CountTrigger.of(2))
    with OperatorHarness(lambda s: s.key_by(0).window(sessions).trigger(trigger).process(Listed())) as h:
        for start in (0, 20, 40):
            h.push(("a", start, 10), start)
        h.push(("a", empty, 10), empty)
        assert [row[2] for row in h.values()] == [[empty, empty]]
        assert h.state_entries() > 0
        h.push(("a", 8, 35), 8)
        kept = sorted({0, 20, 40} - {empty})
        assert [(row[1], sorted(row[2])) for row in h.values()] == [(TimeWindow(0, 50), sorted([*kept, 8]))]
        h.end()
        assert h.values() == []
        assert (h.state_entries(), h.timers()) == (0, 0)
