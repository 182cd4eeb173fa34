"""In which order results leave, and how many requests are in flight: for any latencies, watermarks and epochs."""

from __future__ import annotations

import threading
import time
from itertools import groupby

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.engine.operators.functions import async_wait
from tests.unit.runtime.async_driving import MODES, After, Driven, Gated, timed

DELAYS = st.sampled_from([0, 0, 0, 0.5, 1, 2, 4])
MARKS = st.one_of(
    st.tuples(st.just("watermark"), st.integers(0, 1000)),
    st.tuples(st.just("status"), st.booleans()),
)
STEPS = st.lists(
    st.one_of(st.lists(DELAYS, min_size=1, max_size=6), MARKS, st.just("epoch ends")), min_size=1, max_size=14
)


def driven(steps, mode, capacity):
    """Play the steps; give what went in, as it would come out of a map, what came out, and the function."""
    number, expected, function = 0, [], After()
    with Driven(function, mode, capacity) as operator:
        epoch = []
        for step in [*steps, "epoch ends"]:
            if step == "epoch ends":
                operator.epoch(*epoch)
                epoch = []
            elif isinstance(step, tuple):
                epoch.append(step)
                expected.append(("idle" if step[0] == "status" else step[0], step[1], None))
            else:
                epoch.append([((number + n, delay), 10 * (number + n)) for n, delay in enumerate(step)])
                expected.extend(("record", number + n, 10 * (number + n)) for n in range(len(step)))
                number += len(step)
        operator.operator.finish()
        assert operator.operator.next_due() is None
        return expected, operator.out, function


def without_replaced_marks(elements):
    """Of marks of a kind that follow each other only the last has to come out; here, none but the last is kept."""
    kept = []
    for element in elements:
        if kept and element[0] != "record" and kept[-1][0] == element[0]:
            kept.pop()
        kept.append(element)
    return kept


@given(steps=STEPS, capacity=st.integers(1, 8))
@settings(max_examples=120, deadline=None)
def test_ordered_results_are_those_of_a_map(steps, capacity):
    expected, out, function = driven(steps, "ordered", capacity)
    assert without_replaced_marks(out.seen) == without_replaced_marks(expected)
    assert function.most <= capacity
    assert out.threads <= {threading.get_ident()}


@given(steps=STEPS, capacity=st.integers(1, 8))
@settings(max_examples=120, deadline=None)
def test_unordered_results_stay_between_their_marks(steps, capacity):
    expected, out, function = driven(steps, "unordered", capacity)

    def segments(elements):
        runs = groupby(without_replaced_marks(elements), key=lambda element: element[0] == "record")
        return [sorted(run) if records else list(run) for records, run in runs]

    assert segments(out.seen) == segments(expected)
    assert function.most <= capacity
    assert out.threads <= {threading.get_ident()}


def test_unordered_results_overtake_each_other_but_no_watermark():
    function = Gated()
    with Driven(function, "unordered") as operator:
        operator.epoch(timed("a", "b"), ("watermark", 5), timed("c"))
        function.answer("c")
        function.answer("b")
        assert operator.until(1) == ["b"]
        operator.epoch()
        assert operator.out.seen == [("record", "b", 1)]
        function.answer("a")
        operator.until(3)
        assert operator.out.seen == [
            ("record", "b", 1),
            ("record", "a", 0),
            ("watermark", 5, None),
            ("record", "c", 0),
        ]


def test_ordered_results_wait_for_their_predecessors():
    function = Gated()
    with Driven(function, "ordered") as operator:
        operator.epoch(timed("a", "b"), ("watermark", 5))
        function.answer("b")
        operator.epoch()
        assert operator.out.seen == []
        function.answer("a")
        operator.until(2)
        assert operator.out.seen == [("record", "a", 0), ("record", "b", 1), ("watermark", 5, None)]


