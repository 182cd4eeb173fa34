"""Sources made of splits: all that is in them arrives once, in order, and every split has a time of its own."""

import logging
from collections import Counter
from dataclasses import dataclass, replace
from itertools import islice

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.common import Configuration, Duration, Time, WatermarkStrategy
from penstock.datastream import OutputTag, StreamExecutionEnvironment
from penstock.datastream.connectors.base import BadRecord, BadRecords, Source, SplitReader, SplitsInTurn, StaticSplits
from penstock.datastream.functions import ProcessFunction, ProcessWindowFunction
from penstock.datastream.window import TumblingEventTimeWindows
from penstock.engine.operators.sources.split_source import SplitAssigner
from penstock.errors import AccessDenied, JobFailed, NotFound, UndecodableRecord
from penstock.testing import ManualClock, in_process
from tests.connectors.api.logs import FOREVER, LogEnumerator, Logs, LogSplit, by_record_time

TAG = OutputTag("bad")


def environment(parallelism=1, **options):
    made = Configuration()
    for name, value in options.items():
        made.set_string(name.replace("__", "-").replace("_", "."), str(value))
    return StreamExecutionEnvironment(made).set_parallelism(parallelism)


def collected(stream):
    with stream.execute_and_collect() as results:
        return list(results)


LOGS = st.dictionaries(
    st.text("abcdefgh", min_size=1, max_size=3),
    st.lists(st.tuples(st.integers(0, 1000), st.integers()), max_size=20),
    max_size=6,
)


@given(LOGS, st.integers(1, 4), st.integers(1, 5), st.integers(1, 7), st.data())
@settings(max_examples=60, deadline=None)
def test_every_record_of_every_split_arrives_once_and_in_its_order(logs, parallelism, most, epoch_records, data):
    appears = {name: data.draw(st.integers(0, 4)) for name in logs} if data.draw(st.booleans()) else {}
    source = Logs({name: [(t, (name, v)) for t, v in log] for name, log in logs.items()}, appears, most=most)
    with in_process(epoch_records=epoch_records, clock=ManualClock()):
        stream = environment(parallelism).from_source(source, WatermarkStrategy.no_watermarks(), "Logs")
        found = collected(stream)
    for name, log in logs.items():
        assert [value for split, value in found if split == name] == [value for _, value in log]
    assert len(found) == sum(map(len, logs.values()))


class Seen(ProcessFunction):
    def process_element(self, value, ctx):
        yield value, ctx.timestamp(), ctx.timer_service().current_watermark()


def test_a_split_that_lags_behind_loses_nothing():
    """Two partitions an hour apart in event time: with one watermark for both, all of the slower would be late."""
    hour = 3_600_000
    source = Logs(
        {"ahead": [(hour + i * 10, "ahead") for i in range(60)], "behind": [(i * 10, "behind") for i in range(60)]}
    )
    for parallelism in (1, 2, 3):
        with in_process(epoch_records=7, clock=ManualClock(tick=50)):
            stream = environment(parallelism, pipeline_auto__watermark__interval="1 ms").from_source(
                source, by_record_time(), "Logs"
            )
            windows = stream.key_by(lambda name: name).window(TumblingEventTimeWindows.of(Time.milliseconds(100)))
            found = collected(windows.process(CountOf()))
        assert Counter(found) == Counter([("ahead", 10)] * 6 + [("behind", 10)] * 6), parallelism


class CountOf(ProcessWindowFunction):
    def process(self, key, context, elements):
        yield key, len(list(elements))

    def clear(self, context):
        pass


def watermarks_of(source, strategy, parallelism=1, clock=None, **options):
    with in_process(epoch_records=2, clock=clock or ManualClock(tick=20)):
        stream = environment(parallelism, pipeline_auto__watermark__interval="1 ms", **options)
        return collected(stream.from_source(source, strategy, "Logs").process(Seen()))


def test_event_time_is_that_of_the_split_furthest_behind():
    source = Logs({"a": [(100, 1), (200, 2), (300, 3), (400, 4)], "b": [(10, 5), (20, 6), (30, 7), (40, 8)]}, most=1)
    seen = watermarks_of(source, by_record_time())
    assert max(watermark for value, _, watermark in seen if value >= 5) <= 40
    behind = {stamp for value, stamp, watermark in seen if watermark >= stamp}
    assert not behind


def test_a_split_without_records_holds_event_time_back_until_it_is_idle():
    source = Logs({"a": [(t, t) for t in range(100, 140)], "b": [FOREVER]}, most=1, bounded=False)
    for strategy, moves in ((by_record_time(), False), (by_record_time().with_idleness(Duration.of_millis(100)), True)):
        with in_process(epoch_records=1, clock=ManualClock(tick=10)):
            stream = environment(pipeline_auto__watermark__interval="1 ms").from_source(source, strategy, "Logs")
            with stream.process(Seen()).execute_and_collect() as results:
                seen = list(islice(results, 40))
        assert (max(watermark for _, _, watermark in seen) > 0) is moves


