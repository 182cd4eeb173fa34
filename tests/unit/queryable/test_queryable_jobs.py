"""Queryable state of jobs in this process: what can be asked, and what is told when it cannot."""

import re
from dataclasses import dataclass

import pytest

from penstock.common import Configuration, RestartStrategies, Time, Types
from penstock.datastream import (
    AggregateFunction,
    KeyedProcessFunction,
    ProcessWindowFunction,
    RuntimeExecutionMode,
    StreamExecutionEnvironment,
)
from penstock.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)
from penstock.datastream.window import CountTumblingWindowAssigner
from penstock.errors import (
    JobFailed,
    ProgramError,
    QueryError,
    SlotLost,
    StateUnavailable,
    TypeMismatch,
    UnknownState,
    UnsupportedKey,
    UnsupportedOperation,
)
from penstock.queryable import QueryRequest, answer_as_json
from penstock.service.launch.submission import with_defaults
from penstock.testing import InProcessCluster, in_process, scripted
from tests.keyed_states import state_of
from tests.waiting import until

RECORDS = [("a", 1), ("b", 5), ("a", 3), ("c", 2), ("a", 2)]


@pytest.fixture
def env():
    """An environment of parallelism 2 on the real clock: its jobs stay until they are cancelled."""
    with in_process():
        yield StreamExecutionEnvironment().set_parallelism(2).set_buffer_timeout(1)


@pytest.fixture
def started(env):
    """Starts the program, and waits until its first answers show so many keys."""
    jobs = []

    def start(name=None, keys=3):
        jobs.append(env.execute_async())
        if name is not None:
            until(lambda: len(values(jobs[-1], name)) >= keys)
        return jobs[-1]

    yield start
    for job in jobs:
        job.cancel().result()


def values(job, name, *asked):
    try:
        answer = job.query(QueryRequest(name, asked or None)).result(60)
    except UnknownState:
        return {}
    return answer.values()


def keyed(env, *more, key_type=None):
    return scripted(env, *RECORDS, *more, stay=True).key_by(lambda record: record[0], key_type)


class Largest(AggregateFunction):
    def create_accumulator(self):
        return []

    def add(self, value, accumulator):
        return [*accumulator, value[1]]

    def get_result(self, accumulator):
        if 5 in accumulator:
            raise ValueError("five is right out")
        return max(accumulator)

    def merge(self, first, second):
        return first + second


