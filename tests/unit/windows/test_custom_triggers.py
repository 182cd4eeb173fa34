"""Triggers of one's own: state of every kind, timers of both kinds, merging, and what the engine does with answers."""

import pytest

from penstock.datastream.functions import AggregateFunction, ProcessWindowFunction
from penstock.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    ValueStateDescriptor,
)
from penstock.datastream.window import (
    ContinuousEventTimeTrigger,
    ContinuousProcessingTimeTrigger,
    EventTimeSessionWindows,
    GlobalWindows,
    SlidingEventTimeWindows,
    Trigger,
    TriggerResult,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
)
from penstock.engine.records.elements import MAX_TIMESTAMP
from penstock.errors import JobFailed, UnsupportedOperation
from penstock.testing import OperatorHarness

CONTINUE, FIRE, PURGE = TriggerResult.CONTINUE, TriggerResult.FIRE, TriggerResult.PURGE
FIRE_AND_PURGE = TriggerResult.FIRE_AND_PURGE


class Count(AggregateFunction):
    def create_accumulator(self):
        return 0

    def add(self, value, accumulator):
        return accumulator + 1

    def get_result(self, accumulator):
        return accumulator

    def merge(self, acc_a, acc_b):
        return acc_a + acc_b


class Listed(ProcessWindowFunction):
    def process(self, key, context, elements):
        yield key, sorted(number for _, number in elements)


class Silent(Trigger):
    """The base of the triggers in these tests, which does nothing."""

    def on_element(self, element, timestamp, window, ctx):
        return CONTINUE

    def on_processing_time(self, time, window, ctx):
        return CONTINUE

    def on_event_time(self, time, window, ctx):
        return CONTINUE

    def clear(self, window, ctx):
        pass


def harness(assigner, trigger, function=None):
    return OperatorHarness(lambda s: s.key_by(0).window(assigner).trigger(trigger).process(function or Listed()))


def left(h):
    return h.state_entries(), h.timers()


# --- state ---
STATES = {
    "value": (ValueStateDescriptor("v"), lambda s, n: s.update((s.value() or 0) + 1), lambda s: s.value()),
    "list": (ListStateDescriptor("l"), lambda s, n: s.add(n), lambda s: len(list(s.get()))),
    "map": (MapStateDescriptor("m"), lambda s, n: s.put(n, n), lambda s: len(list(s.keys()))),
    "reducing": (ReducingStateDescriptor("r", lambda a, b: a + b), lambda s, n: s.add(1), lambda s: s.get()),
    "aggregating": (AggregatingStateDescriptor("a", Count()), lambda s, n: s.add(n), lambda s: s.get()),
}


class EveryThird(Silent):
    """Fires when the state of its pane has counted three."""

    def __init__(self, kind):
        self.descriptor, self.count, self.read = STATES[kind]

    def on_element(self, element, timestamp, window, ctx):
        state = ctx.get_partitioned_state(self.descriptor)
        self.count(state, element[1])
        return FIRE if self.read(state) == 3 else CONTINUE

    def clear(self, window, ctx):
        ctx.get_partitioned_state(self.descriptor).clear()

    def can_merge(self):
        return True

    def on_merge(self, window, ctx):
        ctx.merge_partitioned_state(self.descriptor)


@pytest.mark.parametrize("kind", STATES)
def test_state_belongs_to_a_pane(kind):
    with harness(SlidingEventTimeWindows.of(10, 5), EveryThird(kind)) as h:
        for key, number, time in (("a", 1, 1), ("a", 2, 6), ("b", 3, 6), ("a", 4, 7), ("a", 5, 12)):
            h.push((key, number), time)
        # Windows of a: [-5,5) 1, [0,10) 1 2 4, [5,15) 2 4 5, [10,20) 5.
        assert h.values() == [("a", [1, 2, 4]), ("a", [2, 4, 5])]
        assert left(h) == (2 * 6, 6)
        h.watermark(14)
        assert left(h) == (2, 1)
        h.end()
        assert left(h) == (0, 0)


@pytest.mark.parametrize("kind", ["list", "reducing", "aggregating"])
def test_state_that_can_be_merged(kind):
    with harness(EventTimeSessionWindows.with_gap(5), EveryThird(kind)) as h:
        h.push(("a", 1), 0)
        h.push(("a", 2), 10)
        assert left(h) == (2 + 2 + 1, 2)
        h.push(("a", 3), 5)
        assert h.values() == [("a", [1, 2, 3])]
        assert left(h) == (3, 1)
        h.end()
        assert left(h) == (0, 0)


@pytest.mark.parametrize(("kind", "name"), [("value", "v"), ("map", "m")])
def test_state_that_cannot_be_merged(kind, name):
    with harness(EventTimeSessionWindows.with_gap(5), EveryThird(kind)) as h:
        h.push(("a", 1), 0)
        with pytest.raises(UnsupportedOperation, match=f"Window Process .*trigger state '{name}' cannot be merged"):
            h.push(("a", 2), 5)


