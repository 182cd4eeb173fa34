"""Timers of keyed functions: when they fire, in which order, and what is left."""

import pytest

from penstock.datastream.functions import KeyedProcessFunction
from penstock.engine.operators.operator import Clock
from penstock.engine.operators.timers import KeylessTimerService
from penstock.engine.operators.timers import Timers as TimersOfAnOperator
from penstock.engine.records.elements import MAX_TIMESTAMP
from penstock.errors import TimersRequireKeys
from penstock.testing import OperatorHarness


class Timers(KeyedProcessFunction):
    """A record (key, command, time) registers or deletes; a firing timer says so."""

    def process_element(self, value, ctx):
        getattr(ctx.timer_service(), f"{value[1]}_time_timer")(value[2])

    def on_timer(self, timestamp, ctx):
        service = ctx.timer_service()
        yield ctx.get_current_key(), timestamp, ctx.time_domain().name, service.current_watermark()


def harness(function=None):
    return OperatorHarness(lambda s: s.key_by(0).process(function or Timers()))


def test_timers_fire_by_time_and_then_by_registration():
    with harness() as h:
        for key, time in (("b", 30), ("a", 10), ("c", 10), ("a", 20)):
            h.push((key, "register_event", time))
        h.watermark(9)
        assert h.values() == []
        h.watermark(25)
        assert [(k, t) for k, t, *_ in h.values()] == [("a", 10), ("c", 10), ("a", 20)]
        assert h.timers() == 1
        h.watermark(30)
        assert [(k, t) for k, t, *_ in h.values()] == [("b", 30)]
        assert h.timers() == 0


def test_output_of_a_timer_comes_before_the_watermark_that_triggered_it():
    with harness() as h:
        h.push(("a", "register_event", 10))
        h.push(("a", "register_event", 20))
        h.watermark(50)
        assert h.elements() == [
            ("record", ("a", 10, "EVENT_TIME", 50), 10),
            ("record", ("a", 20, "EVENT_TIME", 50), 20),
            ("watermark", 50, None),
        ]


def test_the_same_timer_registered_twice_fires_once():
    with harness() as h:
        h.push_all([("a", "register_event", 10), ("a", "register_event", 10), ("b", "register_event", 10)])
        assert h.timers() == 2
        h.watermark(10)
        assert [k for k, *_ in h.values()] == ["a", "b"]
        h.watermark(20)
        assert h.values() == []


def test_a_deleted_timer_does_not_fire():
    with harness() as h:
        h.push_all([("a", "register_event", 10), ("a", "register_event", 11), ("b", "register_event", 10)])
        h.push_all([("a", "delete_event", 10), ("b", "delete_event", 99)])
        h.watermark(20)
        assert [(k, t) for k, t, *_ in h.values()] == [("b", 10), ("a", 11)]
        h.push_all([("a", "delete_event", 10), ("a", "register_event", 30), ("a", "delete_event", 30)])
        h.push(("a", "register_event", 30))
        h.watermark(30)
        assert [(k, t) for k, t, *_ in h.values()] == [("a", 30)]


def test_a_timer_of_another_domain_is_another_timer():
    with harness() as h:
        h.push_all([("a", "register_event", 10), ("a", "register_processing", 10), ("a", "delete_processing", 10)])
        h.watermark(10)
        assert [row[2] for row in h.values()] == ["EVENT_TIME"]
        h.push(("a", "register_processing", 15))
        h.watermark(100)
        assert h.values() == []
        h.advance_processing_time(15)
        assert [row[2] for row in h.values()] == ["PROCESSING_TIME"]


def test_an_event_time_timer_in_the_past_fires_once_with_the_next_watermark():
    with harness() as h:
        h.watermark(100)
        h.push(("a", "register_event", 10))
        h.watermark(101)
        h.watermark(102)
        assert [(k, t) for k, t, *_ in h.values()] == [("a", 10)]


def test_a_processing_time_timer_in_the_past_fires_once_in_the_next_epoch():
    with harness() as h:
        h.advance_processing_time(100)
        h.push(("a", "register_processing", 10))
        h.push(("b", "nothing"[:0] + "register_event", 1))
        h.advance_processing_time(100)
        h.advance_processing_time(200)
        assert [(k, t) for k, t, *_ in h.values()] == [("a", 10)]


