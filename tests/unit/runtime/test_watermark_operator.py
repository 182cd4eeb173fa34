"""Timestamps and watermarks, as strategies ask for them."""

from decimal import Decimal

import pyarrow as pa
import pytest

from penstock.common import Duration, WatermarkStrategy
from penstock.common.watermark_strategy import (
    AscendingTimestampExtractor,
    AssignerWithPeriodicWatermarks,
    AssignerWithPeriodicWatermarksWrapper,
    AssignerWithPunctuatedWatermarks,
    BoundedOutOfOrdernessTimestampExtractor,
    BoundedOutOfOrdernessWatermarks,
    TimestampAssigner,
    Watermark,
    WatermarkGenerator,
)
from penstock.datastream import StreamExecutionEnvironment, TimeCharacteristic
from penstock.engine.operators.operator import Clock, OperatorContext
from penstock.engine.operators.watermarks import IngestionTimeOperator, TimestampsAndWatermarksOperator
from penstock.engine.records.columns import Columns
from penstock.engine.records.elements import MAX_TIMESTAMP, MIN_TIMESTAMP
from penstock.errors import JobFailed
from penstock.testing import ManualClock, OperatorHarness, at, in_process, pause, scripted, watermark


class Own(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value


class Ticking(OperatorHarness):
    """Every element comes a watermark interval after the one before it."""

    def _send(self, input_number, fill):
        self._now += 200
        super()._send(input_number, fill)


def harness(strategy):
    return Ticking(lambda s: s.assign_timestamps_and_watermarks(strategy))


def both(first, second, kind=Ticking):
    return kind(
        lambda a, b: a.assign_timestamps_and_watermarks(first).union(b.assign_timestamps_and_watermarks(second)),
        inputs=2,
    )


MONOTONOUS = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Own())


def test_monotonous_watermarks_follow_the_highest_timestamp():
    with harness(MONOTONOUS) as h:
        h.push(10)
        h.push(20)
        h.push(15)
        assert h.elements() == [
            ("record", 10, 10),
            ("watermark", 9, None),
            ("record", 20, 20),
            ("watermark", 19, None),
            ("record", 15, 15),
        ]


def test_bounded_watermarks_stay_behind_by_the_delay():
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(5)).with_timestamp_assigner(Own())
    with harness(strategy) as h:
        h.push_all([10, 30, 20])
        assert h.elements() == [("record", 10, 10), ("record", 30, 30), ("record", 20, 20), ("watermark", 24, None)]


def test_before_the_first_record_there_is_no_watermark():
    with harness(MONOTONOUS) as h:
        h.advance_processing_time(1000)
        assert h.elements() == []


def test_the_end_brings_the_last_watermark_and_no_periodic_one_before_it():
    with harness(MONOTONOUS) as h:
        h.push(10)
        h.end()
        assert h.elements() == [("record", 10, 10), ("watermark", 9, None), ("watermark", MAX_TIMESTAMP, None)]


def test_an_epoch_in_which_the_stream_ends_has_no_periodic_watermark(run):
    class Seen(WatermarkGenerator):
        def on_event(self, event, event_timestamp, output):
            pass

        def on_periodic_emit(self, output):
            raise AssertionError("asked in the last epoch")

    strategy = WatermarkStrategy.for_generator(Seen).with_timestamp_assigner(Own())
    assert run(lambda env: env.from_collection([1]).assign_timestamps_and_watermarks(strategy)) == [1]


def test_watermarks_from_upstream_are_replaced():
    with harness(MONOTONOUS) as h:
        h.watermark(1000)
        h.push(5, timestamp=77)
        assert h.elements() == [("record", 5, 5), ("watermark", 4, None)]


def test_an_assigner_may_look_at_the_timestamp_there_was():
    strategy = WatermarkStrategy.no_watermarks().with_timestamp_assigner(lambda value, before: max(value, before))
    with harness(strategy) as h:
        h.push(5, timestamp=77)
        h.push(5)
        assert h.output() == [(5, 77), (5, 5)]
    with harness(WatermarkStrategy.no_watermarks().with_timestamp_assigner(lambda v, before: before)) as h:
        h.push(1)
        assert h.output() == [(1, MIN_TIMESTAMP)]


class Punctuated(WatermarkGenerator):
    """Negative records are watermarks."""

    def on_event(self, event, event_timestamp, output):
        if event < 0:
            output.emit_watermark(Watermark(-event))

    def on_periodic_emit(self, output):
        pass


