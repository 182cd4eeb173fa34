"""What a user can get wrong: each has its exception class, and a message that names the place and the remedy."""

import os
import threading

import pytest

import penstock
from penstock.common import Row, Time, Types, WatermarkStrategy
from penstock.datastream import RuntimeExecutionMode, StreamExecutionEnvironment
from penstock.datastream.functions import (
    FlatMapFunction,
    KeyedProcessFunction,
    MapFunction,
    Partitioner,
    ProcessFunction,
    ProcessJoinFunction,
    ReduceFunction,
    SinkFunction,
    SourceFunction,
)
from penstock.datastream.state import ValueStateDescriptor
from penstock.datastream.window import TumblingEventTimeWindows
from penstock.errors import (
    DuplicateUid,
    InvalidArgument,
    InvalidParallelism,
    JobCancelled,
    JobFailed,
    KeyedStateRequired,
    MissingTimestamp,
    NothingToExecute,
    NotSerializable,
    PenstockError,
    RecordError,
    TimersRequireKeys,
    TypeMismatch,
    UnsupportedKey,
    UnsupportedOperation,
)
from penstock.testing import ManualClock, in_process

PACKAGE = os.path.dirname(penstock.__file__)
CLOSED: list = []


def failing(value):
    return helper(value)


def helper(value):
    raise ValueError(f"cannot use {value['n']}")


class Failing(MapFunction):
    def map(self, value):
        return failing(value)


class FailingFlat(FlatMapFunction):
    def flat_map(self, value):
        yield 1
        yield failing(value)


class FailingProcess(ProcessFunction):
    def process_element(self, value, ctx):
        yield failing(value)


class FailingKeyed(KeyedProcessFunction):
    process_element = FailingProcess.process_element


class FailingReduce(ReduceFunction):
    def reduce(self, value1, value2):
        return failing(value2)


class FailingSink(SinkFunction):
    def invoke(self, value, context=None):
        failing(value)


RECORD = {"n": 1, "text": "x" * 500}

PLACES = {
    "map": lambda s: s.map(failing),
    "map function": lambda s: s.map(Failing()),
    "filter": lambda s: s.filter(failing),
    "flat_map": lambda s: s.flat_map(FailingFlat()),
    "process": lambda s: s.process(FailingProcess()),
    "keyed process": lambda s: s.key_by(lambda v: v["n"]).process(FailingKeyed()),
    "reduce": lambda s: s.key_by(lambda v: 0).reduce(FailingReduce()),
    "map_with_state": lambda s: s.key_by(lambda v: 0).map_with_state(lambda v, state: failing(v)),
    "split": lambda s: s.split(failing),
    "sink": lambda s: s.add_sink(FailingSink()),
    "sink lambda": lambda s: s.add_sink(failing),
}


@pytest.mark.parametrize("parallelism", [1, 2])
@pytest.mark.parametrize("place", PLACES)
def test_an_exception_of_the_users(place, parallelism):
    with in_process(clock=ManualClock()):
        env = StreamExecutionEnvironment().set_parallelism(parallelism)
        stream = PLACES[place](env.from_collection([RECORD, RECORD])).name("My step").uid("my-step")
        if not place.startswith("sink"):
            stream.discard()
        with pytest.raises(JobFailed) as raised:
            env.execute()
    error = raised.value
    assert (error.operator, error.uid) == ("My step", "my-step")
    message = str(error)
    assert message.startswith("My step (uid my-step, subtask ")
    assert "failed: ValueError: cannot use 1" in message
    assert "on record {'n': 1, 'text': 'xxx" in message and len(error.record) <= 200
    assert "in failing" in message and "in helper" in message and __file__ in message
    assert PACKAGE + os.sep not in message


@pytest.mark.parametrize("parallelism", [1, 2])
def test_an_exception_in_a_key_selector(parallelism):
    with in_process(clock=ManualClock()):
        env = StreamExecutionEnvironment().set_parallelism(parallelism)
        env.from_collection([RECORD]).key_by(failing).sum("n").name("Totals").print()
        with pytest.raises(
            JobFailed, match=r"key_by of Totals .*ValueError: cannot use 1\n  on record {'n': 1"
        ) as raised:
            env.execute()
    assert PACKAGE + os.sep not in str(raised.value)


def test_a_record_whose_repr_fails(env):
    class Shy:
        def __repr__(self):
            raise RuntimeError("no")

    env.from_collection([1]).map(lambda v: Shy()).map(lambda v: v.missing).name("Reader").discard()
    with pytest.raises(JobFailed, match=r"Reader .*AttributeError.*\n  on record <Shy whose repr failed>"):
        env.execute()