def test_a_subtask_without_splits_holds_nobody_back():
    source = Logs({"only": [(t, t) for t in range(100, 140)]}, most=1)
    assert max(watermark for _, _, watermark in watermarks_of(source, by_record_time(), parallelism=3)) > 100


class Whole(Logs):
    watermarks_per_split = False


def test_a_source_with_one_time_for_all_has_one_generator():
    source = Whole({"a": [(100, 1), (200, 2)], "b": [(10, 3), (20, 4), (21, 5), (22, 6)]}, most=1)
    seen = watermarks_of(source, by_record_time())
    assert any(watermark >= stamp for _, stamp, watermark in seen)


# --- reading in turn ---
class Countdown(SplitReader):
    def __init__(self, split):
        self.split = split
        self.left = split.next

    def read(self, most):
        values = list(range(self.left, max(self.left - most, 0), -1))
        self.left -= len(values)
        self.finished = self.left <= 0
        return values

    def position(self):
        return LogSplit(self.split.split_id, self.left)


def test_splits_in_turn_go_on_from_any_position():
    for stop in range(12):
        splits, found = [LogSplit("a", 5), LogSplit("b", 0), LogSplit("c", 4)], []
        for _ in range(2):
            reader = SplitsInTurn(Countdown)
            reader.add_splits(splits)
            for _ in range(stop):
                for fetched in reader.fetch(1, 0):
                    found.extend((fetched.split_id, value) for value in fetched.values)
            splits = list(reader.snapshot_state())
            stop = 20
        assert found == [("a", n) for n in (5, 4, 3, 2, 1)] + [("c", n) for n in (4, 3, 2, 1)]
        assert not splits


def test_the_splits_of_a_static_enumerator_are_found_once():
    enumerator = StaticSplits([LogSplit("a"), LogSplit("b")])
    assert [split.split_id for split in enumerator.discover()] == ["a", "b"]
    assert enumerator.discovery_interval is None


@dataclass(frozen=True)
class Stretch:
    """Records of one key whose event times are `first`, `first` + 10, …"""

    split_id: str
    key: str
    first: int
    next: int = 0


class Stretches(Source):
    """For two subtasks: one reads three stretches of long ago, in turn, the other three of an hour later."""

    def create_enumerator(self):
        hour = 3_600_000
        old = [Stretch(f"{n}a", "old", n * 1000) for n in range(3)]
        new = [Stretch(f"{n}b", "new", hour + n * 1000) for n in range(3)]
        return StaticSplits([split for pair in zip(old, new, strict=True) for split in pair])

    def create_reader(self, context):
        return SplitsInTurn(StretchReader)


class StretchReader(SplitReader):
    def __init__(self, split):
        self.split = split

    def read(self, most):
        stop = min(self.split.next + most, 20)
        values = [(self.split.key, self.split.first + n * 10) for n in range(self.split.next, stop)]
        self.split = replace(self.split, next=stop)
        self.finished = stop == 20
        return values

    def position(self):
        return self.split


@pytest.mark.parametrize("epoch_records", [3, 20, 1000])
def test_between_two_splits_a_subtask_is_not_idle(epoch_records):
    """If it were, event time would follow the other subtask, and the next split would be late."""
    strategy = by_record_time().with_timestamp_assigner(lambda value, before: value[1])
    with in_process(epoch_records=epoch_records, clock=ManualClock(tick=50)):
        env = environment(2, pipeline_auto__watermark__interval="1 ms")
        stream = env.from_source(Stretches(), strategy, "Stretches").key_by(lambda value: value[0])
        found = collected(stream.window(TumblingEventTimeWindows.of(Time.milliseconds(100))).process(CountOf()))
    assert Counter(found) == Counter({("old", 10): 6, ("new", 10): 6})


# --- records that cannot be decoded ---
POISONED = {"t": [(1, "1"), (2, "x"), (3, "3"), (4, "y"), (5, "")]}


def number(text):
    return int(text) if text else None


def test_an_undecodable_record_fails_the_job_with_its_position():
    with in_process(), pytest.raises(UndecodableRecord, match=r"Logs \(uid .*t@1 cannot be decoded.*'x'") as caught:
        collected(environment().from_source(Logs(POISONED, decode=number), WatermarkStrategy.no_watermarks(), "Logs"))
    assert isinstance(caught.value, JobFailed)


def test_undecodable_records_can_be_skipped_and_are_counted():
    with in_process():
        env = environment()
        stream = env.from_source(
            Logs(POISONED, decode=number), WatermarkStrategy.no_watermarks(), "Logs", bad_records=BadRecords.skip()
        ).uid("logs")
        results = stream.execute_and_collect()
        assert list(results) == [1, 3]
        metrics = results._job.view.metrics[0]
    assert metrics["logs.numBadRecords"] == 2


