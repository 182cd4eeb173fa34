"""Window joins, co-groups and interval joins: the spellings, and what their functions get."""

import enum
from collections import namedtuple

import pytest

from penstock.common import Types
from penstock.datastream import OutputTag
from penstock.datastream.functions import (
    CoGroupFunction,
    FlatJoinFunction,
    JoinFunction,
    ProcessJoinFunction,
)
from penstock.datastream.window import (
    CountEvictor,
    CountTrigger,
    EventTimeSessionWindows,
    GlobalWindows,
    PurgingTrigger,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
)
from penstock.engine.windows.window_joins import IntervalSpec
from penstock.errors import RecordError, TypeMismatch
from penstock.testing import OperatorHarness, at, scripted

TENS = TumblingEventTimeWindows.of(10)
LATE = OutputTag("late")


class Names(JoinFunction):
    def open(self, runtime_context):
        self.sign = "+"

    def join(self, first, second):
        return first[1] + self.sign + second[1]


class Both(FlatJoinFunction):
    def join(self, first, second):
        if first[1] != "skip":
            yield first[1]
            yield second[1]


class Sides(CoGroupFunction):
    def co_group(self, first, second):
        yield [v[1] for v in first], [v[1] for v in second]


def matching(left, right, method="join"):
    return getattr(left, method)(right).where(lambda v: v[0]).equal_to(0)


def fed(build, *pushes, end=True, side_outputs=()):
    """Each push is (input, key, name, time)."""
    h = OperatorHarness(build, inputs=2, side_outputs=side_outputs)
    for side, key, name, time in pushes:
        h.push((key, name), time, input=side)
    if end:
        h.end(1)
        h.end(2)
        assert (h.state_entries(), h.timers()) == (0, 0)
    return h


PUSHES = [
    (1, "a", "l1", 1),
    (2, "a", "r1", 2),
    (1, "b", "l2", 3),
    (2, "a", "r2", 9),
    (1, "a", "l3", 5),
    (2, "a", "r3", 12),
]


@pytest.mark.parametrize("function", [Names(), lambda left, right: f"{left[1]}+{right[1]}"])
def test_join_gives_one_result_for_each_pair(function):
    h = fed(lambda a, b: matching(a, b).window(TENS).apply(function), *PUSHES)
    assert h.output() == [("l1+r1", 9), ("l1+r2", 9), ("l3+r1", 9), ("l3+r2", 9)]


def test_flat_join_gives_any_number():
    pushes = [(1, "a", "l1", 1), (1, "a", "skip", 1), (2, "a", "r1", 2)]
    assert fed(lambda a, b: matching(a, b).window(TENS).apply(Both()), *pushes).values() == ["l1", "r1"]


@pytest.mark.parametrize("function", [Sides(), lambda ls, rs: [([v[1] for v in ls], [v[1] for v in rs])]])
def test_co_group_also_gets_what_has_no_partner(function):
    h = fed(lambda a, b: matching(a, b, "co_group").window(TENS).apply(function), *PUSHES)
    assert h.output() == [((["l1", "l3"], ["r1", "r2"]), 9), ((["l2"], []), 9), (([], ["r3"]), 19)]


def test_other_windows():
    def joined(assigner):
        h = fed(lambda a, b: matching(a, b).window(assigner).apply(Names()), *PUSHES)
        return sorted(h.values())

    tens = ["l1+r1", "l1+r2", "l3+r1", "l3+r2"]
    assert joined(SlidingEventTimeWindows.of(10, 5)) == sorted([*tens, "l1+r1", "l3+r2", "l3+r3"])
    assert joined(EventTimeSessionWindows.with_gap(4)) == sorted([*tens, "l1+r3", "l3+r3"])


def test_processing_time_needs_no_timestamps():
    h = OperatorHarness(
        lambda a, b: matching(a, b).window(TumblingProcessingTimeWindows.of(10)).apply(Names()), inputs=2
    )
    h.push(("a", "l"))
    h.push(("a", "r"), input=2)
    h.advance_processing_time(9)
    assert h.values() == ["l+r"]


