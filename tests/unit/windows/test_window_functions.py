"""What is computed over a window, and what window functions can reach: state, side outputs, times."""

import pytest

from penstock.common import Row, Types
from penstock.datastream import OutputTag
from penstock.datastream.functions import (
    AggregateFunction,
    AllWindowFunction,
    ProcessAllWindowFunction,
    ProcessWindowFunction,
    ReduceFunction,
    WindowFunction,
)
from penstock.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    ValueStateDescriptor,
)
from penstock.datastream.window import (
    CountTrigger,
    EventTimeSessionWindows,
    GlobalWindows,
    SlidingEventTimeWindows,
    TimeWindow,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
)
from penstock.engine.records.elements import MAX_TIMESTAMP
from penstock.errors import JobFailed, TypeMismatch, UnsupportedOperation
from penstock.testing import OperatorHarness, at, scripted, watermark

TENS = TumblingEventTimeWindows.of(10)


class Average(AggregateFunction):
    def create_accumulator(self):
        return 0, 0

    def add(self, value, accumulator):
        return accumulator[0] + value[1], accumulator[1] + 1

    def get_result(self, accumulator):
        return accumulator[0] / accumulator[1]

    def merge(self, acc_a, acc_b):
        return acc_a[0] + acc_b[0], acc_a[1] + acc_b[1]


class WithEnd(ProcessWindowFunction):
    def process(self, key, context, elements):
        yield key, context.window().end, *elements


class WithEndApplied(WindowFunction):
    def apply(self, key, window, inputs):
        return [(key, window.end, *inputs)]


class AllWithEnd(ProcessAllWindowFunction):
    def process(self, context, elements):
        yield context.window().end, *elements


class AllWithEndApplied(AllWindowFunction):
    def apply(self, window, inputs):
        return [(window.end, *inputs)]


def total(left, right):
    return left[0], left[1] + right[1]


class Total(ReduceFunction):
    def reduce(self, value1, value2):
        return total(value1, value2)


RECORDS = [(("a", 1), 1), (("a", 4), 2), (("b", 7), 3), (("a", 5), 14)]


def results(build, records=RECORDS):
    """What comes out with its timestamps, and that nothing is left."""
    with OperatorHarness(build) as h:
        for value, timestamp in records:
            h.push(value, timestamp)
        assert h.output() == []
        h.end()
        out = h.output()
        assert (h.state_entries(), h.timers()) == (0, 0)
        return out


def keyed(compute):
    return lambda stream: compute(stream.key_by(0).window(TENS))


# --- functions ---
@pytest.mark.parametrize("function", [total, Total()], ids=["function", "ReduceFunction"])
def test_reduce(function):
    assert results(keyed(lambda w: w.reduce(function))) == [(("a", 5), 9), (("b", 7), 9), (("a", 5), 19)]


@pytest.mark.parametrize(
    "function", [WithEnd(), WithEndApplied(), lambda key, window, rows: [(key, window.end, *rows)]]
)
def test_reduce_with_a_window_function(function):
    got = results(keyed(lambda w: w.reduce(Total(), function)))
    assert got == [(("a", 10, ("a", 5)), 9), (("b", 10, ("b", 7)), 9), (("a", 20, ("a", 5)), 19)]


def test_aggregate():
    assert results(keyed(lambda w: w.aggregate(Average()))) == [(2.5, 9), (7.0, 9), (5.0, 19)]


@pytest.mark.parametrize(
    "function", [WithEnd(), WithEndApplied(), lambda key, window, rows: [(key, window.end, *rows)]]
)
def test_aggregate_with_a_window_function(function):
    got = results(keyed(lambda w: w.aggregate(Average(), function)))
    assert got == [(("a", 10, 2.5), 9), (("b", 10, 7.0), 9), (("a", 20, 5.0), 19)]


@pytest.mark.parametrize("method", ["process", "apply"])
def test_all_elements(method):
    function = {"process": WithEnd(), "apply": WithEndApplied()}[method]
    got = results(keyed(lambda w: getattr(w, method)(function)))
    assert got == [(("a", 10, ("a", 1), ("a", 4)), 9), (("b", 10, ("b", 7)), 9), (("a", 20, ("a", 5)), 19)]


