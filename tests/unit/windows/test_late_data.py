"""Elements behind the watermark: kept, counted, or sent to a side output."""

import pytest

from penstock.api.windows.assigners import CountSlidingWindowAssigner, CountTumblingWindowAssigner
from penstock.api.windows.triggers import EventTimeTrigger, PurgingTrigger
from penstock.common import Row, Types
from penstock.datastream import OutputTag, StreamExecutionEnvironment
from penstock.datastream.functions import ProcessWindowFunction
from penstock.datastream.window import (
    CountTrigger,
    EventTimeSessionWindows,
    GlobalWindows,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
)
from penstock.engine.records.columns import Columns
from penstock.engine.records.elements import MAX_TIMESTAMP
from penstock.engine.windows import window_operator
from penstock.testing import ManualClock, OperatorHarness, at, in_process, scripted, watermark

LATE = OutputTag("late")


class Listed(ProcessWindowFunction):
    def process(self, key, context, elements):
        yield context.window().start, context.window().end, sorted(number for _, number in elements)


def harness(assigner, lateness=0, tag=None):
    def build(stream):
        windowed = stream.key_by(0).window(assigner).allowed_lateness(lateness)
        return (windowed if tag is None else windowed.side_output_late_data(tag)).process(Listed())

    return OperatorHarness(build, side_outputs=() if tag is None else (tag,))


def dropped(h):
    return h._cluster.slots[0].metrics.snapshot()["window-process-1.numLateRecordsDropped"]


def test_a_window_is_late_when_its_last_millisecond_is_not_after_the_watermark():
    with harness(TumblingEventTimeWindows.of(10)) as h:
        h.watermark(8)
        h.push(("a", 1), 0)
        assert dropped(h) == 0
        h.watermark(9)
        assert h.values() == [(0, 10, [1])]
        h.push(("a", 2), 9)
        h.push(("a", 3), 10)
        assert dropped(h) == 1
        assert h.state_entries() == 1


def test_late_records_go_to_the_side_output_with_their_timestamp_and_are_not_counted():
    with harness(TumblingEventTimeWindows.of(10), tag=LATE) as h:
        h.watermark(9)
        h.push(("a", 1), 3)
        assert h.side_output(LATE) == [(("a", 1), 3)]
        assert dropped(h) == 0


@pytest.mark.parametrize(
    ("kind", "timestamp", "is_late"),
    [
        (TumblingEventTimeWindows, 9, True),
        (TumblingEventTimeWindows, 10, False),
        (TumblingEventTimeWindows, None, False),
        (TumblingProcessingTimeWindows, 3, False),
    ],
)
def test_a_record_without_any_window_is_late_by_its_own_timestamp_in_event_time(kind, timestamp, is_late):
    class Nowhere(kind):
        def assign_windows(self, element, timestamp, context):
            return []

    with harness(Nowhere(10), tag=LATE) as h:
        h.watermark(9)
        h.push(("a", 1), timestamp)
        assert h.side_output(LATE) == ([(("a", 1), timestamp)] if is_late else [])


def test_a_tag_that_nobody_reads_is_no_loss_to_count():
    def build(stream):
        return stream.key_by(0).window(TumblingEventTimeWindows.of(10)).side_output_late_data(LATE).process(Listed())

    with OperatorHarness(build) as h:
        h.watermark(9)
        h.push(("a", 1), 3)
        assert (h.values(), dropped(h)) == ([], 0)


def test_a_record_with_one_window_left_is_not_late():
    with harness(SlidingEventTimeWindows.of(10, 5), tag=LATE) as h:
        h.watermark(9)
        h.push(("a", 1), 7)
        assert h.side_output(LATE) == []
        h.end()
        assert h.values() == [(5, 15, [1])]


