"""A result that may still be on its way."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from threading import Thread
from typing import Generic, TypeVar

from penstock.base.arguments import check_arguments

__all__ = ["CompletableFuture"]

T = TypeVar("T")


@check_arguments
class CompletableFuture(Generic[T]):
    """A `concurrent.futures.Future` with PyFlink's methods.

    >>> CompletableFuture.completed(3).result()
    3
    """

    def __init__(self, future: Future[T]) -> None:
        self._future = future

    @staticmethod
    def completed(value: T) -> CompletableFuture[T]:
        """Return a future that already has this result."""
        future: Future[T] = Future()
        future.set_result(value)
        return CompletableFuture(future)

    @staticmethod
    def submit(function: Callable[[], T]) -> CompletableFuture[T]:
        """Run the function in a new thread, which does not keep the program from ending."""
        future: Future[T] = Future()
        Thread(target=_complete, args=(future, function), daemon=True).start()
        return CompletableFuture(future)

    def result(self, timeout: float | None = None) -> T:
        """Wait for the result, or raise the error."""
        return self._future.result(timeout)

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """Wait for the end, and return the error, or None if there is none."""
        return self._future.exception(timeout)

    def done(self) -> bool:
        """Return True if the result is known, or the future failed or was cancelled."""
        return self._future.done()

    def cancel(self) -> bool:
        """Give up on the result. Return False if it is already being computed."""
        return self._future.cancel()

    def cancelled(self) -> bool:
        """Return True if the future was cancelled."""
        return self._future.cancelled()

    def __repr__(self) -> str:
        return f"CompletableFuture({self._future!r})"


def _complete(future: Future[T], function: Callable[[], T]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        result = function()
    except BaseException as error:  # any error belongs to the caller who waits for the result
        future.set_exception(error)
    else:
        future.set_result(result)
