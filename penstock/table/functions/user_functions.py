"""Users' functions inside expressions."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pyarrow as pa

from penstock.errors import TableException
from penstock.formats.pandas_frames import series_of
from penstock.table.expression.function_declarations import AsyncOptions
from penstock.table.functions.moment import Moment
from penstock.table.logical.rex import Call, Rex, walk
from penstock.table.types.arrow_forms import array_of, arrow_type, values_of
from penstock.table.types.data_types import DataType, RowType

Column = Callable[[pa.RecordBatch, Moment], pa.Array]


def evaluate(call: Call, args: Sequence[Column]) -> Column:
    """Return a function that calls a user's function for every row, or once for the columns if it is vectorised."""
    wrapper, kinds = call.udf, [arg.type for arg in call.args]
    if wrapper.vectorised:
        return lambda batch, moment: _call_vectorised(
            call, wrapper.callable(), [arg(batch, moment) for arg in args], batch.num_rows
        )

    def rows(batch: pa.RecordBatch, moment: Moment) -> pa.Array:
        columns = [values_of(arg(batch, moment), kind) for arg, kind in zip(args, kinds, strict=True)]
        values = list(zip(*columns, strict=True)) if columns else [()] * batch.num_rows
        return _column(call, _results(call, values))

    return rows


def _results(call: Call, values: Sequence[Sequence[Any]]) -> list[Any]:
    function = call.udf.callable()
    if not call.udf.asynchronous:
        return [_call(call, function, one) for one in values]

    return _loop().run_until_complete(_all_awaited(call, function, values))


class _Thread(threading.local):
    """The event loop of a thread. It remains, because clients that a function opened belong to it."""

    loop: asyncio.AbstractEventLoop | None = None


_thread = _Thread()


def _loop() -> asyncio.AbstractEventLoop:
    if _thread.loop is None or _thread.loop.is_closed():
        _thread.loop = asyncio.new_event_loop()
    return _thread.loop


async def _all_awaited(call: Call, function: Callable[..., Any], values: Sequence[Sequence[Any]]) -> list[Any]:
    """Return the results in the order of the rows. The first failure cancels all calls."""
    room = asyncio.Semaphore(call.udf.async_options.capacity)
    waiting = [asyncio.ensure_future(_await_call(call, function, one, room)) for one in values]
    try:
        return await asyncio.gather(*waiting)
    finally:
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)


async def _await_call(call: Call, function: Callable[..., Any], values: Sequence[Any], room: asyncio.Semaphore) -> Any:
    options = call.udf.async_options
    async with room:
        try:
            return await asyncio.wait_for(_retry(call, function, values, options), options.timeout or None)
        except TimeoutError as error:
            late = TimeoutError(f"no result within {options.timeout} s, 'table.exec.async-scalar.timeout'")
            raise _failure(call, values, late) from error


async def _retry(call: Call, function: Callable[..., Any], values: Sequence[Any], options: AsyncOptions) -> Any:
    failures = 0
    while True:
        try:
            return await function(*values)
        except Exception as error:
            failures += 1
            if failures > options.repetitions:
                raise _failure(call, values, error) from error
        await asyncio.sleep(options.delay)


def _call(call: Call, function: Callable[..., Any], values: Sequence[Any]) -> Any:
    try:
        return function(*values)
    except Exception as error:
        raise _failure(call, values, error) from error


def _failure(call: Call, values: Sequence[Any], error: Exception) -> TableException:
    given = ", ".join(map(repr, values))
    return TableException(f"the function {call.udf.name} failed for ({given}): {type(error).__name__}: {error}")


def open_functions(rexes: Iterable[Rex], context: Any) -> None:
    """Open the users' functions in expressions, each once. Operators do it before their first batch."""
    for wrapper in _wrappers(rexes):
        wrapper.open(context)


def close_functions(rexes: Iterable[Rex]) -> None:
    """Close the functions that open_functions opened."""
    for wrapper in _wrappers(rexes):
        wrapper.close()


def _wrappers(rexes: Iterable[Rex]) -> list[Any]:
    found = {
        id(one.udf): one.udf for rex in rexes for one in walk(rex) if isinstance(one, Call) and one.udf is not None
    }
    return list(found.values())


def _column(call: Call, values: list[Any]) -> pa.Array:
    try:
        return array_of(values, call.type)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise TableException(
            f"the function {call.udf.name} is declared to return {call.type.summary()}, but returned another "
            f"type: {error}"
        ) from error


def _call_vectorised(call: Call, function: Callable[..., Any], columns: list[pa.Array], rows: int) -> pa.Array:
    name, aim = call.udf.name, arrow_type(call.type)
    if call.udf.vectorised == "pandas":
        columns = [_pandas_of(column) for column in columns]
    try:
        result = function(*columns)
    except Exception as error:
        raise TableException(f"the function {name} failed: {type(error).__name__}: {error}") from error
    array = result if isinstance(result, pa.Array) else _array_of_pandas(result, call.type)
    if len(array) != rows:
        raise TableException(f"the function {name} returned {len(array)} values for {rows} rows")
    return array if array.type == aim else array.cast(aim)


def _pandas_of(column: pa.Array) -> Any:
    """Return a column as a Series, or as a DataFrame of its fields if it has rows."""
    if not pa.types.is_struct(column.type):
        return series_of(column)
    import pandas

    fields = dict(zip((field.name for field in column.type), map(_pandas_of, column.flatten()), strict=True))
    return pandas.DataFrame(fields)


def _array_of_pandas(result: Any, declared: DataType) -> pa.Array:
    """Return a Series, or a DataFrame with the fields of rows in order, as a column."""
    import pandas

    if isinstance(result, pandas.DataFrame) and isinstance(declared, RowType):
        kinds = declared.field_types()
        if len(kinds) != result.shape[1]:
            raise TableException(
                f"the DataFrame has {result.shape[1]} columns, but {declared.summary()} has {len(kinds)}"
            )
        parts = [_array_of_pandas(result.iloc[:, place], kind) for place, kind in enumerate(kinds)]
        return pa.StructArray.from_arrays(parts, names=declared.names)
    if isinstance(declared, RowType):
        return array_of(list(result), declared)
    return pa.Array.from_pandas(result, type=arrow_type(declared))
