"""Event-time windows against brute force: results, updates, late records, and what is left of state and timers.

An event is (key, timestamp, number, watermark): the watermark, if there is one, follows the record at once. The oracles
know Flink's rules and nothing else: a window is late once its last millisecond plus the allowed lateness is not after
the watermark; a record is late if all its windows are, or if it has none and is that old itself.
"""

from collections import Counter
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.common import Duration, Watermark, WatermarkGenerator, WatermarkStrategy
from penstock.datastream import OutputTag, StreamExecutionEnvironment
from penstock.datastream.functions import AggregateFunction, ProcessWindowFunction, WindowFunction
from penstock.datastream.window import (
    ContinuousEventTimeTrigger,
    CountTrigger,
    EventTimeSessionWindows,
    PurgingTrigger,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
)
from penstock.engine.records.elements import MAX_TIMESTAMP, MIN_TIMESTAMP
from penstock.testing import ManualClock, OperatorHarness, at, in_process, pause, scripted, watermark

LATE = OutputTag("late")


# --- input ---
@st.composite
def _events(draw):
    """Time goes on, with disorder; now and then a watermark that may be ahead of what still comes."""
    drift, events = -30, []
    steps = st.tuples(
        st.sampled_from("ab"),
        st.integers(0, 6),
        st.integers(-20, 20),
        st.integers(1, 9),
        st.one_of(st.none(), st.none(), st.integers(-5, 20)),
    )
    for key, step, jitter, number, lag in draw(st.lists(steps, max_size=25)):
        drift += step
        events.append((key, drift + jitter, number, None if lag is None else drift - lag))
    return events


EVENTS = _events()
CUTS = st.sets(st.integers(1, 24))
LATENESS = st.sampled_from([0, 0, 1, 7, 30])


class Punctuated(WatermarkGenerator):
    def on_event(self, event, event_timestamp, output):
        if event[3] is not None:
            output.emit_watermark(Watermark(event[3]))

    def on_periodic_emit(self, output):
        pass


PUNCTUATED = WatermarkStrategy.for_generator(Punctuated).with_timestamp_assigner(lambda event: event[1])


def record(event):
    """What goes into the windows: key, total, count."""
    return event[0], event[2], 1


def key(value):
    return value[0]


# --- what is computed: the same five ways ---
def add(left, right):
    return left[0], left[1] + right[1], left[2] + right[2]


class Total(AggregateFunction):
    def create_accumulator(self):
        return [0, 0]

    def add(self, value, accumulator):
        accumulator[0] += value[1]
        accumulator[1] += value[2]
        return accumulator

    def get_result(self, accumulator):
        return tuple(accumulator)

    def merge(self, acc_a, acc_b):
        return [acc_a[0] + acc_b[0], acc_a[1] + acc_b[1]]


class WithWindow(ProcessWindowFunction):
    """Elements are (…, total, count), be they records or the one result of an aggregation."""

    def process(self, key, context, elements):
        window = context.window()
        elements = list(elements)
        yield key, window.start, window.end, sum(e[-2] for e in elements), sum(e[-1] for e in elements)


class Applied(WindowFunction):
    def apply(self, key, window, inputs):
        return [(key, window.start, window.end, sum(e[1] for e in inputs), sum(e[2] for e in inputs))]


def whole(row):
    return row


COMPUTATIONS = {
    "process": (lambda w: w.process(WithWindow()), whole),
    "apply": (lambda w: w.apply(Applied()), whole),
    "reduce and process": (lambda w: w.reduce(add, WithWindow()), whole),
    "aggregate and process": (lambda w: w.aggregate(Total(), WithWindow()), whole),
    "reduce": (lambda w: w.reduce(add), lambda row: (row[0], row[3], row[4])),
    "aggregate": (lambda w: w.aggregate(Total()), lambda row: row[3:]),
    "sum": (lambda w: w.sum(1), lambda row: (row[0], row[3], 1)),
}
COMPUTATION = st.sampled_from(sorted(COMPUTATIONS))