def test_trigger_and_evictor():
    """An evictor sees (side, value)."""
    h = fed(
        lambda a, b: (
            matching(a, b)
            .window(GlobalWindows.create())
            .trigger(PurgingTrigger.of(CountTrigger.of(4)))
            .evictor(CountEvictor.of(3))
            .apply(Names())
        ),
        *[push for push in PUSHES if push[1] == "a"][:4],
    )
    assert h.values() == ["l3+r1", "l3+r2"]


def test_lateness_and_late_data():
    def build(left, right):
        windowed = matching(left, right).window(TENS).allowed_lateness(5).side_output_late_data(LATE)
        return windowed.apply(Names())

    with OperatorHarness(build, inputs=2, side_outputs=(LATE,)) as h:
        h.push(("a", "l1"), 1)
        h.push(("a", "r1"), 1, input=2)
        h.watermark(20)
        h.watermark(12, input=2)
        assert h.values() == ["l1+r1"]
        h.push(("a", "l2"), 2)
        assert h.values() == ["l1+r1", "l2+r1"]
        h.watermark(14, input=2)
        h.push(("a", "r2"), 3, input=2)
        assert (h.values(), h.side_output(LATE)) == ([], [((1, ("a", "r2")), 3)])


def test_the_slower_stream_holds_the_windows_open():
    with OperatorHarness(lambda a, b: matching(a, b).window(TENS).apply(Names()), inputs=2) as h:
        h.push(("a", "l"), 1)
        h.watermark(100)
        h.push(("a", "r"), 9, input=2)
        assert h.values() == []
        h.watermark(9, input=2)
        assert h.values() == ["l+r"]


def test_a_stream_joined_with_itself(env):
    stream = scripted(env, at(("a", "x"), 1), at(("a", "y"), 2))
    with matching(stream, stream).window(TENS).apply(Names()).execute_and_collect() as results:
        assert sorted(results) == ["x+x", "x+y", "y+x", "y+y"]


@pytest.mark.parametrize("mode", ["STREAMING", "BATCH"])
@pytest.mark.parametrize("parallelism", [1, 3])
def test_programs(run, mode, parallelism):
    def build(env):
        left = scripted(env, *(at((key, name), time) for side, key, name, time in PUSHES if side == 1))
        right = scripted(env, *(at((key, name), time) for side, key, name, time in PUSHES if side == 2))
        return matching(left, right).window(TENS).apply(Names(), Types.STRING())

    assert sorted(run(build, mode=mode, parallelism=parallelism)) == ["l1+r1", "l1+r2", "l3+r1", "l3+r2"]


def test_output_types_are_checked():
    with pytest.raises(TypeMismatch, match="Window Join"):
        fed(lambda a, b: matching(a, b).window(TENS).apply(Names(), Types.INT()), *PUSHES)


class Colour(enum.StrEnum):
    RED = "red"


Point = namedtuple("Point", "x y")


@pytest.mark.parametrize(("left", "right"), [(Colour.RED, "red"), (Point(1, 2), (1, 2))])
def test_keys_that_are_equal_though_their_classes_are_not(left, right):
    h = fed(lambda a, b: matching(a, b).window(TENS).apply(Names()), (1, left, "l", 1), (2, right, "r", 2))
    assert h.values() == ["l+r"]


# --- interval joins ---
class Near(ProcessJoinFunction):
    def process_element(self, left, right, ctx):
        assert ctx.timestamp() == max(ctx.left_timestamp(), ctx.right_timestamp())
        ctx.output(LATE, (left[1], right[1]))
        yield f"{left[1]}+{right[1]}"


def near(*bounds, change=lambda joined: joined):
    return lambda a, b: change(a.key_by(0).interval_join(b.key_by(0)).between(*bounds)).process(Near())