def test_a_function_that_calls_exit_fails_the_job(env):
    def leave(value):
        raise SystemExit(3)

    env.from_collection([1]).map(leave).name("Leaver").discard()
    with pytest.raises(JobFailed, match=r"Leaver"):
        env.execute()


# --- what cannot be shipped ---
class Holds(MapFunction):
    def __init__(self):
        self.connection = threading.Lock()

    def map(self, value):
        return value


LOCK = threading.Lock()


def captured():
    lock = threading.Lock()

    def uses(value):
        with lock:
            return value

    return uses


@pytest.mark.parametrize(
    ("build", "operator", "captive"),
    [
        (lambda s: s.map(captured()).name("Careful"), r"Careful \(uid careful-1\)", r"'lock' \(lock"),
        (lambda s: s.map(Holds()).name("Holder").uid("h"), r"Holder \(uid h\)", r"'connection' \(lock"),
        (lambda s: s.filter(lambda v, ls=[threading.Lock()]: True).name("Default"), "Default", ""),
        (lambda s: s.key_by(captured()).sum().name("Total"), "Total", "'lock'"),
        (lambda s: s.partition_custom(lambda k, n, u=captured(): 0, lambda v: v).map(str), "before Map", ""),
    ],
    ids=["closure", "attribute", "default argument", "key selector", "partitioner"],
)
def test_a_captured_object_that_cannot_be_shipped(env, build, operator, captive):
    env.set_parallelism(2)
    build(env.from_collection([1])).discard()
    with pytest.raises(NotSerializable, match=rf"{operator}.* cannot be sent to the slots.*{captive}.*open") as raised:
        env.execute()
    assert "pickle" in str(raised.value)


def test_a_collection_that_cannot_be_shipped(env):
    env.from_collection([1, threading.Lock()]).name("Locks").discard()
    with pytest.raises(NotSerializable, match=r"Locks .*'\[1\]' \(lock"):
        env.execute()


# --- keys ---
@pytest.mark.parametrize("parallelism", [1, 2])
@pytest.mark.parametrize(
    ("key", "message"),
    [
        (lambda v: [v], "list cannot be a key, since it is not hashable: return a tuple"),
        (lambda v: {"a": v}, "dict cannot be a key, since it is not hashable"),
        (lambda v: (1, [v]), "not hashable"),
        (lambda v: object(), "object cannot be a key. Allowed are numbers, strings"),
        (lambda v: 1j, "complex cannot be a key"),
        (lambda v: float("nan"), "NaN cannot be a key"),
    ],
    ids=["list", "dict", "nested list", "object", "complex", "nan"],
)
def test_a_key_that_is_none(key, message, parallelism):
    with in_process(clock=ManualClock()):
        env = StreamExecutionEnvironment().set_parallelism(parallelism)
        env.from_collection([7]).key_by(key).sum().name("Totals").discard()
        with pytest.raises(UnsupportedKey, match=rf"key_by of Totals .*{message}"):
            env.execute()


@pytest.mark.parametrize("key", ["missing", 5, "a.b"])
def test_a_field_to_key_by_that_is_not_there(env, key):
    env.from_collection([Row(a=1)]).key_by(key).sum("a").discard()
    with pytest.raises(RecordError, match=r"has no field .* to key by"):
        env.execute()


@pytest.mark.parametrize("key", [True, 1.5, None, ()])
def test_no_key_selector_at_all(env, key):
    with pytest.raises(TypeError, match=r"key_by"):
        env.from_collection([1]).key_by(key)


# --- types ---
@pytest.mark.parametrize(
    ("build", "operator"),
    [
        (lambda s: s.map(lambda v: str(v), Types.INT()), "Map"),
        (lambda s: s.flat_map(lambda v: ["x"], Types.INT()), "Flat Map"),
        (lambda s: s.key_by(lambda v: v).map_with_state(lambda v, n: ("x", n), Types.INT()), "Map With State"),
    ],
)
def test_a_value_that_does_not_fit_its_type(env, build, operator):
    build(env.from_collection([1])).name(f"My {operator}").uid("mine").discard()
    with pytest.raises(TypeMismatch, match=rf"My {operator} \(uid mine, subtask 0\) .*\(str\) does not fit INT"):
        env.execute()


def test_a_field_that_does_not_fit_says_which(env):
    pair = Types.TUPLE([Types.STRING(), Types.INT()])
    env.from_collection([1]).map(lambda v: ("a", "b"), pair).name("Pairs").discard()
    with pytest.raises(TypeMismatch, match=r"Pairs .*'b' .str. does not fit INT, in field 1"):
        env.execute()