class Chain(KeyedProcessFunction):
    """Each firing registers the next timer a step later, as long as `more` says."""

    def __init__(self, step, most=5):
        self.step = step
        self.most = most
        self.fired = 0

    def process_element(self, value, ctx):
        ctx.timer_service().register_event_time_timer(value[1])

    def on_timer(self, timestamp, ctx):
        self.fired += 1
        yield timestamp
        if self.fired < self.most:
            ctx.timer_service().register_event_time_timer(timestamp + self.step)


def test_a_timer_registered_by_a_timer_fires_with_the_same_watermark_if_due():
    with harness(Chain(10)) as h:
        h.push(("a", 0))
        h.watermark(25)
        assert h.values() == [0, 10, 20]
        h.watermark(30)
        assert h.values() == [30]


def test_timers_beyond_the_end_of_time_do_not_loop():
    class Beyond(KeyedProcessFunction):
        fired = 0

        def process_element(self, value, ctx):
            ctx.timer_service().register_event_time_timer(5)

        def on_timer(self, timestamp, ctx):
            self.fired += 1
            assert self.fired < 10, "the timers loop"
            ctx.timer_service().register_event_time_timer(ctx.timer_service().current_watermark() + 1000)
            yield timestamp

    with harness(Beyond()) as h:
        h.push(("a", 0))
        h.end()
        assert h.elements() == [("record", 5, 5), ("watermark", MAX_TIMESTAMP, None)]
        assert h.timers() == 1


def test_a_timer_at_the_last_moment_fires_at_the_end():
    with harness() as h:
        h.push(("a", "register_event", MAX_TIMESTAMP))
        h.watermark(10**15)
        assert h.values() == []
        h.end()
        assert [(k, t) for k, t, *_ in h.values()] == [("a", MAX_TIMESTAMP)]


def test_processing_time_timers_do_not_fire_at_the_end():
    with harness() as h:
        h.push(("a", "register_processing", 1000))
        h.end()
        assert h.values() == [] and h.timers() == 1


def test_the_clock_stands_still_within_an_epoch():
    class Clock(KeyedProcessFunction):
        def process_element(self, value, ctx):
            yield ctx.timer_service().current_processing_time()

    with harness(Clock()) as h:
        h.advance_processing_time(1234)
        h.push_all([("a",), ("b",)])
        assert h.values() == [1234, 1234]


@pytest.mark.parametrize("time", ["soon", None, float("nan")])
def test_times_are_numbers(time):
    with (
        harness() as h,
        pytest.raises(Exception, match="the time of a timer must be a whole number of milliseconds, not "),
    ):
        h.push(("a", "register_event", time))


def test_a_float_loses_its_fraction():
    with harness() as h:
        h.push_all([("a", "register_event", 10.0), ("a", "register_event", 10), ("a", "register_event", 10.7)])
        h.watermark(10)
        assert [repr(t) for _, t, *_ in h.values()] == ["10"]


def test_a_failing_timer_names_its_key_and_time():
    class Fails(Timers):
        def on_timer(self, timestamp, ctx):
            raise RuntimeError("no")

    with harness(Fails()) as h:
        h.push(("a", "register_event", 10))
        with pytest.raises(Exception, match=r"Keyed Process .* failed: RuntimeError: no\n.*timer at 10 of key 'a'"):
            h.watermark(10)


def test_timers_follow_the_slowest_input():
    with OperatorHarness(lambda a, b: a.union(b).key_by(0).process(Timers()), inputs=2) as h:
        h.push(("a", "register_event", 10))
        h.watermark(20, input=1)
        assert h.values() == []
        h.watermark(15, input=2)
        assert [row[3] for row in h.values()] == [15]


@pytest.mark.parametrize("method", ["register_event", "register_processing", "delete_event", "delete_processing"])
def test_without_keys_there_are_no_timers(method):
    service = KeylessTimerService(TimersOfAnOperator(Clock(now=7)))
    with pytest.raises(TimersRequireKeys, match=r"call key_by\(\.\.\.\)"):
        getattr(service, f"{method}_time_timer")(5)
    assert service.current_processing_time() == 7