# --- timers ---
class AfterEach(Silent):
    """Fires a while after each element, by both clocks; deletes the timers of an element that takes them back."""

    def on_element(self, element, timestamp, window, ctx):
        event, processing = timestamp + 3, ctx.get_current_processing_time() + 3
        if element[1] == "stop":
            ctx.delete_event_time_timer(event)
            ctx.delete_processing_time_timer(processing)
        else:
            ctx.register_event_time_timer(event)
            ctx.register_processing_time_timer(processing)
        return CONTINUE

    def on_event_time(self, time, window, ctx):
        assert ctx.get_current_watermark() >= time
        return FIRE if time != window.max_timestamp() else CONTINUE

    def on_processing_time(self, time, window, ctx):
        assert ctx.get_current_processing_time() >= time
        return FIRE_AND_PURGE


class Times(ProcessWindowFunction):
    def process(self, key, context, elements):
        yield context.current_watermark(), context.current_processing_time(), len(elements)


def test_timers_of_both_kinds():
    with harness(TumblingEventTimeWindows.of(100), AfterEach(), Times()) as h:
        h.watermark(0)
        h.push(("a", "go"), 1)
        h.push(("a", "go"), 5)
        assert h.timers() == 4  # two of event time, one of processing time, one to clean up
        h.watermark(4)
        assert h.values() == [(4, 0, 2)]
        h.push(("a", "stop"), 5)
        h.watermark(9)
        h.advance_processing_time(10)
        assert h.values() == []
        assert left(h) == (1, 1)
        h.push(("a", "go"), 20)
        h.advance_processing_time(13)
        assert h.values() == [(9, 13, 4)]
        assert left(h) == (0, 2)
        h.watermark(99)
        assert h.values() == []
        assert left(h) == (0, 0)


def test_a_timer_in_the_past_fires_once_at_the_next_watermark():
    class Past(Silent):
        def on_element(self, element, timestamp, window, ctx):
            ctx.register_event_time_timer(timestamp - 50)
            ctx.register_event_time_timer(timestamp - 50)
            return CONTINUE

        def on_event_time(self, time, window, ctx):
            return FIRE if time != window.max_timestamp() else CONTINUE

    with harness(TumblingEventTimeWindows.of(100), Past()) as h:
        h.watermark(10)
        h.push(("a", 1), 20)
        assert h.values() == []
        h.watermark(11)
        h.watermark(12)
        assert h.values() == [("a", [1])]


def test_timers_that_outlive_their_window_find_nothing():
    class Careless(Silent):
        """Forgets to delete its timer in clear()."""

        def on_element(self, element, timestamp, window, ctx):
            ctx.register_event_time_timer(window.max_timestamp() + 50)
            return CONTINUE

        def on_event_time(self, time, window, ctx):
            return FIRE if time > window.max_timestamp() else CONTINUE

        def can_merge(self):
            return True

        def on_merge(self, window, ctx):
            pass

    for assigner in (TumblingEventTimeWindows.of(10), EventTimeSessionWindows.with_gap(10)):
        with harness(assigner, Careless()) as h:
            h.push(("a", 1), 1)
            h.watermark(30)
            assert left(h) == (0, 1)
            h.end()
            assert h.values() == []
            assert left(h) == (0, 0)


# --- the end of time ---
class AtMost(ProcessWindowFunction):
    """Fails instead of letting a trigger fire for ever."""

    def open(self, runtime_context):
        self.fired = 0

    def process(self, key, context, elements):
        self.fired += 1
        if self.fired > 20:
            raise RuntimeError("fires for ever")
        yield len(elements)


def test_a_trigger_that_waits_from_the_watermark_on_does_not_loop():
    class FromNow(Silent):
        def on_element(self, element, timestamp, window, ctx):
            ctx.register_event_time_timer(ctx.get_current_watermark() + 10)
            return CONTINUE

        def on_event_time(self, time, window, ctx):
            ctx.register_event_time_timer(ctx.get_current_watermark() + 10)
            return FIRE

    with harness(GlobalWindows.create(), FromNow(), AtMost()) as h:
        h.watermark(0)
        h.push(("a", 1), 1)
        h.watermark(25)
        h.watermark(MAX_TIMESTAMP)
        assert h.values() == [1, 1]


def test_a_continuous_trigger_in_the_global_window_ends_with_time():
    with harness(GlobalWindows.create(), ContinuousEventTimeTrigger.of(1000), AtMost()) as h:
        h.push(("a", 1), 1)
        h.watermark(2000)
        assert h.values() == [1, 1]
        h.watermark(MAX_TIMESTAMP)
        assert h.values()[-1] == 1
        assert h.timers() == 0


