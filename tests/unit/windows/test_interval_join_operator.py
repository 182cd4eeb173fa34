"""The interval join by hand: buffers, timers, late elements, and the bounds of what is kept."""

import pytest

from penstock.datastream import OutputTag
from penstock.datastream.functions import ProcessJoinFunction
from penstock.engine.operators.operator import Clock, OperatorContext
from penstock.engine.records.elements import MIN_TIMESTAMP, Chunk
from penstock.engine.records.failures import OperatorFailed
from penstock.engine.windows.window_joins import IntervalJoinOperator, IntervalSpec, KeyKinds, TimeBuffer
from penstock.errors import RecordError

LEFT, RIGHT = OutputTag("left"), OutputTag("right")


class Pair(ProcessJoinFunction):
    def process_element(self, left, right, ctx):
        if left[1] == "nothing":
            return None
        return [(left[1], right[1], ctx.left_timestamp(), ctx.right_timestamp())]


class Sent:
    def __init__(self):
        self.seen = []

    def chunk(self, chunk):
        self.seen.extend(zip(chunk.values, chunk.timestamps, strict=True))

    def watermark(self, timestamp): ...

    def taken(self):
        seen, self.seen = self.seen, []
        return seen


def opened(lower, upper, **tags):
    operator = IntervalJoinOperator(Pair(), IntervalSpec(lower, upper, **tags), None, (first, first))
    operator.sent, operator.sides = Sent(), {tag.tag_id: Sent() for tag in (LEFT, RIGHT)}
    context = OperatorContext("Join", "join", 0, 1, 128, operator.sent, operator.sides, Clock(), tracks_changes=True)
    operator.open(context)
    operator.take = lambda side, *elements: operator.inputs()[side](
        Chunk([(key, name) for key, name, _ in elements], [time for *_, time in elements])
    )
    return operator


def first(value):
    return value[0]


def timers(operator):
    return operator.timers.event_time.timers()


def buffered(operator):
    return [{key: buffer.times for key, buffer in table.entries.items()} for table in operator._buffers]


@pytest.mark.parametrize(
    ("lower", "upper", "left", "right"),
    [(-2, 3, 3, 2), (0, 0, 0, 0), (-5, -2, 0, 5), (2, 5, 5, 0)],
    ids=["around", "at once", "right is earlier", "right is later"],
)
def test_elements_are_kept_as_long_as_another_may_match(lower, upper, left, right):
    operator = opened(lower, upper)
    operator.take(0, ("k", "l", 10))
    operator.take(1, ("k", "r", 10))
    assert sorted(timers(operator)) == sorted([(10 + left, "k", 0), (10 + right, "k", 1)])
    operator.watermark(9 + max(left, right))
    assert len(buffered(operator)[0 if left >= right else 1]) == 1
    operator.watermark(10 + max(left, right))
    assert buffered(operator) == [{}, {}] and timers(operator) == []


@pytest.mark.parametrize("earlier", [0, 1])
def test_both_bounds_belong_to_the_interval_whoever_comes_first(earlier):
    operator = opened(-2, 3)
    lefts, rights = [("k", "l", 10)], [("k", f"r{time}", time) for time in (7, 8, 13, 14)]
    for side in (earlier, 1 - earlier):
        operator.take(side, *(rights if side else lefts))
    assert operator.sent.taken() == [(("l", "r8", 10, 8), 10), (("l", "r13", 10, 13), 13)]


def test_keys_do_not_meet():
    operator = opened(-2, 2)
    operator.take(0, ("a", "l", 10))
    operator.take(1, ("b", "r", 10))
    assert operator.sent.taken() == []


def test_elements_of_one_time_all_match_in_the_order_of_their_arrival():
    operator = opened(0, 0)
    operator.take(0, ("k", "1", 10), ("k", "2", 10))
    operator.take(1, ("k", "x", 10))
    assert [found[:2] for found, _ in operator.sent.taken()] == [("1", "x"), ("2", "x")]
    operator.watermark(10)
    assert buffered(operator) == [{}, {}]


