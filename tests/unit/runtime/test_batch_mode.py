"""BATCH mode: keys in order, records by time, timers at the end of a key, last values only."""

import pytest

from penstock.common import Duration, WatermarkStrategy
from penstock.datastream.functions import (
    BroadcastProcessFunction,
    KeyedBroadcastProcessFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    MapFunction,
)
from penstock.datastream.state import MapStateDescriptor, ValueStateDescriptor
from penstock.engine.operators.batch.batch_operator import key_order
from penstock.engine.records.elements import MAX_TIMESTAMP, MIN_TIMESTAMP
from penstock.testing import at, pause, scripted

RULES = MapStateDescriptor("rules")


def by_time(stream, field=1):
    return stream.assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda record: record[field])
    )


class Describe(KeyedProcessFunction):
    def open(self, runtime_context):
        self.count = runtime_context.get_state(ValueStateDescriptor("count", default_value=0))

    def process_element(self, value, ctx):
        self.count.update(self.count.value() + 1)
        service = ctx.timer_service()
        service.register_event_time_timer(value[1] + 1000)
        yield value, ctx.timestamp(), service.current_watermark()

    def on_timer(self, timestamp, ctx):
        yield "timer", ctx.get_current_key(), timestamp, self.count.value(), ctx.timer_service().current_watermark()


@pytest.mark.parametrize("epoch_records", [None, 1, 2])
def test_keys_are_sorted_records_come_by_time_and_timers_at_the_end_of_a_key(run, epoch_records):
    records = [(2, 30), (1, 20), (2, 10), (10, 5), (1, 5)]
    got = run(
        lambda env: by_time(env.from_collection(records)).key_by(0).process(Describe()),
        mode="BATCH",
        epoch_records=epoch_records,
    )
    assert got == [
        ((1, 5), 5, MIN_TIMESTAMP),
        ((1, 20), 20, MIN_TIMESTAMP),
        ("timer", 1, 1005, 2, MAX_TIMESTAMP),
        ("timer", 1, 1020, 2, MAX_TIMESTAMP),
        ((2, 10), 10, MIN_TIMESTAMP),
        ((2, 30), 30, MIN_TIMESTAMP),
        ("timer", 2, 1010, 2, MAX_TIMESTAMP),
        ("timer", 2, 1030, 2, MAX_TIMESTAMP),
        ((10, 5), 5, MIN_TIMESTAMP),
        ("timer", 10, 1005, 1, MAX_TIMESTAMP),
    ]


def test_records_of_one_time_keep_their_order(run):
    records = [("k", 1, n) for n in range(10)] + [("k", 0, 10)]
    got = run(lambda env: by_time(env.from_collection(records)).key_by(0).map(Keep()), mode="BATCH")
    assert [n for *_, n in got] == [10, *range(10)]


class Keep(MapFunction):
    def map(self, value):
        return value


def test_records_without_time_keep_their_order(run):
    records = [("b", 2), ("a", 1), ("b", 1), ("a", 0)]
    got = run(lambda env: env.from_collection(records).key_by(0).map(Keep()), mode="BATCH")
    assert got == [("a", 1), ("a", 0), ("b", 2), ("b", 1)]


@pytest.mark.parametrize(
    ("build", "expected"),
    [
        (lambda s: s.reduce(lambda a, b: (a[0], a[1] + b[1])), [("a", 9), ("b", 6)]),
        (lambda s: s.sum(1), [("a", 9), ("b", 6)]),
        (lambda s: s.min(1), [("a", 1), ("b", 2)]),
        (lambda s: s.max_by(1), [("a", 5), ("b", 4)]),
    ],
)
def test_rolling_aggregates_give_last_values_only(run, build, expected):
    records = [("a", 1), ("b", 2), ("a", 3), ("b", 4), ("a", 5)]
    assert run(lambda env: build(env.from_collection(records).key_by(0)), mode="BATCH") == expected
    assert run(lambda env: build(env.from_collection(records).key_by(0)), mode="AUTOMATIC") == expected


def test_automatic_mode_is_streaming_when_a_source_never_ends(env):
    from penstock.datastream import RuntimeExecutionMode

    env.set_runtime_mode(RuntimeExecutionMode.AUTOMATIC)
    results = env.generate(rate=1000).key_by(lambda v: 0).sum().execute_and_collect(limit=3)
    assert results == [0, 1, 3]


def test_results_of_several_subtasks(run):
    records = [(n % 7, n) for n in range(50)]
    expected = sorted((k, sum(n for m, n in records if m == k)) for k in range(7))
    assert (
        sorted(run(lambda env: env.from_collection(records).key_by(0).sum(1), mode="BATCH", parallelism=3)) == expected
    )


def test_processing_time_timers_fire_at_the_end_of_a_key(run):
    class Timers(KeyedProcessFunction):
        def process_element(self, value, ctx):
            ctx.timer_service().register_processing_time_timer(10**15)

        def on_timer(self, timestamp, ctx):
            yield ctx.get_current_key(), timestamp, ctx.time_domain().name

    got = run(lambda env: env.from_collection([2, 1, 2]).key_by(lambda v: v).process(Timers()), mode="BATCH")
    assert got == [(1, 10**15, "PROCESSING_TIME"), (2, 10**15, "PROCESSING_TIME")]


