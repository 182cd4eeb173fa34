"""A stream beside a broadcast one."""

import pytest

from penstock.datastream import OutputTag
from penstock.datastream.functions import BroadcastProcessFunction, KeyedBroadcastProcessFunction
from penstock.datastream.state import MapStateDescriptor, ValueStateDescriptor
from penstock.errors import ContextError, JobFailed, TimersRequireKeys
from penstock.testing import OperatorHarness

RULES = MapStateDescriptor("rules")
LAST = ValueStateDescriptor("last")
SIDE = OutputTag("side")


class Apply(BroadcastProcessFunction):
    def process_element(self, value, ctx):
        yield value, sorted(ctx.get_broadcast_state(RULES).items())

    def process_broadcast_element(self, value, ctx):
        ctx.get_broadcast_state(RULES).put(*value)
        ctx.output(SIDE, value)
        yield "rule", value, ctx.timestamp()


def plain(function, **options):
    return OperatorHarness(lambda a, b: a.connect(b.broadcast(RULES)).process(function), inputs=2, **options)


def keyed(function, **options):
    return OperatorHarness(lambda a, b: a.key_by(0).connect(b.broadcast(RULES)).process(function), inputs=2, **options)


def test_what_is_broadcast_reaches_the_elements_that_follow():
    with plain(Apply(), side_outputs=(SIDE,)) as h:
        h.push(1, timestamp=3, input=1)
        h.push(("low", 5), timestamp=7, input=2)
        h.push(2, input=1)
        assert h.output() == [((1, []), 3), (("rule", ("low", 5), 7), 7), ((2, [("low", 5)]), None)]
        assert h.side_output(SIDE) == [(("low", 5), 7)]


def test_every_subtask_gets_a_copy():
    with plain(Apply(), parallelism=3) as h:
        h.push(("low", 5), input=2)
        assert h.values() == [("rule", ("low", 5), None)] * 3
        h.push_all([1, 2, 3], input=1)
        assert sorted(h.values()) == [(n, [("low", 5)]) for n in (1, 2, 3)]


class ReadOnly(BroadcastProcessFunction):
    def __init__(self, attempt):
        self.attempt = attempt

    def process_element(self, value, ctx):
        self.attempt(ctx.get_broadcast_state(RULES))

    def process_broadcast_element(self, value, ctx):
        ctx.get_broadcast_state(RULES).put(*value)


def test_the_other_side_cannot_clear():
    with plain(ReadOnly(lambda state: state.clear())) as h:
        h.push(("a", 1), input=2)
        with pytest.raises(JobFailed, match=r"'rules' is read-only on the non-broadcast side"):
            h.push(1, input=1)


@pytest.mark.parametrize(
    "attempt",
    [lambda state: state.put(1, 2), lambda state: state.remove(1), lambda state: state.__setitem__(1, 2)],
    ids=["put", "remove", "item"],
)
def test_the_other_side_cannot_write(attempt):
    with plain(ReadOnly(attempt)) as h, pytest.raises(JobFailed, match=r"read-only"):
        h.push(1, input=1)


class Tally(KeyedBroadcastProcessFunction):
    """Elements set the key's state; broadcast commands look at all keys."""

    def open(self, runtime_context):
        self.last = runtime_context.get_state(LAST)

    def process_element(self, value, ctx):
        self.last.update(value[1])
        ctx.timer_service().register_event_time_timer(value[1])
        yield ctx.get_current_key(), value[1], ctx.get_broadcast_state(RULES).get("factor")

    def process_broadcast_element(self, value, ctx):
        if value[0] == "list":
            seen = []
            ctx.apply_to_keyed_state(LAST, lambda key, state: seen.append((key, state.value())))
            yield sorted(seen)
        elif value[0] == "double":
            ctx.apply_to_keyed_state(LAST, lambda key, state: state.update(state.value() * 2))
        elif value[0] == "drop":
            ctx.apply_to_keyed_state(LAST, lambda key, state: state.clear())
        elif value[0] == "call":
            getattr(ctx, value[1])()
        elif value[0] == "timer":
            ctx.timer_service().register_event_time_timer(1)
        else:
            ctx.get_broadcast_state(RULES).put(*value)

    def on_timer(self, timestamp, ctx):
        yield "timer", ctx.get_current_key(), self.last.value(), ctx.get_broadcast_state(RULES).get("factor")


def test_keyed_elements_and_their_timers_read_the_broadcast_state():
    with keyed(Tally()) as h:
        h.push(("factor", 3), input=2)
        h.push(("a", 10), input=1)
        h.watermark(20, input=1)
        h.watermark(20, input=2)
        assert h.values() == [("a", 10, 3), ("timer", "a", 10, 3)]


def test_apply_to_keyed_state_visits_every_key_and_may_change_it():
    with keyed(Tally()) as h:
        h.push_all([("a", 1), ("b", 2)], input=1)
        h.values()
        h.push(("list", None), input=2)
        h.push(("double", None), input=2)
        h.push(("list", None), input=2)
        assert h.values() == [[("a", 1), ("b", 2)], [("a", 2), ("b", 4)]]
        h.push(("drop", None), input=2)
        assert h.state_entries() == 0
        h.push(("list", None), input=2)
        assert h.values() == [[]]


def test_apply_to_keyed_state_in_several_subtasks_visits_each_key_once():
    with keyed(Tally(), parallelism=3) as h:
        h.push_all([(f"k{n}", n) for n in range(20)], input=1)
        h.values()
        h.push(("list", None), input=2)
        visited = [pair for part in h.values() for pair in part]
        assert sorted(visited) == sorted((f"k{n}", n) for n in range(20))


def test_the_broadcast_side_has_no_key_and_no_timers():
    with keyed(Tally()) as h, pytest.raises(ContextError, match=r"no current key"):
        h.push(("call", "get_current_key"), input=2)
    with keyed(Tally()) as h, pytest.raises(TimersRequireKeys):
        h.push(("timer",), input=2)


def test_the_broadcast_side_can_read_the_clocks():
    class Clocks(Tally):
        def process_broadcast_element(self, value, ctx):
            yield ctx.current_processing_time(), ctx.current_watermark(), ctx.timer_service().current_watermark()

    with keyed(Clocks()) as h:
        h.advance_processing_time(500)
        h.watermark(3, input=1)
        h.watermark(4, input=2)
        h.push("x", input=2)
        assert h.values() == [(500, 3, 3)]


def test_a_failure_on_the_broadcast_side_names_operator_and_record():
    class Fails(Apply):
        def process_broadcast_element(self, value, ctx):
            raise ValueError("bad rule")

    with plain(Fails()) as h, pytest.raises(JobFailed, match=r"Broadcast Process .*bad rule\n  on record 'r'"):
        h.push("r", input=2)
