"""What patterns keep, what they leave behind, and what may change between a savepoint and the next run."""

import pickle

import pytest

from penstock.cep import CEP, AfterMatchSkipStrategy, Pattern, RichIterativeCondition
from penstock.cep.compiler import compile_pattern
from penstock.cep.event_matching import Matcher
from penstock.cep.testing import PatternTester
from penstock.common import Duration, WatermarkStrategy
from penstock.datastream import OutputTag, RuntimeExecutionMode, StreamExecutionEnvironment
from penstock.errors import StateMigrationException
from penstock.testing import OperatorHarness, in_process


def is_type(kind):
    return lambda event: event[0] == kind


def two_steps():
    return Pattern.begin("a").where(is_type("a")).followed_by("b").where(is_type("b")).within(Duration.of_millis(100))


def keyed(pattern):
    return OperatorHarness(lambda stream: CEP.pattern(stream.key_by(lambda event: event[1]), pattern).select(dict))


class TestWhatIsLeft:
    def test_nothing_after_a_match_and_a_timeout(self):
        with keyed(two_steps()) as harness:
            harness.push(("a", 1), timestamp=10)
            harness.push(("a", 2), timestamp=20)
            assert (harness.state_entries(), harness.timers()) == (2, 0)  # both wait for the watermark
            harness.watermark(20)
            assert (harness.state_entries(), harness.timers()) == (2, 2)  # both wait for b, and for their limit
            harness.push(("b", 1), timestamp=30)
            harness.watermark(30)
            assert harness.values() == [{"a": [("a", 1)], "b": [("b", 1)]}]
            assert harness.state_entries() == 1
            harness.watermark(120)
            assert (harness.values(), harness.state_entries(), harness.timers()) == ([], 0, 0)

    def test_events_that_begin_nothing_leave_nothing(self):
        with keyed(two_steps()) as harness:
            for time in range(10, 20):
                harness.push(("b", time), timestamp=time)
            harness.watermark(20)
            assert (harness.state_entries(), harness.timers()) == (0, 0)

    def test_a_day_of_events_under_within_stays_small(self):
        """A loop, and matches that end with their time only; one event a minute for each of two keys."""
        pattern = Pattern.parse("a+(f0 = 'a') -> b(f0 = 'b') !-> c(f0 = 'c') within 10 min")
        sizes, timers = [], []
        with keyed(pattern) as harness:
            for minute in range(24 * 60):
                for key in range(2):
                    harness.push(("aab"[minute % 3 if key else 0], key, minute), timestamp=minute * 60_000 + key)
                harness.watermark((minute - 2) * 60_000)
                sizes.append(sum(len(pickle.dumps(table.entries)) for table in harness._tables()))
                timers.append(harness.timers())
                harness.output()
            assert max(sizes[60:]) <= 1.1 * max(sizes[:60]) and max(timers) <= 2 * 11
            harness.watermark(24 * 60 * 60_000 + 10 * 60_000)
            assert (harness.state_entries(), harness.timers()) == (0, 0)

    def test_the_work_for_an_event_does_not_grow_with_the_stream(self):
        asked = []

        def counted(kind):
            return lambda event, ctx: asked.append(kind) or event[0] == kind

        pattern = Pattern.begin("a").where(counted("a")).followed_by("b").where(counted("b")).within(100)
        tester, work = PatternTester(pattern), []
        for number in range(3000):
            before = len(asked)
            tester.feed(("aabc"[number % 4], number), 10 * number)
            work.append(len(asked) - before)
        assert max(work[-1000:]) == max(work[:1000]) < 20

    def test_the_end_of_input_is_a_watermark(self):
        with keyed(two_steps()) as harness:
            harness.push(("a", 1), timestamp=10)
            harness.push(("b", 1), timestamp=12)
            harness.end()
            assert harness.output() == [({"a": [("a", 1)], "b": [("b", 1)]}, 12)]
            assert (harness.state_entries(), harness.timers()) == (0, 0)


class TestProcessingTime:
    def harness(self, comparator=None):
        return OperatorHarness(
            lambda stream: (
                CEP.pattern(stream.key_by(lambda event: event[1]), two_steps(), comparator)
                .in_processing_time()
                .select(dict)
            )
        )

    def test_time_is_that_of_the_epoch(self):
        harness = self.harness()
        harness.advance_processing_time(10)
        harness.push(("a", 1))
        harness.advance_processing_time(109)
        harness.push(("b", 1))
        assert harness.output() == [({"a": [("a", 1)], "b": [("b", 1)]}, None)]
        harness.push(("a", 1))
        harness.advance_processing_time(209)
        harness.push(("b", 1))
        assert harness.output() == []

    def test_with_a_comparator_events_wait_for_the_next_millisecond(self):
        harness = self.harness(comparator=lambda first, second: (first > second) - (first < second))
        harness.advance_processing_time(10)
        harness.push(("b", 1))
        harness.push(("a", 1))
        assert harness.output() == []
        harness.advance_processing_time(11)
        assert harness.values() == [{"a": [("a", 1)], "b": [("b", 1)]}]


