"""Windows and joins that make no sense: refused while the program is built, or by an operator that gives its name."""

import pytest

from penstock.common import Types
from penstock.datastream import OutputTag
from penstock.datastream.functions import AggregateFunction, ProcessJoinFunction, ProcessWindowFunction
from penstock.datastream.window import (
    ContinuousEventTimeTrigger,
    ContinuousProcessingTimeTrigger,
    CountEvictor,
    CountTrigger,
    DeltaTrigger,
    EventTimeSessionWindows,
    MergingWindowAssigner,
    ProcessingTimeSessionWindows,
    ProcessingTimeTrigger,
    PurgingTrigger,
    SlidingEventTimeWindows,
    SlidingProcessingTimeWindows,
    TimeWindow,
    Trigger,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
)
from penstock.engine.records.elements import MIN_TIMESTAMP
from penstock.errors import JobFailed, MissingTimestamp, RecordError, UnsupportedOperation
from penstock.testing import OperatorHarness, at, scripted

TENS = TumblingEventTimeWindows.of(10)
BY_VALUE = DeltaTrigger.of(1, lambda a, b: abs(a[1] - b[1]))


class Pairs(ProcessJoinFunction):
    def process_element(self, left, right, ctx):
        yield left, right


class Sum(AggregateFunction):
    def create_accumulator(self):
        return 0

    def add(self, value, accumulator):
        return accumulator + value[1]

    def get_result(self, accumulator):
        return accumulator

    def merge(self, acc_a, acc_b):
        raise NotImplementedError


class SilentMerge(Sum):
    def merge(self, acc_a, acc_b):
        pass


@pytest.fixture
def keyed(env):
    return env.from_elements(("a", 1)).key_by(0)


# --- lengths and offsets ---
@pytest.mark.parametrize("size", [0, -5])
@pytest.mark.parametrize(
    "make",
    [
        lambda size: TumblingEventTimeWindows.of(size),
        lambda size: TumblingProcessingTimeWindows.of(size),
        lambda size: SlidingEventTimeWindows.of(size, 1),
        lambda size: SlidingEventTimeWindows.of(10, size),
        lambda size: SlidingProcessingTimeWindows.of(size, 1),
        lambda size: SlidingProcessingTimeWindows.of(10, size),
        lambda size: EventTimeSessionWindows.with_gap(size),
        lambda size: ProcessingTimeSessionWindows.with_gap(size),
    ],
)
def test_sizes_slides_and_gaps_are_above_zero(make, size):
    with pytest.raises(
        ValueError, match=f"the (window size|window slide|session gap) must be above 0 ms, not {size} ms"
    ):
        make(size)


@pytest.mark.parametrize(("size", "slide"), [(0, 0), (-1, 0), (2, -1)])
def test_counts_are_whole_numbers_above_zero(keyed, size, slide):
    with pytest.raises(ValueError, match="of a count window is a whole number above 0"):
        keyed.count_window(size, slide)
    with pytest.raises(ValueError, match="of a count window is a whole number above 0"):
        keyed.count_window_all(size, slide)


@pytest.mark.parametrize("wrong", ["3", 2.5, True])
def test_counts_are_whole_numbers(keyed, wrong):
    for method in (keyed.count_window, keyed.count_window_all):
        for arguments in ((wrong, 0), (3, wrong)):
            with pytest.raises(TypeError, match=rf"must be a whole number, not {wrong!r}"):
                method(*arguments)


@pytest.mark.parametrize("offset", [10, -10, 25])
def test_offsets_are_smaller_than_the_window(offset):
    message = f"the offset must be smaller than the size: {offset} ms of 10 ms"
    for kind in (TumblingEventTimeWindows, TumblingProcessingTimeWindows):
        with pytest.raises(ValueError, match=message):
            kind.of(10, offset)
    with pytest.raises(ValueError, match=f"the offset must be smaller than the slide: {offset} ms of 4 ms"):
        SlidingEventTimeWindows.of(10, 4, offset)


