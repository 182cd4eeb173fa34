"""Count windows against slices of a list: tumbling, sliding, with gaps, by key and over the whole stream."""

from collections import defaultdict
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.datastream import StreamExecutionEnvironment
from penstock.datastream.functions import AggregateFunction, ProcessAllWindowFunction, ProcessWindowFunction
from penstock.datastream.window import CountEvictor, CountTrigger, GlobalWindows
from penstock.testing import ManualClock, OperatorHarness, in_process

RECORDS = st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 99)), max_size=30)
CUTS = st.sets(st.integers(1, 29))
SIZE = st.integers(1, 6)
SLIDE = st.integers(1, 8)


class Listed(ProcessWindowFunction):
    def process(self, key, context, elements):
        yield key, [number for _, number in elements]


class ListedAll(ProcessAllWindowFunction):
    def process(self, context, elements):
        yield list(elements)


class Lists(AggregateFunction):
    def create_accumulator(self):
        return []

    def add(self, value, accumulator):
        return [*accumulator, value[1]]

    def get_result(self, accumulator):
        return accumulator

    def merge(self, acc_a, acc_b):
        return acc_a + acc_b


def windows_of(numbers, size, slide):
    """Every window that became full, in the order in which they did."""
    return [numbers[start : start + size] for start in range(0, len(numbers) - size + 1, slide)]


def by_key(records):
    numbers = defaultdict(list)
    for key, number in records:
        numbers[key].append(number)
    return numbers


def chunks(records, cuts):
    starts = [0, *sorted(cut for cut in cuts if cut < len(records)), len(records)]
    return [records[start:end] for start, end in pairwise(starts)]


def run(build, records, cuts):
    with OperatorHarness(build) as h:
        for chunk in chunks(records, cuts):
            h.push_all(chunk)
        h.end()
        return h.values(), h.state_entries(), h.timers()


@given(RECORDS, CUTS, SIZE, SLIDE, st.sampled_from(["process", "aggregate"]))
def test_count_windows_of_keys(records, cuts, size, slide, how):
    def build(stream):
        windowed = stream.key_by(0).count_window(size, slide)
        return windowed.process(Listed()) if how == "process" else windowed.aggregate(Lists(), _Keyed())

    results, entries, timers = run(build, records, cuts)
    keys = by_key(records)
    assert by_key(results) == {
        key: windows for key, numbers in keys.items() if (windows := windows_of(numbers, size, slide))
    }
    # The contents and the count of each window that is not full, and for each key how many records it has had.
    begun = sum(start + size > len(numbers) for numbers in keys.values() for start in range(0, len(numbers), slide))
    assert (entries, timers) == (2 * begun + len(keys), 0)


class _Keyed(ProcessWindowFunction):
    def process(self, key, context, elements):
        yield key, next(iter(elements))


@given(RECORDS, CUTS, SIZE)
def test_tumbling_count_windows(records, cuts, size):
    results, _, _ = run(lambda s: s.key_by(0).count_window(size).process(Listed()), records, cuts)
    assert by_key(results) == {
        key: windows for key, numbers in by_key(records).items() if (windows := windows_of(numbers, size, size))
    }


@settings(max_examples=60)
@given(RECORDS, CUTS, SIZE, SLIDE)
def test_count_windows_over_the_whole_stream(records, cuts, size, slide):
    results, _, timers = run(lambda s: s.count_window_all(size, slide).process(ListedAll()), records, cuts)
    assert (results, timers) == (windows_of(records, size, slide), 0)


@settings(max_examples=60)
@given(RECORDS, CUTS, SIZE, SLIDE)
def test_a_count_trigger_with_a_count_evictor_gives_the_last_records(records, cuts, size, slide):
    """Flink's own spelling of sliding counts: every `slide` records the last `size` of them, also the first few."""
    results, _, _ = run(
        lambda s: (
            s.key_by(0)
            .window(GlobalWindows.create())
            .trigger(CountTrigger.of(slide))
            .evictor(CountEvictor.of(size))
            .process(Listed())
        ),
        records,
        cuts,
    )
    expected = {
        key: [numbers[max(0, end - size) : end] for end in range(slide, len(numbers) + 1, slide)]
        for key, numbers in by_key(records).items()
    }
    assert by_key(results) == {key: windows for key, windows in expected.items() if windows}


@settings(max_examples=15)
@given(RECORDS, SIZE, SLIDE, st.sampled_from([1, 3, None]), st.sampled_from([1, 2]))
def test_programs_with_count_windows(records, size, slide, epoch_records, parallelism):
    with in_process(epoch_records=epoch_records, clock=ManualClock()):
        environment = StreamExecutionEnvironment().set_parallelism(parallelism)
        stream = environment.from_collection(records).key_by(0)
        with stream.count_window(size, slide).process(Listed()).execute_and_collect() as results:
            got = by_key(results)
    assert got == {
        key: windows for key, numbers in by_key(records).items() if (windows := windows_of(numbers, size, slide))
    }
