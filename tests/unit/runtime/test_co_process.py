"""Connected streams: two inputs, one function, shared state and timers."""

import pytest

from penstock.datastream.functions import (
    CoFlatMapFunction,
    CoMapFunction,
    CoProcessFunction,
    KeyedCoProcessFunction,
)
from penstock.datastream.state import ValueStateDescriptor
from penstock.errors import KeyedStateRequired, TimersRequireKeys
from penstock.testing import OperatorHarness


class Both(CoMapFunction):
    def map1(self, value):
        return f"left {value}"

    def map2(self, value):
        return f"right {value}"


class Some(CoFlatMapFunction):
    def flat_map1(self, value):
        yield from range(value)

    def flat_map2(self, value):
        return None


def test_co_map_and_co_flat_map():
    with OperatorHarness(lambda a, b: a.connect(b).map(Both()), inputs=2) as h:
        h.push(1, timestamp=5, input=1)
        h.push(2, input=2)
        assert h.output() == [("left 1", 5), ("right 2", None)]
    with OperatorHarness(lambda a, b: a.connect(b).flat_map(Some()), inputs=2) as h:
        h.push(2, timestamp=5, input=1)
        h.push(2, timestamp=6, input=2)
        assert h.output() == [(0, 5), (1, 5)]


class Join(KeyedCoProcessFunction):
    """Pairs the last value of each side; a timer forgets them."""

    def open(self, runtime_context):
        self.left = runtime_context.get_state(ValueStateDescriptor("left"))
        self.right = runtime_context.get_state(ValueStateDescriptor("right"))

    def process_element1(self, value, ctx):
        assert ctx.get_current_key() == value[0]
        self.left.update(value[1])
        ctx.timer_service().register_event_time_timer(ctx.timestamp() + 10)
        if self.right.value() is not None:
            yield ctx.get_current_key(), self.left.value(), self.right.value()

    def process_element2(self, value, ctx):
        assert ctx.get_current_key() == value[1]
        self.right.update(value[0])
        if self.left.value() is not None:
            yield ctx.get_current_key(), self.left.value(), self.right.value()

    def on_timer(self, timestamp, ctx):
        yield "timer", ctx.get_current_key(), timestamp
        self.left.clear()
        self.right.clear()


def joined(parallelism=1):
    return OperatorHarness(
        lambda a, b: a.connect(b).key_by(lambda v: v[0], lambda v: v[1]).process(Join()),
        inputs=2,
        parallelism=parallelism,
    )


@pytest.mark.parametrize("parallelism", [1, 3])
def test_both_sides_share_the_state_of_a_key(parallelism):
    with joined(parallelism) as h:
        h.push(("a", 1), timestamp=0, input=1)
        h.push((10, "b"), timestamp=1, input=2)
        assert h.values() == []
        h.push((20, "a"), timestamp=2, input=2)
        h.push(("b", 2), timestamp=3, input=1)
        assert h.output() == [(("a", 1, 20), 2), (("b", 2, 10), 3)]
        assert h.state_entries() == 4


def test_timers_of_two_inputs_wait_for_both_and_leave_nothing():
    with joined() as h:
        h.push(("a", 1), timestamp=0, input=1)
        h.watermark(50, input=1)
        assert h.elements() == []
        h.watermark(30, input=2)
        assert h.elements() == [("record", ("timer", "a", 10), 10), ("watermark", 30, None)]
        assert (h.state_entries(), h.timers()) == (0, 0)


def test_an_idle_input_does_not_hold_timers_back():
    with joined() as h:
        h.push(("a", 1), timestamp=0, input=1)
        h.idle(input=2)
        h.watermark(12, input=1)
        assert h.values() == [("timer", "a", 10)]


def test_two_keyed_streams_can_be_connected_directly():
    with OperatorHarness(lambda a, b: a.key_by(0).connect(b.key_by(1)).process(Join()), inputs=2) as h:
        h.push(("a", 1), timestamp=0, input=1)
        h.push((2, "a"), timestamp=0, input=2)
        assert h.values() == [("a", 1, 2)]


def by_value(value):
    return value % 10


class Together(CoMapFunction):
    """How many records of the key came before, from either side."""

    def open(self, runtime_context):
        self.seen = runtime_context.get_state(ValueStateDescriptor("seen"))

    def map1(self, value):
        before = self.seen.value() or 0
        self.seen.update(before + 1)
        return value, before

    map2 = map1


@pytest.mark.parametrize("keyed_first", [True, False])
def test_a_keyed_and_a_plain_stream_can_be_keyed_together(run, keyed_first):
    def build(env):
        streams = [env.from_collection([1, 2]).key_by(lambda v: 0), env.from_collection([11, 12])]
        first, second = streams if keyed_first else streams[::-1]
        return first.connect(second).key_by(by_value, by_value).map(Together())

    results = run(build, parallelism=2)
    assert sorted(value for value, _ in results) == [1, 2, 11, 12]
    assert sorted((value % 10, before) for value, before in results) == [(1, 0), (1, 1), (2, 0), (2, 1)]


def test_where_only_one_stream_is_keyed_there_is_no_keyed_state(env):
    keyed, plain = env.from_collection([1]).key_by(by_value), env.from_collection([2])
    keyed.connect(plain).map(Together()).discard()
    with pytest.raises(KeyedStateRequired, match=r"'seen' .*call key_by"):
        env.execute()


def test_a_co_process_function_without_keys_has_no_timers():
    class Timer(CoProcessFunction):
        def process_element1(self, value, ctx):
            ctx.timer_service().register_processing_time_timer(1)

        def process_element2(self, value, ctx):
            yield value, ctx.timestamp(), ctx.timer_service().current_watermark()

    with OperatorHarness(lambda a, b: a.connect(b).process(Timer()), inputs=2) as h:
        h.push(2, timestamp=1, input=2)
        assert h.values() == [(2, 1, -(2**63))]
        with pytest.raises(TimersRequireKeys, match=r"call key_by"):
            h.push(1, input=1)


def test_a_keyed_co_map_holds_state():
    class Count(CoMapFunction):
        def open(self, runtime_context):
            self.n = runtime_context.get_state(ValueStateDescriptor("n", default_value=0))

        def map1(self, value):
            self.n.update(self.n.value() + 1)
            return value, self.n.value()

        def map2(self, value):
            self.n.update(self.n.value() + 10)
            return value, self.n.value()

    with OperatorHarness(lambda a, b: a.connect(b).key_by(0, 0).map(Count()), inputs=2) as h:
        for key, side in (("a", 1), ("b", 2), ("a", 2), ("b", 1)):
            h.push((key,), input=side)
        assert [n for _, n in h.values()] == [1, 10, 11, 11]