@pytest.mark.parametrize("gap", [0, -3])
def test_a_dynamic_gap_is_above_zero(gap):
    with (
        OperatorHarness(
            lambda s: (
                s.key_by(0).window(EventTimeSessionWindows.with_dynamic_gap(lambda r: gap)).sum(1).name("Sessions")
            )
        ) as h,
        pytest.raises(JobFailed, match=f"Sessions .*a session gap must be above 0 ms, not {gap} ms"),
    ):
        h.push(("a", 1), 1)


def test_lengths_of_time_are_lengths_of_time():
    for wrong in ("10", 10.0, None, True):
        with pytest.raises(TypeError, match="size must be a Duration"):
            TumblingEventTimeWindows.of(wrong)
    with pytest.raises(TypeError, match="must be a SessionWindowTimeGapExtractor or a function, not 5"):
        EventTimeSessionWindows.with_dynamic_gap(5)


@pytest.mark.parametrize(
    "make",
    [
        lambda: CountTrigger.of(0),
        lambda: ContinuousEventTimeTrigger.of(0),
        lambda: ContinuousProcessingTimeTrigger.of(-1),
        lambda: CountEvictor.of(-1),
    ],
)
def test_triggers_and_evictors_check_their_numbers(make):
    with pytest.raises(ValueError, match=r"not -?[01]"):
        make()


# --- what cannot be combined ---
def test_sessions_need_a_trigger_that_can_merge(keyed):
    for trigger in (BY_VALUE, PurgingTrigger.of(BY_VALUE)):
        with pytest.raises(
            UnsupportedOperation, match=rf"Session.*merges windows, and {type(trigger).__name__} cannot"
        ):
            keyed.window(EventTimeSessionWindows.with_gap(5)).trigger(trigger)
    keyed.window(TENS).trigger(BY_VALUE)


def test_a_trigger_that_says_it_can_merge_and_cannot():
    class Boasting(CountTrigger):
        def on_merge(self, window, ctx):
            return Trigger.on_merge(self, window, ctx)

    with OperatorHarness(
        lambda s: s.key_by(0).window(EventTimeSessionWindows.with_gap(5)).trigger(Boasting(9)).sum(1).name("Visits")
    ) as h:
        h.push(("a", 1), 1)
        with pytest.raises(UnsupportedOperation, match=r"Visits .*Boasting does not define on_merge"):
            h.push(("a", 2), 2)


@pytest.mark.parametrize("assigner", [TumblingProcessingTimeWindows.of(5), ProcessingTimeSessionWindows.with_gap(5)])
def test_processing_time_has_no_lateness(keyed, assigner):
    with pytest.raises(UnsupportedOperation, match=r"ProcessingTime.*allowed_lateness is for event-time windows"):
        keyed.window(assigner).allowed_lateness(1)


def test_lateness_is_not_negative(keyed):
    with pytest.raises(ValueError, match="the allowed lateness must not be negative, but is -1 ms"):
        keyed.window(TENS).allowed_lateness(-1)


def test_things_of_the_wrong_kind(keyed):
    windowed = keyed.window(TENS)
    wrong = {
        "window: .* must be a WindowAssigner, not": lambda: keyed.window(10),
        "WindowedStream.trigger: the argument trigger must be a Trigger, not": lambda: windowed.trigger("count"),
        "evictor: .* must be an Evictor, not": lambda: windowed.evictor(3),
        "side_output_late_data: .* must be an OutputTag, not": lambda: windowed.side_output_late_data("late"),
        "reduce: .* must be a ReduceFunction or a function, not": lambda: windowed.reduce(Sum()),
        "aggregate: .* must be an AggregateFunction, not": lambda: windowed.aggregate(lambda a, b: a),
        "WindowedStream.process: .* must be a ProcessWindowFunction, not": lambda: windowed.process(
            lambda key, context, rows: rows
        ),
        "window_function must be a ProcessWindowFunction, .*, a function or None, not <.*Sum": lambda: (
            windowed.aggregate(Sum(), Sum())
        ),
        "apply: .* must be a WindowFunction or a function, not 3": lambda: windowed.apply(3),
        "AllWindowedStream.process: .* must be a ProcessAllWindowFunction, not <class": lambda: keyed.window_all(
            TENS
        ).process(ProcessWindowFunction),
    }
    for message, build in wrong.items():
        with pytest.raises(TypeError, match=message):
            build()