class Periodic(KeyedProcessFunction):
    """Registers the next timer whenever one fires, as a periodic report does."""

    def __init__(self, domain):
        self.domain = domain
        self.fired = 0

    def process_element(self, value, ctx):
        getattr(ctx.timer_service(), f"register_{self.domain}_time_timer")(1000)

    def on_timer(self, timestamp, ctx):
        self.fired += 1
        if self.fired > 100:
            raise AssertionError("the timers of a key never end")
        getattr(ctx.timer_service(), f"register_{self.domain}_time_timer")(timestamp + 1000)
        yield timestamp


@pytest.mark.parametrize("domain", ["event", "processing"])
def test_timers_registered_at_the_end_of_a_key_are_ignored(run, domain):
    got = run(lambda env: env.from_collection([1]).key_by(lambda v: v).process(Periodic(domain)), mode="BATCH")
    assert got == [1000]


def test_event_time_timers_fire_before_processing_time_timers(run):
    class Both(KeyedProcessFunction):
        def process_element(self, value, ctx):
            ctx.timer_service().register_processing_time_timer(1)
            ctx.timer_service().register_event_time_timer(1)

        def on_timer(self, timestamp, ctx):
            yield ctx.time_domain().name

    got = run(lambda env: env.from_collection([1]).key_by(lambda v: v).process(Both()), mode="BATCH")
    assert got == ["EVENT_TIME", "PROCESSING_TIME"]


def test_state_of_a_key_is_gone_when_the_key_is_done(run):
    class Total(KeyedProcessFunction):
        def open(self, runtime_context):
            self.all = runtime_context.get_state(ValueStateDescriptor("n", default_value=0))

        def process_element(self, value, ctx):
            self.all.update(self.all.value() + 1)
            yield value, self.all.value()

    got = run(lambda env: env.from_collection([1, 1, 2, 1]).key_by(lambda v: v).process(Total()), mode="BATCH")
    assert got == [(1, 1), (1, 2), (1, 3), (2, 1)]


class Pair(KeyedCoProcessFunction):
    def process_element1(self, value, ctx):
        yield "left", value

    def process_element2(self, value, ctx):
        yield "right", value


def test_two_inputs_are_merged_by_key_and_time(run):
    def build(env):
        left = by_time(env.from_collection([("b", 1), ("a", 5), ("a", 1)]))
        right = by_time(env.from_collection([("a", 3), ("b", 0)]))
        return left.connect(right).key_by(0, 0).process(Pair())

    assert run(build, mode="BATCH", epoch_records=1) == [
        ("left", ("a", 1)),
        ("right", ("a", 3)),
        ("left", ("a", 5)),
        ("right", ("b", 0)),
        ("left", ("b", 1)),
    ]


class PlainRules(BroadcastProcessFunction):
    def process_element(self, value, ctx):
        yield value, dict(ctx.get_broadcast_state(RULES).items())

    def process_broadcast_element(self, value, ctx):
        ctx.get_broadcast_state(RULES).put(value, True)


class KeyedRules(KeyedBroadcastProcessFunction):
    process_element = PlainRules.process_element
    process_broadcast_element = PlainRules.process_broadcast_element


@pytest.mark.parametrize("keyed", [False, True])
def test_what_is_broadcast_comes_first(run, keyed):
    def build(env):
        stream = env.from_collection([2, 1])
        rules = scripted(env, pause(), "x", pause(), pause(), "y")
        if keyed:
            return stream.key_by(lambda v: v).connect(rules.broadcast(RULES)).process(KeyedRules())
        return stream.connect(rules.broadcast(RULES)).process(PlainRules())

    got = run(build, mode="BATCH", epoch_records=1)
    assert got == [(v, {"x": True, "y": True}) for v in ((1, 2) if keyed else (2, 1))]


def test_the_order_of_keys():
    keys = ["b", 3, "aa", -1, 2.5, "a", True]
    assert sorted(keys, key=key_order) == [-1, True, 2.5, 3, "a", "b", "aa"]


def test_records_with_and_without_timestamps_keep_what_they_have(run):
    class Times(KeyedProcessFunction):
        def process_element(self, value, ctx):
            yield value, ctx.timestamp()

    got = run(lambda env: scripted(env, at("b", 5), "a", at("c", 7)).key_by(lambda v: 0).process(Times()), mode="BATCH")
    assert got == [("a", None), ("b", 5), ("c", 7)]


def test_an_input_that_was_idle_loses_nothing(run):
    def build(env):
        ended = env.from_collection([1, 2, 3])
        slow = env.generate(lambda n: n + 100, rate=1, count=5).assign_timestamps_and_watermarks(
            WatermarkStrategy.no_watermarks().with_idleness(Duration.of_millis(100))
        )
        return ended.union(slow).key_by(lambda v: 0).reduce(lambda a, b: a + b)

    assert run(build, mode="BATCH") == [6 + 510]