# --- oracles ---
@dataclass
class Oracle:
    """What every oracle keeps: the clock, the late records, and the results in stretches between watermarks.

    A stretch holds the results of elements, whose order is known, and those of timers.
    """

    lateness: int
    watermark: int = MIN_TIMESTAMP
    late: list[Any] = field(default_factory=list)
    stretches: list[tuple[list[Any], list[Any]]] = field(default_factory=lambda: [([], [])])

    def event(self, event):
        self.element(event[0], event[1], event[2])
        if event[3] is not None:
            self.reach(event[3])

    def reach(self, watermark):
        if watermark > self.watermark:
            before, self.watermark = self.watermark, watermark
            self.advance(before)
            self.stretches.append(([], []))

    def fire(self, row, by_timer=False):
        self.stretches[-1][by_timer].append((row, row[2] - 1))

    def over(self, window):
        return window[1] - 1 + self.lateness <= self.watermark

    def refuse(self, key, timestamp, number):
        if timestamp + self.lateness <= self.watermark:
            self.late.append(((key, number, 1), timestamp))

    def results(self):
        return Counter(row for by_element, by_timer in self.stretches for row in by_element + by_timer)


@dataclass
class TimeWindows(Oracle):
    """Windows of `size` that start at offset + n · slide, and EventTimeTrigger."""

    size: int = 1
    slide: int = 1
    offset: int = 0
    panes: dict[Any, list[int]] = field(default_factory=dict)

    def windows(self, timestamp):
        """Every window there is, asked whether it holds the timestamp; the latest first."""
        starts = (self.offset + n * self.slide for n in range(150, -151, -1))
        return [(start, start + self.size) for start in starts if start <= timestamp < start + self.size]

    def element(self, key, timestamp, number):
        windows = [window for window in self.windows(timestamp) if not self.over(window)]
        for window in windows:
            self.panes.setdefault((key, window), []).append(number)
            self.added(key, window, timestamp)
        if not windows:
            self.refuse(key, timestamp, number)

    def added(self, key, window, timestamp):
        if window[1] - 1 <= self.watermark:
            self.fire(self.row(key, window))

    def row(self, key, window):
        numbers = self.panes[key, window]
        return key, *window, sum(numbers), len(numbers)

    def advance(self, before):
        for key, window in list(self.panes):
            if before < window[1] - 1 <= self.watermark:
                self.fire(self.row(key, window), by_timer=True)
            if self.over(window):
                del self.panes[key, window]

    def state_entries(self):
        return len(self.panes)

    def timers(self):
        """For each window a timer for cleaning up, and one for evaluating if it is still to come and at another
        time."""
        return sum(1 + (self.lateness > 0 and window[1] - 1 > self.watermark) for _, window in self.panes)


@dataclass
class Sessions(Oracle):
    """Sessions grow while records come within their gap, and merge when a record closes the gap between them."""

    gap_of: Any = None
    sessions: list[tuple[str, tuple[int, int], list[int]]] = field(default_factory=list)

    def element(self, key, timestamp, number):
        start, end = timestamp, timestamp + self.gap_of(number)
        touched: list[Any] = []
        while True:  # a session that was touched makes the window longer, so that it may touch more
            more = [
                s for s in self.sessions if s not in touched and s[0] == key and s[1][0] <= end and s[1][1] >= start
            ]
            if not more:
                break
            touched += more
            start, end = min(start, *(s[1][0] for s in more)), max(end, *(s[1][1] for s in more))
        window = (start, end)
        if self.over(window):
            self.refuse(key, timestamp, number)
            return
        numbers = [n for s in touched for n in s[2]] + [number]
        self.sessions = [s for s in self.sessions if s not in touched] + [(key, window, numbers)]
        if end - 1 <= self.watermark:
            self.fire((key, *window, sum(numbers), len(numbers)))

    def advance(self, before):
        for key, window, numbers in self.sessions:
            if before < window[1] - 1 <= self.watermark:
                self.fire((key, *window, sum(numbers), len(numbers)), by_timer=True)
        self.sessions = [s for s in self.sessions if not self.over(s[1])]

    def state_entries(self):
        """The contents of each session, and for each key the map of its sessions."""
        return len(self.sessions) + len({key for key, *_ in self.sessions})

    def timers(self):
        return sum(1 + (self.lateness > 0 and window[1] - 1 > self.watermark) for _, window, _ in self.sessions)