# --- records ---
def test_a_record_without_a_timestamp():
    for compute in (lambda w: w.sum(1), lambda w: w.aggregate(Sum()), lambda w: w.apply(lambda *_: [])):
        for assigner in (TENS, SlidingEventTimeWindows.of(10, 5), EventTimeSessionWindows.with_gap(5)):
            with OperatorHarness(lambda s, a=assigner, c=compute: c(s.key_by(0).window(a)).name("By the minute")) as h:
                h.push(("a", 1), 1)
                with pytest.raises(MissingTimestamp, match=r"By the minute .*assign_timestamps(.|\n)*\('a', 2\)"):
                    h.push(("a", 2))


@pytest.mark.parametrize(
    "assigner",
    [
        TENS,
        SlidingEventTimeWindows.of(10, 5),
        EventTimeSessionWindows.with_gap(5),
    ],
    ids=repr,
)
def test_the_least_timestamp_stands_for_none(assigner):
    """As in Flink, where a record that never got a timestamp has Long.MIN_VALUE."""
    with (
        OperatorHarness(lambda s: s.key_by(0).window(assigner).sum(1)) as h,
        pytest.raises(MissingTimestamp, match=r"Window Sum .*needs records with timestamps"),
    ):
        h.push(("a", 1), MIN_TIMESTAMP)


def test_a_record_without_a_timestamp_in_a_program(run):
    with pytest.raises(MissingTimestamp, match=r"Window Sum .*assign_timestamps_and_watermarks"):
        run(lambda env: env.from_elements(("a", 1)).key_by(0).window(TENS).sum(1))


@pytest.mark.parametrize("function", [Sum(), SilentMerge()])
def test_sessions_need_an_aggregate_that_can_merge(function):
    name = type(function).__name__
    with OperatorHarness(
        lambda s: s.key_by(0).window(EventTimeSessionWindows.with_gap(5)).aggregate(function).name("Visits")
    ) as h:
        h.push(("a", 1), 1)
        h.push(("a", 2), 2)
        h.push(("a", 3), 20)
        h.push(("a", 4), 12)
        with pytest.raises(
            UnsupportedOperation,
            match=rf"Visits .*{name}\.merge is missing or returned "
            "None.*return an accumulator",
        ):
            h.push(("a", 5), 16)


def test_where_windows_do_not_merge_the_aggregate_need_not():
    with OperatorHarness(lambda s: s.key_by(0).window(SlidingEventTimeWindows.of(10, 5)).aggregate(Sum())) as h:
        h.push(("a", 1), 6)
        h.push(("a", 2), 7)
        h.end()
        assert h.values() == [3, 3]


def test_an_assigner_that_shrinks_windows():
    class Shrinking(MergingWindowAssigner):
        def assign_windows(self, element, timestamp, context):
            return [TimeWindow(timestamp, timestamp + 100)]

        def merge_windows(self, windows, callback):
            if len(windows) > 1:
                callback.merge(set(windows), TimeWindow(0, 1))

        def get_default_trigger(self, env):
            return TENS.get_default_trigger()

        def is_event_time(self):
            return True

    with OperatorHarness(lambda s: s.key_by(0).window(Shrinking()).sum(1)) as h:
        h.push(("a", 1), 1)
        h.watermark(50)
        with pytest.raises(UnsupportedOperation, match=r"Window Sum .*an assigner must not shrink windows"):
            h.push(("a", 2), 20)


