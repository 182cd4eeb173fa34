"""Functions of the user inside expressions."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pyarrow as pa

from penstock.errors import TableException
from penstock.table.arrow import array_of, arrow_type, values_of
from penstock.table.functions.moment import Moment
from penstock.table.plan.rex import Call, Rex, walk

Column = Callable[[pa.RecordBatch, Moment], pa.Array]


def evaluate(call: Call, args: Sequence[Column]) -> Column:
    """Calls a function of the user: for every row, or once for the columns if it is vectorised."""
    wrapper, kinds = call.udf, [arg.type for arg in call.args]
    if wrapper.vectorised:
        return lambda batch, moment: _vectorised(
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
        return [_called(call, function, one) for one in values]

    async def together() -> list[Any]:
        return await asyncio.gather(*(_awaited(call, function, one) for one in values))

    return asyncio.run(together())


async def _awaited(call: Call, function: Callable[..., Any], values: Sequence[Any]) -> Any:
    try:
        return await function(*values)
    except Exception as error:
        raise _failed(call, values, error) from error


def _called(call: Call, function: Callable[..., Any], values: Sequence[Any]) -> Any:
    try:
        return function(*values)
    except Exception as error:
        raise _failed(call, values, error) from error


def _failed(call: Call, values: Sequence[Any], error: Exception) -> TableException:
    given = ", ".join(map(repr, values))
    return TableException(f"the function {call.udf.name} failed for ({given}): {type(error).__name__}: {error}")


def open_functions(rexes: Iterable[Rex], context: Any) -> None:
    """Opens the functions of the user in some expressions, each once. Operators do it before their first batch."""
    for wrapper in _wrappers(rexes):
        wrapper.open(context)


def close_functions(rexes: Iterable[Rex]) -> None:
    """Closes what open_functions opened."""
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
            f"the function {call.udf.name} is declared to give {call.type.summary()}, and gave something else: {error}"
        ) from error


def _vectorised(call: Call, function: Callable[..., Any], columns: list[pa.Array], rows: int) -> pa.Array:
    name, aim = call.udf.name, arrow_type(call.type)
    if call.udf.vectorised == "pandas":
        columns = [column.to_pandas() for column in columns]
    try:
        result = function(*columns)
    except Exception as error:
        raise TableException(f"the function {name} failed: {type(error).__name__}: {error}") from error
    array = result if isinstance(result, pa.Array) else pa.Array.from_pandas(result, type=aim)
    if len(array) != rows:
        raise TableException(f"the function {name} gave {len(array)} values for {rows} rows")
    return array if array.type == aim else array.cast(aim)
