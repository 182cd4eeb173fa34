"""One AsyncWaitOperator without a job around it: what is put in, and what comes out."""

from __future__ import annotations

import asyncio
import inspect
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from penstock.datastream.functions import AsyncFunction, AsyncFunctionDescriptor, AsyncRetryStrategy, ResultFuture
from penstock.engine.operators.functions.async_wait import AsyncWaitOperator
from penstock.engine.operators.operator import Clock, OperatorContext
from penstock.engine.records.elements import Chunk
from penstock.engine.records.failures import Failure, OperatorFailed

PATIENCE = 60
MODES = {
    "ordered": AsyncFunctionDescriptor.OutputMode.ORDERED,
    "unordered": AsyncFunctionDescriptor.OutputMode.UNORDERED,
}


class Recorder:
    """A receiver that keeps everything in order."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, Any, Any]] = []
        self.threads: set[int] = set()

    def chunk(self, chunk: Chunk) -> None:
        self.threads.add(threading.get_ident())
        stamps = chunk.timestamps if chunk.timestamps is not None else [None] * len(chunk)
        self.seen.extend(("record", value, stamp) for value, stamp in zip(chunk.values, stamps, strict=True))

    def watermark(self, timestamp: int) -> None:
        self.seen.append(("watermark", timestamp, None))

    def status(self, idle: bool) -> None:
        self.seen.append(("idle", idle, None))

    def end(self) -> None:
        self.seen.append(("end", None, None))

    def values(self) -> list[Any]:
        return [value for kind, value, _ in self.seen if kind == "record"]


class Driven:
    """An open operator."""

    def __init__(
        self,
        function: AsyncFunction,
        mode: str = "ordered",
        capacity: int = 100,
        timeout: int = PATIENCE * 1000,
        strategy: AsyncRetryStrategy | None = None,
    ) -> None:
        chosen = strategy or AsyncRetryStrategy.no_restart()
        self.operator = AsyncWaitOperator(AsyncFunctionDescriptor(function, timeout, capacity, chosen, MODES[mode]))
        self.out = Recorder()
        self.clock = Clock()
        self.operator.open(
            OperatorContext("lookups", "lookups-1", 0, 1, 128, output=self.out, side_outputs={}, clock=self.clock)
        )

    def epoch(self, *steps: Any) -> None:
        """An epoch; a step is a list of values, or a method's name with an argument."""
        self.clock.now += 1
        self.operator.advance_processing_time(self.clock.now)
        for step in steps:
            if isinstance(step, list):
                self.operator.records([value for value, _ in step], [stamp for _, stamp in step])
            else:
                getattr(self.operator, step[0])(step[1])
        self.operator.end_epoch()

    def until(self, number: int) -> list[Any]:
        """Epochs without input until so many results have come."""
        for _ in range(PATIENCE * 20):
            if len(self.out.values()) >= number:
                return self.out.values()
            self.epoch()
        raise AssertionError(f"{len(self.out.values())} of {number} results")

    def __enter__(self) -> Driven:
        return self

    def __exit__(self, *_: object) -> None:
        self.operator.close()


def timed(*values: Any) -> list[tuple[Any, int]]:
    """Values with the timestamps 0, 1, 2 and so on."""
    return [(value, position) for position, value in enumerate(values)]


class Gated(AsyncFunction):
    """Answers when the test says so. Counts how many requests were in flight at a time."""

    def __init__(self) -> None:
        self.asked: list[Any] = []
        self.in_flight = self.most = 0
        self._changed = threading.Condition()
        self._answers: dict[Any, asyncio.Future[Any]] = {}

    async def async_invoke(self, value: Any) -> list[Any]:
        future = asyncio.get_running_loop().create_future()
        with self._changed:
            self.asked.append(value)
            self._answers[value] = future
            self.in_flight += 1
            self.most = max(self.most, self.in_flight)
            self._changed.notify_all()
        try:
            return await future  # type: ignore[no-any-return]
        finally:
            self.in_flight -= 1

    def answer(self, value: Any, results: list[Any] | BaseException | None = None) -> None:
        """Answer a request once it has been made; with the value itself, unless told."""
        with self._changed:
            assert self._changed.wait_for(lambda: value in self._answers, PATIENCE), f"{value} was not asked for"
            future = self._answers.pop(value)
        answer = [value] if results is None else results
        if isinstance(answer, BaseException):
            future.get_loop().call_soon_threadsafe(future.set_exception, answer)
        else:
            future.get_loop().call_soon_threadsafe(future.set_result, answer)


class After(AsyncFunction):
    """Answers (value, delay in milliseconds) with the value after the delay."""

    def __init__(self) -> None:
        self.in_flight = self.most = 0

    async def async_invoke(self, value: tuple[Any, float]) -> list[Any]:
        self.in_flight += 1
        self.most = max(self.most, self.in_flight)
        await asyncio.sleep(value[1] / 1000)
        self.in_flight -= 1
        return [value[0]]


class Asked(AsyncFunction):
    """Calls what the test gives it."""

    def __init__(self, answer: Callable[[Any], Any], on_timeout: Callable[[Any], Any] | None = None) -> None:
        self.answer = answer
        self.on_timeout = on_timeout
        self.times: list[float] = []
        """When it was asked."""

    async def async_invoke(self, value: Any) -> Any:
        self.times.append(time.monotonic())
        answer = self.answer(value)
        return await answer if inspect.iscoroutine(answer) else answer

    def timeout(self, value: Any) -> Any:
        return super().timeout(value) if self.on_timeout is None else self.on_timeout(value)


class Promised(AsyncFunction):
    """Hands value and future to what the test gives it."""

    def __init__(self, start: Callable[[Any, ResultFuture], Any]) -> None:
        self.start = start

    def async_invoke(self, value: Any, result_future: ResultFuture) -> Any:
        return self.start(value, result_future)


def failure(function: AsyncFunction, **settings: Any) -> Failure:
    """How an operator fails on the record 'x'."""
    with Driven(function, **settings) as operator, pytest.raises(OperatorFailed) as raised:
        operator.epoch(timed("x"))
        operator.until(1)
    return raised.value.failure


def results(function: AsyncFunction, *values: Any, **settings: Any) -> list[Any]:
    """What comes out for values."""
    with Driven(function, **settings) as operator:
        operator.epoch(timed(*values))
        operator.operator.finish()
        return operator.out.values()


async def forever() -> None:
    await asyncio.sleep(1000)


def async_threads() -> list[threading.Thread]:
    """The threads of event loops."""
    return [thread for thread in threading.enumerate() if thread.name.startswith("async ")]
