"""Functions that ask outside systems without waiting, and the rules for repeating a request."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Any, Generic

from penstock.api.functions.element_functions import Function
from penstock.base.arguments import check_arguments
from penstock.base.type_variables import IN, OUT

ResultPredicate = Callable[[list[Any]], bool] | None
ExceptionPredicate = Callable[[Exception], bool] | None


class ResultFuture(ABC, Generic[IN]):
    """The outcome of one request. Any thread may complete it; only the first completion counts."""

    @abstractmethod
    def complete(self, results: Iterable[IN]) -> None:
        """Emit these results, or nothing if there are none."""

    @abstractmethod
    def complete_exceptionally(self, error: BaseException) -> None:
        """Fail the request. The job fails too, unless the retry strategy allows another attempt."""


class AsyncFunction(Function, Generic[IN, OUT]):
    """Asks an outside system for each element, with many requests in flight at a time.

    `async_invoke` is a coroutine that returns the results:

        async def async_invoke(self, value):
            return [await self.client.get(value)]

    or, as in Flink's Java API, takes a ResultFuture that someone completes later:

        def async_invoke(self, value, result_future):
            self.pool.submit(self.ask, value, result_future)

    All methods are called in one thread of the subtask, in which an asyncio event loop runs; none of them may block it,
    but for `open` and `close`, which may also be coroutines. After a recovery, elements whose results had not been
    emitted are asked for again.
    """

    @abstractmethod
    def async_invoke(self, value: IN, /) -> Awaitable[Iterable[OUT]] | None:
        """Make a request about `value`, which must not be changed.

        Return a list of results, or complete a ResultFuture.
        """

    def timeout(self, value: IN, /) -> Iterable[OUT]:
        """Return the results of a request that was not answered in time, or raise to fail the job."""
        raise TimeoutError("the request was not answered within the timeout")


class AsyncRetryPredicate(ABC):
    """Rules that decide which outcomes of a request call for another attempt."""

    @abstractmethod
    def result_predicate(self) -> ResultPredicate:
        """Return a function that is true for a list of results that calls for another attempt, or None."""

    @abstractmethod
    def exception_predicate(self) -> ExceptionPredicate:
        """Return a function that is true for an exception that calls for another attempt, or None."""


class AsyncRetryStrategy(ABC):
    """Number and times of the attempts for a request.

    All requests share one strategy, so it must not keep data about any.
    """

    @abstractmethod
    def can_retry(self, current_attempts: int) -> bool:
        """Return True if another attempt may follow after `current_attempts` attempts."""

    @abstractmethod
    def get_backoff_time_millis(self, current_attempts: int) -> int:
        """Return the pause, in milliseconds, after `current_attempts` attempts."""

    @abstractmethod
    def get_retry_predicate(self) -> AsyncRetryPredicate:
        """Return the rules that decide which outcomes call for another attempt."""

    @staticmethod
    def no_restart() -> AsyncRetryStrategy:
        """Return a strategy that never asks again."""
        return _NoRetries()

    @staticmethod
    @check_arguments
    def fixed_delay(
        max_attempts: int,
        backoff_time_millis: int,
        result_predicate: ResultPredicate = None,
        exception_predicate: ExceptionPredicate = None,
    ) -> AsyncRetryStrategy:
        """Return a strategy of at most `max_attempts` more attempts after the first, with equal pauses."""
        _check_positive(max_attempts=max_attempts, backoff_time_millis=backoff_time_millis)
        backoff = _Backoff(backoff_time_millis, backoff_time_millis, 1.0)
        return _Retries(max_attempts, backoff, _RetryPredicate(result_predicate, exception_predicate))

    @staticmethod
    @check_arguments
    def exponential_backoff(
        max_attempts: int,
        initial_delay: int,
        max_retry_delay: int,
        multiplier: float,
        result_predicate: ResultPredicate = None,
        exception_predicate: ExceptionPredicate = None,
    ) -> AsyncRetryStrategy:
        """Return a strategy of at most `max_attempts` more attempts.

        Each pause is `multiplier` times as long as the last.
        """
        _check_positive(
            max_attempts=max_attempts,
            initial_delay=initial_delay,
            max_retry_delay=max_retry_delay,
            multiplier=multiplier,
        )
        backoff = _Backoff(initial_delay, max_retry_delay, multiplier)
        return _Retries(max_attempts, backoff, _RetryPredicate(result_predicate, exception_predicate))


@dataclass(frozen=True)
class _RetryPredicate(AsyncRetryPredicate):
    of_results: ResultPredicate = None
    of_exceptions: ExceptionPredicate = None

    def result_predicate(self) -> ResultPredicate:
        return self.of_results

    def exception_predicate(self) -> ExceptionPredicate:
        return self.of_exceptions


class _NoRetries(AsyncRetryStrategy):
    def can_retry(self, current_attempts: int) -> bool:
        return False

    def get_backoff_time_millis(self, current_attempts: int) -> int:
        return -1

    def get_retry_predicate(self) -> AsyncRetryPredicate:
        return _RetryPredicate()


@dataclass(frozen=True)
class _Backoff:
    """The pause before each further attempt, in milliseconds."""

    initial: int
    most: int
    multiplier: float

    def after(self, attempts: int) -> int:
        try:
            return int(min(self.initial * self.multiplier ** max(0, attempts - 1), self.most))
        except OverflowError:
            return self.most


@dataclass(frozen=True)
class _Retries(AsyncRetryStrategy):
    max_attempts: int
    backoff: _Backoff
    predicate: AsyncRetryPredicate

    def can_retry(self, current_attempts: int) -> bool:
        return current_attempts <= self.max_attempts

    def get_backoff_time_millis(self, current_attempts: int) -> int:
        return self.backoff.after(current_attempts)

    def get_retry_predicate(self) -> AsyncRetryPredicate:
        return self.predicate


def _check_positive(**settings: float) -> None:
    for name, value in settings.items():
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise TypeError(f"{name} must be a number, not {value!r}")
        if not value > 0:
            raise ValueError(f"{name} must be above 0, not {value}")


class AsyncFunctionDescriptor(Generic[IN, OUT]):
    """An async function with the settings given to AsyncDataStream. `timeout` has any form that it accepts."""

    class OutputMode(Enum):
        """The order in which results are emitted."""

        ORDERED = 0
        UNORDERED = 1

    def __init__(
        self,
        async_function: AsyncFunction[IN, OUT],
        timeout: Any,
        capacity: int,
        async_retry_strategy: AsyncRetryStrategy,
        output_mode: OutputMode,
    ) -> None:
        self.async_function = async_function
        self.timeout = timeout
        self.capacity = capacity
        self.async_retry_strategy = async_retry_strategy
        self.output_mode = output_mode
