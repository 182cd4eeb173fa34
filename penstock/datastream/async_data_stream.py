"""AsyncDataStream: requests to outside systems for the elements of a stream, with many requests in flight at a time."""

from __future__ import annotations

import inspect
from typing import Any

from penstock.api.functions.async_functions import AsyncFunction, AsyncFunctionDescriptor, AsyncRetryStrategy
from penstock.api.settings.values import at_least
from penstock.base.arguments import check_arguments
from penstock.base.type_variables import R, T
from penstock.common.time import LengthOfTime, to_millis
from penstock.common.type_information import DeclaredType, declared_type
from penstock.datastream.data_stream import DataStream
from penstock.engine.operators.functions.async_requests import required_parameters
from penstock.engine.operators.functions.async_wait import AsyncWaitOperator

__all__ = ["AsyncDataStream"]

_ORDERED, _UNORDERED = AsyncFunctionDescriptor.OutputMode.ORDERED, AsyncFunctionDescriptor.OutputMode.UNORDERED


@check_arguments
class AsyncDataStream:
    """Applies an AsyncFunction to a stream.

    `timeout` bounds each request from its first attempt to its result, in real time. `capacity` bounds the requests of
    a subtask whose results have not been emitted: at that number, further input waits. A result has the timestamp of
    the element for which it was requested. No result overtakes a watermark, and no watermark a result.
    """

    @staticmethod
    def unordered_wait(
        data_stream: DataStream[T],
        async_function: AsyncFunction[T, R],
        timeout: LengthOfTime,
        capacity: int = 100,
        output_type: DeclaredType[R] | None = None,
    ) -> DataStream[R]:
        """Emit results as they come."""
        once = AsyncRetryStrategy.no_restart()
        descriptor = AsyncFunctionDescriptor(async_function, timeout, capacity, once, _UNORDERED)
        return _apply(data_stream, descriptor, output_type)

    @staticmethod
    def unordered_wait_with_retry(
        data_stream: DataStream[T],
        async_function: AsyncFunction[T, R],
        timeout: LengthOfTime,
        async_retry_strategy: AsyncRetryStrategy,
        capacity: int = 100,
        output_type: DeclaredType[R] | None = None,
    ) -> DataStream[R]:
        """Emit results as they come. Failed attempts are repeated as the strategy says."""
        descriptor = AsyncFunctionDescriptor(async_function, timeout, capacity, async_retry_strategy, _UNORDERED)
        return _apply(data_stream, descriptor, output_type)

    @staticmethod
    def ordered_wait(
        data_stream: DataStream[T],
        async_function: AsyncFunction[T, R],
        timeout: LengthOfTime,
        capacity: int = 100,
        output_type: DeclaredType[R] | None = None,
    ) -> DataStream[R]:
        """Emit results in the order of the elements for which they were requested."""
        once = AsyncRetryStrategy.no_restart()
        descriptor = AsyncFunctionDescriptor(async_function, timeout, capacity, once, _ORDERED)
        return _apply(data_stream, descriptor, output_type)

    @staticmethod
    def ordered_wait_with_retry(
        data_stream: DataStream[T],
        async_function: AsyncFunction[T, R],
        timeout: LengthOfTime,
        async_retry_strategy: AsyncRetryStrategy,
        capacity: int = 100,
        output_type: DeclaredType[R] | None = None,
    ) -> DataStream[R]:
        """Emit results in the order of the elements. Failed attempts are repeated as the strategy says."""
        descriptor = AsyncFunctionDescriptor(async_function, timeout, capacity, async_retry_strategy, _ORDERED)
        return _apply(data_stream, descriptor, output_type)


def _apply(
    stream: DataStream[T], descriptor: AsyncFunctionDescriptor[T, R], output_type: DeclaredType[R] | None
) -> DataStream[R]:
    _check_function(descriptor.async_function)
    at_least("capacity", descriptor.capacity, 1)
    timeout = to_millis(descriptor.timeout)
    if timeout <= 0:
        raise ValueError(f"the timeout of a request must be above 0 ms, not {timeout} ms")
    declared = declared_type(output_type)
    return stream.apply_operator("Async Wait", AsyncWaitOperator(descriptor, declared), declared)


def _check_function(function: Any) -> None:
    name = type(function).__name__
    taken = required_parameters(function.async_invoke)
    if taken not in (1, 2):
        raise TypeError(f"async_invoke of {name} takes (value) or (value, result_future), not {taken} parameters")
    if taken == 1 and not inspect.iscoroutinefunction(function.async_invoke):
        raise TypeError(
            f"async_invoke(value) of {name} must be a coroutine: declare it with 'async def', or let it take "
            "(value, result_future)"
        )
    if inspect.iscoroutinefunction(function.timeout):
        raise TypeError(f"timeout of {name} must be a plain method, not a coroutine: it returns its results at once")
