"""The operator of timestamps and watermarks by itself: when it asks, when it is idle, and which form records keep."""

from decimal import Decimal

import pyarrow as pa
import pytest

from penstock.common import Duration, Row, WatermarkStrategy
from penstock.common.watermark_strategy import Watermark, WatermarkGenerator
from penstock.engine.operators.operator import Alignment, Clock, OperatorContext
from penstock.engine.operators.watermarks import IngestionTimeOperator, TimestampsAndWatermarksOperator
from penstock.engine.records.columns import Columns
from penstock.engine.records.elements import MAX_TIMESTAMP, MIN_TIMESTAMP, Chunk
from penstock.engine.records.failures import OperatorFailed

MONOTONOUS = WatermarkStrategy.for_monotonous_timestamps()
OWN = MONOTONOUS.with_timestamp_assigner(lambda value: value)
IDLE = OWN.with_idleness(Duration.of_millis(1000))


class Sent:
    """What an operator has sent."""

    def __init__(self):
        self.chunks, self.said = [], []

    def chunk(self, chunk):
        self.chunks.append(chunk)

    def watermark(self, timestamp):
        self.said.append(timestamp)

    def status(self, idle):
        self.said.append("idle" if idle else "active")

    def taken(self):
        said, self.said = self.said, []
        return said

    def records(self):
        return [pair for chunk in self.chunks for pair in zip(chunk.values, chunk.timestamps, strict=True)]


def opened(strategy, now=0, kind=TimestampsAndWatermarksOperator, **more):
    operator = kind(strategy) if strategy is not None else kind()
    operator.sent, operator.clock = Sent(), Clock(now)
    operator.open(OperatorContext("Times", "uid", 0, 1, 128, operator.sent, {}, operator.clock, **more))
    return operator


def at(operator, now):
    """End an epoch at a time. Return what is sent."""
    operator.clock.now = now
    operator.end_epoch()
    return operator.sent.taken()


# --- when the generator is asked ---
def test_watermarks_come_once_an_interval_and_only_higher_ones():
    operator = opened(OWN, now=1000)
    assert operator.next_due() is None, "nothing has come"
    operator.records([50], None)
    assert operator.next_due() == 1200
    assert (at(operator, 1199), at(operator, 1200)) == ([], [49])
    assert operator.next_due() is None
    assert at(operator, 1500) == [], "49 is known"
    operator.records([50], None)
    assert operator.next_due() == 1700
    assert at(operator, 1700) == []
    operator.records([51], None)
    assert at(operator, 1900) == [50]


@pytest.mark.parametrize(("interval", "expected"), [(0, []), (-1, [49]), (1, [])])
def test_intervals_that_are_no_times(interval, expected):
    operator = opened(OWN, watermark_interval=interval)
    operator.records([50], None)
    assert at(operator, 0) == expected
    assert operator.next_due() == (1 if interval == 1 else None)


def test_a_batch_knows_no_time_but_its_end():
    operator = opened(IDLE, batch=True)
    operator.records([50], None)
    operator.status(True)
    assert operator.next_due() is None and at(operator, 10_000) == []
    operator.watermark(7)
    operator.watermark(MAX_TIMESTAMP)
    assert operator.sent.taken() == [MAX_TIMESTAMP] and operator.current_watermark == MAX_TIMESTAMP


def test_a_stream_that_has_ended_says_nothing_more():
    operator = opened(IDLE)
    operator.records([50], None)
    operator.finish()
    assert operator.next_due() is None and at(operator, 10_000) == []


def test_a_generator_that_fails_when_it_is_asked_is_named():
    class Fails(WatermarkGenerator):
        def on_event(self, event, event_timestamp, output): ...

        def on_periodic_emit(self, output):
            raise ValueError("no")

    operator = opened(WatermarkStrategy.for_generator(lambda _: Fails()))
    with pytest.raises(OperatorFailed, match=r"Times.*no"):
        at(operator, 200)


# --- idleness ---
def test_a_stream_is_idle_once_its_timeout_is_over():
    operator = opened(IDLE, now=100)
    assert operator.next_due() == 1100
    assert (at(operator, 1099), at(operator, 1100), at(operator, 1101)) == ([], ["idle"], [])
    assert operator.next_due() is None
    operator.records([5], None)
    assert operator.sent.taken() == ["active"] and operator.next_due() == min(1101 + 1000, 1099 + 200)
    assert at(operator, 1500) == [4]
    assert operator.next_due() == 2101
    assert at(operator, 2101) == ["idle"]


def test_an_idle_stream_is_not_asked():
    operator = opened(OWN)
    operator.records([50], None)
    operator.status(True)
    operator.status(True)
    assert operator.sent.taken() == ["idle"]
    assert at(operator, 5000) == [] and operator.next_due() is None
    operator.status(False)
    assert operator.sent.taken() == [], "only records make it active"


class Told(WatermarkGenerator):
    """Does what the events say."""

    def on_event(self, event, event_timestamp, output):
        for word in event:
            if word == "idle":
                output.mark_idle()
            elif word == "active":
                output.mark_active()
            else:
                output.emit_watermark(Watermark(word))

    def on_periodic_emit(self, output): ...


@pytest.mark.parametrize(
    ("events", "said"),
    [
        ([["idle", "active"]], []),
        ([["idle", 5]], [5]),
        ([[5, "idle"]], [5, "idle"]),
        ([["idle"], ["idle"], [3]], ["idle", "active", 3]),
        ([["idle"], ["active"]], ["idle"]),
        ([[5], [5], [4, 6]], [5, 6]),
        ([[]], []),
    ],
)
def test_the_last_word_of_a_generator_on_idleness_counts(events, said):
    operator = opened(WatermarkStrategy.for_generator(lambda _: Told()))
    operator.records(events, None)
    assert operator.sent.taken() == said
    assert [value for value, _ in operator.sent.records()] == events


