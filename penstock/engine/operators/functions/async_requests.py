"""Requests in flight, in an asyncio event loop in a thread of the slot, with retries and timeouts."""

from __future__ import annotations

import asyncio
import inspect
import threading
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from penstock.api.functions.async_functions import AsyncFunction, AsyncRetryStrategy, ResultFuture
from penstock.common.types import Row
from penstock.errors import ContextError

MOST_THREADS = 200
"""Highest number of threads that a function gets for `asyncio.to_thread`."""
BLOCKED_SECONDS = 30.0
"""Seconds without any progress in the loop's thread after which the function counts as blocking it."""
CLOSING_SECONDS = 3.0


class Request:
    """One element and its request. A success sets `results`, a failure sets `error`."""

    __slots__ = ("deadline", "error", "over", "results", "segment", "task", "timestamp", "value")

    def __init__(self, value: Any, timestamp: int | None) -> None:
        self.value = value
        self.timestamp = timestamp
        self.results: list[Any] | None = None
        self.error: BaseException | None = None
        self.over = False
        self.deadline = 0.0
        self.task: asyncio.Task[None] | None = None
        self.segment: Any = None
        """The place of the request in its queue, for queues that need it."""


class RequestLoop:
    """Makes the requests of one subtask. All code of the function runs in the loop's thread.

    The two threads share two queues: requests to make, and finished requests. A single wake-up hands over everything
    that has gathered in a queue.
    """

    def __init__(self, name: str, timeout: float, capacity: int, news: Callable[[], None] = lambda: None) -> None:
        """Start the loop's thread. `timeout` is in seconds; the loop calls `news` when requests are over."""
        self._news = news
        self._timeout = timeout
        self._to_ask: deque[Request] = deque()
        self._over: deque[Request] = deque()
        self._has_over = threading.Event()
        self._starting = self._waking = self._closing = False
        self._broken: BaseException | None = None
        self._asked: dict[Request, None] = {}
        """Requests in flight, oldest first. The first one has the next deadline."""
        self._timer: asyncio.TimerHandle | None = None
        self._loop = asyncio.new_event_loop()
        self._threads = ThreadPoolExecutor(min(capacity, MOST_THREADS), thread_name_prefix=f"{name} blocking")
        self._loop.set_default_executor(self._threads)
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def serve(self, function: AsyncFunction, strategy: AsyncRetryStrategy) -> None:
        """Set the function that makes the requests. Call this before the first request."""
        self._function = function
        self._invoke = _invocation(function)
        self._retries = _Retries(strategy)

    # --- from the slot's thread ---
    def ask(self, requests: Iterable[Request]) -> None:
        """Make requests."""
        self._to_ask.extend(requests)
        if not self._starting:
            self._starting = True
            self._loop.call_soon_threadsafe(self._start)

    def has_over(self) -> bool:
        """Return True if requests are over or the loop has failed."""
        return bool(self._over) or self._broken is not None

    def take(self, wait: float = 0.0) -> list[Request]:
        """Return the finished requests. If there are none, wait for the first one, at most this many seconds."""
        over = self._over
        if wait > 0 and not over:
            deadline = time.monotonic() + wait
            while not over and self._broken is None and (left := deadline - time.monotonic()) > 0:
                self._has_over.clear()
                if not over and self._broken is None:
                    self._has_over.wait(left)
        if self._broken is not None:
            raise self._broken
        return [over.popleft() for _ in range(len(over))]

    def take_some(self) -> list[Request]:
        """Take the finished requests, at least one. Raise an error if none finishes within the timeout."""
        patience = self._timeout + BLOCKED_SECONDS
        taken = self.take(patience)
        if not taken:
            raise _blocking_error(patience)
        return taken

    def call(self, function: Callable[..., Any], *args: Any, patience: float | None = BLOCKED_SECONDS) -> Any:
        """Call a function or coroutine function in the loop's thread, and return its result."""
        done: Future[Any] = Future()
        self._loop.call_soon_threadsafe(self._call, done, function, args)
        try:
            return done.result(patience)
        except TimeoutError:
            if done.done():
                raise
            raise _blocking_error(patience or 0.0) from None

    def close(self, function: AsyncFunction) -> None:
        """Cancel the requests in flight, close the function and end the thread. A blocked thread stays behind."""
        try:
            self.call(bool, patience=CLOSING_SECONDS)
        except ContextError:
            self.abandon()
            raise
        try:
            self.call(self._end, function.close, patience=None)
        finally:
            self._thread.join(CLOSING_SECONDS)

    def abandon(self) -> None:
        """End the thread without closing the function, since the slot is gone."""
        try:
            self._loop.call_soon_threadsafe(self._call, Future(), self._end, ())
        except RuntimeError:  # the loop is closed
            return

    def _tell(self) -> None:
        """Wake the thread that waits for finished requests, here or at the driver."""
        self._has_over.set()
        self._news()

    # --- in the loop's thread ---
    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        while not self._closing:
            try:
                self._loop.run_forever()
            except BaseException as error:  # exit() in a task that the function has started
                self._broken = error
                self._tell()
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._loop.close()

    def _call(self, done: Future[Any], function: Callable[..., Any], args: tuple[Any, ...]) -> None:
        async def run() -> None:
            try:
                result = function(*args)
                done.set_result(await result if inspect.isawaitable(result) else result)
            except BaseException as error:
                done.set_exception(error)

        self._calling = self._loop.create_task(run())

    async def _end(self, close: Callable[[], Any] | None = None) -> None:
        if self._closing:
            return
        self._closing = True
        if self._timer is not None:
            self._timer.cancel()
        tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        try:
            if tasks:
                await asyncio.wait(tasks, timeout=CLOSING_SECONDS)
            if close is not None:
                closed = close()
                if inspect.isawaitable(closed):
                    await closed
            await self._loop.shutdown_asyncgens()
        finally:
            self._loop.stop()

    def _start(self) -> None:
        """Make the requests that have gathered."""
        self._starting = False
        if self._closing:
            return
        loop, to_ask, asked, ask = self._loop, self._to_ask, self._asked, self._ask
        deadline = loop.time() + self._timeout
        while to_ask:
            request = to_ask.popleft()
            request.deadline = deadline
            asked[request] = None
            request.task = loop.create_task(ask(request))
        if self._timer is None and asked:
            self._timer = loop.call_at(deadline, self._expire)

    async def _ask(self, request: Request) -> None:
        """Make one request, with all its attempts."""
        attempts = 1
        try:
            while True:
                try:
                    results = as_list(await self._invoke(request.value))
                except Exception as error:
                    if request.over or not self._retries.after_error(error, attempts):
                        raise
                else:
                    if not self._retries.after_results(results, attempts):
                        break
                await asyncio.sleep(self._retries.pause(attempts))
                attempts += 1
        except BaseException as error:
            self._finish(request, None, error)
        else:
            self._finish(request, results, None)

    def _finish(self, request: Request, results: list[Any] | None, error: BaseException | None) -> None:
        if request.over or self._closing:
            return
        request.over = True
        request.results, request.error = results, error
        del self._asked[request]
        self._over.append(request)
        if not self._waking:
            self._waking = True
            self._loop.call_soon(self._wake)

    def _wake(self) -> None:
        self._waking = False
        self._tell()

    def _expire(self) -> None:
        """Time out the requests whose deadline has passed, and schedule the next check."""
        now = self._loop.time()
        late = []
        for request in self._asked:
            if request.deadline > now:
                break
            late.append(request)
        for request in late:
            self._time_out(request)
        following = next(iter(self._asked), None)
        self._timer = None if following is None else self._loop.call_at(following.deadline, self._expire)

    def _time_out(self, request: Request) -> None:
        try:
            results = as_list(self._function.timeout(request.value))
        except BaseException as error:
            self._finish(request, None, error)
        else:
            self._finish(request, results, None)
        assert request.task is not None
        request.task.cancel()


