"""open and close of user functions, and what a RuntimeContext tells."""

from collections import Counter

import pytest

from penstock.datastream import StreamExecutionEnvironment
from penstock.datastream.functions import (
    AggregateFunction,
    FilterFunction,
    KeyedProcessFunction,
    MapFunction,
    ReduceFunction,
    SinkFunction,
)
from penstock.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    ValueStateDescriptor,
)
from penstock.errors import JobFailed, KeyedStateRequired
from penstock.testing import ManualClock, in_process

CALLS: list = []
CONTEXTS: list = []


@pytest.fixture(autouse=True)
def _forget():
    CALLS.clear()
    CONTEXTS.clear()


class Logged:
    label = "?"

    def open(self, runtime_context):
        self.subtask = runtime_context.get_index_of_this_subtask()
        CALLS.append(("open", self.label, self.subtask))

    def close(self):
        CALLS.append(("close", self.label, self.subtask))


class Map(Logged, MapFunction):
    def __init__(self, label="map", fail_on=None):
        self.label = label
        self.fail_on = fail_on

    def map(self, value):
        assert ("open", self.label, self.subtask) in CALLS
        if value == self.fail_on:
            raise ValueError(f"no {value}")
        return value


class Filter(Logged, FilterFunction):
    label = "filter"

    def filter(self, value):
        return True


class Process(Logged, KeyedProcessFunction):
    label = "process"

    def process_element(self, value, ctx):
        yield value


class Reduce(Logged, ReduceFunction):
    label = "reduce"

    def reduce(self, value1, value2):
        return value2


class Sink(Logged, SinkFunction):
    label = "sink"

    def invoke(self, value, context=None):
        pass


def program(parallelism, fail_on=None, epoch_records=None):
    with in_process(epoch_records=epoch_records, clock=ManualClock()):
        env = StreamExecutionEnvironment().set_parallelism(parallelism)
        stream = env.from_collection(range(10)).map(Map(fail_on=fail_on)).filter(Filter())
        stream.key_by(lambda v: v).process(Process()).key_by(lambda v: v % 2).reduce(Reduce()).add_sink(Sink())
        env.execute()


LABELS = ("map", "filter", "process", "reduce", "sink")


@pytest.mark.parametrize("parallelism", [1, 3])
@pytest.mark.parametrize("fail_on", [None, 5])
def test_every_subtask_is_opened_and_closed_once_also_after_a_failure(parallelism, fail_on):
    if fail_on is None:
        program(parallelism, epoch_records=1)
    else:
        with pytest.raises(JobFailed, match=r"no 5"):
            program(parallelism, fail_on, epoch_records=1)
    expected = {(when, label, n): 1 for when in ("open", "close") for label in LABELS for n in range(parallelism)}
    assert Counter(CALLS) == expected
    first_close = next(i for i, call in enumerate(CALLS) if call[0] == "close")
    assert all(call[0] == "open" for call in CALLS[:first_close])


class FailsToOpen(Map):
    def open(self, runtime_context):
        super().open(runtime_context)
        raise ValueError("cannot connect")


def test_a_failing_open_fails_the_job_and_closes_what_was_opened(env):
    env.from_collection([1]).map(Map("first")).map(FailsToOpen("second")).name("Lookup").map(Map("third")).discard()
    with pytest.raises(JobFailed, match=r"Lookup .*cannot connect"):
        env.execute()
    opened = {label for when, label, _ in CALLS if when == "open"}
    closed = Counter(label for when, label, _ in CALLS if when == "close")
    assert closed == Counter(opened) and "second" in closed


class FailsToClose(Map):
    def close(self):
        super().close()
        raise ValueError("flush failed")


def test_a_failing_close_fails_the_job_but_not_the_other_closes(env):
    env.from_collection([1]).map(FailsToClose("first")).name("Buffered").map(Map("second")).discard()
    with pytest.raises(JobFailed, match=r"Buffered .*flush failed"):
        env.execute()
    assert {label for when, label, _ in CALLS if when == "close"} == {"first", "second"}


