"""Checkpoints, savepoints and restarts in real slots. What dies by force is in test_kills."""

from collections import defaultdict

import pytest

from penstock.common import Configuration, Types
from penstock.common.job import JobClient
from penstock.common.restart_strategy import RestartStrategies
from penstock.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from penstock.datastream.state import MapStateDescriptor, ValueStateDescriptor
from penstock.datastream.state_backend import EmbeddedRocksDBStateBackend, HashMapStateBackend
from penstock.errors import StateNotRestored

KEYS = 7


class CountAndFail(KeyedProcessFunction):
    """Counts by key; the first attempts fail at a certain record."""

    def __init__(self, fails_at=None, attempts=0):
        self.fails_at = fails_at
        self.attempts = attempts

    def open(self, runtime_context):
        self.attempt = runtime_context.get_attempt_number()
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))
        self.seen = runtime_context.get_map_state(MapStateDescriptor("seen", Types.LONG(), Types.LONG()))

    def process_element(self, value, ctx):
        if value == self.fails_at and self.attempt < self.attempts:
            raise ValueError(f"attempt {self.attempt} fails")
        self.count.update((self.count.value() or 0) + 1)
        self.seen.put(value % 3, value)
        yield value % KEYS, self.count.value()


def environment(tmp_path, parallelism=2, backend=None, **options):
    configuration = Configuration()
    configuration.set_string("execution.checkpointing.dir", tmp_path.as_uri())
    configuration.set_string("execution.checkpointing.savepoint-dir", (tmp_path / "savepoints").as_uri())
    for name, value in options.items():
        configuration.set_string(name.replace("__", ".").replace("_", "-"), value)
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    env.set_parallelism(parallelism).enable_checkpointing(100)
    if backend is not None:
        env.set_state_backend(backend)
    return env


def counted(env, rate=2000, count=None, function=None):
    numbers = env.generate(rate=rate, count=count).uid("numbers")
    return numbers.key_by(lambda number: number % KEYS).process(function or CountAndFail()).uid("count")


def check(pairs, total=None):
    by_key = defaultdict(list)
    for key, count in pairs:
        by_key[key].append(count)
    assert all(counts == list(range(1, len(counts) + 1)) for counts in by_key.values())
    if total is not None:
        assert sum(map(len, by_key.values())) == total


@pytest.mark.parametrize("backend", [HashMapStateBackend(), EmbeddedRocksDBStateBackend()], ids=["heap", "rocksdb"])
def test_a_job_that_fails_goes_on_where_its_last_checkpoint_left_it(tmp_path, backend):
    env = environment(tmp_path, backend=backend)
    env.set_restart_strategy(RestartStrategies.fixed_delay_restart(5, 50))
    with counted(env, count=3000, function=CountAndFail(2000, attempts=2)).execute_and_collect() as results:
        check(results, total=3000)


def test_stop_with_a_savepoint_and_go_on_with_more_slots(tmp_path):
    """The results before the stop and behind it fit together, though slots and backend are others."""
    collected = []
    path = None
    for parallelism, backend in ((2, HashMapStateBackend()), (3, EmbeddedRocksDBStateBackend()), (1, None)):
        options = {} if path is None else {"execution__state_recovery__path": path}
        env = environment(tmp_path, parallelism, backend, **options)
        with counted(env).execute_and_collect() as results:
            for _ in range(500):
                collected.append(next(results))
            path = JobClient(results._job).stop_with_savepoint(False).result()
            collected.extend(results)
    check(collected)


def test_a_savepoint_of_another_job_is_refused(tmp_path):
    env = environment(tmp_path)
    with counted(env).execute_and_collect() as results:
        next(results)
        path = JobClient(results._job).stop_with_savepoint(False).result()
    other = environment(tmp_path, execution__state_recovery__path=path)
    other.from_sequence(1, 5).uid("others").print()
    with pytest.raises(StateNotRestored, match="uid count"):
        other.execute()
