"""Async functions: what they may return, how they fail, and where they live."""

from __future__ import annotations

import asyncio
import gc
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from penstock.common import RestartStrategies, Row, Time
from penstock.datastream import AsyncDataStream, AsyncFunction, StreamExecutionEnvironment
from penstock.engine.operators.functions import async_requests
from penstock.engine.records.failures import OperatorFailed
from penstock.errors import ContextError
from penstock.testing import in_process
from tests.unit.runtime.async_driving import (
    MODES,
    Asked,
    Driven,
    Gated,
    Promised,
    async_threads,
    failure,
    forever,
    results,
    timed,
)


@pytest.fixture(autouse=True)
def no_thread_is_left():
    yield
    for thread in async_threads():
        thread.join(60)
    assert async_threads() == []


# --- results ---
@pytest.mark.parametrize(
    "answer", [["x"], ("x",), {"x"}, (c for c in "x"), iter(["x"])], ids=lambda a: type(a).__name__
)
def test_any_iterable_of_results(answer):
    assert results(Asked(lambda _: answer), "a") == ["x"]


@pytest.mark.parametrize("answer", [None, 7, "text", b"bytes", {"a": 1}, Row(1, 2)], ids=lambda a: type(a).__name__)
def test_what_is_no_iterable_of_results_is_refused(answer):
    failed = failure(Asked(lambda _: answer))
    assert failed.error_type == "TypeError"
    assert repr(answer) in failed.message
    assert "[result] for one result, [] for no result" in failed.message
    assert failed.record == "'x'"


# --- result futures ---
def test_futures_are_completed_from_other_threads():
    with ThreadPoolExecutor(8) as pool:
        function = Promised(lambda value, future: pool.submit(lambda: future.complete([value * 2])) and None)
        assert results(function, *range(200), capacity=20) == [value * 2 for value in range(200)]


def test_only_the_first_completion_counts():
    def start(value, future):
        future.complete([value])
        future.complete(["again"])
        future.complete_exceptionally(ValueError("too late"))

    assert results(Promised(start), "a", "b") == ["a", "b"]


def test_async_invoke_with_a_future_may_be_a_coroutine():
    class Both(AsyncFunction):
        async def async_invoke(self, value, result_future):
            await asyncio.sleep(0.001)
            result_future.complete([value])

    assert results(Both(), "a", "b") == ["a", "b"]


def test_a_future_may_fail():
    failed = failure(Promised(lambda _, future: future.complete_exceptionally(KeyError("gone"))))
    assert (failed.error_type, failed.operator, failed.uid, failed.record) == (
        "KeyError",
        "lookups",
        "lookups-1",
        "'x'",
    )


def test_a_future_that_gets_no_exception_or_no_results_fails():
    assert "takes an exception, not 'text'" in failure(Promised(lambda _, f: f.complete_exceptionally("text"))).message
    assert "not None" in failure(Promised(lambda _, f: f.complete(None))).message


def test_completing_after_the_end_does_nothing():
    futures = []
    with Driven(Promised(lambda _, future: futures.append(future))) as operator:
        operator.epoch(timed("x"))
    futures[0].complete(["too late"])
    assert operator.out.values() == []


# --- errors ---
def test_a_failing_request_names_the_operator_and_the_record():
    def only_good(value):
        if value == "bad":
            raise ValueError("cannot be looked up")
        return [value]

    with Driven(Asked(only_good)) as operator, pytest.raises(OperatorFailed) as raised:
        operator.epoch(timed("good", "bad", "fine"))
        operator.operator.finish()
    failed = raised.value.failure
    assert (failed.operator, failed.record, failed.message) == ("lookups", "'bad'", "cannot be looked up")
    assert "only_good" in failed.traceback and "async_requests" not in failed.traceback


@pytest.mark.parametrize("mode", MODES)
def test_a_failure_does_not_wait_for_its_turn(mode):
    function = Gated()
    with Driven(function, mode) as operator, pytest.raises(OperatorFailed, match="'b'"):
        operator.epoch(timed("a", "b"))
        function.answer("b", ValueError("wrong"))
        operator.until(1)