def test_the_first_failure_counts(env):
    env.from_collection([1]).map(FailsToClose("first", fail_on=1)).discard()
    with pytest.raises(JobFailed, match=r"no 1"):
        env.execute()


def test_functions_of_a_cancelled_job_are_closed(env):
    assert env.generate(rate=1000).map(Map()).execute_and_collect(limit=2) == [0, 1]
    assert CALLS == [("open", "map", 0), ("close", "map", 0)]


def test_a_function_object_used_twice_is_two_functions(env):
    class Counting(MapFunction):
        n = 0

        def map(self, value):
            self.n += 1
            return self.n

    function = Counting()
    assert env.from_collection([1, 1]).map(function).map(function).execute_and_collect(limit=9) == [1, 2]
    assert function.n == 0


class Told(MapFunction):
    def open(self, runtime_context):
        c = runtime_context
        c.get_metrics_group().counter("seen")
        CONTEXTS.append(
            (
                c.get_task_name(),
                c.get_task_name_with_subtasks(),
                c.get_number_of_parallel_subtasks(),
                c.get_max_number_of_parallel_subtasks(),
                c.get_index_of_this_subtask(),
                c.get_attempt_number(),
                c.get_job_name(),
                c.get_job_parameter("mode", "none"),
                c.get_job_parameter("other", "none"),
                len(c.get_job_id()),
                c.get_metric_group() is c.get_metrics_group(),
            )
        )

    def map(self, value):
        return value


def test_what_a_runtime_context_tells():
    with in_process(clock=ManualClock()):
        env = StreamExecutionEnvironment().set_parallelism(3)
        env.get_config().set_global_job_parameters({"mode": "test"})
        env.from_sequence(1, 3).map(Told()).name("Teller").set_parallelism(2).set_max_parallelism(64).discard()
        env.execute("my job")
    rest = (0, "my job", "test", "none", 32, True)
    assert sorted(CONTEXTS) == [
        ("Teller", "Teller (1/2)", 2, 64, 0, *rest),
        ("Teller", "Teller (2/2)", 2, 64, 1, *rest),
    ]


class CountsUp(MapFunction):
    def open(self, runtime_context):
        self.counter = runtime_context.get_metrics_group().counter("mapped")

    def map(self, value):
        self.counter.inc()
        return value


def test_counters_are_summed_over_the_subtasks():
    with in_process(clock=ManualClock()):
        env = StreamExecutionEnvironment().set_parallelism(2)
        env.from_sequence(1, 10).map(CountsUp()).uid("up").discard()
        totals = env.execute().get_all_accumulator_results()
    assert [value for name, value in totals.items() if "up" in name and "mapped" in name] == [10]


class Total(AggregateFunction):
    def create_accumulator(self):
        return 0

    def add(self, value, accumulator):
        return accumulator + value

    def get_result(self, accumulator):
        return accumulator

    def merge(self, acc_a, acc_b):
        return acc_a + acc_b


@pytest.mark.parametrize(
    ("getter", "descriptor"),
    [
        ("get_state", ValueStateDescriptor("n")),
        ("get_list_state", ListStateDescriptor("n")),
        ("get_map_state", MapStateDescriptor("n")),
        ("get_reducing_state", ReducingStateDescriptor("n", max)),
        ("get_aggregating_state", AggregatingStateDescriptor("n", Total())),
    ],
)
def test_keyed_state_needs_keys(env, getter, descriptor):
    class Wants(MapFunction):
        def open(self, runtime_context):
            getattr(runtime_context, getter)(descriptor)

        def map(self, value):
            return value

    env.from_collection([1]).map(Wants()).name("Counter").discard()
    with pytest.raises(KeyedStateRequired, match=r"Counter .*'n' .* call key_by"):
        env.execute()