def test_an_assigner_that_shrinks_windows_by_processing_time():
    """A window that ends in this very millisecond is over, whatever lateness event time would allow."""

    class Shrinking(MergingWindowAssigner):
        def assign_windows(self, element, timestamp, context):
            return [TimeWindow(element[1], 1000)]

        def merge_windows(self, windows, callback):
            if len(windows) > 1:
                callback.merge(set(windows), TimeWindow(0, 101))

        def get_default_trigger(self, env):
            return ProcessingTimeTrigger.create()

        def is_event_time(self):
            return False

    with OperatorHarness(lambda s: s.key_by(0).window(Shrinking()).sum(1)) as h:
        h.advance_processing_time(100)
        h.push(("a", 1), 1)
        with pytest.raises(UnsupportedOperation, match=r"TimeWindow.*101.* which ends before the current time 100"):
            h.push(("a", 2), 20)


# --- joins ---
def joined(left, right, key_types=(None, None)):
    matching = left.join(right).where(lambda v: v[0], key_types[0]).equal_to(lambda v: v[0], key_types[1])
    return matching.window(TENS).apply(lambda a, b: (a, b)).name("Matches")


def test_declared_keys_of_two_types(env):
    streams = env.from_elements(("a", 1)), env.from_elements((1, 1))
    with pytest.raises(UnsupportedOperation, match=r"keys of a join must be of one type, and .* is never equal to"):
        joined(*streams, (Types.STRING(), Types.LONG()))
    joined(*streams, (Types.STRING(), Types.STRING()))


@pytest.mark.parametrize(("left", "right"), [("a", 1), (b"a", "a"), ((1, 2), 12)])
def test_keys_that_can_never_be_equal(left, right):
    with OperatorHarness(joined, inputs=2) as h:
        h.push((left, "left"), 1)
        with pytest.raises(RecordError, match=r"Matches .*keys that can never be equal: .* and "):
            h.push((right, "right"), 1, input=2)


@pytest.mark.parametrize(("left", "right"), [(1, 1.0), (True, 1), (None, None), ((1, "a"), (1, "a"))])
def test_keys_of_two_types_that_are_equal(left, right):
    with OperatorHarness(joined, inputs=2) as h:
        h.push((left, "left"), 1)
        h.push((right, "right"), 1, input=2)
        h.end(1)
        h.end(2)
        assert h.values() == [((left, "left"), (right, "right"))]


def test_interval_bounds(env):
    left, right = env.from_elements(("a", 1)).key_by(0), env.from_elements(("a", 1)).key_by(0)
    for build in (
        lambda: left.interval_join(right).between(5, 4).process(Pairs()),
        lambda: left.interval_join(right).between(5, 5).lower_bound_exclusive().process(Pairs()),
        lambda: left.interval_join(right).between(5, 5).upper_bound_exclusive().process(Pairs()),
    ):
        with pytest.raises(ValueError, match=r"the lower bound of the join \(\d ms\) is above the upper \(\d ms\)"):
            build()
    left.interval_join(right).between(5, 5).process(Pairs())


def test_interval_joins_need_two_keyed_streams(env):
    keyed, plain = env.from_elements(("a", 1)).key_by(0), env.from_elements(("a", 1))
    with pytest.raises(UnsupportedOperation, match="call key_by on the other one too"):
        keyed.interval_join(plain)
    bounded = keyed.interval_join(keyed).between(0, 1)
    with pytest.raises(TypeError, match=r"IntervalJoined.process: .* must be a ProcessJoinFunction, not"):
        bounded.process(lambda left, right: [])
    with pytest.raises(TypeError, match=r"side_output_left_late_data: .* must be an OutputTag, not"):
        bounded.side_output_left_late_data("late")
    bounded.side_output_right_late_data(OutputTag("late"))


@pytest.mark.parametrize("side", [1, 2])
def test_interval_joins_need_timestamps(side):
    with (
        OperatorHarness(
            lambda a, b: a.key_by(0).interval_join(b.key_by(0)).between(0, 1).process(Pairs()).name("Near"), inputs=2
        ) as h,
        pytest.raises(MissingTimestamp, match=r"Near .*an interval join needs timestamps"),
    ):
        h.push(("a", 1), input=side)


def test_window_joins_need_timestamps(run):
    with pytest.raises(MissingTimestamp, match=r"Matches .*an event-time window needs records with timestamps"):
        run(lambda env: joined(scripted(env, at(("a", 1), 1)), env.from_elements(("a", 2))))
