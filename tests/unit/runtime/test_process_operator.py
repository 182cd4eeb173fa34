"""Process functions: what they see and where their output goes."""

import pytest

from penstock.common import Types
from penstock.datastream import OutputTag, TimeDomain
from penstock.datastream.functions import KeyedProcessFunction, ProcessFunction
from penstock.datastream.state import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor
from penstock.errors import ContextError, TypeMismatch
from penstock.testing import OperatorHarness

COLD = OutputTag("cold", Types.STRING())
HOT = OutputTag("hot")


class Describe(ProcessFunction):
    def process_element(self, value, ctx):
        yield value, ctx.timestamp(), ctx.timer_service().current_watermark()


def test_a_process_function_sees_timestamps_and_watermarks():
    with OperatorHarness(lambda s: s.process(Describe())) as harness:
        harness.push("a", timestamp=7)
        harness.watermark(10)
        harness.push("b")
        assert harness.output() == [(("a", 7, -(2**63)), 7), (("b", None, 10), None)]


class Yielding(ProcessFunction):
    def process_element(self, value, ctx):
        if value < 0:
            yield COLD, f"cold {value}"
        yield value
        if value > 30:
            yield HOT, value


class Calling(ProcessFunction):
    def process_element(self, value, ctx):
        if value < 0:
            ctx.output(COLD, f"cold {value}")
        if value > 30:
            ctx.output(HOT, value)
        return [value]


class KeyedYielding(KeyedProcessFunction):
    process_element = Yielding.process_element


class KeyedCalling(KeyedProcessFunction):
    process_element = Calling.process_element


@pytest.mark.parametrize(
    "build",
    [
        lambda s: s.process(Yielding()),
        lambda s: s.process(Calling()),
        lambda s: s.key_by(lambda v: v).process(KeyedYielding()),
        lambda s: s.key_by(lambda v: v).process(KeyedCalling()),
    ],
)
def test_side_outputs(build):
    with OperatorHarness(build, side_outputs=(COLD, HOT)) as harness:
        for value in (-1, 20, 40):
            harness.push(value, timestamp=value + 100)
        assert harness.output() == [(-1, 99), (20, 120), (40, 140)]
        assert harness.side_output(COLD) == [("cold -1", 99)]
        assert harness.side_output(HOT) == [(40, 140)]


def test_a_side_output_that_nobody_reads_is_dropped():
    with OperatorHarness(lambda s: s.process(Yielding())) as harness:
        harness.push(-1)
        assert harness.values() == [-1]


def test_a_tuple_that_begins_with_something_else_is_a_record():
    class Pairs(ProcessFunction):
        def process_element(self, value, ctx):
            yield "cold", value
            yield ()

    with OperatorHarness(lambda s: s.process(Pairs()), side_outputs=(COLD,)) as harness:
        harness.push(1)
        assert harness.values() == [("cold", 1), ()]
        assert harness.side_output(COLD) == []


def test_side_outputs_of_timers(run):
    class Late(KeyedProcessFunction):
        def process_element(self, value, ctx):
            ctx.timer_service().register_event_time_timer(5)

        def on_timer(self, timestamp, ctx):
            yield HOT, f"yielded at {timestamp}"
            ctx.output(HOT, f"put at {ctx.timestamp()}")

    with OperatorHarness(lambda s: s.key_by(lambda v: v).process(Late()), side_outputs=(HOT,)) as harness:
        harness.push("k", timestamp=1)
        harness.watermark(9)
        assert harness.side_output(HOT) == [("yielded at 5", 5), ("put at 5", 5)]


def test_a_side_output_that_does_not_fit_its_type_names_the_operator():
    class Wrong(ProcessFunction):
        def process_element(self, value, ctx):
            yield COLD, 1

    with OperatorHarness(lambda s: s.process(Wrong()).name("Sorter"), side_outputs=(COLD,)) as harness:
        with pytest.raises(TypeMismatch, match=r"1 .int. does not fit STRING") as raised:
            harness.push(0)
        assert raised.value.operator == "Sorter"


def test_what_a_plain_stream_does_not_have(run):
    class Asks(ProcessFunction):
        def __init__(self, question):
            self.question = question

        def process_element(self, value, ctx):
            getattr(ctx, self.question)(*([MapStateDescriptor("m")] if "state" in self.question else []))

    for question in ("get_current_key", "time_domain", "get_broadcast_state"):
        with OperatorHarness(lambda s, q=question: s.process(Asks(q))) as harness, pytest.raises(ContextError):
            harness.push(1)