@pytest.mark.parametrize(
    "strategy", [WatermarkStrategy.for_monotonous_timestamps(), WatermarkStrategy.for_generator(Punctuated)]
)
def test_without_an_assigner_records_keep_their_timestamps_or_have_the_lowest(strategy):
    with harness(strategy) as h:
        h.push(1)
        assert h.elements() == [("record", 1, MIN_TIMESTAMP)]
        h.push(2, timestamp=10)
        assert h.elements()[0] == ("record", 2, 10)
        h.push(3)
        assert h.elements() == [("record", 3, MIN_TIMESTAMP)]


@pytest.mark.parametrize("stamp", [1500.75, 1500.0, Decimal("1500.5"), True + 1499])
def test_other_numbers_lose_their_fraction(stamp):
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda value, before: stamp)
    with harness(strategy) as h:
        h.push("a")
        assert repr(h.elements()) == "[('record', 'a', 1500), ('watermark', 1499, None)]"


@pytest.mark.parametrize("stamp", ["1500", float("nan"), float("inf"), None, 1500j])
def test_what_is_no_number_of_milliseconds_names_its_record(stamp):
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda value, before: stamp)
    with harness(strategy) as h, pytest.raises(JobFailed, match=r"returned .*, not milliseconds\n  on record 'a'"):
        h.push("a")


def test_no_watermarks_needs_no_timestamps():
    with harness(WatermarkStrategy.no_watermarks()) as h:
        h.push("a")
        h.push("b", timestamp=3)
        assert h.elements() == [("record", "a", None), ("record", "b", 3)]


def test_a_punctuated_generator_speaks_between_the_records():
    strategy = WatermarkStrategy.for_generator(Punctuated).with_timestamp_assigner(lambda v: abs(v))
    with harness(strategy) as h:
        h.push_all([1, 2, -5, 3, -4, -9, 7])
        assert h.elements() == [
            ("record", 1, 1),
            ("record", 2, 2),
            ("record", -5, 5),
            ("watermark", 5, None),
            ("record", 3, 3),
            ("record", -4, 4),
            ("record", -9, 9),
            ("watermark", 9, None),
            ("record", 7, 7),
        ]


class TwoAtOnce(WatermarkGenerator):
    """Emits two watermarks for each record, the higher one first or last."""

    def __init__(self, first, second):
        self.first, self.second = first, second

    def on_event(self, event, event_timestamp, output):
        output.emit_watermark(Watermark(event + self.first))
        output.emit_watermark(Watermark(event + self.second))

    def on_periodic_emit(self, output):
        pass


@pytest.mark.parametrize("offsets", [(-3, -1), (-1, -3)])
def test_of_two_watermarks_in_one_call_the_higher_one_holds(offsets):
    strategy = WatermarkStrategy.for_generator(lambda _: TwoAtOnce(*offsets)).with_timestamp_assigner(Own())
    with harness(strategy) as h:
        h.push(10)
        h.push(20)
        assert [e[1] for e in h.elements() if e[0] == "watermark"] == [9, 19]


class Nowhere:
    def chunk(self, chunk): ...

    def watermark(self, timestamp): ...


class Collecting(Nowhere):
    """What an operator has sent."""

    def __init__(self):
        self.chunks, self.said = [], []

    def chunk(self, chunk):
        self.chunks.append(chunk)

    def watermark(self, timestamp):
        self.said.append(timestamp)

    def status(self, idle):
        self.said.append("idle" if idle else "active")


def opened(generator):
    operator = TimestampsAndWatermarksOperator(WatermarkStrategy.for_generator(lambda _: generator))
    operator.open(OperatorContext("Timestamps/Watermarks", "uid", 0, 1, 128, Nowhere(), {}, Clock()))
    return operator


def test_a_successor_knows_the_highest_timestamp_there_was():
    before, after = opened(BoundedOutOfOrdernessWatermarks(5)), opened(BoundedOutOfOrdernessWatermarks(5))
    before.generator.on_event(100, 100, None)
    before.current_watermark = 94
    after.take_up(before.progress())
    assert (after.current_watermark, after.generator.max_timestamp) == (94, 100)


def test_a_generator_of_ones_own_starts_from_scratch():
    class Own(BoundedOutOfOrdernessWatermarks):
        pass

    before, after = opened(Own(5)), opened(Own(5))
    lowest = after.generator.max_timestamp
    before.generator.on_event(100, 100, None)
    after.take_up(before.progress())
    assert after.generator.max_timestamp == lowest
    plain = opened(BoundedOutOfOrdernessWatermarks(5))
    plain.take_up(opened(Punctuated()).progress())
    assert plain.generator.max_timestamp == lowest