# --- driving the operator and comparing ---
def chunks(events, cuts):
    starts = [0, *sorted(cut for cut in cuts if cut < len(events)), len(events)]
    return [events[start:end] for start, end in pairwise(starts) if start < end]


def harness(windowed, computation, strategy=PUNCTUATED, tag=None):
    def build(stream):
        keyed = stream.assign_timestamps_and_watermarks(strategy).map(record).key_by(key)
        window = windowed(keyed)
        return COMPUTATIONS[computation][0](window if tag is None else window.side_output_late_data(tag))

    return OperatorHarness(build, side_outputs=() if tag is None else (tag,))


def dropped(h):
    counters = h._cluster.slots[0].metrics.snapshot().items()
    return sum(count for name, count in counters if name.endswith("numLateRecordsDropped"))


def stretches_of(elements):
    """The records between watermarks."""
    stretches = [[]]
    for kind, value, timestamp in elements:
        if kind == "watermark":
            stretches.append([])
        else:
            stretches[-1].append((value, timestamp))
    return stretches


def projected(rows, project):
    return [(project(row), timestamp) for row, timestamp in rows]


def compare(h, oracle, computation, in_order=True):
    project = COMPUTATIONS[computation][1]
    got = stretches_of(h.elements())
    assert len(got) == len(oracle.stretches)
    for stretch, (by_element, by_timer) in zip(got, oracle.stretches, strict=True):
        assert stretch[: len(by_element)] == projected(by_element, project)
        fired = stretch[len(by_element) :]
        assert Counter(fired) == Counter(projected(by_timer, project))
        if in_order:
            assert [timestamp for _, timestamp in fired] == sorted(timestamp for _, timestamp in fired)


def check(windowed, oracle, events, cuts, computation, side_output=False, in_order=True, counts_timers=True):
    """Run the events in chunks, look at what is left after each, and at everything at the end of time."""
    with harness(windowed, computation, tag=LATE if side_output else None) as h:
        for chunk in chunks(events, cuts):
            h.push_all(chunk)
            for event in chunk:
                oracle.event(event)
            assert h.state_entries() == oracle.state_entries()
            assert not counts_timers or h.timers() == oracle.timers()
        h.end()
        oracle.reach(MAX_TIMESTAMP)
        compare(h, oracle, computation, in_order)
        assert (h.side_output(LATE) if side_output else dropped(h)) == (
            oracle.late if side_output else len(oracle.late)
        )
        assert dropped(h) == (0 if side_output else len(oracle.late))
        assert (h.state_entries(), h.timers()) == (0, 0)


# --- tumbling and sliding windows ---
@given(EVENTS, CUTS, LATENESS, st.integers(1, 25), st.floats(-0.99, 0.99), COMPUTATION, st.booleans())
def test_tumbling_windows(events, cuts, lateness, size, shift, computation, side_output):
    offset = int(shift * size)
    check(
        lambda s: s.window(TumblingEventTimeWindows.of(size, offset)).allowed_lateness(lateness),
        TimeWindows(lateness, size=size, slide=size, offset=offset),
        events,
        cuts,
        computation,
        side_output,
    )


