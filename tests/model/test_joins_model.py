"""Window joins, co-groups and interval joins against brute force over both streams."""

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.datastream import OutputTag, StreamExecutionEnvironment
from penstock.datastream.functions import CoGroupFunction, FlatJoinFunction, JoinFunction, ProcessJoinFunction
from penstock.datastream.window import EventTimeSessionWindows, SlidingEventTimeWindows
from penstock.engine.records.elements import MAX_TIMESTAMP, MIN_TIMESTAMP
from penstock.engine.state.tables import Layout
from penstock.engine.windows.window_joins import IntervalJoinOperator
from penstock.testing import ManualClock, OperatorHarness, at, in_process, scripted

LATE = OutputTag("late")
LEFT_LATE, RIGHT_LATE = OutputTag("left late"), OutputTag("right late")


@st.composite
def _steps(draw):
    """(side, key, timestamp, watermark of that side or None), with time going on."""
    drift, steps = -15, []
    drawn = st.tuples(
        st.sampled_from([0, 1]),
        st.sampled_from("ab"),
        st.integers(0, 5),
        st.integers(-12, 12),
        st.none() | st.integers(-3, 10),
    )
    for side, key, step, jitter, lag in draw(st.lists(drawn, max_size=20)):
        drift += step
        steps.append((side, key, drift + jitter, None if lag is None else drift - lag))
    return steps


STEPS = _steps()


@dataclass
class TwoStreams:
    """The event-time clock of an operator with two inputs: the one that lags behind counts."""

    reached: list[int] = field(default_factory=lambda: [MIN_TIMESTAMP, MIN_TIMESTAMP])
    late: list[Any] = field(default_factory=list)

    @property
    def watermark(self):
        return min(self.reached)

    def reach(self, side, watermark):
        before = self.watermark
        self.reached[side] = max(self.reached[side], watermark)
        return self.advance(before) if self.watermark > before else []


# --- window joins and co-groups ---
class Joined(JoinFunction):
    def join(self, first, second):
        return first, second


class Twice(FlatJoinFunction):
    def join(self, first, second):
        yield first, second
        yield second, first


class Grouped(CoGroupFunction):
    def co_group(self, first, second):
        yield tuple(first), tuple(second)


def pairs(lefts, rights):
    return list(product(lefts, rights))


JOINS = {
    "join": (lambda w: w.apply(Joined()), pairs),
    "lambda": (lambda w: w.apply(lambda left, right: (left, right)), pairs),
    "flat join": (lambda w: w.apply(Twice()), lambda ls, rs: [p for pair in pairs(ls, rs) for p in (pair, pair[::-1])]),
    "co-group": (lambda w: w.apply(Grouped()), lambda ls, rs: [(tuple(ls), tuple(rs))]),
}


@dataclass
class WindowJoin(TwoStreams):
    size: int = 1
    slide: int = 1
    lateness: int = 0
    results: Any = None
    panes: dict[Any, tuple[list[Any], list[Any]]] = field(default_factory=dict)

    def element(self, side, key, timestamp, value):
        starts = (n * self.slide for n in range(100, -100, -1))
        windows = [(start, start + self.size) for start in starts if start <= timestamp < start + self.size]
        open_windows = [w for w in windows if w[1] - 1 + self.lateness > self.watermark]
        if not open_windows and timestamp + self.lateness <= self.watermark:
            self.late.append(((side, value), timestamp))
        fired = []
        for window in open_windows:
            self.panes.setdefault((key, window), ([], []))[side].append(value)
            if window[1] - 1 <= self.watermark:
                fired += self.fire(key, window)
        return fired

    def fire(self, key, window):
        return [(row, window[1] - 1) for row in self.results(*self.panes[key, window])]

    def advance(self, before):
        fired = []
        for key, window in list(self.panes):
            if before < window[1] - 1 <= self.watermark:
                fired += self.fire(key, window)
            if window[1] - 1 + self.lateness <= self.watermark:
                del self.panes[key, window]
        return fired


def matched(left, right, how):
    return left.co_group(right) if how == "co-group" else left.join(right)