def test_interval_join():
    h = fed(near(-2, 3), *PUSHES)
    assert h.output() == [("l1+r1", 2)]
    h = fed(near(-3, 4), *PUSHES)
    assert h.output() == [("l1+r1", 2), ("l3+r1", 5), ("l3+r2", 9)]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda j: j, ["l+1", "l+2", "l+3"]),
        (lambda j: j.lower_bound_exclusive(), ["l+2", "l+3"]),
        (lambda j: j.upper_bound_exclusive(), ["l+1", "l+2"]),
        (lambda j: j.lower_bound_exclusive().upper_bound_exclusive(), ["l+2"]),
    ],
)
def test_bounds(change, expected):
    pushes = [(1, "a", "l", 10), *((2, "a", str(n), 10 + n) for n in range(5)), (2, "b", "2", 12)]
    assert fed(near(1, 3, change=change), *pushes).values() == expected


def test_a_bound_is_exclusive_or_not():
    pushes = [(1, "a", "l", 10), (2, "a", "r", 12)]
    twice = near(1, 3, change=lambda j: j.lower_bound_exclusive().lower_bound_exclusive())
    assert fed(twice, *pushes).values() == ["l+r"]


def test_side_outputs_and_late_data():
    def change(joined):
        return joined.side_output_left_late_data(OutputTag("left")).side_output_right_late_data(OutputTag("right"))

    tags = (OutputTag("left"), OutputTag("right"), LATE)
    with OperatorHarness(near(0, 5, change=change), inputs=2, side_outputs=tags) as h:
        h.push(("a", "l"), 10)
        h.push(("a", "r"), 11, input=2)
        assert h.side_output(LATE) == [(("l", "r"), 11)]
        h.watermark(12)
        h.watermark(12, input=2)
        h.push(("a", "late"), 11)
        h.push(("a", "late too"), 11, input=2)
        h.push(("a", "r2"), 12, input=2)
        assert h.side_output(tags[0]) == [(("a", "late"), 11)]
        assert h.side_output(tags[1]) == [(("a", "late too"), 11)]
        assert h.values() == ["l+r", "l+r2"]


def test_what_nothing_can_reach_any_more_is_forgotten():
    with OperatorHarness(near(-2, 5), inputs=2) as h:
        for time in (1, 2, 2):
            h.push(("a", "x"), time)
            h.push(("a", "y"), time, input=2)
        assert (h.state_entries(), h.timers()) == (2, 4)
        h.watermark(6)
        assert h.timers() == 4
        h.watermark(3, input=2)
        assert (h.state_entries(), h.timers()) == (2, 3)
        h.watermark(6, input=2)
        assert (h.state_entries(), h.timers()) == (1, 1)
        h.end(1)
        h.end(2)
        assert (h.state_entries(), h.timers()) == (0, 0)


@pytest.mark.parametrize("mode", ["STREAMING", "BATCH"])
@pytest.mark.parametrize("parallelism", [1, 2])
def test_interval_join_in_programs(run, mode, parallelism):
    def build(env):
        left, right = (
            scripted(env, *(at((key, name), time) for side, key, name, time in PUSHES if side == s)) for s in (1, 2)
        )
        return near(-3, 4)(left, right)

    assert sorted(run(build, mode=mode, parallelism=parallelism)) == ["l1+r1", "l3+r1", "l3+r2"]


def test_interval_join_of_keys_that_can_never_be_equal():
    with OperatorHarness(near(0, 1), inputs=2) as h:
        h.push(("a", "l"), 1)
        with pytest.raises(RecordError, match=r"Interval Join .*keys that can never be equal"):
            h.push((1, "r"), 1, input=2)


def test_bounds_that_belong_to_an_interval_go_on_belonging_to_it():
    spec = IntervalSpec(-5, 5, lower_exclusive=True, upper_exclusive=True)
    inner = spec.inclusive()
    assert (inner.lower, inner.upper) == (-4, 4) and inner.inclusive() == inner