@given(EVENTS, CUTS, LATENESS, st.integers(1, 30), st.integers(1, 12), st.floats(-0.99, 0.99), COMPUTATION)
def test_sliding_windows(events, cuts, lateness, size, slide, shift, computation):
    """Also where the size is no multiple of the slide, and where the slide leaves gaps between the windows."""
    offset = int(shift * slide)
    check(
        lambda s: s.window(SlidingEventTimeWindows.of(size, slide, offset)).allowed_lateness(lateness),
        TimeWindows(lateness, size=size, slide=slide, offset=offset),
        events,
        cuts,
        computation,
        side_output=(size + slide) % 2 == 0,
    )


@settings(max_examples=60)
@given(EVENTS, CUTS, LATENESS, st.integers(1, 15), st.sampled_from([1, 2, 3]))
def test_windows_over_the_whole_stream(events, cuts, lateness, size, ratio):
    """window_all is the same with one key for everything."""
    oracle = TimeWindows(lateness, size=size * ratio, slide=size)
    with OperatorHarness(
        lambda s: (
            s.assign_timestamps_and_watermarks(PUNCTUATED)
            .map(record)
            .window_all(SlidingEventTimeWindows.of(size * ratio, size))
            .allowed_lateness(lateness)
            .aggregate(Total())
        )
    ) as h:
        for chunk in chunks(events, cuts):
            h.push_all(chunk)
            for event in chunk:
                oracle.event(("all", *event[1:]))
        h.end()
        oracle.reach(MAX_TIMESTAMP)
        compare(h, oracle, "aggregate")
        assert (h.state_entries(), h.timers()) == (0, 0)


@given(EVENTS, CUTS, LATENESS, st.integers(1, 20), st.integers(1, 20), st.integers(0, 15), COMPUTATION)
def test_bounded_out_of_orderness(events, cuts, lateness, size, slide, bound, computation):
    """The watermark comes periodically, after some epochs: the highest timestamp - bound - 1."""
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(bound)).with_timestamp_assigner(
        lambda event: event[1]
    )
    oracle = TimeWindows(lateness, size=size, slide=slide)
    highest, now = MIN_TIMESTAMP, 0
    with harness(
        lambda s: s.window(SlidingEventTimeWindows.of(size, slide)).allowed_lateness(lateness), computation, strategy
    ) as h:
        for chunk in chunks(events, cuts):
            h.push_all(chunk)
            for event in chunk:
                oracle.element(*event[:3])
            highest, now = max(highest, *(event[1] for event in chunk)), now + 1000
            h.advance_processing_time(now)
            oracle.reach(highest - bound - 1)
            assert (h.state_entries(), h.timers()) == (oracle.state_entries(), oracle.timers())
        h.end()
        oracle.reach(MAX_TIMESTAMP)
        compare(h, oracle, computation)
        assert (dropped(h), h.state_entries(), h.timers()) == (len(oracle.late), 0, 0)


# --- sessions ---
@given(EVENTS, CUTS, LATENESS, st.integers(1, 15), COMPUTATION.filter(lambda c: c != "sum"), st.booleans())
def test_sessions(events, cuts, lateness, gap, computation, side_output):
    check(
        lambda s: s.window(EventTimeSessionWindows.with_gap(gap)).allowed_lateness(lateness),
        Sessions(lateness, gap_of=lambda number: gap),
        events,
        cuts,
        computation,
        side_output,
    )


@given(EVENTS, CUTS, LATENESS, st.integers(1, 4), COMPUTATION.filter(lambda c: c != "sum"), st.booleans())
def test_sessions_with_a_dynamic_gap(events, cuts, lateness, factor, computation, side_output):
    """Every record brings the gap that follows it; a long one can reach over sessions that come later."""
    check(
        lambda s: s.window(EventTimeSessionWindows.with_dynamic_gap(lambda r: r[1] * factor)).allowed_lateness(
            lateness
        ),
        Sessions(lateness, gap_of=lambda number: number * factor),
        events,
        cuts,
        computation,
        side_output,
    )