class _Retries:
    """A retry strategy, applied to outcomes."""

    def __init__(self, strategy: AsyncRetryStrategy) -> None:
        predicate = strategy.get_retry_predicate()
        self._of_results = predicate.result_predicate()
        self._of_errors = predicate.exception_predicate()
        self._strategy = strategy

    def after_results(self, results: list[Any], attempts: int) -> bool:
        return self._of_results is not None and self._of_results(results) and self._strategy.can_retry(attempts)

    def after_error(self, error: Exception, attempts: int) -> bool:
        return self._of_errors is not None and self._of_errors(error) and self._strategy.can_retry(attempts)

    def pause(self, attempts: int) -> float:
        """Return the pause before the next attempt, in seconds."""
        return max(0, self._strategy.get_backoff_time_millis(attempts)) / 1000


class _LoopResultFuture(ResultFuture):
    """A ResultFuture that brings an outcome from any thread into the loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._outcome: asyncio.Future[tuple[Any, BaseException | None]] = loop.create_future()

    def complete(self, results: Iterable[Any]) -> None:
        self._set((results, None))

    def complete_exceptionally(self, error: Any) -> None:
        wrong = TypeError(f"complete_exceptionally takes an exception, not {error!r}")
        self._set((None, error if isinstance(error, BaseException) else wrong))

    def _set(self, outcome: tuple[Any, BaseException | None]) -> None:
        try:
            self._loop.call_soon_threadsafe(self._set_in_loop, outcome)
        except RuntimeError:  # the loop is closed: nothing waits any more
            return

    def _set_in_loop(self, outcome: tuple[Any, BaseException | None]) -> None:
        if not self._outcome.done():
            self._outcome.set_result(outcome)

    async def results(self) -> Any:
        results, error = await self._outcome
        if error is not None:
            raise error
        return results


def _invocation(function: AsyncFunction) -> Callable[[Any], Awaitable[Any]]:
    """Return `async_invoke` as a coroutine function of the value alone."""
    start: Callable[..., Any] = function.async_invoke
    if required_parameters(start) == 1:
        return start

    async def invoke(value: Any) -> Any:
        future = _LoopResultFuture(asyncio.get_running_loop())
        started = start(value, future)
        if inspect.isawaitable(started):
            await started
        return await future.results()

    return invoke


def required_parameters(method: Callable[..., Any]) -> int:
    """Return the number of positional arguments that a call must give."""
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = inspect.signature(method).parameters.values()
    return sum(1 for p in parameters if p.kind in positional and p.default is inspect.Parameter.empty)


def as_list(results: Any) -> list[Any]:
    """Return the results of a request as a list. A single value in place of several is an error."""
    if isinstance(results, list):
        return results
    if isinstance(results, (str, bytes, dict, Row)) or not isinstance(results, Iterable):
        raise TypeError(
            f"a request must return a list, or another iterable, of results, not {results!r:.100}: return "
            "[result] for one result, [] for no result"
        )
    return list(results)


def _blocking_error(seconds: float) -> ContextError:
    return ContextError(
        f"the event loop has not moved for {seconds:g} s: async_invoke must not block; await, or call what blocks with "
        "asyncio.to_thread"
    )