def test_a_source_that_does_not_fit(env):
    env.generate(str, rate=1, count=1, type_info=Types.INT()).name("Ticks").discard()
    with pytest.raises(TypeMismatch, match=r"Ticks .*'0' .str. does not fit INT"):
        env.execute()


# --- time ---
def test_event_time_without_timestamps(env):
    strategy = WatermarkStrategy.for_monotonous_timestamps()
    stream = env.from_collection(["r"]).assign_timestamps_and_watermarks(strategy).key_by(lambda value: value)
    stream.window(TumblingEventTimeWindows.of(Time.seconds(1))).reduce(max).name("Greatest").discard()
    with pytest.raises(MissingTimestamp, match=r"Greatest .*with_timestamp_assigner.*\n  on record 'r'"):
        env.execute()


class Pairs(ProcessJoinFunction):
    def process_element(self, left, right, ctx):
        yield left, right


def test_an_interval_join_without_timestamps(env):
    stream = env.from_collection(["r"]).assign_timestamps_and_watermarks(WatermarkStrategy.for_monotonous_timestamps())
    keyed = stream.key_by(lambda value: value)
    near = keyed.interval_join(keyed).between(Time.seconds(-1), Time.seconds(1))
    near.process(Pairs()).name("Near").discard()
    with pytest.raises(MissingTimestamp, match=r"Near .*with_timestamp_assigner.*\n  on record 'r'"):
        env.execute()


class Timer(ProcessFunction):
    def __init__(self, method):
        self.method = method

    def process_element(self, value, ctx):
        getattr(ctx.timer_service(), self.method)(5)


@pytest.mark.parametrize("domain", ["event", "processing"])
@pytest.mark.parametrize("verb", ["register", "delete"])
def test_a_timer_without_keys(env, verb, domain):
    env.from_collection([1]).process(Timer(f"{verb}_{domain}_time_timer")).name("Alarm").discard()
    with pytest.raises(TimersRequireKeys, match=r"Alarm .*call key_by\(\.\.\.\) before process"):
        env.execute()


class Counter(ProcessFunction):
    def open(self, runtime_context):
        runtime_context.get_state(ValueStateDescriptor("count"))

    def process_element(self, value, ctx):
        pass


def test_keyed_state_without_keys(env):
    env.from_collection([1]).process(Counter()).name("Counter").discard()
    with pytest.raises(KeyedStateRequired, match=r"Counter .*'count' .*call key_by\(\.\.\.\)"):
        env.execute()


# --- the program as a whole ---
def test_a_uid_twice(env):
    env.from_collection([1]).map(str).uid("same").map(str).name("Second").uid("same").discard()
    with pytest.raises(DuplicateUid, match=r"'same' is given to 2 operators \(Map, Second\)"):
        env.execute()


def test_an_empty_uid(env):
    with pytest.raises(ValueError, match=r"uid"):
        env.from_collection([1]).map(str).uid("")


@pytest.mark.parametrize("wrong", [1.5, True, "2", None])
def test_a_parallelism_is_a_whole_number(env, wrong):
    stream = env.from_sequence(1, 2).map(str)
    for owner in (env, stream):
        for set_value in (owner.set_parallelism, owner.set_max_parallelism):
            with pytest.raises(InvalidArgument, match=rf"parallelism must be a whole number, not {wrong!r}"):
                set_value(wrong)


@pytest.mark.parametrize("parallelism", [0, -1, -5])
def test_a_parallelism_that_is_none(env, parallelism):
    stream = env.from_sequence(1, 2).map(str)
    with pytest.raises(InvalidParallelism, match=r"at least 1"):
        stream.set_parallelism(parallelism)
    if parallelism != -1:  # which stands for the default here
        with pytest.raises(InvalidParallelism, match=r"at least 1"):
            env.set_parallelism(parallelism)


def test_a_parallelism_above_the_maximum(env):
    with pytest.raises(InvalidParallelism, match=r"5 is above the max parallelism 4"):
        env.from_sequence(1, 2).map(str).set_max_parallelism(4).set_parallelism(5)
    env.from_sequence(1, 2).map(str).name("Wide").set_parallelism(5).set_max_parallelism(4).discard()
    with pytest.raises(InvalidParallelism, match=r"Wide: parallelism 5 is above its max parallelism 4; lower it"):
        env.execute()


@pytest.mark.parametrize("maximum", [0, -1, 40_000])
def test_a_max_parallelism_that_is_none(env, maximum):
    for setting in (env.set_max_parallelism, env.from_sequence(1, 2).map(str).set_max_parallelism):
        with pytest.raises(InvalidParallelism, match=r"from 1 to 32768"):
            setting(maximum)


def test_nothing_to_execute_again(env):
    env.from_collection([1]).discard()
    env.execute()
    for attempt in (env.execute, env.execute_async, env.explain, env.get_execution_plan):
        with pytest.raises(NothingToExecute, match=r"Define a source and at least one operator or sink"):
            attempt()


