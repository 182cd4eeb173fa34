"""BATCH jobs as ordinary Spark jobs: tasks that die are run again, and every result comes once."""

import os
import sys
import time
from collections import Counter
from pathlib import Path

import psutil
import pytest

from penstock.common import Configuration, Duration, Encoder, JobStatus, RestartStrategies, WatermarkStrategy
from penstock.datastream import OutputTag, RuntimeExecutionMode, StreamExecutionEnvironment
from penstock.datastream.connectors.file_system import FileSink
from penstock.datastream.functions import (
    KeyedBroadcastProcessFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    MapFunction,
)
from penstock.datastream.state import MapStateDescriptor, ValueStateDescriptor
from penstock.errors import JobCancelled, JobFailed
from tests.spark.once import Once, die, fail
from tests.waiting import SPARK_SECONDS, until

RULES = MapStateDescriptor("rules")
EVEN = OutputTag("even")


@pytest.fixture
def env():
    made = StreamExecutionEnvironment.create_local_environment(2)
    made.set_runtime_mode(RuntimeExecutionMode.BATCH)
    return made


class Counting(KeyedProcessFunction):
    def open(self, runtime_context):
        self.seen = runtime_context.get_state(ValueStateDescriptor("seen", default_value=0))

    def process_element(self, value, ctx):
        self.seen.update(self.seen.value() + 1)
        ctx.timer_service().register_event_time_timer(0)
        if value % 2 == 0:
            yield EVEN, value

    def on_timer(self, timestamp, ctx):
        yield ctx.get_current_key(), self.seen.value()


def test_side_outputs_and_timers_at_the_end_of_a_key(env):
    counts = env.from_sequence(1, 1000).key_by(lambda n: n % 10).process(Counting())
    tagged = counts.map(lambda c: ("count", *c)).union(counts.get_side_output(EVEN).map(lambda n: ("even", n, n)))
    got = Counter(tagged.execute_and_collect())
    assert got == Counter([("count", k, 100) for k in range(10)] + [("even", n, n) for n in range(2, 1001, 2)])


class Pair(KeyedCoProcessFunction):
    def process_element1(self, value, ctx):
        yield "left", value

    def process_element2(self, value, ctx):
        yield "right", value


class Ruled(KeyedBroadcastProcessFunction):
    def process_element(self, value, ctx):
        yield value, sorted(ctx.get_broadcast_state(RULES).keys())

    def process_broadcast_element(self, value, ctx):
        ctx.get_broadcast_state(RULES).put(value, True)


def test_two_inputs_by_key_and_time_and_what_is_broadcast_first(env):
    by_time = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(5)).with_timestamp_assigner(
        lambda record: record[1]
    )
    left = env.from_collection([("a", 3), ("a", 1), ("b", 2)]).assign_timestamps_and_watermarks(by_time)
    right = env.from_collection([("a", 2), ("b", 1)]).assign_timestamps_and_watermarks(by_time)
    pairs = left.connect(right).key_by(lambda t: t[0], lambda t: t[0]).process(Pair())
    rules = env.from_collection(["x", "y"]).broadcast(RULES)
    ruled = pairs.key_by(lambda pair: pair[1][0]).connect(rules).process(Ruled())
    got = list(ruled.execute_and_collect())
    assert [side + str(time) for (side, (key, time)), _ in got if key == "a"] == ["left1", "right2", "left3"]
    assert [side + str(time) for (side, (key, time)), _ in got if key == "b"] == ["right1", "left2"]
    assert all(seen == ["x", "y"] for _, seen in got)


def test_a_process_that_is_killed_is_run_again_and_files_and_results_have_each_record_once(env, tmp_path):
    stream = env.from_sequence(1, 5000).rebalance().map(Once(4000, tmp_path / "first", die))
    keyed = stream.key_by(lambda n: n % 50).map(Once(2501, tmp_path / "second", die))
    sink = FileSink.for_row_format(str(tmp_path / "out"), Encoder.simple_string_encoder()).build()
    keyed.sink_to(sink)
    got = list(keyed.execute_and_collect())
    assert sorted(got) == list(range(1, 5001))
    written = [p for p in (tmp_path / "out").rglob("*") if p.is_file() and not p.name.startswith(".")]
    lines = [int(line) for path in written for line in path.read_text().split()]
    assert sorted(lines) == list(range(1, 5001))
    assert (tmp_path / "first").exists() and (tmp_path / "second").exists()


