"""AsyncDataStream in whole programs, and what it refuses."""

from __future__ import annotations

import asyncio

import pytest

from penstock.common import Duration, Time, Types
from penstock.datastream import (
    AsyncDataStream,
    AsyncFunction,
    AsyncRetryStrategy,
    RuntimeExecutionMode,
    StreamExecutionEnvironment,
)
from penstock.errors import JobFailed, TypeMismatch
from penstock.testing import OperatorHarness, in_process


# --- in programs ---
class Doubled(AsyncFunction):
    async def async_invoke(self, value):
        await asyncio.sleep(0.001)
        return [value * 2]


class Picky(AsyncFunction):
    async def async_invoke(self, value):
        if value == 3:
            raise ValueError("not three")
        return [value]


def environment(parallelism=1):
    return StreamExecutionEnvironment.get_execution_environment().set_parallelism(parallelism)


@pytest.mark.parametrize("wait", [AsyncDataStream.ordered_wait, AsyncDataStream.unordered_wait])
@pytest.mark.parametrize("mode", [RuntimeExecutionMode.STREAMING, RuntimeExecutionMode.BATCH])
@pytest.mark.parametrize("epoch_records", [3, None])
def test_in_a_job(wait, mode, epoch_records):
    env = environment(2)
    env.set_runtime_mode(mode)
    doubled = wait(env.from_collection(list(range(50))).rebalance(), Doubled(), Time.seconds(5), 7, Types.LONG())
    with in_process(epoch_records), doubled.key_by(lambda value: 0).sum().execute_and_collect() as sums:
        assert list(sums)[-1] == 2 * sum(range(50))


def test_on_a_keyed_stream():
    env = environment(3)
    keyed = env.from_collection(list(range(30))).key_by(lambda value: value % 5)
    asked = AsyncDataStream.ordered_wait(keyed, Doubled(), Duration.of_seconds(5))
    assert type(asked).__name__ == "DataStream"
    with in_process(), asked.execute_and_collect() as found:
        assert sorted(found) == [value * 2 for value in range(30)]


def test_one_after_the_other():
    env = environment()
    once = AsyncDataStream.ordered_wait(env.from_collection(list(range(20))), Doubled(), Time.seconds(5), 3)
    twice = AsyncDataStream.ordered_wait(once, Doubled(), Time.seconds(5), 4)
    with in_process(5), twice.execute_and_collect() as found:
        assert list(found) == [value * 4 for value in range(20)]


def test_a_job_fails_with_the_name_of_the_operator_and_the_record():
    env = environment()
    asked = AsyncDataStream.unordered_wait(env.from_collection([1, 2, 3]), Picky(), Time.seconds(5)).name("lookups")
    asked.discard()
    with in_process(), pytest.raises(JobFailed, match=r"lookups \(uid .*ValueError: not three\n  on record 3"):
        env.execute()


def test_results_are_checked_against_the_declared_type():
    harness = OperatorHarness(lambda s: AsyncDataStream.ordered_wait(s, Doubled(), Time.seconds(5), 5, Types.INT()))
    with harness, pytest.raises(TypeMismatch):
        harness.push("text")
        harness.end()  # waits for answers that did not come within the epoch


def test_in_the_plan():
    env = environment()
    AsyncDataStream.ordered_wait(env.from_collection([1]), Doubled(), Time.seconds(5)).print()
    assert "→ Async Wait [uid async-wait-1, parallelism 1]" in env.explain()


# --- what is refused ---
def refused(error, match, function=None, timeout=1000, capacity=1, **retry):
    stream = environment().from_collection([1])
    wait = AsyncDataStream.ordered_wait_with_retry if retry else AsyncDataStream.unordered_wait
    arguments = [*retry.values(), capacity]
    with pytest.raises(error, match=match):
        wait(stream, function or Doubled(), timeout, *arguments)


def test_settings_are_checked_when_the_program_is_written():
    refused(ValueError, "timeout of a request must be above 0 ms, not 0", timeout=Time.seconds(0))
    refused(TypeError, "timeout must be a Duration, a Time, a timedelta or a whole number", timeout="5 s")
    refused(ValueError, "capacity must be at least 1, not 0", capacity=0)
    refused(TypeError, "capacity must be a whole number, not 1.5", capacity=1.5)
    refused(TypeError, "must be an AsyncRetryStrategy, not None", strategy=None)
    with pytest.raises(TypeError, match="must be a DataStream, not"):
        AsyncDataStream.ordered_wait([1], Doubled(), 1000)


def test_functions_are_checked_when_the_program_is_written():
    class Plain(AsyncFunction):
        def async_invoke(self, value):
            return [value]

    class Greedy(AsyncFunction):
        async def async_invoke(self, value, result_future, more):
            return [value]

    class AsyncTimeout(Doubled):
        async def timeout(self, value):
            return [value]

    refused(TypeError, "write Doubled()", function=Doubled)
    refused(TypeError, "must be an AsyncFunction, not <function", function=lambda value: [value])
    refused(TypeError, "declare it with 'async def'", function=Plain())
    refused(TypeError, "not 3 parameters", function=Greedy())
    refused(TypeError, "timeout of AsyncTimeout must be a plain method", function=AsyncTimeout())


@pytest.mark.parametrize(
    ("arguments", "error", "match"),
    [
        ((0, 10), ValueError, "max_attempts must be above 0, not 0"),
        ((1, -1), ValueError, "backoff_time_millis must be above 0, not -1"),
        (("1", 10), TypeError, "max_attempts must be a whole number, not '1'"),
    ],
)
def test_strategies_are_checked(arguments, error, match):
    with pytest.raises(error, match=match):
        AsyncRetryStrategy.fixed_delay(*arguments, None, None)
