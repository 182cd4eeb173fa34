"""What leaves a window before and after it is evaluated."""

import pytest

from penstock.datastream.functions import AggregateFunction, ProcessWindowFunction
from penstock.datastream.window import (
    CountEvictor,
    CountTrigger,
    DeltaEvictor,
    EventTimeSessionWindows,
    Evictor,
    GlobalWindows,
    PurgingTrigger,
    TimeEvictor,
    TimestampedValue,
    TumblingEventTimeWindows,
)
from penstock.testing import OperatorHarness


class Listed(ProcessWindowFunction):
    def process(self, key, context, elements):
        yield [number for _, number in elements]


class Total(AggregateFunction):
    def create_accumulator(self):
        return 0

    def add(self, value, accumulator):
        return accumulator + value[1]

    def get_result(self, accumulator):
        return accumulator

    def merge(self, acc_a, acc_b):
        raise AssertionError("an evictor keeps the elements, so accumulators are never merged")


def every(n, evictor, function=None):
    """A global window that is evaluated with every nth element."""
    return OperatorHarness(
        lambda s: (
            s.key_by(0)
            .window(GlobalWindows.create())
            .trigger(CountTrigger.of(n))
            .evictor(evictor)
            .process(function or Listed())
        )
    )


def pushed(h, numbers, times=None):
    for number, time in zip(numbers, times or [None] * len(numbers), strict=True):
        h.push(("a", number), time)
    return h.values()


def held(h):
    """How many elements the operator keeps."""
    operator = next(o for o in h._operators() if hasattr(o, "pane_state"))
    return sum(len(contents) for contents in operator.keyed.tables["_window_contents"].entries.values())


def test_count_evictor_before():
    with every(2, CountEvictor.of(3)) as h:
        assert pushed(h, [1, 2, 3, 4, 5, 6]) == [[1, 2], [2, 3, 4], [4, 5, 6]]
        assert held(h) == 3


def test_count_evictor_after():
    with every(2, CountEvictor.of(3, do_evict_after=True)) as h:
        assert pushed(h, [1, 2, 3, 4, 5, 6]) == [[1, 2], [1, 2, 3, 4], [2, 3, 4, 5, 6]]
        assert held(h) == 3


def test_time_evictor_counts_back_from_the_latest_element():
    with every(3, TimeEvictor.of(10)) as h:
        assert pushed(h, [1, 2, 3, 4, 5, 6], [0, 12, 5, 9, 15, 14]) == [[2, 3], [2, 4, 5, 6]]
    with every(3, TimeEvictor.of(10, do_evict_after=True)) as h:
        assert pushed(h, [1, 2, 3, 4, 5, 6], [0, 12, 5, 9, 15, 14]) == [[1, 2, 3], [2, 3, 4, 5, 6]]


def test_time_evictor_keeps_what_has_no_time():
    with every(3, TimeEvictor.of(1)) as h:
        assert pushed(h, [1, 2, 3]) == [[1, 2, 3]]


def test_delta_evictor_measures_the_distance_from_the_last_element():
    def distance(old, new):
        return new[1] - old[1]

    with every(3, DeltaEvictor.of(5, distance)) as h:
        assert pushed(h, [1, 9, 7, 12, 3, 30]) == [[9, 7], [30]]
    with every(3, DeltaEvictor.of(5, distance, do_evict_after=True)) as h:
        assert pushed(h, [1, 9, 7, 12, 3, 30]) == [[1, 9, 7], [9, 7, 12, 3, 30]]

    class Distance:
        def get_delta(self, old, new):
            return abs(new[1] - old[1])

    with every(3, DeltaEvictor.of(5, Distance())) as h:
        assert pushed(h, [1, 9, 7]) == [[9, 7]]