def test_a_record_between_windows_is_late_only_if_it_is_old():
    with harness(SlidingEventTimeWindows.of(3, 10), tag=LATE) as h:
        h.watermark(9)
        h.push(("a", 1), 15)
        h.push(("a", 2), 9)
        assert h.side_output(LATE) == [(("a", 2), 9)]
        assert (h.state_entries(), h.timers()) == (0, 0)


def test_allowed_lateness_keeps_the_window_for_updates():
    with harness(TumblingEventTimeWindows.of(10), lateness=5, tag=LATE) as h:
        h.push(("a", 1), 1)
        h.watermark(13)
        h.push(("a", 2), 2)
        assert h.values() == [(0, 10, [1]), (0, 10, [1, 2])]
        h.watermark(14)
        h.push(("a", 3), 3)
        assert (h.values(), h.side_output(LATE)) == ([], [(("a", 3), 3)])
        assert (h.state_entries(), h.timers()) == (0, 0)


def test_a_lateness_beyond_the_end_of_time_is_for_ever():
    with harness(TumblingEventTimeWindows.of(10), lateness=MAX_TIMESTAMP) as h:
        h.push(("a", 1), 1)
        assert h.timers() == 1
        h.watermark(10**12)
        h.push(("a", 2), 2)
        assert h.values() == [(0, 10, [1]), (0, 10, [1, 2])]


def test_a_late_record_that_joins_a_session_is_not_late():
    with harness(EventTimeSessionWindows.with_gap(10), tag=LATE) as h:
        h.push(("a", 20), 20)
        h.watermark(25)
        h.push(("a", 12), 12)
        h.push(("a", 3), 3)
        h.push(("a", 4), 4)
        h.end()
        assert h.values() == [(3, 30, [3, 4, 12, 20])]
        assert h.side_output(LATE) == []


def test_a_late_record_that_joins_nothing_leaves_no_session():
    with harness(EventTimeSessionWindows.with_gap(5), tag=LATE) as h:
        h.push(("a", 20), 20)
        h.watermark(22)
        h.push(("a", 1), 1)
        h.push(("b", 2), 2)
        assert h.side_output(LATE) == [(("a", 1), 1), (("b", 2), 2)]
        assert (h.state_entries(), h.timers()) == (2, 1)


def test_a_session_that_was_evaluated_grows_on_within_the_lateness():
    with harness(EventTimeSessionWindows.with_gap(5), lateness=10) as h:
        h.push(("a", 1), 1)
        h.watermark(7)
        h.push(("a", 4), 4)
        assert h.values() == [(1, 6, [1])]
        h.push(("a", 0), 0)
        h.watermark(8)
        assert h.values() == [(0, 9, [0, 1, 4])]
        h.push(("a", 2), 2)
        assert h.values() == [(0, 9, [0, 1, 2, 4])]
        h.end()
        assert (h.values(), h.state_entries(), h.timers()) == ([], 0, 0)


def test_a_session_that_grows_up_to_the_watermark_is_evaluated_once():
    with harness(EventTimeSessionWindows.with_gap(5), lateness=10) as h:
        h.push(("a", 1), 1)
        h.watermark(9)
        assert h.values() == [(1, 6, [1])]
        h.push(("a", 5), 5)
        assert h.values() == [(1, 10, [1, 5])]
        assert h.timers() == 1
        h.watermark(10)
        assert h.values() == []


def test_windows_that_are_not_of_event_time_have_no_late_records():
    with OperatorHarness(
        lambda s: s.key_by(0).window(GlobalWindows.create()).trigger(CountTrigger.of(1)).sum(1).name("W").uid("w")
    ) as h:
        h.watermark(100)
        h.push(("a", 1), 1)
        assert h.values() == [("a", 1)]
        assert h._cluster.slots[0].metrics.snapshot()["w.numLateRecordsDropped"] == 0