def test_an_error_is_told_at_once_as_it_is_and_nothing_is_tried_again(env, tmp_path):
    sink = FileSink.for_row_format(str(tmp_path / "out"), Encoder.simple_string_encoder()).build()
    env.from_sequence(1, 100).key_by(lambda n: n).map(Tries(tmp_path)).sink_to(sink)
    with pytest.raises(JobFailed) as raised:
        env.execute()
    said = str(raised.value)
    assert "Map" in said and "on record 50" in said and "ValueError: not this one" in said and "java" not in said
    assert len(list(tmp_path.glob("try-*"))) == 1
    assert not [p for p in (tmp_path / "out").rglob("part*") if p.is_file()]


class Tries(MapFunction):
    def __init__(self, folder):
        self.folder = str(folder)

    def map(self, value):
        if value == 50:
            Path(self.folder, f"try-{os.getpid()}-{time.time_ns()}").touch()
            fail()
        return value


def test_the_restart_strategy_decides(env, tmp_path):
    env.set_restart_strategy(RestartStrategies.fixed_delay_restart(1, 10))
    stream = env.from_sequence(1, 100).key_by(lambda n: n % 3).map(Once(50, tmp_path / "failed", fail))
    sink = FileSink.for_row_format(str(tmp_path / "out"), Encoder.simple_string_encoder()).build()
    stream.sink_to(sink)
    assert sorted(stream.execute_and_collect()) == list(range(1, 101))
    written = [p for p in (tmp_path / "out").rglob("part*") if p.is_file()]
    assert sorted(int(line) for path in written for line in path.read_text().split()) == list(range(1, 101))


def test_cancelling_leaves_no_process_behind(env, tmp_path):
    env.from_sequence(1, 10).key_by(lambda n: n).map(Sleeps(tmp_path)).discard()
    client = env.execute_async("sleeper")
    pids = until(lambda: [int(p.name) for p in tmp_path.iterdir()], patience=SPARK_SECONDS)
    client.cancel().result(60)
    assert client.get_job_status().result(60) is JobStatus.CANCELED
    with pytest.raises(JobCancelled):
        client.get_job_execution_result().result(60)
    until(lambda: not any(psutil.pid_exists(pid) for pid in pids))


class Sleeps(MapFunction):
    def __init__(self, folder):
        self.folder = str(folder)

    def map(self, value):
        Path(self.folder, str(os.getpid())).touch()
        time.sleep(1000)
        return value


def test_more_than_fits_into_the_memory_given_to_sorting(env):
    configuration = Configuration()
    configuration.set_string("execution.sorted-inputs.memory", "1 mb")
    env.configure(configuration)
    padded = env.from_sequence(0, 99_999).map(lambda n: (n % 1000, n, "x" * 200))
    sums = padded.key_by(lambda t: t[0]).reduce(lambda a, b: (a[0], a[1] + b[1], ""))
    got = {key: total for key, total, _ in sums.execute_and_collect()}
    assert got == {key: sum(range(key, 100_000, 1000)) for key in range(1000)}


def test_more_slots_than_cores_take_turns(env):
    env.set_parallelism(9)
    got = env.from_sequence(1, 100).key_by(lambda n: n % 20).reduce(lambda a, b: a + b).execute_and_collect()
    assert sorted(got) == sorted(sum(range(k or 20, 101, 20)) for k in range(20))


def test_a_data_frame(env):
    from penstock.spark.sessions.session import session

    spark = session("local[2]", "frames", {})
    frame = spark.range(50_000)
    total = env.from_spark(frame).map(lambda row: row["id"]).key_by(lambda n: n % 2).reduce(lambda a, b: a + b)
    assert sorted(total.execute_and_collect()) == [sum(range(0, 50_000, 2)), sum(range(1, 50_000, 2))]


class Untidy(MapFunction):
    """Changes the process that it runs in, and says what it has found there."""

    def map(self, value):
        found = os.environ.get("LEFT_BEHIND"), os.getcwd() == "/", hasattr(sys.modules["__main__"], "left_behind")
        os.environ["LEFT_BEHIND"] = "yes"
        os.chdir("/")
        sys.modules["__main__"].left_behind = True
        return os.getpid(), found if value == 0 else None


def test_a_process_that_spark_uses_again_carries_nothing_over(env):
    """Numbers are dealt out so that a 0 is the first that a task meets; of idle processes Spark takes any."""
    used: set[int] = set()
    for _ in range(20):
        seen = list(env.from_collection([0, 0, 1, 1]).rebalance().map(Untidy()).execute_and_collect())
        assert [found for _, found in seen if found is not None] == [(None, False, False)] * 2
        processes = {process for process, _ in seen}
        if used & processes:
            return
        used |= processes
    raise AssertionError("no process was used again")
