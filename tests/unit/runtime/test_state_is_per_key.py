"""Whatever calls a user's function on a keyed stream, the function sees the state of the record's key and no other."""

import asyncio
from collections import defaultdict

import pytest

from penstock.common import RestartStrategies, Time, WatermarkStrategy
from penstock.common.watermark_strategy import TimestampAssigner
from penstock.datastream import AsyncDataStream
from penstock.datastream.connectors.two_phase_commit import TwoPhaseCommitSinkFunction
from penstock.datastream.functions import (
    AggregateFunction,
    AsyncFunction,
    CheckpointedFunction,
    CoFlatMapFunction,
    CoGroupFunction,
    CoMapFunction,
    FilterFunction,
    FlatMapFunction,
    JoinFunction,
    KeyedBroadcastProcessFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    MapFunction,
    ProcessJoinFunction,
    ProcessWindowFunction,
    ReduceFunction,
    SinkFunction,
    WindowFunction,
)
from penstock.datastream.state import MapStateDescriptor, ReducingStateDescriptor, ValueStateDescriptor
from penstock.datastream.window import (
    CountEvictor,
    EventTimeSessionWindows,
    Trigger,
    TriggerResult,
    TumblingEventTimeWindows,
)
from penstock.errors import JobFailed, PenstockError
from penstock.testing import OperatorHarness

RECORDS = [
    ("a", 1),
    ("b", 2),
    ("a", 3),
    ("b", 3),
    ("c", 4),
    ("b", 1005),
    ("a", 1006),
    ("a", 2007),
    ("b", 2008),
    ("c", 2009),
]
COUNTED: list[tuple[str, int]] = []
CALLS = ValueStateDescriptor("calls")
RULES = MapStateDescriptor("rules")


@pytest.fixture(autouse=True)
def _empty():
    COUNTED.clear()


class Counting:
    """Counts calls in the current key's state, and notes for which key it should have been."""

    def open(self, runtime_context):
        self.calls = runtime_context.get_state(CALLS)

    def count(self, key):
        self.calls.update((self.calls.value() or 0) + 1)
        COUNTED.append((key, self.calls.value()))


class Mapped(Counting, MapFunction):
    def map(self, value):
        self.count(value[0])
        return value


class FlatMapped(Counting, FlatMapFunction):
    def flat_map(self, value):
        yield value
        self.count(value[0])
        yield value


class Filtered(Counting, FilterFunction):
    def filter(self, value):
        self.count(value[0])
        return True


class Processed(Counting, KeyedProcessFunction):
    def process_element(self, value, ctx):
        yield value
        self.count(value[0])


class Fired(Counting, KeyedProcessFunction):
    def process_element(self, value, ctx):
        ctx.timer_service().register_event_time_timer(ctx.timestamp() + 5)

    def on_timer(self, timestamp, ctx):
        yield timestamp
        self.count(ctx.get_current_key())


class FiredByClock(Counting, KeyedProcessFunction):
    def process_element(self, value, ctx):
        ctx.timer_service().register_processing_time_timer(value[1])

    def on_timer(self, timestamp, ctx):
        self.count(ctx.get_current_key())


class Reduced(Counting, ReduceFunction):
    def reduce(self, value1, value2):
        assert value1[0] == value2[0]
        self.count(value2[0])
        return value2


class Aggregated(Counting, AggregateFunction):
    def create_accumulator(self):
        return ()

    def add(self, value, accumulator):
        self.count(value[0])
        return (*accumulator, value)

    def get_result(self, accumulator):
        self.count(accumulator[0][0])
        return accumulator

    def merge(self, acc_a, acc_b):
        self.count(acc_a[0][0])
        return acc_a + acc_b


class InWindow(Counting, ProcessWindowFunction):
    def process(self, key, context, elements):
        yield key
        self.count(key)
        held = context.global_state().get_state(CALLS)
        assert held.value() == COUNTED[-1][1]


class Applied(Counting, WindowFunction):
    def apply(self, key, window, inputs):
        self.count(key)
        return [key]


class SeenAgain(Trigger):
    """Fires for every element, and keeps the state object that it was given first."""

    def on_element(self, element, timestamp, window, ctx):
        if not hasattr(self, "seen"):
            self.seen = ctx.get_partitioned_state(ReducingStateDescriptor("seen", max))
        before = self.seen.get()
        assert before is None or before[0] == element[0]
        self.seen.add(element)
        COUNTED.append((element[0], 1 + sum(key == element[0] for key, _ in COUNTED)))
        return TriggerResult.FIRE

    def on_processing_time(self, time, window, ctx):
        return TriggerResult.CONTINUE

    def on_event_time(self, time, window, ctx):
        return TriggerResult.CONTINUE

    def on_merge(self, window, ctx):
        pass

    def clear(self, window, ctx):
        pass


