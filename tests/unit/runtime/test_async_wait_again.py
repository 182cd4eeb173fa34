"""Requests that take too long, and requests that are made again."""

from __future__ import annotations

import time

import pytest

from penstock.datastream import (
    AsyncRetryStrategy,
)
from tests.unit.runtime.async_driving import (
    MODES,
    After,
    Asked,
    Driven,
    Promised,
    failure,
    forever,
    results,
    timed,
)


# --- timeouts ---
def test_a_request_that_takes_too_long_fails_the_job():
    failed = failure(Asked(lambda _: forever()), timeout=20)
    assert (failed.error_type, failed.record) == ("TimeoutError", "'x'")


def test_the_function_may_give_results_for_what_takes_too_long():
    function = Asked(lambda value: forever() if value % 3 == 0 else [value], on_timeout=lambda value: [("late", value)])
    assert results(function, *range(6), timeout=30) == [("late", 0), 1, 2, ("late", 3), 4, 5]


def test_timeout_may_give_nothing_and_must_give_an_iterable():
    assert results(Asked(lambda _: forever(), on_timeout=lambda _: []), "a", timeout=20) == []
    assert "not None" in failure(Asked(lambda _: forever(), on_timeout=lambda _: None), timeout=20).message


def test_an_answer_after_the_timeout_is_ignored():
    futures = []

    class Late(Promised):
        def timeout(self, value):
            return ["timeout"]

    def start(value, future):
        if value == "x":
            futures.append(future)
        else:
            futures[0].complete(["too late"])
            future.complete(["in time"])

    with Driven(Late(start), timeout=100) as operator:
        operator.epoch(timed("x"))
        assert operator.until(1) == ["timeout"]
        operator.epoch(timed("y"))
        assert operator.until(2) == ["timeout", "in time"]
        operator.epoch()
        assert operator.out.values() == ["timeout", "in time"]


def test_a_request_is_cancelled_when_its_time_is_over():
    ended = []

    async def ask():
        try:
            await forever()
        finally:
            ended.append("unwound")

    assert results(Asked(lambda _: ask(), on_timeout=lambda _: ["x"]), "a", timeout=20) == ["x"]
    assert ended == ["unwound"]


def test_every_request_has_its_own_time():
    """Each request takes a thirtieth of its timeout, but all together take longer than the timeout."""
    with Driven(After(), capacity=1, timeout=2400) as operator:
        operator.epoch(timed(*((n, 80) for n in range(32))))
        operator.operator.finish()
        assert operator.out.values() == list(range(32))


# --- retries ---
class Flaky:
    """Fails, or answers with nothing, a number of times for each value."""

    def __init__(self, times, how):
        self.left = {}
        self.times = times
        self.how = how

    def __call__(self, value):
        left = self.left.setdefault(value, self.times)
        self.left[value] -= 1
        return self.how() if left > 0 else [value]


def broken():
    raise ConnectionError("no answer")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("how", "predicates"),
    [
        (broken, {"exception_predicate": lambda error: isinstance(error, ConnectionError)}),
        (list, {"result_predicate": lambda found: not found}),
    ],
    ids=["exceptions", "results"],
)
def test_attempts_are_repeated(mode, how, predicates):
    function = Asked(Flaky(3, how))
    strategy = AsyncRetryStrategy.fixed_delay(3, 1, **predicates)
    assert sorted(results(function, *range(20), mode=mode, strategy=strategy)) == list(range(20))
    assert len(function.times) == 20 * 4


def test_when_the_attempts_are_used_up_an_exception_fails_the_job():
    function = Asked(Flaky(4, broken))
    strategy = AsyncRetryStrategy.fixed_delay(3, 1, None, lambda error: True)
    assert failure(function, strategy=strategy).error_type == "ConnectionError"
    assert len(function.times) == 4


def test_when_the_attempts_are_used_up_the_last_results_count():
    function = Asked(lambda _: ["incomplete"])
    strategy = AsyncRetryStrategy.fixed_delay(2, 1, lambda found: True, None)
    assert results(function, "a", strategy=strategy) == ["incomplete"]
    assert len(function.times) == 3


def test_what_the_predicate_does_not_want_again_fails_at_once():
    function = Asked(Flaky(1, broken))
    strategy = AsyncRetryStrategy.fixed_delay(5, 1, None, lambda error: isinstance(error, KeyError))
    assert failure(function, strategy=strategy).error_type == "ConnectionError"
    assert len(function.times) == 1


def test_a_predicate_that_fails_fails_the_job():
    strategy = AsyncRetryStrategy.fixed_delay(5, 1, lambda found: found[7], None)
    assert failure(Asked(lambda _: ["x"]), strategy=strategy).error_type == "IndexError"


def test_the_pauses_grow():
    strategy = AsyncRetryStrategy.exponential_backoff(5, 10, 45, 2.0, None, lambda error: True)
    assert [strategy.get_backoff_time_millis(attempts) for attempts in (1, 2, 3, 4, 5)] == [10, 20, 40, 45, 45]
    assert [strategy.can_retry(attempts) for attempts in (1, 5, 6)] == [True, True, False]
    assert strategy.get_backoff_time_millis(100_000) == 45
    function = Asked(Flaky(4, broken))
    assert results(function, "a", strategy=strategy) == ["a"]
    pauses = [after - before for before, after in zip(function.times, function.times[1:], strict=False)]
    assert all(pause >= least / 1000 for pause, least in zip(pauses, (10, 20, 40, 45), strict=True))


def test_the_timeout_holds_over_all_attempts():
    function = Asked(Flaky(1000, broken), on_timeout=lambda value: ["given up"])
    strategy = AsyncRetryStrategy.fixed_delay(1000, 10, None, lambda error: True)
    assert results(function, "a", timeout=200, strategy=strategy) == ["given up"]
    asked = len(function.times)
    assert 1 <= asked < 1000, "no single attempt took long, and none was the last"
    time.sleep(0.05)  # for one more to show
    assert len(function.times) == asked


def test_futures_are_retried_with_a_new_future():
    failed = []

    def start(value, future):
        if failed.count(value) < 2:
            failed.append(value)
            future.complete_exceptionally(ConnectionError("no answer"))
        else:
            future.complete([value])

    strategy = AsyncRetryStrategy.fixed_delay(2, 1, None, lambda error: True)
    assert results(Promised(start), "a", "b", strategy=strategy) == ["a", "b"]
