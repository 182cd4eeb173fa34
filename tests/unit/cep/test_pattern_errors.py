"""Patterns that make no sense, and conditions, events and comparators that go wrong: errors that name the element."""

import logging
import threading

import pytest

from penstock.cep import (
    CEP,
    AfterMatchSkipStrategy,
    MalformedPatternException,
    Pattern,
    PatternProcessFunction,
    SimpleCondition,
    TimedOutPartialMatchHandler,
    WithinType,
)
from penstock.cep.compiler import compile_pattern
from penstock.common import Duration, RestartStrategies, WatermarkStrategy
from penstock.common.watermark_strategy import Watermark, WatermarkGenerator
from penstock.datastream import EmbeddedRocksDBStateBackend, OutputTag, StreamExecutionEnvironment
from penstock.errors import JobFailed, MissingTimestamp, PenstockError, UnsupportedOperation
from penstock.testing import ManualClock, OperatorHarness, in_process

begin = Pattern.begin


@pytest.mark.parametrize(
    ("build", "error", "words"),
    [
        (lambda: begin("a").optional().optional(), MalformedPatternException, "'a' is optional already"),
        (lambda: begin("a").times(2).one_or_more(), MalformedPatternException, "'a' has a quantifier already"),
        (lambda: begin("a").greedy(), MalformedPatternException, "'a' takes one event"),
        (lambda: begin("a").consecutive(), MalformedPatternException, "'a' takes one event"),
        (lambda: begin("a").one_or_more().consecutive().allow_combinations(), MalformedPatternException, "'a' can"),
        (lambda: begin("a").one_or_more().allow_combinations().greedy(), MalformedPatternException, "'a' allows"),
        (lambda: begin("a").not_next("n").times(2), MalformedPatternException, "'n' is a not_next element"),
        (lambda: begin("a").not_followed_by("n").optional(), MalformedPatternException, "'n' is a not_followed_by"),
        (
            lambda: begin("a").times(2).greedy().next("b").optional(),
            MalformedPatternException,
            "'b' cannot be",
        ),
        (lambda: begin("a").until(bool), MalformedPatternException, "'a' does not loop"),
        (lambda: begin("a").one_or_more().until(bool).until(bool), MalformedPatternException, "'a' has an until"),
        (lambda: begin("a").optional().not_next("n"), UnsupportedOperation, "'n' cannot be a not_next element"),
        (lambda: begin(begin("a")).where(bool), UnsupportedOperation, "the group (a) has no where()"),
        (lambda: begin(begin("a")).greedy(), MalformedPatternException, "the group (a) cannot be greedy"),
        (lambda: begin("a").times(0), ValueError, "'a': an element matches at least once"),
        (lambda: begin("a").times(3, 2), ValueError, "'a': an element cannot match from 3 up to 2 times"),
        (lambda: begin("a").within(Duration.of_millis(0)), ValueError, "within of 'a' must be at least a millisecond"),
        (lambda: begin("a").one_or_more(Duration.of_millis(-1)), ValueError, "window_time of 'a'"),
        (lambda: begin("a").where(lambda: True), TypeError, "the condition of 'a' must be a function of (event)"),
        (lambda: begin("a").where(SimpleCondition), TypeError, "write SimpleCondition()"),
        (lambda: begin("a").where(3), TypeError, "where of 'a' takes a condition"),
        (lambda: begin("a").subtype("b"), TypeError, "subtype: the argument subtype_class must be a type"),
        (lambda: begin("a").not_next(begin("b")), TypeError, "not_next: the argument name must be a string, not"),
        (lambda: begin(3), TypeError, "begin: the argument name must be a string or a Pattern"),
        (lambda: begin("a", "no_skip"), TypeError, "AfterMatchSkipStrategy"),
    ],
)
def test_refused_at_once(build, error, words):
    with pytest.raises(error) as caught:
        build()
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        (begin("a").next("a"), "two elements are named 'a'"),
        (begin("a").next(begin("b").next("a")), "two elements are named 'a'"),
        (begin("$endState$"), "cannot be named '$endState$'"),
        (begin("a", AfterMatchSkipStrategy.skip_to_last("b")), "cannot skip to last b"),
        (begin("a").not_followed_by("n"), "'n' ends with a not_followed_by element"),
        (begin("a").next("b").within(9, WithinType.PREVIOUS_AND_CURRENT).next("c").within(5), "'b' may come"),
        (begin(begin("a").optional().next("b").optional()).one_or_more(), "'a', 'b' form a loop"),
    ],
)
def test_refused_as_a_whole(pattern, words):
    with pytest.raises(MalformedPatternException) as caught:
        compile_pattern(pattern)
    assert words in str(caught.value)