@pytest.mark.parametrize("mode", MODES)
def test_idleness_does_not_overtake_elements(mode):
    function = Gated()
    with Driven(function, mode) as operator:
        operator.epoch(timed("a"), ("status", True))
        assert operator.out.seen == []
        function.answer("a")
        operator.until(1)
        assert operator.out.seen == [("record", "a", 0), ("idle", True, None)]


@pytest.mark.parametrize("mode", MODES)
def test_marks_pass_at_once_when_nothing_is_in_flight(mode):
    with Driven(Gated(), mode) as operator:
        operator.epoch(("watermark", 3), ("status", True), ("watermark", 4))
        assert operator.out.seen == [("watermark", 3, None), ("idle", True, None), ("watermark", 4, None)]
        assert operator.operator.current_watermark == 4


@pytest.mark.parametrize("mode", MODES)
def test_many_watermarks_behind_one_request_become_one(mode):
    function = Gated()
    with Driven(function, mode) as operator:
        operator.epoch(timed("a"), *(("watermark", time) for time in range(1000)))
        assert len(operator.operator._queue.elements()) == 2
        assert operator.operator.current_watermark < 0
        function.answer("a")
        operator.until(1)
        assert operator.out.seen == [("record", "a", 0), ("watermark", 999, None)]


@pytest.mark.parametrize("mode", MODES)
def test_input_waits_when_the_capacity_is_used_up(mode):
    function = Gated()
    with Driven(function, mode, capacity=3) as operator:
        thread = threading.Thread(target=operator.operator.records, args=(list("abcde"), None))
        thread.start()
        function.answer("a")
        function.answer("b")
        function.answer("e")
        thread.join(60)
        assert not thread.is_alive()
        assert (function.asked, function.most) == (list("abcde"), 3)
        function.answer("c")
        function.answer("d")
        operator.until(5)


def test_what_waits_for_its_turn_counts_too():
    """The capacity bounds what is held, and so the state of a checkpoint."""
    function = Gated()
    with Driven(function, "ordered", capacity=2) as operator:
        thread = threading.Thread(target=operator.operator.records, args=(list("abc"), None))
        thread.start()
        function.answer("b")
        time.sleep(0.05)
        assert function.asked == ["a", "b"]
        function.answer("a")
        function.answer("c")
        thread.join(60)
        assert operator.until(3) == list("abc")


@pytest.mark.parametrize("mode", MODES)
def test_results_have_the_timestamp_of_what_was_asked(mode):
    function = Gated()
    with Driven(function, mode) as operator:
        operator.epoch([("a", 7), ("b", None), ("c", 9)])
        function.answer("a", ["a1", "a2"])
        function.answer("b", [])
        function.answer("c", ["c1"])
        operator.until(3)
        assert sorted(operator.out.seen) == [("record", "a1", 7), ("record", "a2", 7), ("record", "c1", 9)]


@pytest.mark.parametrize("mode", MODES)
def test_quick_answers_come_in_the_same_epoch_and_slow_ones_ask_for_another(mode, monkeypatch):
    with Driven(After(), mode) as operator:
        monkeypatch.setattr(async_wait, "LINGER_SECONDS", 200.0)
        started = time.monotonic()
        operator.epoch(timed(("quick", 1)))
        assert operator.out.values() == ["quick"]
        assert time.monotonic() - started < 100, "the epoch ended with the answer"
        assert operator.operator.next_due() is None
    function = Gated()
    with Driven(function, mode) as operator:
        monkeypatch.setattr(async_wait, "LINGER_SECONDS", 0.01)
        operator.epoch(timed("slow"))
        assert operator.out.values() == []
        due = operator.operator.next_due()
        assert operator.clock.now < due < operator.clock.now + 50
        function.answer("slow")
        assert operator.until(1) == ["slow"]


def test_an_epoch_without_input_waits_for_an_answer_rather_than_to_spin():
    with Driven(After()) as operator:
        operator.epoch(timed(("slow", 150)))
        epochs, began = 0, time.monotonic()
        while not operator.out.values():
            operator.epoch()
            epochs += 1
        assert epochs <= 1 + (time.monotonic() - began) / async_wait.IDLE_LINGER_SECONDS
