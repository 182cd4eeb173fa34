"""Queryable state of a job on Spark: a client over TCP, DataFrames, and a slot that is killed meanwhile."""

import os
import signal

import pytest
from pyspark.sql import SparkSession

from penstock.common import Configuration, RestartStrategies
from penstock.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from penstock.datastream.state import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor
from penstock.errors import QueryError, QueryTimeout, StateUnavailable, UnknownKey
from penstock.queryable import QueryableStateClient, QueryRequest
from penstock.spark.state_processor.queryable_frames import to_spark_data_frame
from tests.waiting import SPARK_SECONDS, until

KEYS = 6
SLOTS = 2


class Gather(KeyedProcessFunction):
    """Keeps the numbers of a key in a list, and counts them by their last digit in a map."""

    def open(self, context):
        numbers, digits = ListStateDescriptor("numbers"), MapStateDescriptor("digits")
        numbers.set_queryable("numbers")
        digits.set_queryable("digits")
        self.numbers = context.get_list_state(numbers)
        self.digits = context.get_map_state(digits)

    def process_element(self, value, ctx):
        self.numbers.add(value)
        self.digits.put(value % 10, (self.digits.get(value % 10) or 0) + 1)


@pytest.fixture(scope="module")
def job(tmp_path_factory):
    configuration = Configuration()
    settings = {
        "queryable-state.enable": "true",
        "queryable-state.proxy.ports": "0",
        "queryable-state.token": "for the test",
        "execution.checkpointing.interval": "200 ms",
        "execution.checkpointing.dir": str(tmp_path_factory.mktemp("checkpoints")),
    }
    for name, value in settings.items():
        configuration.set_string(name, value)
    env = StreamExecutionEnvironment.create_local_environment(SLOTS)
    env.configure(configuration)
    env.set_restart_strategy(RestartStrategies.fixed_delay_restart(5, 300)).set_buffer_timeout(5)
    env.generate(rate=300).set_parallelism(1).key_by(lambda number: number % KEYS).process(Gather()).discard()
    started = env.execute_async("queryable")
    yield started
    started.cancel().result()


@pytest.fixture(scope="module")
def client(job):
    with QueryableStateClient(*job.get_queryable_state_address(), token="for the test") as client:
        until(lambda: len(found(client, job)) == KEYS, patience=SPARK_SECONDS)
        yield client


def found(client, job):
    """By key, its numbers; nothing as long as the job starts or restarts."""
    try:
        return client.get_all(job.get_job_id(), "numbers").result().values()
    except QueryError:
        return {}


def check_one_cut(lists):
    """The source counts: at any cut of the whole job there is a last number, and every one before it is there."""
    numbers = sorted(number for numbers in lists.values() for number in numbers)
    assert numbers == list(range(len(numbers)))
    for key, own in lists.items():
        assert own == [number for number in numbers if number % KEYS == key]
    return len(numbers)


def test_many_keys_are_always_from_one_cut(client, job):
    seen = []
    for _ in range(100):
        answer = client.get_many(job.get_job_id(), "numbers", range(KEYS)).result()
        seen.append((answer.cut.attempt, answer.cut.epoch, check_one_cut(answer.values())))
    assert seen == sorted(seen) and seen[0] < seen[-1], "the job goes on meanwhile"
    state = client.get_kv_state(job.get_job_id(), "numbers", 3).result()
    assert state.get()[:3] == [3, 9, 15]
    assert isinstance(client.get_kv_state(job.get_job_id(), "numbers", 99).exception(), UnknownKey)


class Count(KeyedProcessFunction):
    def open(self, context):
        descriptor = ValueStateDescriptor("count")
        descriptor.set_queryable("counts")
        self.count = context.get_state(descriptor)

    def process_element(self, value, ctx):
        self.count.update((self.count.value() or 0) + 1)