class Emit(PatternProcessFunction):
    def process_match(self, match, ctx):
        yield match


def harness(pattern, comparator=None):
    return OperatorHarness(lambda stream: CEP.pattern(stream.key_by(lambda _: 0), pattern, comparator).process(Emit()))


def run(harness, *events):
    for event in events:
        harness.push(event, timestamp=10)
    harness.watermark(10)


def test_a_condition_that_raises_is_named_with_its_event():
    broken = harness(begin("a").next("strange").where(lambda event: 1 / event))
    with pytest.raises(JobFailed) as caught:
        run(broken, 5, 0)
    assert "ZeroDivisionError" in str(caught.value)
    assert "in a condition of the element 'strange', on the event 0" in str(caught.value)


@pytest.mark.parametrize(
    "pattern",
    [
        begin("a").next("strange").where(lambda event, ctx: ctx.get_events_for_pattern("a")[event]),
        begin("strange").one_or_more().until(lambda event: event[0]).next("b"),
        begin("a").next("strange").or_(lambda event: event.missing),
    ],
)
def test_so_is_one_that_looks_back_ends_a_loop_or_is_an_alternative(pattern):
    with pytest.raises(JobFailed) as caught:
        run(harness(pattern), 5, 7)
    assert "in a condition of the element 'strange', on the event" in str(caught.value)


def test_an_event_without_a_timestamp():
    with pytest.raises(MissingTimestamp, match="in_processing_time"):
        harness(begin("a")).push(1)


def contradicting(first, second):
    return -1


@pytest.mark.parametrize(
    ("comparator", "words"),
    [
        (contradicting, "the comparator contradicts itself"),
        (
            lambda first, second: (second - first + 1) % 3 - 1,
            "contradicts itself: it puts 2 before 0, and the other way",
        ),
        (lambda first, second: None, "the comparator returned None for"),
        (lambda first, second: first["no"], "TypeError"),
    ],
)
def test_a_comparator_that_makes_no_sense(comparator, words):
    with pytest.raises(JobFailed) as caught:
        run(harness(begin("a"), comparator), 0, 1, 2)
    assert words in str(caught.value)


@pytest.mark.parametrize("last", [1, 2])
def test_a_skip_that_misses(last):
    to_first = AfterMatchSkipStrategy.skip_to_first("a").throw_exception_on_miss()
    with pytest.raises(JobFailed, match="cannot skip to 'a': it is the first event of the match"):
        run(harness(begin("a", to_first)), last)


def test_wrong_arguments_of_streams():
    def select_two(stream):
        return CEP.pattern(stream, begin("a")).select(len, len)

    with pytest.raises(TypeError, match="select takes a function, or a tag"):
        OperatorHarness(select_two)
    with pytest.raises(TypeError, match=r"CEP\.pattern: the argument pattern must be a Pattern"):
        OperatorHarness(lambda stream: CEP.pattern(stream, "a").select(len))
    with pytest.raises(TypeError, match="must be a PatternProcessFunction"):
        OperatorHarness(lambda stream: CEP.pattern(stream, begin("a")).process(len))
    with pytest.raises(TypeError, match="must be a OutputTag"):
        OperatorHarness(lambda stream: CEP.pattern(stream, begin("a")).select("tag", len, len))


class Timed(PatternProcessFunction, TimedOutPartialMatchHandler):
    def process_match(self, match, ctx):
        yield match

    def process_timed_out_match(self, match, ctx):
        raise ValueError("too late")


@pytest.mark.parametrize(
    ("in_processing_time", "words"),
    [(True, "timer at 111 of key 'k'"), (False, "waiting events of key 'k'")],
)
def test_a_failure_that_time_brings_names_its_timer_or_the_key_whose_events_waited(in_processing_time, words):
    pattern = begin("a").next("b").within(Duration.of_millis(100))

    def build(stream):
        found = CEP.pattern(stream.key_by(lambda _: "k"), pattern)
        return (found.in_processing_time() if in_processing_time else found).process(Timed())

    works = OperatorHarness(build)
    works.advance_processing_time(10)
    works.push(1, timestamp=10)
    with pytest.raises(JobFailed) as caught:
        if in_processing_time:
            works.advance_processing_time(500)
        else:
            works.push(2, timestamp=300)
            works.watermark(500)
    assert "ValueError: too late" in str(caught.value)
    assert words in str(caught.value)