class CoMapped(Counting, CoMapFunction):
    def map1(self, value):
        self.count(value[0])

    map2 = map1


class CoFlatMapped(Counting, CoFlatMapFunction):
    def flat_map1(self, value):
        yield value
        self.count(value[0])

    flat_map2 = flat_map1


class CoProcessed(Counting, KeyedCoProcessFunction):
    def process_element1(self, value, ctx):
        yield value
        self.count(value[0])

    process_element2 = process_element1


class BesideBroadcast(Counting, KeyedBroadcastProcessFunction):
    def process_element(self, value, ctx):
        yield value
        self.count(value[0])

    def process_broadcast_element(self, value, ctx):
        ctx.apply_to_keyed_state(CALLS, lambda key, state: state.update(state.value()))


class Joined(Counting, JoinFunction):
    def join(self, first, second):
        self.count(first[0])


class CoGrouped(Counting, CoGroupFunction):
    def co_group(self, first, second):
        self.count((first or second)[0][0])
        return []


class NearInTime(Counting, ProcessJoinFunction):
    def process_element(self, left, right, ctx):
        yield left
        self.count(left[0])


class Written(Counting, SinkFunction):
    def invoke(self, value, context):
        self.count(value[0])


def count_with_state(value, state):
    COUNTED.append((value[0], (state or 0) + 1))
    return [value], (state or 0) + 1


def windowed(stream, assigner=None):
    return stream.key_by(0).window(assigner or TumblingEventTimeWindows.of(Time.seconds(1)))


def sessions(stream):
    return windowed(stream, EventTimeSessionWindows.with_gap(Time.milliseconds(1500)))


def connected(stream):
    return stream.key_by(0).connect(stream.key_by(lambda value: value[0]))


def joined(stream, kind):
    paired = getattr(stream, kind)(stream).where(lambda v: v[0]).equal_to(lambda v: v[0])
    return paired.window(TumblingEventTimeWindows.of(Time.seconds(1)))


def sunk(stream):
    stream.key_by(0).add_sink(Written())
    return stream


CALLERS = {
    "map": lambda s: s.key_by(0).map(Mapped()),
    "flat_map": lambda s: s.key_by(0).flat_map(FlatMapped()),
    "filter": lambda s: s.key_by(0).filter(Filtered()),
    "process": lambda s: s.key_by(0).process(Processed()),
    "event-time timer": lambda s: s.key_by(0).process(Fired()),
    "reduce": lambda s: s.key_by(0).reduce(Reduced()),
    "map_with_state": lambda s: s.key_by(0).map_with_state(count_with_state),
    "flat_map_with_state": lambda s: s.key_by(0).flat_map_with_state(count_with_state),
    "filter_with_state": lambda s: s.key_by(0).filter_with_state(count_with_state),
    "window reduce": lambda s: windowed(s).reduce(Reduced()),
    "window aggregate": lambda s: windowed(s).aggregate(Aggregated()),
    "window process": lambda s: windowed(s).process(InWindow()),
    "window apply": lambda s: windowed(s).apply(Applied()),
    "window reduce, then process": lambda s: windowed(s).reduce(lambda a, b: b, InWindow()),
    "evicted window reduce": lambda s: windowed(s).evictor(CountEvictor.of(5)).reduce(Reduced()),
    "session reduce": lambda s: sessions(s).reduce(Reduced()),
    "session aggregate": lambda s: sessions(s).aggregate(Aggregated()),
    "trigger": lambda s: windowed(s).trigger(SeenAgain()).apply(lambda key, window, inputs: []),
    "co map": lambda s: connected(s).map(CoMapped()),
    "co flat_map": lambda s: connected(s).flat_map(CoFlatMapped()),
    "co process": lambda s: connected(s).process(CoProcessed()),
    "beside broadcast": lambda s: s.key_by(0).connect(s.broadcast(RULES)).process(BesideBroadcast()),
    "window join": lambda s: joined(s, "join").apply(Joined()),
    "co_group": lambda s: joined(s, "co_group").apply(CoGrouped()),
    "interval join": lambda s: (
        s.key_by(0).interval_join(s.key_by(0)).between(Time.seconds(-1), Time.seconds(1)).process(NearInTime())
    ),
    "sink": sunk,
}


