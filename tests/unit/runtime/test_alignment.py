"""Watermark alignment: the faster source waits for the slower one."""

from penstock.common import Duration, WatermarkStrategy
from penstock.common.watermark_strategy import Watermark, WatermarkGenerator
from penstock.datastream import StreamExecutionEnvironment
from penstock.engine.operators.operator import Alignment, Clock, OperatorContext
from penstock.engine.operators.sources.split_times import SplitTimes
from penstock.engine.operators.watermarks import TimestampsAndWatermarksOperator
from penstock.engine.records.elements import MAX_TIMESTAMP, Chunk
from penstock.testing import ManualClock, in_process, pause, scripted


def aligned(name="group", drift=10):
    return (
        WatermarkStrategy.for_monotonous_timestamps()
        .with_timestamp_assigner(lambda record: record[1])
        .with_watermark_alignment(name, Duration.of_millis(drift))
    )


def arrival(fast_group, slow_group, drift=10):
    """The order in which two sources' records arrive, one record of each an epoch if nothing holds them back."""
    with in_process(clock=ManualClock()):
        env = StreamExecutionEnvironment().set_parallelism(1)
        env.get_config().set_auto_watermark_interval(1)
        fast_script = [step for n in range(1, 7) for step in (("fast", n * 100), pause())]
        slow_script = [step for n in range(1, 13) for step in (("slow", n * 10), pause())]
        fast = scripted(env, *fast_script).assign_timestamps_and_watermarks(aligned(fast_group, drift))
        slow = scripted(env, *slow_script).assign_timestamps_and_watermarks(aligned(slow_group, drift))
        with fast.union(slow).execute_and_collect() as results:
            return list(results)


def furthest_ahead(records):
    """How far the fast source ran ahead of the slow one while that was still sending."""
    slow, most = 0, 0
    for name, time in records[: len(records) - 1 - [n for n, _ in reversed(records)].index("slow")]:
        if name == "slow":
            slow = time
        else:
            most = max(most, time - slow)
    return most


def test_the_faster_source_of_a_group_pauses():
    records = arrival("one", "one")
    assert sorted(records) == sorted(
        [("fast", n * 100) for n in range(1, 7)] + [("slow", n * 10) for n in range(1, 13)]
    )
    assert furthest_ahead(records) <= 200


def test_sources_of_different_groups_do_not_wait():
    assert furthest_ahead(arrival("one", "two")) > 400


def test_a_large_drift_allows_more():
    assert furthest_ahead(arrival("one", "one", drift=300)) > furthest_ahead(arrival("one", "one"))


def test_a_stream_is_blocked_only_beyond_the_limit():
    alignment = Alignment()
    alignment.report("g", "fast", 20)
    assert not alignment.is_blocked("g", "fast")
    alignment.limits = {"g": 20}
    assert not alignment.is_blocked("g", "fast")
    alignment.report("g", "fast", 21)
    assert alignment.is_blocked("g", "fast") and not alignment.is_blocked("other", "fast")
    alignment.withdraw("g", "fast")
    assert not alignment.is_blocked("g", "fast")


def test_a_stream_that_becomes_idle_is_not_waited_for():
    alignment, output = Alignment(), Ignoring()
    context = OperatorContext("stream", "uid", 0, 1, 128, output, {}, ManualClock(), alignment=alignment)
    operator = TimestampsAndWatermarksOperator(aligned("group"))
    operator.open(context)
    operator.records([("first", 7)], None)
    operator._ask()
    assert alignment.reached == {("group", "uid"): 6}
    operator.status(idle=True)
    assert alignment.reached == {}
    operator.records([("second", 9)], None)
    assert alignment.reached == {("group", "uid"): 6}


class Ends(WatermarkGenerator):
    """The record "last" is followed by the end of event time, any other by its own timestamp."""

    def on_event(self, event, event_timestamp, output):
        output.emit_watermark(Watermark(MAX_TIMESTAMP if event[0] == "last" else event_timestamp))

    def on_periodic_emit(self, output):
        pass


class Ignoring:
    def records(self, values, timestamps): ...

    def chunk(self, chunk): ...

    def status(self, idle): ...

    def watermark(self, timestamp): ...


def test_a_source_whose_splits_reached_the_end_of_event_time_is_not_waited_for():
    alignment, output = Alignment(), Ignoring()
    context = OperatorContext("source", "uid", 0, 1, 128, output, {}, Clock(), alignment=alignment)
    strategy = WatermarkStrategy.for_generator(Ends).with_timestamp_assigner(lambda record: record[1])
    aligned = strategy.with_watermark_alignment("group", Duration.of_millis(10))
    times = SplitTimes(aligned, context, output, has_splits=lambda: True)
    times.chunk("split", Chunk([("first", 7)], None))
    assert alignment.reached == {("group", "uid"): 7}
    times.chunk("split", Chunk([("last", 8)], None))
    assert alignment.reached == {}