def test_alignment_follows_the_stream():
    alignment = Alignment()
    operator = opened(IDLE.with_watermark_alignment("g", Duration.of_millis(5)), alignment=alignment)
    operator.records([50], None)
    at(operator, 200)
    assert alignment.reached == {("g", "uid"): 49}
    at(operator, 1000)
    assert alignment.reached == {}
    operator.records([50], None)
    assert alignment.reached == {("g", "uid"): 49}
    operator.watermark(MAX_TIMESTAMP)
    assert alignment.reached == {}
    apart = opened(OWN, alignment=alignment)
    apart.records([50], None)
    at(apart, 200)
    assert alignment.reached == {}


# --- continuing ---
def test_a_successor_has_all_that_is_known_of_time():
    operator = opened(IDLE, now=300)
    operator.records([50], None)
    at(operator, 500)
    at(operator, 1300)
    operator.clock.now = 1400
    assert operator.progress() == {"highest": 50, "watermark": 49, "progress": (True, False, 300, 500, False)}
    successor = opened(IDLE, now=9000)
    successor.take_up({"highest": 60, "watermark": 49, "progress": (False, True, 1, 2, True)})
    assert successor.progress() == {"highest": 60, "watermark": 49, "progress": (False, True, 1, 2, True)}
    assert opened(IDLE, now=7).progress()["progress"] == (False, False, 7, 7, False)
    without = opened(WatermarkStrategy.no_watermarks())
    without.take_up({"highest": 60, "watermark": 1, "progress": (False, False, 1, 2, True)})
    assert without.progress()["highest"] is None and not hasattr(without.generator, "max_timestamp")


# --- timestamps ---
def test_an_assigner_sees_the_timestamp_that_there_was():
    seen = []

    class Sees:
        def extract_timestamp(self, value, before):
            seen.append(before)
            return before

    operator = opened(WatermarkStrategy.no_watermarks())
    operator._extract = Sees().extract_timestamp
    operator.records(["a"], None)
    operator.records(["b", "c"], [None, 7])
    assert seen == [MIN_TIMESTAMP, MIN_TIMESTAMP, 7] == [stamp for _, stamp in operator.sent.records()]


def test_timestamps_become_whole_numbers():
    operator = opened(OWN)
    operator.records([Decimal("7.9"), 5.5, 3], None)
    assert [stamp for _, stamp in operator.sent.records()] == [7, 5, 3]
    assert all(type(stamp) is int for _, stamp in operator.sent.records())
    with pytest.raises(OperatorFailed, match="the timestamp assigner returned 'soon', not milliseconds") as raised:
        operator.records([1, "soon", 3], None)
    assert raised.value.failure.record == "'soon'"


def test_without_watermarks_records_stay_as_they_are():
    operator = opened(WatermarkStrategy.no_watermarks())
    operator.records(["a"], None)
    assert operator.sent.chunks[0].timestamps is None
    follows = opened(MONOTONOUS)
    follows.records(["a", "b"], None)
    follows.records(["c"], [4])
    assert follows.sent.records() == [("a", MIN_TIMESTAMP), ("b", MIN_TIMESTAMP), ("c", 4)]


# --- columns ---
def columns(times=None):
    batch = pa.RecordBatch.from_pydict({"at": [7, 3]})
    return Chunk.of(Columns(batch, None if times is None else pa.array(times, pa.int64())))


def test_columns_with_timestamps_are_passed_on_as_they_are():
    operator, chunk = opened(MONOTONOUS.with_idleness(Duration.of_millis(1000))), columns([9, 11])
    assert at(operator, 1000) == ["idle"]
    operator.chunk(chunk)
    assert operator.sent.chunks == [chunk] and operator.sent.taken() == ["active"]
    assert operator.next_due() == min(2000, 200)
    assert at(operator, 1200) == [10]


def test_columns_get_their_timestamps_from_a_field():
    operator, chunk = opened(MONOTONOUS.with_timestamp_field("at")), columns()
    operator.chunk(chunk)
    (sent,) = operator.sent.chunks
    assert sent.columns is not None and sent is not chunk and sent.timestamps == [7, 3]
    assert at(operator, 200) == [6]


@pytest.mark.parametrize(
    ("strategy", "stay"),
    [
        (WatermarkStrategy.no_watermarks(), True),
        (MONOTONOUS, False),
        (MONOTONOUS.with_timestamp_assigner(lambda row: row["at"]), False),
        (WatermarkStrategy.for_generator(lambda _: Told()), False),
    ],
    ids=["no watermarks", "no timestamps", "assigner", "own generator"],
)
def test_columns_become_rows_where_each_must_be_looked_at(strategy, stay):
    operator, chunk = opened(strategy), columns()
    if strategy.generator_supplier is not None and not stay:
        operator.generator.on_event = lambda event, stamp, output: None
    operator.chunk(chunk)
    (sent,) = operator.sent.chunks
    assert (sent.columns is not None) is stay and sent.values == [Row(at=7), Row(at=3)]


# --- ingestion time ---
def test_ingestion_time_of_a_batch_has_only_an_end():
    operator = opened(None, 1000, IngestionTimeOperator, batch=True)
    operator.records(["a", "b"], [1, None])
    operator.watermark(5)
    assert at(operator, 2000) == []
    operator.watermark(MAX_TIMESTAMP)
    assert operator.sent.taken() == [MAX_TIMESTAMP]
    assert operator.sent.records() == [("a", 1000), ("b", 1000)]