def test_undecodable_records_can_go_to_a_side_output_with_their_timestamps_kept_straight():
    with in_process():
        env = environment()
        stream = env.from_source(
            Logs(POISONED, decode=number),
            by_record_time(),
            "Logs",
            bad_records=BadRecords.to_side_output(TAG),
        )
        good = stream.process(Seen()).map(lambda seen: seen[:2])
        found = collected(good.union(stream.get_side_output(TAG)))
    bad = [record for record in found if isinstance(record, BadRecord)]
    assert [record for record in found if not isinstance(record, BadRecord)] == [(1, 1), (3, 3)]
    assert [(record.message, record.position) for record in bad] == [("x", "t@1"), ("y", "t@3")]
    assert "invalid literal" in bad[0].error


# --- limits ---
def test_a_rate_limit_is_kept_over_all_subtasks():
    logs = {name: [(0, name)] * 300 for name in "abcd"}
    for parallelism in (1, 2, 4):
        clock = ManualClock()
        with in_process(clock=clock):
            stream = environment(parallelism).from_source(
                Logs(logs, most=1000), WatermarkStrategy.no_watermarks(), "Logs", rate_limit=100
            )
            assert len(collected(stream)) == 1200
        assert 10_000 <= clock.now() <= 13_500, parallelism


def test_no_epoch_reads_more_than_it_may():
    with in_process(clock=ManualClock(tick=1)):
        stream = environment().from_source(
            Logs({"a": [(0, n) for n in range(50)]}, most=1000),
            WatermarkStrategy.no_watermarks(),
            "Logs",
            max_records_per_epoch=5,
        )
        results = stream.execute_and_collect()
        assert len(list(results)) == 50
        assert results._job.view.epoch >= 10


@pytest.mark.parametrize("limits", [{"rate_limit": 0}, {"rate_limit": -1.0}, {"max_records_per_epoch": 0}])
def test_limits_that_make_no_sense_are_refused(limits):
    with pytest.raises(ValueError, match=next(iter(limits))):
        environment().from_source(Logs({}), WatermarkStrategy.no_watermarks(), "Logs", **limits)


# --- errors on the driver ---
def test_an_error_of_the_enumerator_names_the_source():
    source = Logs({}, missing=NotFound("there is no topic 't'"))
    with in_process(), pytest.raises(NotFound, match=r"Logs \(uid .*no topic 't'") as caught:
        collected(environment().from_source(source, WatermarkStrategy.no_watermarks(), "Logs"))
    assert isinstance(caught.value, JobFailed)


def test_what_another_try_would_not_change_is_not_tried_again(tmp_path):
    logging.disable(logging.WARNING)
    source = Logs({}, missing=AccessDenied("wrong password"))
    options = {"restart__strategy_type": "fixed-delay", "restart__strategy_fixed__delay_attempts": 5}
    clock = ManualClock()
    with in_process(clock=clock), pytest.raises(AccessDenied):
        collected(environment(**options).from_source(source, WatermarkStrategy.no_watermarks(), "Logs"))
    assert clock.now() < 1000
    logging.disable(logging.NOTSET)


@pytest.mark.parametrize("wrong", [None, "a source", 3])
def test_only_sources_are_sources(wrong):
    with pytest.raises(TypeError, match=r"from_source: the argument source must be a Source"):
        environment().from_source(wrong, WatermarkStrategy.no_watermarks(), "Wrong")
    with pytest.raises(TypeError, match="WatermarkStrategy"):
        environment().from_source(Logs({}), None, "Logs")


def test_every_connector_is_found_by_its_name():
    from penstock.datastream import connectors

    for module, names in connectors._NAMES_BY_MODULE.items():
        for name in names.split():
            home = getattr(connectors, name).__module__
            places = ("penstock.connectors", "penstock.formats", "penstock.datastream.connectors")
            assert home.startswith(places), (module, name, home)
            assert name in dir(connectors)
    with pytest.raises(AttributeError, match="no attribute 'PulsarSource'"):
        _ = connectors.PulsarSource


def test_after_a_restore_new_splits_are_known_before_old_ones_are_read_on():
    source = Logs({"old": [(0, 1)], "new": [(0, 2)]}, appears={"new": 1}, bounded=False)
    enumerator = LogEnumerator(source)
    enumerator.discovery_interval = 3600.0
    first = SplitAssigner(source)
    first._enumerator = enumerator
    assert [split.split_id for split in first.assign(1, 10)[0][0]] == ["old"]
    second = SplitAssigner(source)
    second._enumerator = enumerator
    second.resume(first.position())
    assert [split.split_id for split in second.assign(1, 10)[0][0]] == ["new"]
    first.close()
    second.close()