def test_a_continuous_trigger_ends_with_its_key_in_batch_mode(run):
    def build(env):
        windowed = env.from_elements(("a", 1), ("a", 2)).key_by(0).window(GlobalWindows.create())
        return windowed.trigger(ContinuousProcessingTimeTrigger.of(1000)).process(AtMost())

    assert run(build, mode="BATCH") == [2]


# --- merging ---
class Trace(Silent):
    """Says what it is asked to do, through the elements' own lists."""

    TOLD = ListStateDescriptor("told")

    def on_element(self, element, timestamp, window, ctx):
        ctx.get_partitioned_state(self.TOLD).add(tuple(window))
        return FIRE

    def can_merge(self):
        return True

    def on_merge(self, window, ctx):
        ctx.merge_partitioned_state(self.TOLD)
        told = ctx.get_partitioned_state(self.TOLD)
        told.add(("merged into", *window))
        ctx.register_event_time_timer(window.max_timestamp() - 1)

    def clear(self, window, ctx):
        ctx.get_partitioned_state(self.TOLD).clear()


def test_merging_combines_state_under_the_merged_window():
    class Told(ProcessWindowFunction):
        def process(self, key, context, elements):
            yield context.window().start, context.window().end

    with harness(EventTimeSessionWindows.with_gap(5), Trace(), Told()) as h:
        for time in (0, 10, 5, 7):
            h.push(("a", time), time)
        assert h.values() == [(0, 5), (10, 15), (0, 15), (0, 15)]
        operator = next(o for o in h._operators() if hasattr(o, "pane_state"))
        assert list(operator.pane_state.tables["told"].entries.values()) == [
            [(0, 5), (10, 15), ("merged into", 0, 15), (0, 15), (0, 15)]
        ]
        assert h.timers() == 2  # to clean up, and the one of on_merge
        h.end()
        assert left(h) == (0, 0)


# --- answers ---
class Answers(Silent):
    """Each element says what is to be done."""

    def on_element(self, element, timestamp, window, ctx):
        return element[2]


class Contents(ProcessWindowFunction):
    def process(self, key, context, elements):
        yield [number for _, number, _ in elements]


def test_every_answer_does_what_it_says():
    with harness(TumblingEventTimeWindows.of(10), Answers(), Contents()) as h:
        answers = [CONTINUE, FIRE, PURGE, CONTINUE, FIRE_AND_PURGE, FIRE]
        for number, answer in enumerate(answers):
            h.push(("a", number, answer), 1)
        assert h.values() == [[0, 1], [3, 4], [5]]
        h.push(("a", 6, PURGE), 1)
        assert left(h) == (0, 1)
        h.end()
        assert left(h) == (0, 0)


@pytest.mark.parametrize("answer", [None, True, "FIRE", (True, False)])
def test_an_answer_that_is_none(answer):
    with (
        OperatorHarness(
            lambda s: (
                s.key_by(0).window(TumblingEventTimeWindows.of(10)).trigger(Answers()).process(Contents()).name("Sums")
            )
        ) as h,
        pytest.raises(JobFailed, match=r"Sums \(.*Answers returned .*, which is not a TriggerResult"),
    ):
        h.push(("a", 1, answer), 1)


def test_an_answer_of_a_timer_that_is_none():
    class Forgetful(Silent):
        def on_event_time(self, time, window, ctx):
            pass

        def on_processing_time(self, time, window, ctx):
            return 1

    with harness(TumblingEventTimeWindows.of(10), Forgetful()) as h:
        h.push(("a", 1), 1)
        with pytest.raises(JobFailed, match=r"Forgetful returned None(.|\n)*timer at 9 of key 'a' in TimeWindow"):
            h.watermark(9)
    with harness(TumblingProcessingTimeWindows.of(10), Forgetful()) as h:
        h.push(("a", 1))
        with pytest.raises(JobFailed, match=r"Window Process .*Forgetful returned 1, which is not a TriggerResult"):
            h.advance_processing_time(9)


def test_a_trigger_that_raises_is_named():
    class Broken(Silent):
        def on_event_time(self, time, window, ctx):
            raise ValueError("not today")

    with harness(TumblingEventTimeWindows.of(10), Broken()) as h:
        h.push(("a", 1), 1)
        with pytest.raises(JobFailed, match=r"Window Process .*ValueError: not today(.|\n)*on_event_time"):
            h.watermark(9)


def test_triggers_can_count():
    class Metered(Silent):
        def on_element(self, element, timestamp, window, ctx):
            ctx.get_metric_group().counter("asked").inc()
            return CONTINUE

    with harness(TumblingEventTimeWindows.of(10), Metered()) as h:
        h.push(("a", 1), 1)
        h.push(("a", 1), 2)
        assert h._cluster.slots[0].metrics.snapshot()["window-process-1.asked"] == 2