def test_over_the_whole_stream():
    def over(compute):
        return results(lambda s: compute(s.window_all(TENS)))

    assert over(lambda w: w.reduce(total)) == [(("a", 12), 9), (("a", 5), 19)]
    assert over(lambda w: w.reduce(Total(), AllWithEnd())) == [((10, ("a", 12)), 9), ((20, ("a", 5)), 19)]
    assert over(lambda w: w.aggregate(Average())) == [(4.0, 9), (5.0, 19)]
    assert over(lambda w: w.aggregate(Average(), AllWithEndApplied())) == [((10, 4.0), 9), ((20, 5.0), 19)]
    assert over(lambda w: w.aggregate(Average(), lambda window, rows: rows)) == [(4.0, 9), (5.0, 19)]
    assert over(lambda w: w.process(AllWithEnd()))[1] == ((20, ("a", 5)), 19)
    assert over(lambda w: w.apply(AllWithEndApplied()))[1] == ((20, ("a", 5)), 19)
    assert over(lambda w: w.apply(lambda window, rows: [len(rows)])) == [(3, 9), (1, 19)]
    assert over(lambda w: w.sum(1)) == [(("a", 12), 9), (("a", 5), 19)]


THREES = [(("a", 3, "x"), 1), (("a", 1, "y"), 2), (("a", 3, "z"), 3), (("a", 1, "w"), 4)]


@pytest.mark.parametrize(
    ("compute", "expected"),
    [
        (lambda w: w.sum(1), ("a", 8, "x")),
        (lambda w: w.min(1), ("a", 1, "x")),
        (lambda w: w.max(1), ("a", 3, "x")),
        (lambda w: w.min_by(1), ("a", 1, "y")),
        (lambda w: w.min_by(1, first=False), ("a", 1, "w")),
        (lambda w: w.max_by(1), ("a", 3, "x")),
        (lambda w: w.max_by(1, first=False), ("a", 3, "z")),
    ],
)
def test_aggregates_of_a_field(compute, expected):
    assert results(keyed(compute), THREES) == [(expected, 9)]
    assert results(lambda s: compute(s.window_all(TENS)), THREES) == [(expected, 9)]


def test_aggregates_of_a_named_field_and_of_the_record_itself():
    rows = [(Row(k="a", n=2), 1), (Row(k="a", n=5), 2)]
    assert results(lambda s: s.key_by("k").window(TENS).max("n"), rows) == [(Row(k="a", n=5), 9)]
    assert results(lambda s: s.window_all(TENS).sum(), [(2, 1), (5, 2)]) == [(7, 9)]


def test_several_results_for_a_window_or_none():
    def each(key, window, rows):
        for row in rows:
            if row[1] != 5:
                yield row

    assert results(keyed(lambda w: w.apply(each))) == [(("a", 1), 9), (("a", 4), 9), (("b", 7), 9)]
    assert results(keyed(lambda w: w.apply(lambda key, window, rows: None))) == []


def test_incremental_aggregation_keeps_one_value_per_pane():
    with OperatorHarness(lambda s: s.key_by(0).window(SlidingEventTimeWindows.of(10, 5)).aggregate(Average())) as h:
        for n in range(100):
            h.push(("a", n), n % 5)
        assert h.state_entries() == 2
        operator = next(o for o in h._operators() if hasattr(o, "pane_state"))
        held = operator.keyed.tables["_window_contents"].entries.values()
        assert list(held) == [(sum(range(100)), 100)] * 2


def test_the_accumulator_of_one_pane_is_not_that_of_another():
    class Listing(AggregateFunction):
        def create_accumulator(self):
            return []

        def add(self, value, accumulator):
            accumulator.append(value[1])
            return accumulator

        def get_result(self, accumulator):
            return list(accumulator)

        def merge(self, acc_a, acc_b):
            return acc_a + acc_b

    sliding = SlidingEventTimeWindows.of(10, 5)
    got = results(lambda s: s.key_by(0).window(sliding).aggregate(Listing()), RECORDS[:3])
    assert got == [([1, 4], 4), ([7], 4), ([1, 4], 9), ([7], 9)]


CALLS: list = []


class Logged:
    def open(self, runtime_context):
        CALLS.append(("open", type(self).__name__, runtime_context.get_task_name()))

    def close(self):
        CALLS.append(("close", type(self).__name__))


class Reducing(Logged, ReduceFunction):
    def reduce(self, value1, value2):
        return value1


class Processing(Logged, ProcessWindowFunction):
    def process(self, key, context, elements):
        return elements


def test_functions_are_opened_and_closed():
    CALLS.clear()
    with OperatorHarness(keyed(lambda w: w.reduce(Reducing(), Processing()))):
        assert sorted(CALLS) == [("open", "Processing", "Window Reduce"), ("open", "Reducing", "Window Reduce")]
        CALLS.clear()
    assert sorted(CALLS) == [("close", "Processing"), ("close", "Reducing")]


class BrokenOpen(ReduceFunction):
    def open(self, runtime_context):
        raise ValueError("no table")

    def reduce(self, value1, value2):
        return value1


def test_a_function_inside_a_window_that_cannot_be_opened():
    with pytest.raises(JobFailed, match=r"Totals .*ValueError: no table"):
        OperatorHarness(lambda s: s.key_by(0).window(TENS).reduce(BrokenOpen()).name("Totals"))


