"""When windows are evaluated: each ready-made trigger."""

import pytest

from penstock.datastream.functions import AggregateFunction
from penstock.datastream.window import (
    ContinuousEventTimeTrigger,
    ContinuousProcessingTimeTrigger,
    CountTrigger,
    DeltaTrigger,
    EventTimeSessionWindows,
    EventTimeTrigger,
    GlobalWindows,
    NeverTrigger,
    ProcessingTimeTrigger,
    PurgingTrigger,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
)
from penstock.engine.records.elements import MAX_TIMESTAMP
from penstock.testing import OperatorHarness


class Numbers(AggregateFunction):
    """The numbers of a pane, as a string."""

    def create_accumulator(self):
        return ""

    def add(self, value, accumulator):
        return f"{accumulator}{value[1]}"

    def get_result(self, accumulator):
        return accumulator

    def merge(self, acc_a, acc_b):
        return acc_a + acc_b


def harness(assigner, trigger=None, lateness=0):
    def build(stream):
        windowed = stream.key_by(0).window(assigner)
        if lateness:
            windowed = windowed.allowed_lateness(lateness)
        return (windowed if trigger is None else windowed.trigger(trigger)).aggregate(Numbers())

    return OperatorHarness(build)


def left(h):
    return h.state_entries(), h.timers()


def test_event_time_trigger_fires_at_the_last_millisecond_of_the_window():
    with harness(TumblingEventTimeWindows.of(10)) as h:
        h.push(("a", 1), 3)
        h.push(("a", 2), 9)
        h.watermark(8)
        assert h.elements() == [("watermark", 8, None)]
        h.watermark(9)
        assert h.elements() == [("record", "12", 9), ("watermark", 9, None)]
        assert left(h) == (0, 0)


def test_event_time_trigger_fires_for_each_late_element():
    with harness(TumblingEventTimeWindows.of(10), lateness=5) as h:
        h.push(("a", 1), 3)
        h.watermark(12)
        h.push(("a", 2), 4)
        h.push(("a", 3), 5)
        assert h.values() == ["1", "12", "123"]
        assert left(h) == (1, 1)
        h.watermark(13)
        h.push(("b", 4), 6)
        assert h.values() == ["4"]
        h.watermark(14)
        h.push(("a", 5), 6)
        assert h.values() == []
        assert left(h) == (0, 0)


def test_event_time_trigger_in_the_global_window_fires_at_the_end_of_time():
    with harness(GlobalWindows.create(), EventTimeTrigger.create()) as h:
        h.push(("a", 1), 3)
        h.watermark(10**15)
        assert h.values() == []
        h.watermark(MAX_TIMESTAMP)
        assert h.output() == [("1", MAX_TIMESTAMP)]


def test_processing_time_trigger():
    with harness(TumblingProcessingTimeWindows.of(10)) as h:
        h.push(("a", 1))
        h.advance_processing_time(8)
        h.push(("a", 2))
        assert h.output() == []
        h.advance_processing_time(9)
        assert h.output() == [("12", 9)]
        assert left(h) == (0, 0)


def test_processing_time_trigger_in_event_time_windows():
    """The trigger waits for one clock, the window is cleaned up by the other: what is left behind is never fired."""
    with harness(TumblingEventTimeWindows.of(10), ProcessingTimeTrigger.create()) as h:
        h.push(("a", 1), 3)
        h.advance_processing_time(9)
        assert h.values() == ["1"]
        assert left(h) == (1, 1)
        h.watermark(9)
        assert left(h) == (0, 0)
        h.push(("a", 2), 13)
        h.watermark(19)
        h.advance_processing_time(50)
        assert h.values() == []
        assert left(h) == (0, 0)


def test_count_trigger_counts_since_it_last_fired():
    with harness(GlobalWindows.create(), CountTrigger.of(2)) as h:
        for number in range(1, 6):
            h.push(("a", number))
            h.push(("b", number)) if number == 1 else None
        assert h.values() == ["12", "1234"]
        assert left(h) == (2 + 2, 0)


def test_count_trigger_in_time_windows_does_not_fire_at_the_end():
    with harness(TumblingEventTimeWindows.of(10), CountTrigger.of(2)) as h:
        for number, time in ((1, 1), (2, 2), (3, 3), (4, 11)):
            h.push(("a", number), time)
        assert h.values() == ["12"]
        h.watermark(9)
        assert h.values() == []
        assert left(h) == (2, 1)
        h.watermark(19)
        assert h.values() == []
        assert left(h) == (0, 0)


def test_counts_of_merged_sessions_add_up():
    with harness(EventTimeSessionWindows.with_gap(5), CountTrigger.of(4)) as h:
        for number, time in ((1, 0), (2, 10), (3, 11)):
            h.push(("a", number), time)
        assert h.values() == []
        h.push(("a", 4), 5)
        assert h.values() == ["1234"]
        assert h.timers() == 1
        h.end()
        assert h.values() == []
        assert left(h) == (0, 0)


def test_purging_trigger_drops_what_fired_and_nothing_else():
    with harness(GlobalWindows.create(), PurgingTrigger.of(CountTrigger.of(2))) as h:
        for number in range(1, 6):
            h.push(("a", number))
        assert h.values() == ["12", "34"]
        assert left(h) == (2, 0)