# --- as_queryable_state ---
@pytest.mark.parametrize(
    ("descriptor", "kind", "expected"),
    [
        (None, "value", ("a", 2)),
        (ValueStateDescriptor("last"), "value", ("a", 2)),
        (ListStateDescriptor("all"), "list", [("a", 1), ("a", 3), ("a", 2)]),
        (ReducingStateDescriptor("sum", lambda x, y: ("a", x[1] + y[1])), "reducing", ("a", 6)),
        (AggregatingStateDescriptor("largest", Largest()), "aggregating", 3),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_stream_becomes_a_state(env, started, descriptor, kind, expected):
    stream = keyed(env).as_queryable_state("q", descriptor)
    assert stream.get_queryable_state_name() == "q" and stream.get_state_descriptor().is_queryable()
    job = started()
    until(lambda: values(job, "q", "a") == {"a": expected})
    answer = job.query(QueryRequest.of("q", "nobody", "a")).result(60)
    assert answer.kind == kind and [entry.found for entry in answer.entries] == [False, True]


def test_the_descriptor_that_was_given_stays_as_it_is(env):
    descriptor = ListStateDescriptor("all")
    keyed(env).as_queryable_state("q", descriptor)
    assert not descriptor.is_queryable()


def test_a_stream_does_not_become_a_map(env):
    with pytest.raises(UnsupportedOperation, match="cannot fill a map state"):
        keyed(env).as_queryable_state("q", MapStateDescriptor("m"))
    with pytest.raises(ValueError, match="the name of a queryable state must not be empty"):
        keyed(env).as_queryable_state("")
    with pytest.raises(TypeError, match=r"the argument state_descriptor must be a StateDescriptor or None, not 3"):
        keyed(env).as_queryable_state("q", 3)


# --- names ---
def test_names_of_descriptors():
    descriptor = ValueStateDescriptor("v")
    assert not descriptor.is_queryable() and descriptor.get_queryable_state_name() is None
    descriptor.set_queryable("q")
    descriptor.set_queryable("q")
    assert descriptor.is_queryable() and descriptor.get_queryable_state_name() == "q"
    with pytest.raises(ValueError, match="state 'v' is already queryable as 'q'"):
        descriptor.set_queryable("other")
    with pytest.raises(ValueError, match="the name of a queryable state must not be empty"):
        ValueStateDescriptor("v").set_queryable("")


class Publishing(KeyedProcessFunction):
    def __init__(self, *names):
        self.names = names

    def open(self, context):
        self.states = []
        for number, name in enumerate(self.names):
            descriptor = ValueStateDescriptor(f"state-{number}")
            descriptor.set_queryable(name)
            self.states.append(state_of(context, descriptor))

    def process_element(self, value, ctx):
        for state in self.states:
            state.update(value[1])


def test_two_streams_cannot_have_one_name(env):
    keyed(env).as_queryable_state("q")
    keyed(env).as_queryable_state("q")
    with pytest.raises(ProgramError, match=r"two states are queryable as 'q': those of .*uid .* and .*each needs"):
        env.execute()


@pytest.mark.parametrize("alone", [True, False])
def test_two_states_cannot_have_one_name(env, alone):
    if alone:
        keyed(env).process(Publishing("q", "q")).uid("u").discard()
    else:
        keyed(env).process(Publishing("q")).uid("u").discard()
        keyed(env).process(Publishing("q")).uid("v").discard()
    with pytest.raises(ProgramError, match="two states are queryable as 'q': state 'state-0' of Keyed Process"):
        env.execute()


def test_a_name_that_nobody_has_is_told_with_those_that_there_are(env, started):
    keyed(env).process(Publishing("one", "two")).discard()
    job = started("one")
    error = job.query(QueryRequest.of("three", "a")).exception(60)
    assert isinstance(error, UnknownState) and str(error).endswith(
        "no queryable state 'three'; there are: 'one', 'two'"
    )
    assert {state.name: state.kind for state in job._job.queryable_states()} == {"one": "value", "two": "value"}


class OfWindows(ProcessWindowFunction):
    def __init__(self, per_window):
        self.per_window = per_window

    def process(self, key, context, elements):
        descriptor = ValueStateDescriptor("sum")
        descriptor.set_queryable("q")
        store = context.window_state() if self.per_window else context.global_state()
        store.get_state(descriptor).update(sum(value for _, value in elements))
        return []


def windowed(env, per_window):
    return keyed(env).window(CountTumblingWindowAssigner(2)).process(OfWindows(per_window)).discard()


def test_the_state_of_windows_is_refused(env):
    windowed(env, per_window=True)
    with pytest.raises(JobFailed, match="cannot be queryable as 'q': it is state of windows"):
        env.execute()


def test_the_state_that_windows_of_a_key_share_is_not(env, started):
    """It is asked for with the first window, so its name is known from then on."""
    windowed(env, per_window=False)
    job = started("q", keys=1)
    assert values(job, "q") == {"a": 4}


def test_a_batch_job_has_none(env):
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    env.from_collection(RECORDS).key_by(lambda record: record[0]).as_queryable_state("q")
    job = env.execute_async()
    with pytest.raises(UnsupportedOperation, match="a BATCH job has no queryable state"):
        job.query(QueryRequest("q"))
    job.get_job_execution_result().result()


# --- keys ---
def test_a_key_of_the_wrong_type(env, started):
    keyed(env, key_type=Types.STRING()).as_queryable_state("q")
    job = started("q")
    error = job.query(QueryRequest.of("q", "a", 1)).exception(60)
    assert isinstance(error, TypeMismatch) and "a key of queryable state 'q' of Queryable State q" in str(error)
    assert values(job, "q", "b") == {"b": ("b", 5)}


def test_what_can_be_no_key(env, started):
    keyed(env).as_queryable_state("q")
    job = started("q")
    assert isinstance(job.query(QueryRequest.of("q", [1])).exception(60), UnsupportedKey)
    assert isinstance(job.query(QueryRequest.of("q", float("nan"))).exception(60), UnsupportedKey)
    assert isinstance(job.query(QueryRequest.of("q", Unsendable("a"))).exception(60), QueryError)
    assert len(values(job, "q")) == 3, "and the job goes on"


@dataclass(frozen=True)
class Unsendable:
    name: str

    def __reduce__(self):
        raise ValueError("not for sending")


def test_key_groups(env, started):
    keyed(env).as_queryable_state("q").set_max_parallelism(16)
    job = started("q")
    parts = [job.query(QueryRequest("q", key_groups=(group, group))).result(60).values() for group in range(16)]
    assert sorted(key for part in parts for key in part) == ["a", "b", "c"]
    error = job.query(QueryRequest("q", key_groups=(0, 16))).exception(60)
    assert isinstance(error, QueryError) and "has the key groups 0 to 15, and not 0 to 16" in str(error)


# --- what is told, and what is not changed ---
def test_an_error_of_the_program_is_told_to_the_client_alone(env, started):
    keyed(env).as_queryable_state("q", AggregatingStateDescriptor("largest", Largest()))
    job = started()
    until(lambda: values(job, "q", "c") == {"c": 2})
    until(lambda: isinstance(job.query(QueryRequest.of("q", "b")).exception(60), QueryError))
    error = job.query(QueryRequest.of("q", "b")).exception(60)
    assert "state 'largest' of Queryable State q" in str(error) and "ValueError: five is right out" in str(error)
    assert values(job, "q", "a") == {"a": 3}


def test_answers_are_copies(env, started):
    keyed(env).as_queryable_state("q", ListStateDescriptor("all"))
    job = started("q")
    until(lambda: len(values(job, "q", "a").get("a", ())) == 3)
    values(job, "q", "a")["a"].append("more")
    assert len(values(job, "q", "a")["a"]) == 3


def test_what_expires_while_nothing_happens_is_not_shown(env, started):
    """No epoch runs, and no time passes for the job; for its clients it does."""
    descriptor = ValueStateDescriptor("last")
    descriptor.enable_time_to_live(StateTtlConfig.new_builder(Time.milliseconds(300)).build())
    keyed(env).as_queryable_state("q", descriptor)
    job = started("q", keys=1)
    until(lambda: values(job, "q") == {})


def test_an_answer_as_json(env, started):
    keyed(env).as_queryable_state("q")
    job = started("q")
    shown = answer_as_json(job.query(QueryRequest.of("q", "b", "x")).result(60))
    assert shown["entries"] == [{"key": "b", "found": True, "value": ["b", 5]}, {"key": "x", "found": False}]
    assert (shown["state"], shown["kind"], shown["next"]) == ("q", "value", None)
    assert shown["cut"].keys() == {"attempt", "epoch", "processing-time"}


# --- restarts and ends ---
class Fragile(InProcessCluster):
    """Loses its slots when the test wants it, in an epoch or while they are asked."""

    def __init__(self):
        super().__init__()
        self.dies_in = ""

    def run(self, command):
        self.die("epoch")
        return super().run(command)

    def look(self, lookups):
        self.die("look")
        return super().look(lookups)

    def die(self, where):
        if self.dies_in == where:
            self.dies_in = ""
            self.lose()
            raise SlotLost("as the test wants")


@pytest.mark.parametrize("where", ["epoch", "look"])
def test_a_job_that_restarts_says_so_and_answers_again(env, started, where):
    cluster = Fragile()
    env.set_restart_strategy(RestartStrategies.fixed_delay_restart(3, 400))
    keyed(env).as_queryable_state("q")
    with with_defaults(cluster=lambda settings, deployment: cluster):
        job = started("q")
    assert job.query(QueryRequest("q")).result(60).cut.attempt == 0
    cluster.dies_in = where
    lost = until(lambda: job.query(QueryRequest.of("q", "a")).exception(60))
    assert isinstance(lost, StateUnavailable) and re.search("failed and restarts|failed while it was asked", str(lost))
    assert "restarts; ask again" in str(job.query(QueryRequest.of("q", "a")).exception(60))
    until(lambda: len(_patiently(job)) == 3)
    assert job.query(QueryRequest("q")).result(60).cut.attempt == 1


def _patiently(job):
    try:
        return values(job, "q")
    except StateUnavailable:
        return {}


def test_a_job_that_has_ended_says_so(env):
    scripted(env, *RECORDS).key_by(lambda record: record[0]).as_queryable_state("q")
    job = env.execute_async()
    job.get_job_execution_result().result()
    error = job.query(QueryRequest("q")).exception(60)
    assert isinstance(error, StateUnavailable) and "the job has ended" in str(error)


@pytest.mark.parametrize(("before", "after"), [(1, 3), (3, 2)])
def test_after_a_change_of_parallelism_the_same_is_found(env, started, tmp_path, before, after):
    def build(environment, *script):
        stream = scripted(environment, *script, stay=True).uid("source")
        keyed = stream.key_by(lambda record: record[0]).as_queryable_state("q", ListStateDescriptor("all"))
        keyed.uid("state").set_max_parallelism(64)

    records = [(f"k{number % 20}", number) for number in range(60)]
    build(env.set_parallelism(before), *records)
    first = env.execute_async()
    until(lambda: sum(len(found) for found in values(first, "q").values()) == 60)
    expected = values(first, "q")
    path = first.stop_with_savepoint(False, str(tmp_path)).result()
    build(env.set_parallelism(after), *records)
    configuration = Configuration()
    configuration.set_string("execution.state-recovery.path", path)
    env.configure(configuration)
    job = started("q", keys=20)
    assert values(job, "q") == expected
    assert values(job, "q", *expected) == expected, "each key is looked for where it is"
