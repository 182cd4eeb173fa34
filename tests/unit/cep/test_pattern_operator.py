"""The operator of patterns by hand: what waits, what is marked for checkpoints, when it is due, and what it counts."""

import pytest

from penstock.cep import Pattern, PatternProcessFunction, TimedOutPartialMatchHandler
from penstock.cep.cep_operator import PatternOperator, PatternSpec
from penstock.cep.compiler import compile_pattern
from penstock.cep.event_matching import Matcher
from penstock.common import Duration
from penstock.datastream import OutputTag
from penstock.engine.operators.operator import Clock, OperatorContext
from penstock.engine.records.failures import OperatorFailed
from penstock.errors import StateMigrationException

LATE = OutputTag("late")


def is_type(kind):
    return lambda event: event[0] == kind


def pattern(within=100):
    made = Pattern.begin("a").where(is_type("a")).followed_by("b").where(is_type("b"))
    return made if within is None else made.within(Duration.of_millis(within))


class Tells(PatternProcessFunction, TimedOutPartialMatchHandler):
    """Gives what it is told, with the times that it can ask for."""

    def process_match(self, match, ctx):
        yield "match", [event[2] for events in match.values() for event in events], ctx.timestamp()

    def process_timed_out_match(self, match, ctx):
        yield "timeout", match["a"][0][2], ctx.timestamp(), ctx.current_processing_time()


class Counts(PatternProcessFunction):
    def process_match(self, match, ctx):
        return None


class Sent:
    def __init__(self):
        self.records, self.watermarks = [], []

    def chunk(self, chunk):
        stamps = [None] * len(chunk) if chunk.timestamps is None else chunk.timestamps
        self.records.extend(zip(chunk.values, stamps, strict=True))

    def watermark(self, timestamp):
        self.watermarks.append(timestamp)

    def taken(self):
        records, self.records = self.records, []
        return records


class Operator(PatternOperator):
    """Takes events (kind, key, name) one by one."""

    def __init__(self, made=None, function=None, now=0, side=None, **spec):
        super().__init__(PatternSpec(made or pattern(), **spec), function or Tells(), lambda event: event[1])
        self.sent, self.clock = Sent(), Clock(now)
        sides = {} if side is None else {LATE.tag_id: side}
        self.open(OperatorContext("Pattern", "p", 0, 1, 128, self.sent, sides, self.clock, tracks_changes=True))

    def take(self, *events):
        """Take (kind, key, name, time), as one chunk."""
        self.records([event[:3] for event in events], [event[3] for event in events])

    def changed(self):
        """The keys whose waiting events and whose matches the next checkpoint has to hold."""
        found = set(self._waiting.changed), set(self._matches.changed)
        self._waiting.changed.clear()
        self._matches.changed.clear()
        return found

    def advance(self, now):
        self.clock.now = now
        self.advance_processing_time(now)


# --- event time ---
def test_whatever_changes_is_marked_for_the_next_checkpoint():
    operator = Operator()
    operator.take(("a", 1, "x", 10), ("c", 2, "y", 20))
    assert operator.changed() == ({1, 2}, set())
    operator.take(("c", 1, "z", 30))
    operator.take(("c", 2, "w", 15))
    assert operator.changed() == ({1, 2}, set())
    operator.watermark(9)
    assert operator.changed() == (set(), set())
    operator.watermark(15)
    assert operator.changed() == ({1, 2}, {1}), "1 has begun a match"
    operator.watermark(30)
    assert operator.changed() == ({1, 2}, set())
    assert not operator._waiting.entries
    operator.watermark(110)
    assert operator.changed() == (set(), {1}) and not operator._matches.entries
    operator.watermark(500)
    assert operator.changed() == (set(), set())


def test_matches_of_keys_are_their_own():
    operator = Operator()
    operator.take(("a", 1, "x", 10), ("a", 2, "y", 10), ("c", 3, "z", 10), ("a", 4, "w", 11))
    operator.watermark(11)
    assert set(operator._matches.entries) == {1, 2, 4}
    assert len({id(matches) for matches in operator._matches.entries.values()}) == 3
    operator.take(("b", 2, "end", 12))
    operator.watermark(12)
    assert operator.sent.taken() == [(("match", ["y", "end"], 12), 12)] and set(operator._matches.entries) == {1, 4}


def test_events_are_matched_in_the_order_of_their_times_and_then_of_their_arrival():
    operator = Operator()
    operator.take(("b", 1, "last", 14), ("a", 1, "x", 12), ("b", 1, "first", 12), ("b", 1, "early", 11))
    operator.watermark(11)
    assert operator.sent.taken() == [] and operator._waiting.entries[1][0][0] == 12
    operator.watermark(14)
    assert operator.sent.taken() == [(("match", ["x", "first"], 12), 12)]