@given(STEPS, st.integers(1, 15), st.integers(1, 10), st.sampled_from([0, 5]), st.sampled_from(sorted(JOINS)))
def test_window_joins(steps, size, slide, lateness, how):
    def build(left, right):
        windowed = (
            matched(left, right, how)
            .where(lambda v: v[0])
            .equal_to(lambda v: v[0])
            .window(SlidingEventTimeWindows.of(size, slide))
            .allowed_lateness(lateness)
            .side_output_late_data(LATE)
        )
        return JOINS[how][0](windowed)

    oracle = WindowJoin(size=size, slide=slide, lateness=lateness, results=JOINS[how][1])
    with OperatorHarness(build, inputs=2, side_outputs=(LATE,)) as h:
        for number, (side, key, timestamp, watermark) in enumerate(steps):
            h.push((key, number), timestamp, input=side + 1)
            assert h.output() == oracle.element(side, key, timestamp, (key, number))
            if watermark is not None:
                h.watermark(watermark, input=side + 1)
                assert Counter(h.output()) == Counter(oracle.reach(side, watermark))
            assert h.state_entries() == len(oracle.panes)
        h.end(1)
        h.end(2)
        assert Counter(h.output()) == Counter(oracle.reach(0, MAX_TIMESTAMP) + oracle.reach(1, MAX_TIMESTAMP))
        assert h.side_output(LATE) == oracle.late
        assert (h.state_entries(), h.timers()) == (0, 0)


def sessions(elements, gap):
    """Groups of (timestamp, …) in which neighbours are at most a gap apart."""
    groups: list[list[Any]] = []
    for element in sorted(elements):
        if groups and element[0] - groups[-1][-1][0] <= gap:
            groups[-1].append(element)
        else:
            groups.append([element])
    return groups


SIDE = st.lists(st.tuples(st.sampled_from("ab"), st.integers(-20, 40)), max_size=12)


@settings(max_examples=40)
@given(SIDE, SIDE, st.integers(1, 8), st.sampled_from([1, 3, None]), st.sampled_from([1, 2]))
def test_session_co_groups_in_programs(lefts, rights, gap, epoch_records, parallelism):
    by_key = defaultdict(list)
    for side, elements in ((0, lefts), (1, rights)):
        for key, timestamp in elements:
            by_key[key].append((timestamp, side))
    expected = Counter(
        (key, tuple(t for t, side in group if side == 0), tuple(t for t, side in group if side == 1))
        for key, elements in by_key.items()
        for group in sessions(elements, gap)
    )

    def grouped(first, second):
        (key,) = {value[0] for value in [*first, *second]}
        yield key, tuple(sorted(v[1] for v in first)), tuple(sorted(v[1] for v in second))

    with in_process(epoch_records=epoch_records, clock=ManualClock()):
        environment = StreamExecutionEnvironment().set_parallelism(parallelism)
        left, right = (scripted(environment, *(at(v, v[1]) for v in side)) for side in (lefts, rights))
        windowed = left.co_group(right).where(lambda v: v[0]).equal_to(lambda v: v[0])
        with windowed.window(EventTimeSessionWindows.with_gap(gap)).apply(grouped).execute_and_collect() as results:
            assert Counter(results) == expected


# --- interval joins ---
class Pairs(ProcessJoinFunction):
    def process_element(self, left, right, ctx):
        yield left, right, ctx.left_timestamp(), ctx.right_timestamp(), ctx.timestamp()


@dataclass
class IntervalJoin(TwoStreams):
    """What is kept of each side goes once nothing to come can be near enough; late is what is behind the watermark."""

    lower: int = 0
    upper: int = 0
    kept: list[tuple[int, str, int, Any]] = field(default_factory=list)

    def element(self, side, key, timestamp, value):
        if timestamp < self.watermark:
            self.late.append((side, value, timestamp))
            return []
        rows = []
        for other_side, other_key, other_time, other in self.kept:
            if other_side != side and other_key == key:
                left, right = ((value, timestamp), (other, other_time))[:: 1 if side == 0 else -1]
                if left[1] + self.lower <= right[1] <= left[1] + self.upper:
                    time = max(timestamp, other_time)
                    rows.append(((left[0], right[0], left[1], right[1], time), time))
        self.kept.append((side, key, timestamp, value))
        return rows

    def until(self, side, timestamp):
        """The last watermark at which an element of the other side could still match."""
        return timestamp + max(0, self.upper if side == 0 else -self.lower)

    def advance(self, before):
        self.kept = [e for e in self.kept if self.until(e[0], e[2]) > self.watermark]
        return []

    def state_entries(self):
        return len({(side, key) for side, key, *_ in self.kept})

    def timers(self):
        return len({(side, key, self.until(side, timestamp)) for side, key, timestamp, _ in self.kept})