@given(
    st.lists(st.tuples(st.sampled_from("ab"), st.integers(-30, 60), st.integers(1, 9)), max_size=12).flatmap(
        lambda events: st.tuples(st.just(events), st.permutations(events))
    ),
    st.integers(1, 12),
    st.booleans(),
)
def test_sessions_do_not_depend_on_the_order_of_arrival(orders, gap, dynamic):
    assigner = (
        EventTimeSessionWindows.with_dynamic_gap(lambda r: r[1] * 2)
        if dynamic
        else EventTimeSessionWindows.with_gap(gap)
    )
    outcomes = []
    for events in orders:
        with harness(lambda s: s.window(assigner), "process") as h:
            h.push_all([(*event, None) for event in events])
            h.end()
            outcomes.append(Counter(h.output()))
    assert outcomes[0] == outcomes[1]


# --- other triggers ---
@dataclass
class Counted(TimeWindows):
    """CountTrigger, alone or purging: it fires with every nth element and never at the end of the window."""

    every: int = 2
    purging: bool = False
    counts: Counter = field(default_factory=Counter)

    def added(self, key, window, timestamp):
        self.counts[key, window] += 1
        if self.counts[key, window] == self.every:
            self.counts[key, window] = 0
            self.fire(self.row(key, window))
            if self.purging:
                self.panes[key, window].clear()

    def advance(self, before):
        for pane in [pane for pane in self.panes if self.over(pane[1])]:
            del self.panes[pane]
            del self.counts[pane]

    def state_entries(self):
        return sum(map(bool, self.panes.values())) + sum(map(bool, self.counts.values()))

    def timers(self):
        """A timer to clean up each window, even if its contents were purged."""
        return len(self.panes)


@given(EVENTS, CUTS, LATENESS, st.integers(1, 30), st.integers(1, 15), st.integers(1, 4), st.booleans(), COMPUTATION)
def test_count_trigger_in_time_windows(events, cuts, lateness, size, slide, every, purging, computation):
    trigger = PurgingTrigger.of(CountTrigger.of(every)) if purging else CountTrigger.of(every)
    check(
        lambda s: s.window(SlidingEventTimeWindows.of(size, slide)).trigger(trigger).allowed_lateness(lateness),
        Counted(lateness, size=size, slide=slide, every=every, purging=purging),
        events,
        cuts,
        computation,
    )