class TestSavedMatches:
    def after(self, pattern, *events):
        matcher = Matcher(compile_pattern(pattern), reports_timeouts=False)
        matches = matcher.new()
        for time, event in enumerate(events, 1):
            matcher.feed(matches, event, time)
        return matcher, matches

    def test_chains_may_be_longer_than_pickle_can_nest(self):
        skip = AfterMatchSkipStrategy.skip_past_last_event()
        pattern = Pattern.begin("s", skip).where(is_type("s")).next("a").where(is_type("a")).one_or_more().consecutive()
        pattern = pattern.next("b").where(is_type("b"))
        matcher, matches = self.after(pattern, ("s", 0), *[("a", n) for n in range(3000)])
        restored = pickle.loads(pickle.dumps(matches))
        assert matcher.feed(restored, ("b", 0), 4000) == matcher.feed(matches, ("b", 0), 4000)

    def test_an_event_is_saved_once_however_many_matches_share_it(self):
        pattern = Pattern.begin("a").one_or_more().allow_combinations().followed_by("b").where(is_type("b"))
        event = ("a", "x" * 10_000)
        _, matches = self.after(pattern, *[("a", n) for n in range(6)], event)
        assert len(matches.partials) > 100
        assert pickle.dumps(matches).count(b"x" * 10_000) == 1

    def test_nodes_stay_shared(self):
        pattern = Pattern.begin("a").followed_by_any("b").followed_by_any("c").where(lambda _: False)
        _, matches = self.after(pattern, *range(20))
        restored = pickle.loads(pickle.dumps(matches))
        assert restored.partials == matches.partials
        assert len({id(partial[1]) for partial in restored.partials}) == len({id(p[1]) for p in matches.partials})

    def test_conditions_and_times_may_change(self):
        _, matches = self.after(two_steps(), ("a", 1))
        other = Pattern.begin("a").where(is_type("x")).followed_by("b").where(lambda _: True).within(7)
        Matcher(compile_pattern(other), reports_timeouts=False).check(matches)

    @pytest.mark.parametrize(
        "other",
        [
            Pattern.begin("a").followed_by("c"),
            Pattern.begin("a").next("b"),
            Pattern.begin("a").followed_by("b").optional(),
            Pattern.begin("a").one_or_more().followed_by("b"),
        ],
    )
    def test_names_contiguity_and_quantifiers_may_not(self, other):
        _, matches = self.after(two_steps(), ("a", 1))
        with pytest.raises(StateMigrationException, match="belong to another pattern"):
            Matcher(compile_pattern(other), reports_timeouts=False).check(matches)


class TestConditions:
    def test_a_simple_condition_is_asked_once_for_an_event(self):
        asked = []
        pattern = Pattern.begin("a").followed_by_any("b").where(lambda event: asked.append(event) or False)
        tester = PatternTester(pattern)
        for event in range(5):
            tester.feed(event)
        assert asked == [1, 2, 3, 4]

    def test_a_rich_condition_is_opened_and_closed(self):
        Rich.life.clear()
        pattern = Pattern.begin("a").next("b").where(Rich())
        with OperatorHarness(lambda stream: CEP.pattern(stream, pattern).select(dict)) as harness:
            harness.push(1, timestamp=1)
            harness.push(5, timestamp=2)
            harness.watermark(2)
            assert harness.values() == [{"a": [1], "b": [5]}]
            assert Rich.life == ["opened in 0"]
        assert Rich.life == ["opened in 0", "closed"]


class Rich(RichIterativeCondition):
    life: list[str] = []

    def open(self, runtime_context):
        self.life.append(f"opened in {runtime_context.get_index_of_this_subtask()}")

    def filter(self, value, ctx):
        return ctx.get_events_for_pattern("a") == [1] and ctx.timestamp() == 2

    def close(self):
        self.life.append("closed")


@pytest.mark.parametrize("mode", list(RuntimeExecutionMode))
def test_batch_mode_finds_the_same(mode):
    events = [("a", 1, 10), ("a", 2, 20), ("b", 2, 40), ("a", 1, 50), ("b", 1, 105), ("b", 1, 120), ("b", 2, 500)]
    times = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda event: event[2])
    late = OutputTag("timeouts")
    with in_process():
        env = StreamExecutionEnvironment.get_execution_environment()
        env.set_parallelism(1).set_runtime_mode(mode)
        keyed = env.from_collection(events).assign_timestamps_and_watermarks(times).key_by(lambda event: event[1])
        pattern = CEP.pattern(keyed, two_steps())
        found = pattern.select(late, lambda match, time: ("timeout", time), lambda match: match["b"])
        with found.union(found.get_side_output(late)).execute_and_collect() as results:
            assert sorted(results, key=str) == [[("b", 1, 105)], [("b", 1, 105)], [("b", 2, 40)]]