class TestStateThatGrows:
    @pytest.fixture(autouse=True)
    def early(self, monkeypatch):
        monkeypatch.setattr("penstock.cep.cep_operator.MANY", 5)

    def warnings(self, pattern, events, caplog):
        with caplog.at_level(logging.WARNING):
            run(harness(pattern), *events)
        return [record.getMessage() for record in caplog.records if "partial matches" in record.msg]

    def test_partial_matches_without_a_limit(self, caplog):
        first, second = self.warnings(begin("a").followed_by("never").where(lambda _: False), range(60), caplog)
        assert "holds 5 partial matches of key 0 with 5 events" in first and "50 partial matches" in second
        assert "most of them wait at the element 'never', the oldest since the event 0." in first

    def test_an_until_that_never_comes(self, caplog):
        """There is a single partial match all the time, but it has more and more events."""
        loop = begin("a").where(lambda event: event == 0).followed_by("loop").where(lambda event: event > 0)
        loop = loop.one_or_more().greedy().until(lambda event: event == "end").followed_by("b").where(lambda _: False)
        first, second = self.warnings(loop, range(60), caplog)
        assert "holds 1 partial matches of key 0 with 5 events; most of them wait at the element 'loop'" in first
        assert "with 50 events" in second

    def test_matches_that_come_and_go_are_no_growth(self, caplog):
        assert self.warnings(begin("a").next("b"), range(60), caplog) == []


class TestStrangeEvents:
    def test_an_event_need_not_be_hashable(self):
        works = harness(begin("a").next("b"))
        run(works, {"x": [1]}, {"x": [2]})
        assert works.values() == [{"a": [{"x": [1]}], "b": [{"x": [2]}]}]

    @pytest.mark.parametrize("rocks", [False, True])
    @pytest.mark.parametrize(
        ("watermark", "words"), [(10, "the element 'first' has taken it"), (5, "it waits for the watermark")]
    )
    def test_an_event_that_cannot_be_pickled_is_named(self, watermark, words, rocks, tmp_path):
        with in_process(1, ManualClock(tick=50)), pytest.raises(PenstockError) as caught:
            environment = StreamExecutionEnvironment.get_execution_environment()
            environment.set_parallelism(1).enable_checkpointing(10)
            environment.set_restart_strategy(RestartStrategies.no_restart())
            environment.get_checkpoint_config().set_checkpoint_storage_dir(str(tmp_path))
            if rocks:
                environment.set_state_backend(EmbeddedRocksDBStateBackend())
            stream = environment.from_collection(range(5)).map(lambda number: Locked(number, watermark))
            times = WatermarkStrategy.for_generator(lambda _: Marks()).with_timestamp_assigner(lambda _: 10)
            timed = stream.assign_timestamps_and_watermarks(times).key_by(lambda event: event.number)
            CEP.pattern(timed, begin("first").next("second")).select(len).print()
            environment.execute()
        assert "Pattern Select (uid" in str(caught.value) and words in str(caught.value)
        assert "the event <event 0> of key 0 cannot be saved: " in str(caught.value)


class Locked:
    def __init__(self, number, watermark):
        self.number, self.watermark, self.lock = number, watermark, threading.Lock()

    def __repr__(self):
        return f"<event {self.number}>"


class Marks(WatermarkGenerator):
    def on_event(self, event, event_timestamp, output):
        output.emit_watermark(Watermark(event.watermark))

    def on_periodic_emit(self, output):
        pass


def test_late_events_without_a_side_output_are_counted_and_dropped():
    late = OutputTag("late")
    stream = OperatorHarness(
        lambda stream: CEP.pattern(stream.key_by(lambda _: 0), begin("a")).side_output_late_data(late).process(Emit()),
        side_outputs=(late,),
    )
    stream.watermark(10)
    stream.push("a", timestamp=10)
    stream.push("b", timestamp=11)
    stream.watermark(11)
    assert stream.side_output(late) == [("a", 10)]
    assert stream.output() == [({"a": ["b"]}, 11)]