class Odd(Evictor):
    """Removes even numbers before and numbers above 5 after, and checks what it is told."""

    def evict_before(self, elements, size, window, ctx):
        assert size == len(elements) and all(isinstance(e, TimestampedValue) for e in elements)
        assert (ctx.get_current_watermark(), ctx.get_current_processing_time()) == (7, 40)
        elements[:] = [e for e in elements if e.get_value()[1] % 2]
        ctx.get_metric_group().counter("evicted").inc(size - len(elements))

    def evict_after(self, elements, size, window, ctx):
        assert size == len(elements)
        for element in [e for e in elements if e.value[1] > 5]:
            assert element.has_timestamp() and element.get_timestamp() == element.value[1]
            elements.remove(element)


def test_a_custom_evictor():
    with every(4, Odd()) as h:
        h.watermark(7)
        h.advance_processing_time(40)
        assert pushed(h, range(1, 9), range(1, 9)) == [[1, 3], [1, 3, 5, 7]]
        assert held(h) == 3
        assert h._cluster.slots[0].metrics.snapshot()["window-process-1.evicted"] == 4


def test_evictors_with_incremental_functions_fold_what_is_left():
    def build(stream):
        windowed = stream.key_by(0).window(TumblingEventTimeWindows.of(10)).evictor(CountEvictor.of(2))
        return windowed.aggregate(Total(), Listed2())

    class Listed2(ProcessWindowFunction):
        def process(self, key, context, elements):
            yield key, list(elements)

    with OperatorHarness(build) as h:
        pushed(h, [1, 2, 3], [1, 2, 3])
        h.watermark(9)
        assert h.values() == [("a", [5])]
        assert (h.state_entries(), h.timers()) == (0, 0)
    reduced = OperatorHarness(
        lambda s: (
            s.key_by(0)
            .window(TumblingEventTimeWindows.of(10))
            .evictor(CountEvictor.of(2))
            .reduce(lambda a, b: (a[0], a[1] + b[1]))
        )
    )
    with reduced as h:
        pushed(h, [1, 2, 3], [1, 2, 3])
        h.watermark(9)
        assert h.values() == [("a", 5)]


def test_evictors_in_sessions_see_the_merged_elements():
    with OperatorHarness(
        lambda s: s.key_by(0).window(EventTimeSessionWindows.with_gap(5)).evictor(CountEvictor.of(2)).aggregate(Total())
    ) as h:
        pushed(h, [1, 2, 3], [0, 10, 5])
        h.watermark(20)
        assert h.values() == [5]
        assert (h.state_entries(), h.timers()) == (0, 0)


@pytest.mark.parametrize("after", [False, True])
def test_an_evictor_may_leave_nothing(after):
    with every(2, CountEvictor.of(0, after)) as h:
        assert pushed(h, [1, 2, 3, 4]) == ([[1, 2], [3, 4]] if after else [[], []])
        assert held(h) == 0
        assert not [address for table in h._tables() if table.name == "_window_contents" for address in table.entries]


def test_purging_after_evicting():
    with OperatorHarness(
        lambda s: (
            s.key_by(0)
            .window(TumblingEventTimeWindows.of(10))
            .trigger(PurgingTrigger.of(CountTrigger.of(3)))
            .evictor(CountEvictor.of(2))
            .process(Listed())
        )
    ) as h:
        assert pushed(h, [1, 2, 3, 4, 5, 6], [1] * 6) == [[2, 3], [5, 6]]
        assert (h.state_entries(), h.timers()) == (0, 1)
        h.end()
        assert h.timers() == 0


def test_updates_within_the_allowed_lateness_are_evicted_too():
    with OperatorHarness(
        lambda s: (
            s.key_by(0)
            .window(TumblingEventTimeWindows.of(10))
            .allowed_lateness(10)
            .evictor(TimeEvictor.of(3))
            .process(Listed())
        )
    ) as h:
        pushed(h, [1, 5, 6], [1, 5, 6])
        h.watermark(9)
        assert h.values() == [[5, 6]]
        h.push(("a", 8), 8)
        assert h.values() == [[6, 8]]