def test_queries_ride_on_the_epochs_of_a_job_that_never_waits(job):
    """At every cut of the whole job, what was counted is the beginning of the sequence."""
    env = StreamExecutionEnvironment.create_local_environment(SLOTS)
    env.from_sequence(0, 10**15).set_parallelism(1).key_by(lambda number: number % KEYS).process(Count()).discard()
    busy = env.execute_async("busy")
    asked = QueryRequest.of("counts", *range(KEYS))
    until(lambda: busy.query(asked).exception() is None, patience=SPARK_SECONDS)
    answers = [future.result() for future in [busy.query(asked) for _ in range(200)]]
    answers += [busy.query(asked).result() for _ in range(20)]
    busy.cancel().result()
    for answer in answers:
        counts = [answer.values().get(key, 0) for key in range(KEYS)]
        assert counts == [(sum(counts) - key + KEYS - 1) // KEYS for key in range(KEYS)]
    cuts = [answer.cut.epoch for answer in answers]
    assert cuts == sorted(cuts) and len(set(cuts)) > 10


def test_a_data_frame_shows_one_cut(client, job):
    spark = SparkSession.getActiveSession()
    pages = list(client.scan(job.get_job_id(), "numbers", page_size=2))
    frame = to_spark_data_frame(spark, pages)
    assert frame.dtypes == [("key", "bigint"), ("value", "array<bigint>")] and len(pages) == 3
    check_one_cut({row.key: row.value for row in frame.collect()})
    digits = to_spark_data_frame(spark, job.query(QueryRequest("digits")).result())
    assert digits.columns == ["key", "map_key", "value"]
    assert digits.groupBy("key").sum("value").count() == KEYS
    other = client.get_all(job.get_job_id(), "digits").result()
    with pytest.raises(QueryError, match="one state at one moment"):
        to_spark_data_frame(spark, [*pages, other])


def test_a_slot_is_killed(client, job, slot_processes):
    """Errors while the job restarts, and right answers before and after."""
    before = client.get_all(job.get_job_id(), "numbers").result()
    os.kill(slot_processes(str(job.get_job_id()))[1], signal.SIGKILL)
    errors, attempts = set(), {before.cut.attempt}

    def is_back():
        future = client.get_all(job.get_job_id(), "numbers")
        if future.exception() is not None:
            errors.add(type(future.exception()))
            return False
        check_one_cut(future.result().values())
        attempts.add(future.result().cut.attempt)
        return future.result().cut.attempt > before.cut.attempt

    until(is_back, patience=SPARK_SECONDS)
    assert errors <= {StateUnavailable, QueryTimeout}, errors
    assert attempts == {before.cut.attempt, before.cut.attempt + 1}


# --- a job that reads as fast as it can ---
@pytest.fixture
def busy():
    """A job whose epochs take about a second, and which has begun to count."""
    env = StreamExecutionEnvironment.create_local_environment(SLOTS)
    env.from_sequence(0, 10**15).key_by(lambda number: number % KEYS).process(Count()).discard()
    started = env.execute_async("busy")
    until(lambda: counted(started, *range(KEYS)), patience=SPARK_SECONDS)
    yield started
    started.cancel().result()


def counted(job, *keys):
    try:
        return job.query(QueryRequest.of("counts", *keys)).result(SPARK_SECONDS)
    except QueryError:
        return None


def test_one_slot_answers_within_the_epoch_and_several_at_its_end(busy):
    """What is shown never shrinks, within a slot from step to step, and from epoch to epoch."""
    alone = [counted(busy, 0) for _ in range(100)]
    assert any(answer.cut.slot is not None for answer in alone)
    together = counted(busy, *range(KEYS))
    assert together.cut.slot is None and together.cut.step == 0
    moments = [(answer.cut.epoch, answer.cut.step) for answer in alone]
    counts = [answer.values()[0] for answer in [*alone, together]]
    assert moments == sorted(moments) and counts == sorted(counts)
    assert counts[0] < counts[-1], "the job goes on meanwhile"
