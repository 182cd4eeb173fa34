"""How records reach the subtasks of a whole job."""

import pytest

from penstock.common.watermark_strategy import WatermarkStrategy
from penstock.datastream import StreamExecutionEnvironment
from penstock.datastream.functions import KeyedProcessFunction, MapFunction, Partitioner
from penstock.errors import JobFailed, NotSerializable, UnsupportedKey
from penstock.testing import ManualClock, in_process


class Where(MapFunction):
    def open(self, runtime_context):
        self.subtask = runtime_context.get_index_of_this_subtask()

    def map(self, value):
        return self.subtask, value


def spread(run, build, parallelism=3, records=range(12)):
    got = run(lambda env: build(env.from_collection(records)).map(Where()), parallelism=parallelism, epoch_records=5)
    return {subtask: [v for s, v in got if s == subtask] for subtask in range(parallelism)}


def test_rebalance_deals_in_turn(run):
    assert spread(run, lambda s: s.rebalance()) == {0: [0, 3, 6, 9], 1: [1, 4, 7, 10], 2: [2, 5, 8, 11]}


def test_the_default_between_different_parallelisms_is_rebalance(run):
    assert spread(run, lambda s: s) == spread(run, lambda s: s.rebalance())


def test_broadcast_copies(run):
    assert spread(run, lambda s: s.broadcast()) == {subtask: list(range(12)) for subtask in range(3)}


def test_shuffle_reaches_everyone(run):
    parts = spread(run, lambda s: s.shuffle(), records=range(200))
    assert all(parts.values()) and sorted(v for part in parts.values() for v in part) == list(range(200))


def test_keys_stay_together_in_order(run):
    parts = spread(run, lambda s: s.key_by(lambda v: v % 5), records=range(50))
    for key in range(5):
        homes = [part for part in parts.values() if any(v % 5 == key for v in part)]
        assert len(homes) == 1
        assert [v for v in homes[0] if v % 5 == key] == list(range(key, 50, 5))


class Last(Partitioner):
    def partition(self, key, num_partitions):
        return num_partitions - 1 if key else 0


@pytest.mark.parametrize("partitioner", [Last(), lambda key, n: n - 1 if key else 0])
def test_partition_custom(run, partitioner):
    parts = spread(run, lambda s: s.partition_custom(partitioner, lambda v: v % 2))
    assert parts == {0: list(range(0, 12, 2)), 1: [], 2: list(range(1, 12, 2))}


def test_rescale_serves_its_own_share(run):
    def build(env):
        return env.from_sequence(0, 7).map(Where()).set_parallelism(2).rescale().map(Where()).set_parallelism(4)

    shares = {(upstream, subtask) for subtask, (upstream, _) in run(build, parallelism=2)}
    assert shares == {(0, 0), (0, 1), (1, 2), (1, 3)}


def ended(build, parallelism):
    """The results of a job that must end by itself within a moment."""
    with in_process(clock=ManualClock()):
        env = StreamExecutionEnvironment().set_parallelism(parallelism)
        WRITTEN.clear()
        build(env).add_sink(WRITTEN.append).set_parallelism(1)
        client = env.execute_async()
        try:
            client.get_job_execution_result().result(60)
        finally:
            client.cancel().result(60)
    return list(WRITTEN)


class _Written(list):
    def __reduce__(self):
        return _written, ()


def _written():
    return WRITTEN


WRITTEN = _Written()


def test_global_brings_everything_to_one_subtask_of_one():
    assert ended(lambda env: env.from_sequence(1, 9).global_().map(Where()).set_parallelism(1), 3) == [
        (0, n) for n in (1, 2, 3, 4, 5, 6, 7, 8, 9)
    ]


def test_global_into_a_parallel_operator_ends():
    assert sorted(ended(lambda env: env.from_sequence(1, 4).global_().map(Where()), 3)) == [
        (0, n) for n in (1, 2, 3, 4)
    ]


class AtEnd(KeyedProcessFunction):
    def process_element(self, value, ctx):
        ctx.timer_service().register_event_time_timer(50)

    def on_timer(self, timestamp, ctx):
        yield ctx.get_current_key(), ctx.timer_service().current_watermark()


def test_global_does_not_hold_event_time_back():
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda v: v)

    def build(env):
        stream = env.from_collection([1, 2]).assign_timestamps_and_watermarks(strategy)
        return stream.global_().map(lambda v: v).key_by(lambda v: v).process(AtEnd())

    assert sorted(k for k, _ in ended(build, 2)) == [1, 2]


def test_operators_of_different_parallelism(run):
    def build(env):
        stream = env.from_sequence(1, 20).map(Where()).set_parallelism(4)
        stream = stream.filter(lambda v: True).set_parallelism(2).key_by(lambda v: v[1]).map(Where())
        return stream.set_parallelism(3)

    got = run(build, parallelism=1, epoch_records=3)
    assert sorted(v for _, (_, v) in got) == list(range(1, 21))
    assert {s for s, _ in got} == {0, 1, 2} and {s for _, (s, _) in got} == {0, 1, 2, 3}


@pytest.mark.parametrize("parallelism", [1, 2])
def test_a_key_that_is_no_key(run, parallelism):
    for selector, message in (
        (lambda v: [v], r"\[1\] of type list cannot be a key, since it is not hashable"),
        (lambda v: object(), "of type object cannot be a key. Allowed are numbers"),
    ):
        with pytest.raises(UnsupportedKey, match=rf"key_by of Sum .*{message}"):
            run(lambda env, s=selector: env.from_collection([1]).key_by(s).sum(), parallelism=parallelism)


def test_the_failure_that_caused_the_others_is_told(run):
    """A slot that fails sends what it had; what that does to other slots is not the cause."""

    from penstock.datastream.functions import FlatMapFunction

    class Flat(FlatMapFunction):
        def flat_map(self, value):
            yield value

    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda v: v)

    def build(env):
        stream = env.from_sequence(0, 199).assign_timestamps_and_watermarks(strategy)
        return stream.key_by(lambda v: [v] if v == 199 else v).flat_map(Flat())

    with pytest.raises(UnsupportedKey, match=r"on record 199"):
        run(build, parallelism=2)


def test_a_record_that_cannot_travel_names_its_operator(run):
    import threading

    with pytest.raises(JobFailed, match=r"Locker") as caught:
        run(
            lambda env: env.from_collection([1]).map(lambda v: threading.Lock()).name("Locker").rebalance().map(str),
            parallelism=2,
        )
    assert isinstance(caught.value, NotSerializable)