def test_an_empty_pane_is_cleaned_up_too():
    """A purged window has no contents; its timer, and later its trigger's state, go all the same."""
    with harness(TumblingEventTimeWindows.of(10), PurgingTrigger.of(CountTrigger.of(1)), lateness=5) as h:
        h.push(("a", 1), 1)
        assert h.values() == ["1"]
        assert left(h) == (0, 1)
        h.watermark(13)
        assert left(h) == (0, 1)
        h.watermark(14)
        assert left(h) == (0, 0)
    with harness(EventTimeSessionWindows.with_gap(10), PurgingTrigger.of(CountTrigger.of(1))) as h:
        h.push(("a", 1), 1)
        assert left(h) == (1, 1)
        h.push(("a", 2), 5)
        assert h.values() == ["1", "2"]
        h.watermark(14)
        assert left(h) == (0, 0)


def test_a_purged_event_time_window_fires_again_for_late_elements_only():
    with harness(TumblingEventTimeWindows.of(10), PurgingTrigger.of(EventTimeTrigger.create()), lateness=5) as h:
        h.push(("a", 1), 1)
        h.watermark(9)
        h.push(("a", 2), 2)
        assert h.values() == ["1", "2"]
        h.end()
        assert h.values() == []
        assert left(h) == (0, 0)


def test_delta_trigger_compares_with_the_element_that_fired_last():
    with harness(GlobalWindows.create(), DeltaTrigger.of(2, lambda a, b: abs(b[1] - a[1]))) as h:
        for number in (1, 2, 3, 4, 5, 6, 7):
            h.push(("a", number))
        assert h.values() == ["1234", "1234567"]


def test_delta_trigger_takes_a_function_object():
    class Distance:
        def get_delta(self, old, new):
            return new[1] - old[1]

    with harness(TumblingEventTimeWindows.of(10), DeltaTrigger.of(4, Distance())) as h:
        for number, time in ((1, 1), (5, 2), (9, 3)):
            h.push(("a", number), time)
        assert h.values() == ["159"]
        h.watermark(9)
        assert left(h) == (0, 0)


def test_continuous_event_time_trigger():
    with harness(TumblingEventTimeWindows.of(20), ContinuousEventTimeTrigger.of(5)) as h:
        h.push(("a", 1), 7)
        h.watermark(9)
        assert h.values() == []
        h.watermark(10)
        h.push(("a", 2), 8)
        assert h.values() == ["1"]
        h.watermark(16)
        assert h.values() == ["12"]
        h.watermark(30)
        assert h.output() == [("12", 19)]
        assert left(h) == (0, 0)


def test_continuous_event_time_trigger_catches_up_and_counts_late_elements():
    with harness(TumblingEventTimeWindows.of(20), ContinuousEventTimeTrigger.of(6), lateness=10) as h:
        h.push(("a", 1), 1)
        h.watermark(22)
        assert h.values() == ["1"] * 4  # at 6, 12, 18 and 19
        h.push(("a", 2), 2)
        assert h.values() == ["12"]
        h.end()
        assert h.values() == []
        assert left(h) == (0, 0)


def test_continuous_event_time_trigger_in_sessions_fires_when_the_first_of_them_would_have():
    with harness(EventTimeSessionWindows.with_gap(10), ContinuousEventTimeTrigger.of(4)) as h:
        h.push(("a", 1), 1)
        h.push(("a", 2), 13)
        h.push(("a", 3), 7)
        h.watermark(4)
        assert h.values() == ["123"]
        h.watermark(12)
        assert h.values() == ["123", "123"]
        h.end()
        assert set(h.values()) == {"123"}
        assert left(h) == (0, 0)


def test_continuous_processing_time_trigger():
    with harness(TumblingProcessingTimeWindows.of(20), ContinuousProcessingTimeTrigger.of(6)) as h:
        h.advance_processing_time(2)
        h.push(("a", 1))
        h.advance_processing_time(5)
        assert h.values() == []
        h.advance_processing_time(6)
        h.push(("a", 2))
        assert h.values() == ["1"]
        h.advance_processing_time(13)
        assert h.values() == ["12"]
        h.advance_processing_time(25)
        assert h.output() == [("12", 19), ("12", 19)]
        assert left(h) == (0, 0)


def test_never_trigger():
    with harness(TumblingEventTimeWindows.of(10), NeverTrigger()) as h:
        h.push(("a", 1), 1)
        assert left(h) == (1, 1)
        h.end()
        assert h.values() == []
        assert left(h) == (0, 0)


def test_the_global_window_never_fires_by_itself():
    with harness(GlobalWindows.create()) as h:
        h.push(("a", 1), 1)
        h.watermark(MAX_TIMESTAMP)
        assert h.values() == []
        assert left(h) == (1, 0)


@pytest.mark.parametrize(
    ("trigger", "merges"),
    [
        (EventTimeTrigger.create(), True),
        (ProcessingTimeTrigger.create(), True),
        (ContinuousEventTimeTrigger.of(1), True),
        (ContinuousProcessingTimeTrigger.of(1), True),
        (CountTrigger.of(1), True),
        (DeltaTrigger.of(1, lambda a, b: 0), False),
        (PurgingTrigger.of(CountTrigger.of(1)), True),
        (PurgingTrigger.of(DeltaTrigger.of(1, lambda a, b: 0)), False),
    ],
)
def test_which_triggers_can_merge(trigger, merges):
    assert trigger.can_merge() is merges