# --- output types ---
def test_output_types_are_checked():
    got = results(keyed(lambda w: w.aggregate(Average(), output_type=Types.DOUBLE())))
    assert got == [(2.5, 9), (7.0, 9), (5.0, 19)]
    with pytest.raises(TypeMismatch, match="Window Aggregate"):
        results(keyed(lambda w: w.aggregate(Average(), output_type=Types.STRING())))


def test_the_operator_has_a_name_and_says_what_its_windows_are(env):
    windowed = env.from_elements(("a", 1)).key_by(0).window(SlidingEventTimeWindows.of(10, 5)).sum(1)
    assert windowed.get_name() == "Window Sum"
    windowed.print()
    assert '"contents": "Window Sum over SlidingEventTimeWindows(10, 5)"' in env.get_execution_plan()


# --- state ---
DESCRIPTORS = {
    "value": ValueStateDescriptor("v"),
    "list": ListStateDescriptor("l"),
    "map": MapStateDescriptor("m"),
    "reducing": ReducingStateDescriptor("r", lambda a, b: a + b),
    "aggregating": AggregatingStateDescriptor("a", Average()),
}


def states(store):
    return {
        "value": store.get_state(DESCRIPTORS["value"]),
        "list": store.get_list_state(DESCRIPTORS["list"]),
        "map": store.get_map_state(DESCRIPTORS["map"]),
        "reducing": store.get_reducing_state(DESCRIPTORS["reducing"]),
        "aggregating": store.get_aggregating_state(DESCRIPTORS["aggregating"]),
    }


def count_up(state):
    """Add one firing to every state, and what they then say."""
    state["value"].update((state["value"].value() or 0) + 1)
    state["list"].add(1)
    state["map"].put(len(list(state["map"].keys())), 1)
    state["reducing"].add(1)
    state["aggregating"].add(("", 1))
    return (
        state["value"].value(),
        len(list(state["list"].get())),
        len(list(state["map"].keys())),
        state["reducing"].get(),
    )


class Firings(ProcessWindowFunction):
    """Counts its firings in states of the window and of the key."""

    GLOBAL = ValueStateDescriptor("fired")

    def process(self, key, context, elements):
        fired = context.global_state().get_state(self.GLOBAL)
        fired.update((fired.value() or 0) + 1)
        assert len(set(count_up(states(context.window_state())))) == 1
        yield key, context.window().end, states(context.window_state())["value"].value(), fired.value()

    def clear(self, context):
        for state in states(context.window_state()).values():
            state.clear()


class LeftBehind(Firings):
    def clear(self, context):
        pass


def test_window_state_and_global_state():
    def build(stream):
        windowed = stream.key_by(0).window(TENS).trigger(CountTrigger.of(1)).allowed_lateness(100)
        return windowed.process(Firings())

    with OperatorHarness(build) as h:
        for key, time in (("a", 1), ("a", 2), ("b", 3), ("a", 11), ("a", 4)):
            h.push((key, 1), time)
        assert h.values() == [("a", 10, 1, 1), ("a", 10, 2, 2), ("b", 10, 1, 1), ("a", 20, 1, 3), ("a", 10, 3, 4)]
        h.end()
        assert (h.state_entries(), h.timers()) == (2, 0)  # the global state of two keys


def test_what_clear_does_not_remove_stays():
    with OperatorHarness(lambda s: s.key_by(0).window(TENS).process(LeftBehind())) as h:
        h.push(("a", 1), 1)
        h.end()
        assert h.state_entries() == 5 + 1


def test_clear_is_called_once_for_each_window_that_goes():
    class Cleared(ProcessWindowFunction):
        def process(self, key, context, elements):
            yield "fired"

        def clear(self, context):
            context.output(TAG, (context.window().start, context.current_watermark()))

    with OperatorHarness(
        lambda s: s.key_by(0).window(TENS).allowed_lateness(5).process(Cleared()), side_outputs=(TAG,)
    ) as h:
        h.push(("a", 1), 1)
        h.push(("a", 1), 12)
        h.watermark(9)
        assert h.side_output(TAG) == []
        h.watermark(15)
        assert h.side_output(TAG) == [((0, 15), 9)]
        h.end()
        assert h.side_output(TAG) == [((10, MAX_TIMESTAMP), 19)]


def test_windows_that_merge_have_global_state_only():
    class GlobalCount(ProcessWindowFunction):
        def process(self, key, context, elements):
            count = context.global_state().get_state(ValueStateDescriptor("n"))
            count.update((count.value() or 0) + 1)
            yield count.value()

    with OperatorHarness(lambda s: s.key_by(0).window(EventTimeSessionWindows.with_gap(5)).process(GlobalCount())) as h:
        h.push(("a", 1), 1)
        h.push(("a", 1), 20)
        h.end()
        assert h.values() == [1, 2]
    with OperatorHarness(lambda s: s.key_by(0).window(EventTimeSessionWindows.with_gap(5)).process(Firings())) as h:
        h.push(("a", 1), 1)
        with pytest.raises(UnsupportedOperation, match=r"Window Process .*use global_state\(\)"):
            h.watermark(20)