def interval(left, right, bounds, exclusive, tags=True):
    joined = left.key_by(lambda v: v[0]).interval_join(right.key_by(lambda v: v[0])).between(*bounds)
    joined = joined.lower_bound_exclusive() if exclusive[0] else joined
    joined = joined.upper_bound_exclusive() if exclusive[1] else joined
    if tags:
        joined = joined.side_output_left_late_data(LEFT_LATE).side_output_right_late_data(RIGHT_LATE)
    return joined.process(Pairs())


BOUNDS = st.tuples(st.integers(-12, 12), st.integers(2, 15)).map(lambda b: (b[0], b[0] + b[1]))
EXCLUSIVE = st.tuples(st.booleans(), st.booleans())


@settings(max_examples=300)
@given(STEPS, BOUNDS, EXCLUSIVE, st.booleans())
def test_interval_joins(steps, bounds, exclusive, tags):
    oracle = IntervalJoin(lower=bounds[0] + exclusive[0], upper=bounds[1] - exclusive[1])
    with OperatorHarness(
        lambda left, right: interval(left, right, bounds, exclusive, tags),
        inputs=2,
        side_outputs=(LEFT_LATE, RIGHT_LATE) if tags else (),
    ) as h:
        for number, (side, key, timestamp, watermark) in enumerate(steps):
            h.push((key, number), timestamp, input=side + 1)
            assert Counter(h.output()) == Counter(oracle.element(side, key, timestamp, (key, number)))
            if watermark is not None:
                h.watermark(watermark, input=side + 1)
                oracle.reach(side, watermark)
            assert (h.state_entries(), h.timers()) == (oracle.state_entries(), oracle.timers())
        if tags:
            assert h.side_output(LEFT_LATE) == [(v, t) for side, v, t in oracle.late if side == 0]
            assert h.side_output(RIGHT_LATE) == [(v, t) for side, v, t in oracle.late if side == 1]
        else:
            counters = h._cluster.slots[0].metrics.snapshot()
            assert [n for name, n in counters.items() if name.endswith("numLateRecordsDropped")] == [len(oracle.late)]
        h.end(1)
        h.end(2)
        assert (h.output(), h.state_entries(), h.timers()) == ([], 0, 0)


@settings(max_examples=40)
@given(SIDE, SIDE, BOUNDS, EXCLUSIVE, st.sampled_from([1, 3, None]), st.sampled_from([1, 2]))
def test_interval_joins_in_programs(lefts, rights, bounds, exclusive, epoch_records, parallelism):
    lower, upper = bounds[0] + exclusive[0], bounds[1] - exclusive[1]
    expected = Counter(
        (left, right, left[1], right[1], max(left[1], right[1]))
        for left, right in product(lefts, rights)
        if left[0] == right[0] and left[1] + lower <= right[1] <= left[1] + upper
    )
    with in_process(epoch_records=epoch_records, clock=ManualClock()):
        environment = StreamExecutionEnvironment().set_parallelism(parallelism)
        left, right = (scripted(environment, *(at(v, v[1]) for v in side)) for side in (lefts, rights))
        with interval(left, right, bounds, exclusive, tags=False).execute_and_collect() as results:
            assert Counter(results) == expected


def test_what_an_interval_join_drops_is_part_of_the_next_checkpoint():
    """A buffer changes in place: without a mark, a restored job would keep for ever what its timers have dropped."""
    with OperatorHarness(lambda left, right: interval(left, right, (0, 2), (False, False)), inputs=2) as h:
        for time in (1, 5):
            h.push(("a", time), time, input=1)
        (operator,) = [one for one in h._operators() if isinstance(one, IntervalJoinOperator)]
        buffers = [table for table in h._tables() if table.layout is not Layout.TIMER and table.entries]
        assert [table.changed for table in buffers] == [set()], "an epoch without checkpoints forgets what has changed"
        operator.on_event_time(3, "a", 0)
        assert [(dict(table.entries)["a"].times, table.changed) for table in buffers] == [([5], {"a"})]
        operator.on_event_time(7, "a", 0)
        assert [("a" in table.entries, table.changed) for table in buffers] == [(False, {"a"})]