@dataclass
class Continuous(TimeWindows):
    """ContinuousEventTimeTrigger: at every multiple of the interval after the first element, and at the end."""

    interval: int = 1
    due: dict[Any, int] = field(default_factory=dict)

    def added(self, key, window, timestamp):
        super().added(key, window, timestamp)
        last = window[1] - 1
        if last > self.watermark:
            self.due.setdefault((key, window), min(timestamp // self.interval * self.interval + self.interval, last))

    def advance(self, before):
        for key, window in list(self.panes):
            last = window[1] - 1
            while self.due.get((key, window), last) < last and self.due[key, window] <= self.watermark:
                self.fire(self.row(key, window), by_timer=True)
                self.due[key, window] = min(self.due[key, window] + self.interval, last)
        super().advance(before)
        self.due = {pane: time for pane, time in self.due.items() if pane in self.panes}

    def state_entries(self):
        return len(self.panes) + len(self.due)

    def timers(self):
        times = 0
        for key, window in self.panes:
            last = window[1] - 1
            waiting = {last, self.due[key, window]} if last > self.watermark else set()
            times += len({last + self.lateness} | waiting)
        return times


@given(EVENTS, CUTS, LATENESS, st.integers(1, 30), st.integers(3, 15), st.integers(1, 12), COMPUTATION)
def test_continuous_event_time_trigger(events, cuts, lateness, size, slide, interval, computation):
    check(
        lambda s: (
            s.window(SlidingEventTimeWindows.of(size, slide))
            .trigger(ContinuousEventTimeTrigger.of(interval))
            .allowed_lateness(lateness)
        ),
        Continuous(lateness, size=size, slide=slide, interval=interval),
        events,
        cuts,
        computation,
        in_order=False,
    )


@dataclass
class CountedSessions(Sessions):
    """Sessions under CountTrigger, alone or purging: the counts of merged sessions add up."""

    every: int = 2
    purging: bool = False
    counts: Counter = field(default_factory=Counter)

    def element(self, key, timestamp, number):
        before = self.sessions
        fired = len(self.stretches[-1][0])
        super().element(key, timestamp, number)
        del self.stretches[-1][0][fired:]  # what EventTimeTrigger would have fired
        merged = [s for s in self.sessions if s not in before]
        if not merged:
            return
        ((_, window, numbers),) = merged
        gone = [s[:2] for s in before if s not in self.sessions]
        self.counts[key, window] = sum(self.counts.pop(session, 0) for session in gone) + 1
        if self.counts[key, window] >= self.every:
            self.counts[key, window] = 0
            held = [n for n in numbers if n is not PURGED]
            self.fire((key, *window, sum(held), len(held)))
            if self.purging:
                numbers[:] = [PURGED]

    def advance(self, before):
        self.sessions = [s for s in self.sessions if not self.over(s[1])]
        self.counts = Counter({s[:2]: self.counts[s[:2]] for s in self.sessions})

    def state_entries(self):
        held = sum(any(n is not PURGED for n in numbers) for *_, numbers in self.sessions)
        return held + sum(map(bool, self.counts.values())) + len({key for key, *_ in self.sessions})

    def timers(self):
        return len(self.sessions)


class _Purged(int):
    """Takes the place of a session's purged numbers, and counts as nothing."""


PURGED = _Purged(0)


@given(EVENTS, CUTS, LATENESS, st.integers(1, 15), st.integers(1, 4), st.booleans())
def test_count_trigger_in_sessions(events, cuts, lateness, gap, every, purging):
    trigger = PurgingTrigger.of(CountTrigger.of(every)) if purging else CountTrigger.of(every)
    check(
        lambda s: s.window(EventTimeSessionWindows.with_gap(gap)).trigger(trigger).allowed_lateness(lateness),
        CountedSessions(lateness, gap_of=lambda number: gap, every=every, purging=purging),
        events,
        cuts,
        "process",
    )


# --- whole programs ---
def script(events, cuts):
    steps = []
    for position, (key, timestamp, number, reached) in enumerate(events):
        if position in cuts:
            steps.append(pause())
        steps.append(at((key, number, 1), timestamp))
        if reached is not None:
            steps.append(watermark(reached))
    return steps


@settings(max_examples=25)
@given(
    EVENTS,
    CUTS,
    st.sampled_from([0, 10]),
    st.sampled_from(["tumbling", "sliding", "session"]),
    st.sampled_from([1, 3, None]),
    st.sampled_from([1, 2]),
)
def test_programs_do_not_depend_on_epochs_and_parallelism(events, cuts, lateness, kind, epoch_records, parallelism):
    assigner, oracle = {
        "tumbling": (TumblingEventTimeWindows.of(10), TimeWindows(lateness, size=10, slide=10)),
        "sliding": (SlidingEventTimeWindows.of(11, 4), TimeWindows(lateness, size=11, slide=4)),
        "session": (EventTimeSessionWindows.with_gap(5), Sessions(lateness, gap_of=lambda number: 5)),
    }[kind]
    for event in events:
        oracle.event(event)
    oracle.reach(MAX_TIMESTAMP)
    with in_process(epoch_records=epoch_records, clock=ManualClock()):
        environment = StreamExecutionEnvironment().set_parallelism(parallelism)
        stream = scripted(environment, *script(events, cuts)).key_by(key)
        totals = stream.window(assigner).allowed_lateness(lateness).aggregate(Total(), WithWindow())
        with totals.execute_and_collect() as results:
            assert Counter(results) == Counter(
                row for (row, _), count in oracle.results().items() for _ in range(count)
            )