def test_events_up_to_the_watermark_are_late():
    class Side:
        seen: list = []

        def chunk(self, chunk):
            self.seen.extend(zip(chunk.values, chunk.timestamps, strict=True))

    operator = Operator()
    operator.watermark(10)
    operator.take(("a", 1, "late", 10), ("a", 1, "x", 11))
    assert operator.changed() == ({1}, set()) and len(operator._waiting.entries[1]) == 1
    assert operator.context.metrics.snapshot()["numLateRecordsDropped"] == 1
    side = Side()
    operator = Operator(late_tag=LATE, side=side)
    operator.watermark(10)
    operator.take(("a", 1, "late", 9))
    assert side.seen == [(("a", 1, "late"), 9)]
    assert operator.context.metrics.snapshot()["numLateRecordsDropped"] == 0


def test_the_limit_of_a_match_is_a_timer():
    operator = Operator()
    operator.take(("a", 1, "x", 10), ("c", 2, "y", 10))
    operator.watermark(10)
    assert operator.timers.event_time.timers() == [(110, 1, None)]
    operator.watermark(109)
    assert operator.sent.taken() == []
    operator.watermark(110)
    assert operator.sent.taken() == [(("timeout", "x", 110, 0), 110)]
    assert not operator.timers.event_time.timers() and operator.sent.watermarks == [10, 109, 110]


def test_matches_without_a_limit_have_no_timers():
    operator = Operator(pattern(None))
    operator.take(("a", 1, "x", 10))
    operator.watermark(10)
    assert not operator.timers.event_time.timers() and 1 in operator._matches.entries


def test_a_match_is_over_before_an_event_at_its_limit():
    operator = Operator()
    operator.take(("a", 1, "x", 10), ("b", 1, "y", 110), ("a", 2, "z", 10), ("b", 2, "w", 109))
    operator.watermark(200)
    assert sorted(operator.sent.taken()) == [(("match", ["z", "w"], 109), 109), (("timeout", "x", 110, 0), 110)]


def test_a_function_may_return_nothing():
    operator = Operator(function=Counts())
    operator.take(("a", 1, "x", 10), ("b", 1, "y", 11), ("a", 2, "z", 10))
    operator.watermark(500)
    assert operator.sent.taken() == [] and not operator._matches.entries


def test_the_end_of_a_key_matches_all_that_waits():
    operator = Operator()
    operator.take(("a", 1, "x", 10), ("b", 1, "y", 11), ("a", 1, "z", 12))
    operator.finish_key(1)
    assert operator.sent.taken()[0] == (("match", ["x", "y"], 11), 11)
    operator.watermark(50)
    assert operator.sent.taken() == []


def test_an_error_at_the_watermark_names_the_key():
    def fails(event):
        raise ValueError("no")

    operator = Operator(Pattern.begin("a").where(fails))
    operator.take(("a", "k", "x", 10))
    with pytest.raises(OperatorFailed, match="no") as raised:
        operator.watermark(10)
    assert "waiting events of key 'k'" in raised.value.failure.record


# --- processing time ---
def test_in_processing_time_each_event_is_matched_at_once():
    operator = Operator(event_time=False, now=10)
    operator.take(("a", 1, "x", None), ("c", 1, "y", None))
    assert operator.changed() == (set(), {1}) and operator.next_due() == 111
    operator.clock.now = 20
    operator.take(("b", 1, "z", 5))
    assert operator.sent.taken() == [(("match", ["x", "z"], 20), None)]
    assert operator.changed() == (set(), {1})


def test_in_processing_time_a_match_ends_a_millisecond_behind_its_limit():
    operator = Operator(event_time=False, now=10)
    operator.take(("a", 1, "x", None))
    operator.advance(110)
    assert operator.sent.taken() == []
    operator.advance(111)
    assert operator.sent.taken() == [(("timeout", "x", 110, 111), None)]
    assert operator.next_due() is None and not operator._matches.entries


def test_with_a_comparator_the_events_of_a_millisecond_are_sorted_when_it_is_over():
    by_name = lambda left, right: (left[2] > right[2]) - (left[2] < right[2])  # noqa: E731
    operator = Operator(event_time=False, now=10, comparator=by_name)
    operator.take(("b", 1, "2", None), ("a", 1, "1", None))
    operator.take(("c", 2, "3", None))
    assert operator.changed() == ({1, 2}, set()) and operator.next_due() == 11
    operator.advance(11)
    assert operator.sent.taken() == [(("match", ["1", "2"], 10), None)]
    assert operator.changed()[0] == {1, 2} and not operator._waiting.entries


