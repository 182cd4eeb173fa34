"""Patterns that are replaced while the job runs."""

import logging

import pytest

from penstock.cep import CEP, Pattern, PatternUpdate
from penstock.common import WatermarkStrategy
from penstock.datastream import OutputTag, RuntimeExecutionMode, StreamExecutionEnvironment
from penstock.testing import OperatorHarness, in_process

TIMEOUTS = OutputTag("timeouts")
FIRST = "a(f0 = 'a') -> b(f0 = 'b')"
EVENTS, PATTERNS = 1, 2


def found(stream, updates, pattern=FIRST):
    keyed = stream.key_by(lambda event: event[1])
    return CEP.dynamic_pattern(keyed, Pattern.parse(pattern), updates).select(
        TIMEOUTS, lambda match, time: (shown(match), time), shown
    )


def shown(match):
    return " ".join(f"{name}={event[0]}" for name, events in match.items() for event in events)


@pytest.fixture
def harness():
    with OperatorHarness(found, inputs=2, side_outputs=(TIMEOUTS,)) as harness:
        harness.push("x -> y", input=PATTERNS)  # so that what is shown does not come from the first pattern by chance
        harness.push(FIRST, input=PATTERNS)
        yield harness


def feed(harness, kinds, start):
    """Events of one key, a second each, and the watermark behind them."""
    for number, kind in enumerate(kinds):
        harness.push((kind, "k"), timestamp=1000 * (start + number), input=EVENTS)
    harness.watermark(1000 * (start + len(kinds)) - 1, input=EVENTS)
    return harness.values()


class TestReplacing:
    def test_the_next_pattern_counts_from_then_on(self, harness):
        assert feed(harness, "ab", 1) == ["a=a b=b"]
        harness.push("c(f0 = 'c')", input=PATTERNS)
        assert feed(harness, "abc", 3) == ["c=c"]

    def test_the_first_one_counts_until_then(self):
        with OperatorHarness(found, inputs=2) as harness:
            harness.push("not used", timestamp=1, input=PATTERNS)  # is refused
            assert feed(harness, "ab", 1) == ["a=a b=b"]

    def test_matches_under_way_are_dropped(self, harness):
        feed(harness, "a", 1)
        harness.push(FIRST, input=PATTERNS)
        assert harness.state_entries() == 0
        assert feed(harness, "b", 2) == []

    def test_or_kept_as_asked(self, harness):
        feed(harness, "a", 1)
        harness.push(PatternUpdate("a(f0 = 'x') -> b(f0 = 'c')", keep_matches=True), input=PATTERNS)
        assert feed(harness, "bc", 2) == ["a=a b=c"]

    @pytest.mark.parametrize(
        ("pattern", "expected"),
        [
            ("a(f0 = 'a') -> b(f0 = 'b') -> c(f0 = 'c')", ["a=a b=b c=c"]),
            ("z(f0 = 'z') -> a(f0 = 'a') -> b(f0 = 'b')", ["a=a b=b"]),
            ("a(f0 = 'a') => b?(f0 = 'c') => d(f0 = 'b')", ["a=a d=b"]),
            ("a(f0 = 'a') -> other(f0 = 'b')", []),
            ("b(f0 = 'c') -> x(f0 = 'x')", []),
        ],
    )
    def test_of_a_pattern_with_other_elements_what_fits_is_kept(self, harness, pattern, expected):
        feed(harness, "a", 1)
        harness.push(PatternUpdate(pattern, keep_matches=True), input=PATTERNS)
        assert feed(harness, "bc", 2) == expected

    def test_a_new_limit_holds_for_what_was_kept(self, harness):
        feed(harness, "a", 1)
        harness.push(PatternUpdate(f"{FIRST} within 5 s", keep_matches=True), input=PATTERNS)
        harness.watermark(6000, input=EVENTS)
        assert harness.side_output(TIMEOUTS) == [(("a=a", 6000), 6000)]
        assert feed(harness, "b", 7) == []

    def test_events_that_wait_are_matched_by_the_next_pattern(self, harness):
        harness.push(("c", "k"), timestamp=1000, input=EVENTS)
        harness.push("c(f0 = 'c')", input=PATTERNS)
        harness.watermark(1000, input=EVENTS)
        assert harness.values() == ["c=c"]


class TestBadPatterns:
    @pytest.mark.parametrize(
        ("update", "words"),
        [
            ("a(f0 = )", "column 8"),
            ("a -> a", "two elements are named 'a'"),
            ("a !-> b", "'b' ends with a not_followed_by element"),
            (PatternUpdate("a{0}"), "'a'"),
            (17, "a string or a PatternUpdate"),
        ],
    )
    def test_are_refused_and_the_one_before_stays(self, harness, update, words, caplog):
        feed(harness, "a", 1)
        with caplog.at_level(logging.WARNING):
            harness.push(update, input=PATTERNS)
        assert words in caplog.text and "keeps its pattern" in caplog.text
        assert feed(harness, "b", 2) == ["a=a b=b"]


@pytest.mark.parametrize("keyed", [True, False])
def test_without_watermarks_of_their_own_patterns_hold_nothing_back(keyed):
    events = [("a", 1, 1000), ("b", 1, 2000), ("a", 1, 9000)]
    times = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda event: event[2])
    with in_process(epoch_records=1):
        env = StreamExecutionEnvironment.get_execution_environment()
        env.set_parallelism(2)
        stream = env.from_collection(events).assign_timestamps_and_watermarks(times)
        stream = stream.key_by(lambda event: event[1]) if keyed else stream
        updates = env.from_collection([f"{FIRST} within 1 h"])
        with CEP.dynamic_pattern(stream, Pattern.parse(FIRST), updates).select(shown).execute_and_collect() as results:
            assert list(results) == ["a=a b=b"]


def test_in_batch_mode_the_last_pattern_counts():
    times = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda event: 1000)
    with in_process():
        env = StreamExecutionEnvironment.get_execution_environment()
        env.set_parallelism(1).set_runtime_mode(RuntimeExecutionMode.BATCH)
        stream = env.from_collection([("a", 1), ("b", 1), ("c", 1)]).assign_timestamps_and_watermarks(times)
        updates = env.from_collection(["x(f0 = 'a')", "y(f0 = 'c')"])
        with found(stream, updates).execute_and_collect() as results:
            assert list(results) == ["y=c"]


def test_wrong_arguments():
    with pytest.raises(TypeError, match=r"CEP\.dynamic_pattern: the argument updates must be a DataStream"):
        OperatorHarness(lambda stream: CEP.dynamic_pattern(stream, Pattern.begin("a"), ["a"]).select(dict))
    with pytest.raises(TypeError, match=r"CEP\.dynamic_pattern: the argument pattern must be a Pattern"):
        OperatorHarness(lambda stream: CEP.dynamic_pattern(stream, "a", stream).select(dict))
