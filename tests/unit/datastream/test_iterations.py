"""Loops in DataStream programs, beside what plain Python computes."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.common import Types, WatermarkStrategy
from penstock.common.watermark_strategy import TimestampAssigner
from penstock.datastream import (
    CoMapFunction,
    KeyedProcessFunction,
    ProcessWindowFunction,
    RuntimeExecutionMode,
    StreamExecutionEnvironment,
)
from penstock.datastream.state import ValueStateDescriptor
from penstock.datastream.window import TumblingEventTimeWindows
from penstock.engine.operators.feedback import feedback_queue
from penstock.errors import ProgramError, UnsupportedOperation
from penstock.testing import in_process


def environment(parallelism=1):
    return StreamExecutionEnvironment.get_execution_environment().set_parallelism(parallelism)


def halve(number):
    return number // 2 if number % 2 == 0 else 3 * number + 1


def collatz(number):
    steps = 0
    while number != 1:
        number, steps = halve(number), steps + 1
    return steps


def collatz_stream(env, numbers, **settings):
    """Each number with the number of its steps to 1, one step for each way through the loop."""
    loop = env.from_collection([(number, number, 0) for number in numbers]).iterate(**settings)
    step = loop.map(lambda r: r if r[1] == 1 else (r[0], halve(r[1]), r[2] + 1))
    loop.close_with(step.filter(lambda r: r[1] != 1))
    return step.filter(lambda r: r[1] == 1).map(lambda r: (r[0], r[2]))


@given(
    st.lists(st.integers(1, 60), max_size=30),
    st.integers(1, 3),
    st.sampled_from([1, 3, 1000]),
    st.sampled_from([0, 50]),
)
@settings(max_examples=25, deadline=None)
def test_records_go_through_the_loop_until_they_leave_it(numbers, parallelism, epoch_records, wait):
    with in_process(epoch_records=epoch_records):
        env = environment(parallelism)
        results = sorted(collatz_stream(env, [1, *numbers], max_wait_time=wait).execute_and_collect())
    assert results == sorted((number, collatz(number)) for number in [1, *numbers])


class CountVisits(KeyedProcessFunction):
    """Sends a record on with the number of visits of its key so far."""

    def open(self, context):
        self.visits = context.get_state(ValueStateDescriptor("visits", Types.INT()))

    def process_element(self, value, ctx):
        visits = (self.visits.value() or 0) + 1
        self.visits.update(visits)
        yield value[0], visits


@pytest.mark.parametrize("parallelism", [1, 3])
def test_feedback_crosses_an_exchange_by_key_and_may_be_several_streams(parallelism):
    with in_process(epoch_records=2):
        env = environment(parallelism)
        loop = env.from_collection([("a", 0), ("b", 0), ("c", 0)]).iterate()
        visits = loop.key_by(lambda r: r[0]).process(CountVisits())
        again = visits.filter(lambda r: r[1] < 5)
        loop.close_with(again.filter(lambda r: r[0] != "a").rebalance())
        loop.close_with(again.filter(lambda r: r[0] == "a"))
        results = sorted(visits.execute_and_collect())
    assert results == [(key, visits) for key in "abc" for visits in range(1, 6)]


class Words(CoMapFunction):
    def map1(self, value):
        return ("in", value, "x")

    def map2(self, value):
        return ("back", len(value), value + "x")


def test_feedback_may_have_another_type():
    with in_process(epoch_records=2):
        env = environment(2)
        loop = env.from_collection([1, 2]).iterate().with_feedback_type(Types.STRING())
        step = loop.map(Words())
        loop.close_with(step.map(lambda r: r[2]).filter(lambda text: len(text) < 4))
        results = sorted(step.execute_and_collect())
    assert results == [("back", 1, "xx")] * 2 + [("back", 2, "xxx")] * 2 + [("back", 3, "xxxx")] * 2 + [
        ("in", 1, "x"),
        ("in", 2, "x"),
    ]


class SecondField(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class CountInWindow(ProcessWindowFunction):
    def process(self, key, context, elements):
        yield key, context.window().start, len(list(elements))


def test_event_time_in_a_loop_is_that_of_its_input():
    with in_process(epoch_records=2):
        env = environment(2)
        strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(SecondField())
        events = env.from_collection([("k", time) for time in (1, 2, 11, 12, 13, 21)])
        loop = events.assign_timestamps_and_watermarks(strategy).set_parallelism(1).iterate()
        counts = loop.key_by(lambda r: r[0]).window(TumblingEventTimeWindows.of(10)).process(CountInWindow())
        loop.close_with(counts.filter(lambda r: False).map(lambda r: (r[0], r[1])))
        assert sorted(counts.execute_and_collect()) == [("k", 0, 2), ("k", 10, 3), ("k", 20, 1)]


def test_records_of_classes_in_functions_can_return():
    class Step:
        def __init__(self, number):
            self.number = number

    with in_process(epoch_records=2):
        env = environment(2)
        loop = env.from_collection([0, 1, 2]).map(Step).iterate()
        step = loop.map(lambda r: Step(r.number + 1)).rebalance()
        loop.close_with(step.filter(lambda r: r.number < 4))
        results = sorted(step.filter(lambda r: r.number >= 4).map(lambda r: r.number).execute_and_collect())
    assert results == [4, 4, 4]


@pytest.mark.parametrize("parallelism", [1, 2])
def test_sources_wait_while_too_many_records_are_on_their_way_back(monkeypatch, parallelism):
    monkeypatch.setattr(feedback_queue, "FULL_RECORDS", 50)
    longest = []
    add = feedback_queue.FeedbackQueue.add

    def watched(self, values, timestamps, now):
        add(self, values, timestamps, now)
        longest.append(len(self))

    monkeypatch.setattr(feedback_queue.FeedbackQueue, "add", watched)
    with in_process(epoch_records=10):
        env = environment(parallelism)
        loop = env.from_sequence(1, 3000).map(lambda n: (n, 0)).iterate()
        step = loop.map(lambda r: (r[0], r[1] + 1))
        loop.close_with(step.filter(lambda r: r[1] < 40))
        done = step.filter(lambda r: r[1] == 40).map(lambda r: r[0])
        assert sorted(done.execute_and_collect()) == list(range(1, 3001))
    # Without waiting there would be ten more in every epoch, and some 400 in the end.
    assert 50 <= max(longest) < 150


# --- bad input ---
def test_a_loop_that_is_not_closed_is_an_error():
    with in_process():
        env = environment()
        env.from_collection([1]).iterate().map(lambda n: n).discard()
        with pytest.raises(ProgramError, match=r"Iteration Head.*close_with"):
            env.execute()


def test_only_a_stream_of_the_loop_can_close_it():
    env = environment()
    other = env.from_collection([1]).map(lambda n: n).name("other")
    loop = env.from_collection([2]).iterate()
    with pytest.raises(ProgramError, match="other does not come from this iteration"):
        loop.close_with(other)
    with pytest.raises(match="feedback"):
        loop.close_with(3)


@pytest.mark.parametrize("time", [-1, "soon", 1.5])
def test_a_wrong_time_is_an_error(time):
    with pytest.raises((ValueError, TypeError), match="max_wait_time"):
        environment().from_collection([1]).iterate(time)


def test_batch_mode_has_no_loops_and_automatic_mode_streams_them():
    with in_process():
        env = environment().set_runtime_mode(RuntimeExecutionMode.BATCH)
        collatz_stream(env, [3]).discard()
        with pytest.raises(UnsupportedOperation, match="BATCH mode has no iterations"):
            env.execute()
        env = environment().set_runtime_mode(RuntimeExecutionMode.AUTOMATIC)
        assert list(collatz_stream(env, [3]).execute_and_collect()) == [(3, 7)]


def test_names_and_uids_follow_those_of_the_loop():
    env = environment()
    loop = env.from_collection([1]).uid("numbers").iterate().uid("loop").set_parallelism(3).name("the loop")
    loop.close_with(loop.map(lambda n: n).uid("step").filter(lambda n: n > 5).uid("filter"))
    plan = env._plan("job")
    found = {node.uid: node.parallelism for node in plan.nodes}
    assert found == {"numbers": 1, "loop": 3, "loop-head": 3, "step": 1, "filter": 1, "loop-sink-0": 3}
    assert "the loop" in env.explain()