class Before:
    """What a checkpoint of an operator holds, for one that is restored from it."""

    def __init__(self, own, *others, continued=True, drained=False):
        self._own, self._others = own, others
        self.continued, self.drained = continued, drained

    def own(self):
        return self._own

    def all_own(self):
        return [*([] if self._own is None else [self._own]), *self._others]


class Kept(dict):
    def own(self, name, value):
        self[name] = value


def restored(before, clock=None):
    operator = TimestampsAndWatermarksOperator(
        WatermarkStrategy.for_generator(lambda _: BoundedOutOfOrdernessWatermarks(5))
    )
    context = OperatorContext("Timestamps/Watermarks", "uid", 0, 1, 128, Nowhere(), {}, clock or Clock())
    context.restored = before
    operator.open(context)
    return operator


def test_event_time_goes_on_where_the_checkpoint_was():
    first, kept = opened(BoundedOutOfOrdernessWatermarks(5)), Kept()
    first.generator.on_event(100, 100, None)
    first.current_watermark = 94
    first.snapshot(kept)
    assert restored(Before(kept)).progress() == first.progress()
    lowest = opened(BoundedOutOfOrdernessWatermarks(5)).progress()
    elsewhere = restored(Before(kept, continued=False))
    assert (elsewhere.current_watermark, elsewhere.progress()["highest"]) == (94, lowest["highest"])
    rescaled = restored(Before(None, {**kept, "watermark": 70}, kept, {}))
    assert rescaled.current_watermark == 70, "the lowest of those that there were"
    assert restored(Before(kept, drained=True)).progress() == lowest, "a drained job has ended its event time"


def test_records_without_an_assigner_keep_their_timestamps_and_others_get_the_lowest():
    with harness(WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(5))) as h:
        h.push("none")
        h.push("five", 5)
        assert [stamp for kind, _, stamp in h.elements() if kind == "record"] == [MIN_TIMESTAMP, 5]


class Sleepy(WatermarkGenerator):
    """Becomes idle with a 0, and has a watermark for any other number."""

    def on_event(self, event, event_timestamp, output):
        if event == 0:
            output.mark_idle()
        else:
            output.emit_watermark(Watermark(event))

    def on_periodic_emit(self, output): ...


def test_a_watermark_ends_idleness_within_a_chunk():
    collected = Collecting()
    operator = TimestampsAndWatermarksOperator(WatermarkStrategy.for_generator(lambda _: Sleepy()))
    operator.open(OperatorContext("Timestamps/Watermarks", "uid", 0, 1, 128, collected, {}, Clock()))
    operator.records([0, 0, 5, 3, 0], [0, None, 5, 3, None])
    assert collected.said == ["idle", "active", 5, "idle"]
    assert [(value, stamp) for chunk in collected.chunks for value, stamp in zip(chunk.values, chunk.timestamps)] == [
        (0, 0),
        (0, MIN_TIMESTAMP),
        (5, 5),
        (3, 3),
        (0, MIN_TIMESTAMP),
    ]


class EverySecondCall(WatermarkGenerator):
    def __init__(self):
        self.highest, self.calls = 0, 0

    def on_event(self, event, event_timestamp, output):
        self.highest = max(self.highest, event_timestamp)

    def on_periodic_emit(self, output):
        self.calls += 1
        if self.calls % 2 == 0:
            output.emit_watermark(Watermark(self.highest))


@pytest.mark.parametrize("supplier", [EverySecondCall, lambda context: EverySecondCall(), lambda: EverySecondCall()])
def test_a_periodic_generator_is_asked_behind_the_records(supplier):
    with harness(WatermarkStrategy.for_generator(supplier).with_timestamp_assigner(Own())) as h:
        h.push_all([10, 15])
        h.push_all([20, 5])
        assert h.elements() == [*(("record", value, value) for value in (10, 15, 20, 5)), ("watermark", 20, None)]


class Highest(EverySecondCall):
    def on_periodic_emit(self, output):
        output.emit_watermark(Watermark(self.highest))


def test_a_periodic_generator_is_asked_once_an_interval(run):
    """An epoch every 100 milliseconds, and an interval of 200."""
    script = [step for value in (10, 20, 30, 40, 50, 60) for step in (value, pause())]
    strategy = WatermarkStrategy.for_generator(Highest).with_timestamp_assigner(Own())
    seen = run(lambda env: scripted(env, *script).assign_timestamps_and_watermarks(strategy).process(_Clock()))
    assert seen == [MIN_TIMESTAMP] * 3 + [30, 30, 50]