def test_exit_fails_the_job_and_not_the_process():
    assert failure(Asked(lambda _: sys.exit(3))).error_type == "SystemExit"


def test_exit_in_a_task_of_the_function_fails_the_job():
    async def leave():
        sys.exit(3)

    async def ask():
        await asyncio.gather(leave(), asyncio.sleep(1))

    assert failure(Asked(lambda _: ask())).error_type == "SystemExit"


def test_a_request_that_cancels_itself_fails_the_job():
    async def ask():
        asyncio.current_task().cancel()
        await asyncio.sleep(1)

    assert failure(Asked(lambda _: ask())).error_type == "CancelledError"


def test_a_function_that_blocks_the_loop_is_told_so(monkeypatch):
    monkeypatch.setattr(async_requests, "BLOCKED_SECONDS", 0.05)
    monkeypatch.setattr(async_requests, "CLOSING_SECONDS", 0.05)
    going = threading.Event()
    operator = Driven(Asked(lambda _: going.wait(60) and []), timeout=10, capacity=1)
    with pytest.raises(OperatorFailed, match="async_invoke must not block"):
        operator.epoch(timed("a", "b"))
    with pytest.raises(ContextError, match="has not moved"):
        operator.operator.close()
    going.set()


# --- life ---
class Lively(AsyncFunction):
    def __init__(self):
        self.calls = []

    def note(self, what):
        self.calls.append((what, threading.get_ident()))

    async def open(self, runtime_context):
        await asyncio.sleep(0)
        self.note("open")

    async def async_invoke(self, value):
        self.note("invoke")
        return [value]

    async def close(self):
        await asyncio.sleep(0)
        self.note("close")


def test_the_function_lives_in_one_thread_with_a_running_loop():
    function = Lively()
    with Driven(function) as operator:
        operator.epoch(timed("a"))
        operator.operator.finish()
    assert [what for what, _ in function.calls] == ["open", "invoke", "close"]
    threads = {thread for _, thread in function.calls}
    assert len(threads) == 1 and threads != {threading.get_ident()}


def test_closing_cancels_what_is_in_flight_before_the_function_is_closed():
    events = []

    class Holding(AsyncFunction):
        async def async_invoke(self, value):
            try:
                await forever()
            finally:
                events.append("cancelled")

        def close(self):
            events.append("closed")

    with Driven(Holding()) as operator:
        operator.epoch(timed("a", "b"))
    assert events == ["cancelled", "cancelled", "closed"]


@pytest.mark.parametrize("method", ["open", "close"])
def test_what_open_and_close_raise_is_reported(method):
    class Failing(Lively):
        pass

    def fail(self, *_):
        raise OSError(f"cannot {method}")

    setattr(Failing, method, fail)
    with pytest.raises((OperatorFailed, OSError), match=f"cannot {method}"), Driven(Failing()):
        pass
    if method == "open":
        gc.collect()


def test_blocking_calls_have_as_many_threads_as_the_capacity():
    meeting = threading.Barrier(40, timeout=10)
    function = Asked(lambda value: asyncio.to_thread(lambda: [meeting.wait() and value]))
    assert len(results(function, *range(40), capacity=40)) == 40


def test_a_lost_slot_leaves_no_thread():
    operator = Driven(Gated())
    operator.epoch(timed("a"))
    assert len(async_threads()) == 1
    del operator
    gc.collect()


class FailsOnce(AsyncFunction):
    """Fails in the first attempt of the job, with requests in flight; then tells how many loops there are."""

    def open(self, runtime_context):
        self.attempt = runtime_context.get_attempt_number()

    async def async_invoke(self, value):
        if self.attempt == 0:
            await asyncio.sleep(0 if value == 7 else 30)
            raise ConnectionError("gone")
        return [len(async_threads())]


def test_a_restart_leaves_no_thread():
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
    env.set_restart_strategy(RestartStrategies.fixed_delay_restart(1, 1))
    asked = AsyncDataStream.unordered_wait(env.from_collection(list(range(10))), FailsOnce(), Time.seconds(60))
    with in_process(), asked.execute_and_collect() as loops:
        assert list(loops) == [1] * 10