def test_with_a_comparator_events_of_one_timestamp_are_sorted():
    by_name = lambda left, right: (left[2] > right[2]) - (left[2] < right[2])  # noqa: E731
    operator = Operator(comparator=by_name)
    operator.take(("b", 1, "2", 10), ("a", 1, "1", 10), ("a", 1, "0", 11))
    operator.watermark(10)
    assert operator.sent.taken() == [(("match", ["1", "2"], 10), 10)]
    assert operator._waiting.entries == {1: [(11, ("a", 1, "0"))]}


# --- conditions and saved matches ---
def test_conditions_are_closed_with_the_operator():
    from penstock.cep import RichIterativeCondition

    class Counting(RichIterativeCondition):
        opened = closed = 0

        def open(self, runtime_context):
            self.opened += 1

        def close(self):
            self.closed += 1

        def filter(self, value, ctx):
            return True

    condition = Counting()
    operator = Operator(Pattern.begin("a").where(condition))
    (leaf,) = operator._matcher.leaves
    assert (leaf.condition.opened, leaf.condition.closed) == (1, 0)
    operator.close()
    assert (leaf.condition.opened, leaf.condition.closed) == (1, 1)


def test_matches_of_another_pattern_are_refused():
    operator = Operator()
    operator.take(("a", 1, "x", 10))
    operator.watermark(10)
    operator._check_restored()
    operator._matcher = Matcher(compile_pattern(pattern().next("c")), False)
    with pytest.raises(OperatorFailed, match="the saved partial matches belong to another pattern"):
        operator._check_restored()
    with pytest.raises(StateMigrationException):
        operator._matcher.check(operator._matches.entries[1])


# --- the matcher ---
def fed(made, *events, timeouts=True):
    """A matcher with a match under way, after (event, time)."""
    matcher = Matcher(compile_pattern(made), timeouts)
    matches = matcher.new()
    found = [matcher.feed(matches, event, time) for event, time in events]
    return matcher, matches, found


def test_an_event_without_effect_changes_nothing():
    matcher, matches, found = fed(pattern(), (("c",), 1), (("a",), 2), (("c",), 3))
    assert found == [((), False), ((), True), ((), False)]
    assert matches.last_number == 1 and len(matches.partials) == 1
    before = matches.partials
    assert matcher.advance(matches, 101) == ((), ()) and matches.partials is before
    assert matcher.advance(matches, 102) == ([], [({"a": [("a",)]}, 102)]) and matches.partials == []
    assert matcher.advance(matches, 500) == ((), ())


def test_a_match_that_begins_is_noted():
    _, matches, _ = fed(pattern(), (("a",), 1))
    assert matches.begun
    _, matches, _ = fed(pattern(), (("a",), 1), (("b",), 2))
    assert not matches.begun
    _, matches, ((found, changed),) = fed(Pattern.begin("a").where(is_type("a")), (("a",), 1))
    assert matches.begun and changed and found == [{"a": [("a",)]}] and not matches.partials


def test_timeouts_are_told_only_where_somebody_wants_them():
    matcher, matches, _ = fed(pattern(), (("a",), 1), timeouts=False)
    assert matcher.advance(matches, 101) == ([], []) and not matches


def test_the_time_between_two_events_has_its_own_limit():
    from penstock.cep import WithinType

    made = (
        Pattern.begin("a").where(is_type("a")).followed_by("b").where(is_type("b")).followed_by("c").where(is_type("c"))
    )
    made = made.within(Duration.of_millis(10), WithinType.PREVIOUS_AND_CURRENT)
    matcher, matches, _ = fed(made, (("a",), 0), (("b",), 9), (("a",), 15))
    assert len(matches.partials) == 2
    assert matcher.advance(matches, 18) == ((), ())
    _, late = matcher.advance(matches, 19)
    assert [limit for _, limit in late] == [19] and len(matches.partials) == 1
    assert matcher.advance(matches, 500) == ((), ()), "there is no limit between a and b"


def test_a_match_that_waits_for_nothing_more_is_complete_with_its_time():
    made = (
        Pattern.begin("a").where(is_type("a")).not_followed_by("b").where(is_type("b")).within(Duration.of_millis(10))
    )
    matcher, matches, _ = fed(made, (("a",), 0), (("c",), 3))
    assert matcher.advance(matches, 9) == ((), ())
    assert matcher.advance(matches, 10) == ([{"a": [("a",)]}], [])
    matcher, matches, _ = fed(made, (("a",), 0), (("b",), 3))
    assert not matches.partials