def test_a_generator_may_count_in_metrics():
    class Counts(EverySecondCall):
        def __init__(self, context):
            super().__init__()
            self.counter = context.get_metric_group().counter("asked")

        def on_periodic_emit(self, output):
            self.counter.inc()

    strategy = WatermarkStrategy.for_generator(lambda context: Counts(context)).with_timestamp_assigner(Own())
    with in_process(clock=ManualClock()):
        env = StreamExecutionEnvironment().set_parallelism(1)
        # An epoch every 100 milliseconds, and an interval of 200.
        stream = scripted(env, *[step for value in range(6) for step in (value, pause())])
        with stream.assign_timestamps_and_watermarks(strategy).execute_and_collect() as results:
            assert list(results) == list(range(6))
        asked = [count for name, count in results._job.view.metrics[0].items() if name.endswith(".asked")]
    assert asked == [2], "when 200 and 400 milliseconds have passed"


def test_auto_watermark_interval_zero_turns_periodic_watermarks_off():
    with in_process(clock=ManualClock()):
        env = StreamExecutionEnvironment().set_parallelism(1)
        env.get_config().set_auto_watermark_interval(0)
        stream = scripted(env, 10, pause(), 20, pause()).assign_timestamps_and_watermarks(MONOTONOUS)
        with stream.process(_Clock()).execute_and_collect() as results:
            assert list(results) == [MIN_TIMESTAMP] * 2


def _clock_class():
    from penstock.datastream.functions import ProcessFunction

    class Clock(ProcessFunction):
        def process_element(self, value, ctx):
            yield ctx.timer_service().current_watermark()

    return Clock


_Clock = _clock_class()


# --- idleness ---
IDLE = MONOTONOUS.with_idleness(Duration.of_millis(1000))


def test_a_silent_input_becomes_idle_and_a_record_wakes_it():
    with both(MONOTONOUS, IDLE, OperatorHarness) as h:
        h.push(50, input=1)
        h.advance_processing_time(200)
        h.advance_processing_time(999)
        assert h.elements() == [("record", 50, 50)]
        h.advance_processing_time(1000)
        assert h.elements() == [("watermark", 49, None)]
        h.push(60, input=2)
        h.advance_processing_time(1200)
        h.push(70, input=1)
        h.advance_processing_time(1400)
        assert [e[1] for e in h.elements() if e[0] == "watermark"] == [59]


def test_idleness_makes_the_loop_wake_up():
    """A job that rests must look again when an idle timeout is over."""
    clock = ManualClock()
    with in_process(clock=clock):
        env = StreamExecutionEnvironment().set_parallelism(1)
        quiet = scripted(env, stay=True).assign_timestamps_and_watermarks(IDLE)
        busy = scripted(env, 5, pause(), 6, pause(), 7, *[pause()] * 15, 8, pause())
        stream = busy.assign_timestamps_and_watermarks(MONOTONOUS).union(quiet)
        with stream.process(_Clock()).execute_and_collect() as results:
            seen = [value for _, value in zip(range(4), results, strict=False)]
    assert seen[0] == MIN_TIMESTAMP and seen[-1] == 6


def test_an_idle_source_is_believed():
    with both(MONOTONOUS, MONOTONOUS) as h:
        h.push(50, input=1)
        h.idle(input=2)
        assert h.elements() == [("record", 50, 50), ("watermark", 49, None)]


class SaysIdle(WatermarkGenerator):
    def on_event(self, event, event_timestamp, output):
        if event == 0:
            output.mark_idle()
        else:
            output.emit_watermark(Watermark(event_timestamp))

    def on_periodic_emit(self, output):
        pass


def test_a_generator_may_declare_idleness():
    strategy = WatermarkStrategy.for_generator(SaysIdle).with_timestamp_assigner(Own())
    with both(MONOTONOUS, strategy) as h:
        h.push(50, input=1)
        h.push(3, input=2)
        h.push(0, input=2)
        assert [e[1] for e in h.elements() if e[0] == "watermark"] == [3, 49]


# --- Flink 1.x ---
class Ascending(AscendingTimestampExtractor):
    def extract_ascending_timestamp(self, element):
        return element


class Bounded(BoundedOutOfOrdernessTimestampExtractor):
    def extract_timestamp(self, element):
        return element