def test_forward_between_different_parallelisms(env):
    env.from_sequence(1, 2).forward().map(str).name("Wide").set_parallelism(2).discard()
    with pytest.raises(InvalidParallelism, match=r"forward\(\) from .* to Wide .*use rebalance\(\) or rescale\(\)"):
        env.execute()


class Run(SourceFunction):
    def run(self, ctx):
        pass

    def cancel(self):
        pass


@pytest.mark.parametrize(
    ("source", "name"),
    [(lambda env: env.generate(rate=1), "Generator Source"), (lambda env: env.add_source(Run(), "Mine"), "Mine")],
)
def test_a_source_without_end_in_batch_mode(env, source, name):
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    source(env).discard()
    with pytest.raises(UnsupportedOperation, match=rf"{name} never ends: use STREAMING or AUTOMATIC"):
        env.execute()


class Beyond(Partitioner):
    def partition(self, key, num_partitions):
        return num_partitions


def test_a_partitioner_out_of_range(env):
    env.set_parallelism(2)
    env.from_collection([7]).partition_custom(Beyond(), lambda v: v).map(str).name("Parts").discard()
    with pytest.raises(RecordError, match=r"partition_custom before Parts .*chose 2; .*from 0 to 1\n  on record 7"):
        env.execute()


# --- functions of the wrong kind ---
WRONG = {
    "map": lambda s: s.map(3),
    "map of a class": lambda s: s.map(Failing),
    "map of another function": lambda s: s.map(Run()),
    "filter": lambda s: s.filter(None),
    "flat_map": lambda s: s.flat_map("x"),
    "process": lambda s: s.process(lambda v, ctx: v),
    "keyed process": lambda s: s.key_by(lambda v: v).process(lambda v, ctx: v),
    "reduce": lambda s: s.key_by(lambda v: v).reduce(3),
    "add_sink": lambda s: s.add_sink(3),
    "partition_custom": lambda s: s.partition_custom(3, lambda v: v),
    "union": lambda s: s.union([1]),
    "connect": lambda s: s.connect([1]),
    "get_side_output": lambda s: s.get_side_output("late"),
    "assign_timestamps_and_watermarks": lambda s: s.assign_timestamps_and_watermarks(lambda v: v),
    "split": lambda s: s.split(3),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_function_of_the_wrong_kind(env, what):
    method = what.split()[-1] if what.startswith("keyed") else what.split()[0]
    with pytest.raises(TypeError, match=rf"^\w+\.{method}: the argument \w+ must be an? .*, not "):
        WRONG[what](env.from_collection([1]))


def test_a_keyed_process_function_without_keys(env):
    with pytest.raises(TypeError, match=r"DataStream\.process: .* must be a ProcessFunction, not"):
        env.from_collection([1]).process(FailingKeyed())


@pytest.mark.parametrize("distribution", ["rebalance", "rescale", "shuffle", "forward", "global_", "broadcast"])
def test_a_keyed_stream_is_distributed_already(env, distribution):
    with pytest.raises(UnsupportedOperation, match=r"partitioned by its key.*before key_by"):
        getattr(env.from_collection([1]).key_by(lambda v: v), distribution)()


def test_what_this_version_does_not_have(env):
    stream = env.from_collection([1])
    for attempt in (stream.cache, lambda: env.create_input(None)):
        with pytest.raises(UnsupportedOperation, match=r"use|write"):
            attempt()
    with pytest.raises(TypeError, match=r"sink_to: the argument sink must be a Sink"):
        stream.sink_to(object())


def test_every_error_is_a_penstock_error():
    for kind in (JobFailed, NotSerializable, UnsupportedKey, TypeMismatch, KeyedStateRequired, JobCancelled):
        assert issubclass(kind, PenstockError)


# --- the end ---
class Closing(MapFunction):
    def __init__(self, fail):
        self.fail = fail

    def map(self, value):
        if self.fail:
            raise ValueError("no")
        return value

    def close(self):
        CLOSED.append(self.fail)


def test_a_job_that_fails_leaves_its_functions_closed(env):
    CLOSED.clear()
    env.from_collection([1]).map(Closing(False)).map(Closing(True)).map(Closing(False)).discard()
    with pytest.raises(JobFailed):
        env.execute()
    assert CLOSED == [False, True, False]


def test_a_cancelled_job_says_so(env):
    env.generate(rate=10).discard()
    client = env.execute_async()
    client.cancel().result(60)
    with pytest.raises(JobCancelled, match=r"the job was cancelled"):
        client.get_job_execution_result().result(60)
