"""Watermark strategies: generators, assigners, and the assigners of Flink 1.x."""

import operator
import pickle

import pytest

from penstock.common import (
    AscendingTimestampExtractor,
    AssignerWithPeriodicWatermarks,
    AssignerWithPeriodicWatermarksWrapper,
    AssignerWithPunctuatedWatermarks,
    BoundedOutOfOrdernessTimestampExtractor,
    Duration,
    TimestampAssigner,
    Watermark,
    WatermarkGenerator,
    WatermarkOutput,
    WatermarkStrategy,
)
from penstock.common.watermark_strategy import WatermarkAlignment

MIN = -(2**63)


class Recorder(WatermarkOutput):
    def __init__(self):
        self.seen = []

    def emit_watermark(self, watermark):
        self.seen.append(watermark.timestamp)

    def mark_idle(self):
        self.seen.append("idle")

    def mark_active(self):
        self.seen.append("active")


def drive(strategy, events):
    """Run a shipped strategy over events, where None asks for the periodic watermark."""
    strategy = pickle.loads(pickle.dumps(strategy))
    generator, output = strategy.generator_supplier(None), Recorder()
    for event in events:
        if event is None:
            generator.on_periodic_emit(output)
        else:
            timestamp = strategy.timestamp_assigner.extract_timestamp(event, MIN)
            generator.on_event(event, timestamp, output)
    return output.seen


class Identity(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        (WatermarkStrategy.for_monotonous_timestamps(), [MIN, 9, 19]),
        (WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(5)), [MIN, 4, 14]),
        (WatermarkStrategy.no_watermarks(), []),
    ],
)
def test_the_built_in_strategies(strategy, expected):
    assert drive(strategy.with_timestamp_assigner(Identity()), [None, 10, None, 7, 20, None]) == expected


class EveryRecord(WatermarkGenerator):
    def on_event(self, event, event_timestamp, output):
        output.emit_watermark(Watermark(event_timestamp))

    def on_periodic_emit(self, output):
        output.mark_idle()


def make_generator(context):
    return EveryRecord()


def make_generator_alone():
    return EveryRecord()


@pytest.mark.parametrize("supplier", [EveryRecord, make_generator, make_generator_alone])
def test_generators_of_ones_own(supplier):
    strategy = WatermarkStrategy.for_generator(supplier).with_timestamp_assigner(Identity())
    assert drive(strategy, [3, None, 1]) == [3, "idle", 1]


def test_a_generator_instance_is_refused_because_subtasks_would_share_it():
    with pytest.raises(TypeError, match="must be the class WatermarkGenerator or one derived from it or a function"):
        WatermarkStrategy.for_generator(EveryRecord())
    with pytest.raises(TypeError):
        WatermarkStrategy.for_generator(3)


def test_plain_functions_assign_timestamps():
    strategy = WatermarkStrategy.no_watermarks()
    one = strategy.with_timestamp_assigner(lambda value: value * 2).timestamp_assigner
    two = strategy.with_timestamp_assigner(lambda value, previous: value + previous).timestamp_assigner
    item = strategy.with_timestamp_assigner(operator.itemgetter(1)).timestamp_assigner
    assert one.extract_timestamp(5, 7) == 10
    assert two.extract_timestamp(5, 7) == 12
    assert item.extract_timestamp(("a", 3), 0) == 3


@pytest.mark.parametrize("bad", [3, Identity, lambda: 1, lambda a, b, c: 1])
def test_what_cannot_assign_timestamps_is_refused(bad):
    with pytest.raises(TypeError):
        WatermarkStrategy.no_watermarks().with_timestamp_assigner(bad)


def test_strategies_are_not_changed_but_copied():
    base = WatermarkStrategy.for_monotonous_timestamps()
    full = (
        base.with_timestamp_assigner(Identity())
        .with_idleness(Duration.of_seconds(1))
        .with_watermark_alignment("group", Duration.of_seconds(2))
    )
    assert (base.timestamp_assigner, base.idle_timeout, base.alignment) == (None, None, None)
    assert full.idle_timeout == 1000
    assert full.alignment == WatermarkAlignment("group", 2000, 1000)
    assert isinstance(full.timestamp_assigner, Identity)


@pytest.mark.parametrize(
    "build",
    [
        lambda s: s.for_bounded_out_of_orderness(Duration.of_millis(-1)),
        lambda s: s.with_idleness(Duration.of_millis(0)),
        lambda s: s.with_watermark_alignment("", Duration.of_millis(1)),
        lambda s: s.with_watermark_alignment("g", Duration.of_millis(-1)),
        lambda s: s.with_watermark_alignment("g", Duration.of_millis(1), Duration.of_millis(0)),
    ],
)
def test_times_that_make_no_sense(build):
    with pytest.raises(ValueError):
        build(WatermarkStrategy.no_watermarks())


def test_watermarks_are_ordered():
    assert Watermark(1) < Watermark(2) and Watermark(1) == Watermark(1)


class Ascending(AscendingTimestampExtractor):
    def extract_ascending_timestamp(self, element):
        return element


class Bounded(BoundedOutOfOrdernessTimestampExtractor):
    def extract_timestamp(self, element):
        return element


class Periodic(AssignerWithPeriodicWatermarks):
    latest = None

    def extract_timestamp(self, element, record_timestamp):
        self.latest = element
        return element

    def get_current_watermark(self):
        return None if self.latest is None else Watermark(self.latest)


class Punctuated(AssignerWithPunctuatedWatermarks):
    def extract_timestamp(self, element, record_timestamp):
        return element

    def check_and_get_next_watermark(self, last_element, extracted_timestamp):
        return Watermark(extracted_timestamp) if last_element % 10 == 0 else None


@pytest.mark.parametrize(
    ("assigner", "expected"),
    [
        (Ascending(), [MIN, 9, 19]),
        (Bounded(Duration.of_millis(5)), [MIN, 5, 15]),
        (Periodic(), [10, 20]),
        (AssignerWithPeriodicWatermarksWrapper(Periodic()), [10, 20]),
        (Punctuated(), [10, 20]),
    ],
)
def test_the_assigners_of_flink_1(assigner, expected):
    assert drive(assigner.to_strategy(), [None, 10, None, 7, 20, None]) == expected


def test_a_bound_must_not_be_negative():
    with pytest.raises(ValueError):
        Bounded(Duration.of_millis(-1))