def test_a_process_function_serves_a_keyed_stream_too():
    class Count(ProcessFunction):
        def open(self, runtime_context):
            self.n = runtime_context.get_state(ValueStateDescriptor("n"))

        def process_element(self, value, ctx):
            self.n.update((self.n.value() or 0) + 1)
            yield value, self.n.value(), ctx.get_current_key()

    with OperatorHarness(lambda s: s.key_by(lambda v: v).process(Count())) as harness:
        harness.push_all(["a", "b", "a"])
        assert harness.values() == [("a", 1, "a"), ("b", 1, "b"), ("a", 2, "a")]


class Peek(KeyedProcessFunction):
    """Reads and writes as told, to show whose state it sees."""

    def open(self, runtime_context):
        self.value = runtime_context.get_state(ValueStateDescriptor("v"))
        self.list = runtime_context.get_list_state(ListStateDescriptor("l"))
        self.map = runtime_context.get_map_state(MapStateDescriptor("m"))

    def process_element(self, value, ctx):
        if value[1] == "write":
            self.value.update(value[0])
            self.list.add(value[0])
            self.map.put("k", value[0])
        elif value[1] == "read":
            yield value[0], self.value.value(), list(self.list.get()), dict(self.map.items())
        elif value[1] == "timer":
            ctx.timer_service().register_event_time_timer(10)

    def on_timer(self, timestamp, ctx):
        yield ctx.get_current_key(), self.value.value(), ctx.time_domain() is TimeDomain.EVENT_TIME


def test_the_state_of_another_key_is_never_visible():
    with OperatorHarness(lambda s: s.key_by(0).process(Peek())) as harness:
        harness.push_all([("a", "write"), ("b", "nothing"), ("b", "read"), ("a", "read")])
        assert harness.values() == [("b", None, [], {}), ("a", "a", ["a"], {"k": "a"})]
        # A key switch by a timer, without access in between.
        harness.push_all([("c", "timer"), ("a", "timer"), ("b", "nothing")])
        harness.watermark(10)
        harness.push(("c", "read"))
        assert harness.values() == [("c", None, True), ("a", "a", True), ("c", None, [], {})]


def test_cleared_state_leaves_nothing():
    class Once(KeyedProcessFunction):
        def open(self, runtime_context):
            self.n = runtime_context.get_state(ValueStateDescriptor("n"))

        def process_element(self, value, ctx):
            self.n.update(1) if value[1] else self.n.clear()

    with OperatorHarness(lambda s: s.key_by(0).process(Once())) as harness:
        harness.push_all([("a", 1), ("b", 1), ("a", 0)])
        assert harness.state_entries() == 1
        harness.push(("b", 0))
        assert harness.state_entries() == 0


def test_a_mutable_default_is_not_shared_between_keys():
    class Collects(KeyedProcessFunction):
        def open(self, runtime_context):
            self.seen = runtime_context.get_state(ValueStateDescriptor("seen", default_value=[]))

        def process_element(self, value, ctx):
            seen = self.seen.value()
            seen.append(value)
            yield list(seen)

    with OperatorHarness(lambda s: s.key_by(lambda v: v).process(Collects())) as harness:
        harness.push_all([1, 2])
        assert harness.values() == [[1], [2]]


def test_keyed_map_filter_and_flat_map_hold_state():
    from penstock.datastream.functions import FilterFunction, FlatMapFunction, MapFunction

    class State:
        def open(self, runtime_context):
            self.n = runtime_context.get_state(ValueStateDescriptor("n", default_value=0))

        def count(self):
            self.n.update(self.n.value() + 1)
            return self.n.value()

    class Number(State, MapFunction):
        def map(self, value):
            return value, self.count()

    class First(State, FilterFunction):
        def filter(self, value):
            return self.count() == 1

    class Repeat(State, FlatMapFunction):
        def flat_map(self, value):
            return [value] * self.count()

    expected = {
        "map": (Number(), [("a", 1), ("b", 1), ("a", 2)]),
        "filter": (First(), ["a", "b"]),
        "flat_map": (Repeat(), ["a", "b", "a", "a"]),
    }
    for method, (function, results) in expected.items():
        with OperatorHarness(lambda s, m=method, f=function: getattr(s.key_by(lambda v: v), m)(f)) as harness:
            harness.push_all(["a", "b", "a"])
            assert harness.values() == results