class Periodic(AssignerWithPeriodicWatermarks):
    last = None

    def extract_timestamp(self, element, record_timestamp):
        self.last = element
        return element

    def get_current_watermark(self):
        return None if self.last is None else Watermark(self.last - 3)


class EveryTen(AssignerWithPunctuatedWatermarks):
    def extract_timestamp(self, element, record_timestamp):
        return element

    def check_and_get_next_watermark(self, last_element, extracted_timestamp):
        return Watermark(extracted_timestamp) if last_element % 10 == 0 else None


@pytest.mark.parametrize(
    ("assigner", "expected"),
    [
        (Ascending(), [29]),
        (Bounded(Duration.of_millis(5)), [25]),
        (Periodic(), [22]),
        (AssignerWithPeriodicWatermarksWrapper(Periodic()), [22]),
        (EveryTen(), [10, 30]),
    ],
)
def test_assigners_of_flink_1(assigner, expected):
    with harness(assigner) as h:
        h.advance_processing_time(1)
        h.push_all([10, 30, 25])
        elements = h.elements()
    assert [(v, t) for kind, v, t in elements if kind == "record"] == [(10, 10), (30, 30), (25, 25)]
    assert [t for kind, t, _ in elements if kind == "watermark"] == expected


# --- ingestion time ---
def test_ingestion_time():
    clock = ManualClock(1000)
    with in_process(clock=clock):
        env = StreamExecutionEnvironment().set_parallelism(1)
        env.set_stream_time_characteristic(TimeCharacteristic.IngestionTime)
        stream = scripted(env, "a", pause(), at("b", 3), watermark(10**6), pause(), "c")
        from penstock.datastream.functions import ProcessFunction

        class Times(ProcessFunction):
            def process_element(self, value, ctx):
                yield value, ctx.timestamp(), ctx.timer_service().current_watermark()

        with stream.process(Times()).execute_and_collect() as results:
            rows = list(results)
    assert [value for value, *_ in rows] == ["a", "b", "c"]
    times = [time for _, time, _ in rows]
    assert times == sorted(times) and times[0] == 1000
    assert [mark for *_, mark in rows][1:] == [time - 1 for time in times[:-1]]


def ingesting(now):
    context, clock = Collecting(), Clock(now)
    operator = IngestionTimeOperator()
    operator.open(OperatorContext("Ingestion", "uid", 0, 1, 128, context, {}, clock))
    return operator, context.said, clock


def test_ingestion_time_is_one_behind_the_clock_and_never_goes_back():
    operator, watermarks, clock = ingesting(1000)
    operator.end_epoch()
    operator.end_epoch()
    clock.now = 900
    operator.end_epoch()
    clock.now = 1001
    operator.end_epoch()
    operator.watermark(5000)
    operator.watermark(MAX_TIMESTAMP)
    assert watermarks == [999, 1000, MAX_TIMESTAMP], "of its input only the end counts"


def test_columns_get_the_timestamps_that_a_field_holds():
    batch = pa.RecordBatch.from_pydict({"at": [7, 3], "n": [1, 2]})
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_field("at")
    with harness(strategy) as h:
        h._send(1, lambda builder: builder.add_columns(Columns(batch)))
        assert [(kind, stamp) for kind, _, stamp in h.elements() if kind == "record"] == [("record", 7), ("record", 3)]


# --- failures ---
def test_a_failing_assigner_names_operator_and_record():
    strategy = WatermarkStrategy.no_watermarks().with_timestamp_assigner(lambda v: v["time"])
    message = r"Timestamps/Watermarks .*KeyError: 'time'\n  on record {'a': 1}"
    with harness(strategy) as h, pytest.raises(JobFailed, match=message):
        h.push({"a": 1})


def test_a_failing_generator_names_operator_and_record():
    class Fails(Punctuated):
        def on_event(self, event, event_timestamp, output):
            raise ValueError("no")

    strategy = WatermarkStrategy.for_generator(Fails).with_timestamp_assigner(Own())
    with harness(strategy) as h, pytest.raises(JobFailed, match=r"Timestamps/Watermarks .*no\n  on record 4"):
        h.push(4)


@pytest.mark.parametrize("returned", [None, "soon"])
def test_an_assigner_that_returns_no_number_is_named(returned):
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda v: returned)
    with harness(strategy) as h:
        with pytest.raises(JobFailed) as raised:
            h.push(4)
        assert raised.value.operator == "Timestamps/Watermarks"
        assert raised.value.record == "4"
