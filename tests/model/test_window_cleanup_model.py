"""Nothing is left of a window, whatever is combined: no contents, no trigger state, no merging entry, no timer."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.datastream.functions import AggregateFunction, ProcessWindowFunction
from penstock.datastream.state import ListStateDescriptor, ValueStateDescriptor
from penstock.datastream.window import (
    ContinuousEventTimeTrigger,
    ContinuousProcessingTimeTrigger,
    CountEvictor,
    CountTrigger,
    DeltaTrigger,
    EventTimeSessionWindows,
    EventTimeTrigger,
    ProcessingTimeSessionWindows,
    ProcessingTimeTrigger,
    PurgingTrigger,
    SlidingEventTimeWindows,
    SlidingProcessingTimeWindows,
    TimeEvictor,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
)
from penstock.testing import OperatorHarness

EVENT_TIME = {
    "tumbling": TumblingEventTimeWindows.of(10, 3),
    "sliding": SlidingEventTimeWindows.of(10, 4),
    "gaps": SlidingEventTimeWindows.of(4, 10),
    "session": EventTimeSessionWindows.with_gap(5),
    "dynamic session": EventTimeSessionWindows.with_dynamic_gap(lambda r: r[1]),
}
PROCESSING_TIME = {
    "tumbling": TumblingProcessingTimeWindows.of(10, 3),
    "sliding": SlidingProcessingTimeWindows.of(10, 4),
    "gaps": SlidingProcessingTimeWindows.of(4, 10),
    "session": ProcessingTimeSessionWindows.with_gap(5),
    "dynamic session": ProcessingTimeSessionWindows.with_dynamic_gap(lambda r: r[1]),
}
TRIGGERS = {
    "default": None,
    "count": CountTrigger.of(3),
    "purging count": PurgingTrigger.of(CountTrigger.of(2)),
    "continuous": ContinuousEventTimeTrigger.of(3),
    "purging continuous": PurgingTrigger.of(ContinuousEventTimeTrigger.of(4)),
    "purging event time": PurgingTrigger.of(EventTimeTrigger.create()),
    "delta": DeltaTrigger.of(2, lambda a, b: abs(a[1] - b[1])),
}
PROCESSING_TRIGGERS = {
    "default": None,
    "count": CountTrigger.of(3),
    "purging count": PurgingTrigger.of(CountTrigger.of(2)),
    "continuous": ContinuousProcessingTimeTrigger.of(3),
    "purging": PurgingTrigger.of(ProcessingTimeTrigger.create()),
    "delta": DeltaTrigger.of(2, lambda a, b: abs(a[1] - b[1])),
}
EVENTS = st.lists(
    st.tuples(st.sampled_from("ab"), st.integers(1, 9), st.integers(-20, 40), st.none() | st.integers(-25, 35)),
    max_size=15,
)
MERGE = ("session", "dynamic session")


class Total(AggregateFunction):
    def create_accumulator(self):
        return 0

    def add(self, value, accumulator):
        return accumulator + value[1]

    def get_result(self, accumulator):
        return accumulator

    def merge(self, acc_a, acc_b):
        return acc_a + acc_b


class WindowState(ProcessWindowFunction):
    """Keeps state of two kinds for each window, and removes it when the window goes."""

    FIRED = ValueStateDescriptor("fired")
    SEEN = ListStateDescriptor("seen")

    def process(self, key, context, elements):
        fired = context.window_state().get_state(self.FIRED)
        fired.update((fired.value() or 0) + 1)
        context.window_state().get_list_state(self.SEEN).add(len(elements))
        yield key, fired.value()

    def clear(self, context):
        context.window_state().get_state(self.FIRED).clear()
        context.window_state().get_list_state(self.SEEN).clear()


def computed(windowed, how, merges):
    if how == "evicting":
        return windowed.evictor(CountEvictor.of(2, do_evict_after=True)).aggregate(Total())
    if how == "evicting by time":
        return windowed.evictor(TimeEvictor.of(4)).reduce(lambda a, b: a)
    if how == "aggregate" or merges:
        return windowed.aggregate(Total())
    return windowed.process(WindowState())


HOW = ["aggregate", "window state", "evicting", "evicting by time"]


def allowed(assigners, triggers):
    """Every assigner with every trigger; only a delta trigger cannot merge."""
    return [(kind, trigger) for kind in assigners for trigger in triggers if trigger != "delta" or kind not in MERGE]


@pytest.mark.parametrize(("kind", "trigger"), allowed(EVENT_TIME, TRIGGERS))
@settings(max_examples=15)
@given(EVENTS, st.sampled_from([0, 6]), st.sampled_from(HOW))
def test_event_time_windows_leave_nothing(kind, trigger, events, lateness, how):
    def build(stream):
        windowed = stream.key_by(0).window(EVENT_TIME[kind]).allowed_lateness(lateness)
        if TRIGGERS[trigger] is not None:
            windowed = windowed.trigger(TRIGGERS[trigger])
        return computed(windowed, how, kind in MERGE)

    with OperatorHarness(build) as h:
        for key, number, timestamp, watermark in events:
            h.push((key, number), timestamp)
            if watermark is not None:
                h.watermark(watermark)
        h.end()
        assert (h.state_entries(), h.timers()) == (0, 0)


@pytest.mark.parametrize(("kind", "trigger"), allowed(PROCESSING_TIME, PROCESSING_TRIGGERS))
@settings(max_examples=15)
@given(EVENTS, st.sampled_from(HOW))
def test_processing_time_windows_leave_nothing(kind, trigger, events, how):
    def build(stream):
        windowed = stream.key_by(0).window(PROCESSING_TIME[kind])
        if PROCESSING_TRIGGERS[trigger] is not None:
            windowed = windowed.trigger(PROCESSING_TRIGGERS[trigger])
        return computed(windowed, how, kind in MERGE)

    with OperatorHarness(build) as h:
        now = 0
        for key, number, _, step in events:
            h.push((key, number))
            now += max(0, step or 0)
            h.advance_processing_time(now)
        h.advance_processing_time(now + 100)
        assert (h.state_entries(), h.timers()) == (0, 0)