def test_a_function_may_return_nothing():
    operator = opened(0, 0)
    operator.take(0, ("k", "nothing", 10), ("k", "l", 10))
    operator.take(1, ("k", "r", 10))
    assert [found[0] for found, _ in operator.sent.taken()] == ["l"]


def test_elements_behind_the_watermark_are_late():
    operator = opened(-5, 5)
    operator.watermark(10)
    operator.take(0, ("k", "late", 9), ("k", "l", 10))
    operator.take(1, ("k", "late", 9), ("k", "r", 10))
    assert [found[:2] for found, _ in operator.sent.taken()] == [("l", "r")]
    assert operator.context.metrics.snapshot()["numLateRecordsDropped"] == 2


@pytest.mark.parametrize("side", [0, 1])
def test_late_elements_go_where_somebody_wants_them(side):
    operator = opened(-5, 5, **{("left_late", "right_late")[side]: (LEFT, RIGHT)[side]})
    operator.watermark(10)
    for number in (0, 1):
        operator.take(number, ("k", f"late {number}", 9))
    assert operator.sides[(LEFT, RIGHT)[side].tag_id].taken() == [(("k", f"late {side}"), 9)]
    assert operator.sides[(RIGHT, LEFT)[side].tag_id].taken() == []
    assert operator.context.metrics.snapshot()["numLateRecordsDropped"] == 1


@pytest.mark.parametrize("timestamp", [None, MIN_TIMESTAMP])
def test_elements_without_a_timestamp_are_refused(timestamp):
    operator = opened(-5, 5)
    with pytest.raises(OperatorFailed, match="an interval join needs timestamps"):
        operator.take(0, ("k", "l", timestamp))


def test_what_changes_is_marked_for_the_next_checkpoint():
    operator = opened(-5, 5)
    operator.take(0, ("k", "l", 10))
    left, right = operator._buffers
    assert (left.changed, right.changed) == ({"k"}, set())
    left.changed.clear()
    operator.take(0, ("k", "l", 12))
    assert left.changed == {"k"}
    left.changed.clear()
    operator.watermark(15)
    assert left.changed == {"k"} and buffered(operator)[0] == {"k": [12]}


def test_a_timer_whose_elements_are_gone_does_nothing():
    operator = opened(-5, 5)
    operator.on_event_time(10, "nobody", 0)
    assert buffered(operator) == [{}, {}]


# --- parts ---
def test_a_buffer_of_times():
    buffer = TimeBuffer()
    for time, value in ((5, "a"), (3, "b"), (5, "c"), (9, "d")):
        buffer.add(time, value)
    assert buffer.times == [3, 5, 9]
    assert buffer.between(3, 5) == [(3, ["b"]), (5, ["a", "c"])] and buffer.between(6, 8) == []
    buffer.remove(5)
    buffer.remove(4)
    assert buffer.times == [3, 9] and buffer.between(0, 99) == [(3, ["b"]), (9, ["d"])]


@pytest.mark.parametrize(("left", "right"), [(1, "1"), ((1,), 1), (b"1", "1")])
def test_keys_that_can_never_be_equal(left, right):
    kinds = KeyKinds()
    kinds.see(0, left)
    kinds.see(0, right)
    with pytest.raises(RecordError, match="keys that can never be equal"):
        kinds.see(1, right)


@pytest.mark.parametrize(("left", "right"), [(1, 1.5), (None, "1"), (1, None), ("a", "b"), (True, 2)])
def test_keys_that_may_be_equal(left, right):
    kinds = KeyKinds()
    kinds.see(1, left)
    kinds.see(0, right)


@pytest.mark.parametrize(
    ("exclusive", "bounds"), [((False, False), (-2, 3)), ((True, False), (-1, 3)), ((False, True), (-2, 2))]
)
def test_bounds_that_do_not_belong_to_an_interval(exclusive, bounds):
    spec = IntervalSpec(-2, 3, *exclusive, left_late=LEFT, right_late=RIGHT)
    assert spec.inclusive() == IntervalSpec(*bounds, False, False, LEFT, RIGHT)