class Second(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


STRATEGY = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Second())


@pytest.mark.parametrize("epoch_records", [1, None])
@pytest.mark.parametrize("mode", ["STREAMING", "BATCH"])
@pytest.mark.parametrize("caller", CALLERS)
def test_every_key_has_its_own_count(run, caller, mode, epoch_records):
    build = CALLERS[caller]
    run(
        lambda env: build(env.from_collection(RECORDS).assign_timestamps_and_watermarks(STRATEGY)),
        mode=mode,
        epoch_records=epoch_records,
    )
    counts = defaultdict(list)
    for key, count in COUNTED:
        counts[key].append(count)
    assert counts == {key: list(range(1, len(seen) + 1)) for key, seen in counts.items()}
    assert len(counts) >= 2


def test_processing_time_timers_have_their_keys():
    with OperatorHarness(lambda s: s.key_by(0).process(FiredByClock())) as h:
        h.push_all(RECORDS)
        h.advance_processing_time(5000)
    assert [(key, [k for k, _ in RECORDS[: n + 1]].count(key)) for n, (key, _) in enumerate(RECORDS)] == COUNTED


# --- where there is no key, there is no state ---
class OutOfReach(Counting, KeyedBroadcastProcessFunction, CheckpointedFunction):
    """Uses keyed state for a record, as it should, and once more where it cannot."""

    def __init__(self, where):
        self.where = where

    def open(self, runtime_context):
        super().open(runtime_context)
        self.touch("open")

    def touch(self, where):
        if where == self.where:
            self.count("nobody")

    def process_element(self, value, ctx):
        self.count(value[0])

    def process_broadcast_element(self, value, ctx):
        self.touch("broadcast")

    def initialize_state(self, context):
        self.calls = context.get_keyed_state_store().get_state(CALLS)
        self.touch("initialize_state")

    def snapshot_state(self, context):
        self.touch("snapshot_state")


@pytest.mark.parametrize("where", ["open", "broadcast", "initialize_state"])
def test_state_without_a_current_key_is_an_error(where):
    with pytest.raises(JobFailed, match="there is no current key here"), _beside_broadcast(where) as h:
        h.push(("a", 1), input=1)
        h.push("rule", input=2)
    assert "nobody" not in dict(COUNTED)


def _beside_broadcast(where):
    return OperatorHarness(lambda a, b: a.key_by(0).connect(b.broadcast(RULES)).process(OutOfReach(where)), inputs=2)


def test_state_at_a_checkpoint_is_an_error(env, tmp_path):
    env.enable_checkpointing(10)
    env.get_checkpoint_config().set_checkpoint_storage_dir(f"file://{tmp_path}")
    env.get_checkpoint_config().set_tolerable_checkpoint_failure_number(0)
    rules = env.from_collection([]).broadcast(RULES)
    env.from_collection(RECORDS).key_by(0).connect(rules).process(OutOfReach("snapshot_state")).discard()
    env.set_restart_strategy(RestartStrategies.no_restart())
    with pytest.raises(PenstockError, match="there is no current key here"):
        env.execute()
    assert "nobody" not in dict(COUNTED)


class Asked(Counting, AsyncFunction):
    async def async_invoke(self, value):
        await asyncio.sleep(0)
        self.count(value[0])
        return [value]


class Prepared(Counting, TwoPhaseCommitSinkFunction):
    def begin_transaction(self):
        return []

    def invoke(self, transaction, value, context):
        self.count(value[0])

    def pre_commit(self, transaction):
        pass

    commit = abort = pre_commit


@pytest.mark.parametrize(
    ("build", "reason"),
    [
        (lambda s: AsyncDataStream.unordered_wait(s.key_by(0), Asked(), Time.seconds(1)), "asynchronous function"),
        (lambda s: (s.key_by(0).add_sink(Prepared()), s)[1], "commits behind checkpoints"),
        (lambda s: s.map(Mapped()), "call key_by"),
        (lambda s: s.key_by(0).map(lambda value: value).map(Mapped()), "call key_by"),
    ],
)
def test_who_has_no_keys_is_refused_state(run, build, reason):
    with pytest.raises(JobFailed, match=f"keyed state 'calls' was asked for .*{reason}"):
        run(lambda env: build(env.from_collection(RECORDS)))
    assert not COUNTED