# --- side outputs and times ---
TAG = OutputTag("side")


class Siding(ProcessWindowFunction):
    def process(self, key, context, elements):
        yield TAG, ("yielded", key)
        context.output(TAG, ("put", len(elements)))
        yield key


def test_side_outputs_carry_the_window_s_timestamp():
    with OperatorHarness(keyed(lambda w: w.process(Siding())), side_outputs=(TAG,)) as h:
        h.push(("a", 1), 1)
        h.end()
        assert h.output() == [("a", 9)]
        assert sorted(h.side_output(TAG)) == [(("put", 1), 9), (("yielded", "a"), 9)]


def test_context_times():
    class Times(ProcessWindowFunction):
        def process(self, key, context, elements):
            yield context.current_watermark(), context.current_processing_time(), context.window()

    with OperatorHarness(keyed(lambda w: w.process(Times()))) as h:
        h.push(("a", 1), 1)
        h.advance_processing_time(77)
        h.watermark(30)
        assert h.output() == [((30, 77, TimeWindow(0, 10)), 9)]


def test_windows_after_windows():
    """Results carry the last millisecond of their window, so that larger windows hold them."""
    got = results(
        lambda s: s.key_by(0).window(TENS).sum(1).window_all(TumblingEventTimeWindows.of(20)).sum(1),
        [*RECORDS, (("a", 1), 25)],
    )
    assert got == [(("a", 17), 19), (("a", 1), 39)]


# --- modes ---
@pytest.mark.parametrize("mode", ["STREAMING", "BATCH"])
def test_batch_mode_evaluates_each_window_once(run, mode):
    """Watermarks between the records make updates in STREAMING mode; in BATCH mode there are none."""

    def build(env):
        source = scripted(env, at(("b", 1), 3), at(("a", 2), 4), watermark(12), at(("a", 3), 1), at(("a", 4), 11))
        return source.key_by(0).window(TENS).allowed_lateness(20).process(WithEnd())

    first, update, last = ("a", 10, ("a", 2)), ("a", 10, ("a", 2), ("a", 3)), ("a", 20, ("a", 4))
    if mode == "STREAMING":
        assert run(build, mode=mode) == [("b", 10, ("b", 1)), first, update, last]
    else:  # key by key, each key's records in order of time
        assert run(build, mode=mode) == [("a", 10, ("a", 3), ("a", 2)), last, ("b", 10, ("b", 1))]


@pytest.mark.parametrize("gap", [3, 30])
def test_batch_mode_sessions(run, gap):
    def build(env):
        source = scripted(env, *(at((key, time), time) for key, time in (("a", 9), ("b", 2), ("a", 1), ("a", 3))))
        return source.key_by(0).window(EventTimeSessionWindows.with_gap(gap)).sum(1)

    expected = [("a", 4), ("a", 9), ("b", 2)] if gap == 3 else [("a", 13), ("b", 2)]
    assert run(build, mode="BATCH") == expected


def test_batch_mode_evaluates_processing_time_windows_and_counts(run):
    pairs = [("a", 1), ("b", 2), ("a", 3), ("a", 4)]

    def processing(env):
        return env.from_collection(pairs).key_by(0).window(TumblingProcessingTimeWindows.of(10)).sum(1)

    def counting(env):
        return env.from_collection(pairs).key_by(0).count_window(2).sum(1)

    def in_all(env):
        return env.from_collection(pairs).window_all(GlobalWindows.create()).trigger(CountTrigger.of(4)).sum(1)

    assert run(processing, mode="BATCH") == [("a", 8), ("b", 2)]
    assert run(counting, mode="BATCH") == [("a", 4)]
    assert run(in_all, mode="BATCH") == [("a", 10)]


def test_a_window_function_that_raises_is_named():
    def build(stream):
        return stream.key_by(0).window(TENS).apply(lambda key, window, rows: [1 // 0]).name("Ratios")

    with OperatorHarness(build) as h:
        h.push(("a", 1), 1)
        with pytest.raises(JobFailed, match=r"Ratios .*ZeroDivisionError(.|\n)*timer at 9 of key 'a'"):
            h.watermark(10)


def test_an_aggregate_that_raises_names_the_record():
    expected = pytest.raises(JobFailed, match=r"Window Aggregate .*\n  on record \('a', None\)")
    with OperatorHarness(keyed(lambda w: w.aggregate(Average()))) as h, expected:
        h.push(("a", None), 1)