@pytest.mark.parametrize("epoch_records", [1, 2, None])
def test_the_counter_is_a_metric_of_the_job(epoch_records):
    with in_process(epoch_records=epoch_records, clock=ManualClock()):
        environment = StreamExecutionEnvironment().set_parallelism(1)
        source = scripted(environment, at(("a", 1), 1), watermark(50), at(("a", 2), 2), at(("a", 3), 3))
        source.key_by(0).window(TumblingEventTimeWindows.of(10)).sum(1).uid("sums").print()
        job = environment.execute_async()
        job.get_job_execution_result().result()
        accumulators = job.get_accumulators().result()
    assert accumulators["sums.numLateRecordsDropped"] == 2


@pytest.mark.parametrize("timestamp", [MAX_TIMESTAMP - 1, MAX_TIMESTAMP // 10 * 10])
def test_a_window_that_ends_behind_the_end_of_time_takes_nothing(timestamp):
    """The sum goes a shorter way than the window function; both see it the same way."""
    summed = OperatorHarness(lambda s: s.key_by(0).window(TumblingEventTimeWindows.of(10)).sum(1))
    listed = harness(TumblingEventTimeWindows.of(10))
    for h in (summed, listed):
        with h:
            h.push(("a", 1), timestamp)
            assert h.state_entries() == 0
            h.watermark(MAX_TIMESTAMP)
            assert h.values() == []


def test_windows_that_are_remembered_are_few(monkeypatch):
    monkeypatch.setattr(window_operator, "_CACHED_WINDOWS", 2)
    with harness(TumblingEventTimeWindows.of(10)) as h:
        (operator,) = [one for one in h._operators() if isinstance(one, window_operator.WindowOperator)]
        for time, remembered in ((5, 1), (15, 2), (5, 2), (25, 1), (5, 2)):
            h.push(("a", time), time)
            assert len(operator._windows) == remembered
        h.end()
        assert h.values() == [(0, 10, [5, 5, 5]), (10, 20, [15]), (20, 30, [25])]


@pytest.mark.parametrize(
    ("assigner", "trigger", "counts"),
    [
        (CountTumblingWindowAssigner(5), PurgingTrigger.of(CountTrigger(5)), True),
        (CountTumblingWindowAssigner(5), PurgingTrigger.of(CountTrigger(3)), False),
        (CountTumblingWindowAssigner(5), PurgingTrigger.of(EventTimeTrigger()), False),
        (CountTumblingWindowAssigner(5), CountTrigger(5), False),
        (CountSlidingWindowAssigner(5, 5), PurgingTrigger.of(CountTrigger(5)), False),
    ],
)
def test_windows_that_are_evaluated_when_they_are_full(assigner, trigger, counts):
    spec = window_operator.WindowSpec(assigner, trigger, None, None)
    assert window_operator._counts(spec) is counts


def test_a_record_beyond_the_end_of_time_does_not_end_its_chunk():
    with harness(TumblingEventTimeWindows.of(10)) as h:
        (operator,) = [one for one in h._operators() if isinstance(one, window_operator.WindowOperator)]
        operator.records([("a", 1), ("a", 2)], [MAX_TIMESTAMP - 3, 5])
        h.end()
        assert h.values() == [(0, 10, [2])]


def test_of_columns_only_the_rows_behind_the_watermark_are_looked_at_one_by_one():
    row_type = Types.ROW_NAMED(["k", "v"], [Types.STRING(), Types.LONG()])
    rows = [Row(k="a", v=1), Row(k="a", v=2), Row(k="a", v=4)]
    windowed = lambda stream: stream.key_by("k").window(TumblingEventTimeWindows.of(10)).sum("v")  # noqa: E731
    with OperatorHarness(windowed) as h:
        h.watermark(15)
        h._send(1, lambda builder: builder.add_columns(Columns.of_rows(rows, [12, 5, 25], row_type)))
        h.end()
        assert [row["v"] for row in h.values()] == [1, 4]
    with OperatorHarness(windowed) as h:
        h.watermark(15)
        h._send(1, lambda builder: builder.add_columns(Columns.of_rows(rows[:2], [3, 5], row_type)))
        h.end()
        assert h.values() == []
