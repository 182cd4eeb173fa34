"""Aggregate functions that users write in Python."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from penstock.common.types import Row
from penstock.errors import TableException
from penstock.formats.pandas_frames import series_of
from penstock.table.expression.function_declarations import AggregateFunction, ImperativeAggregateFunction
from penstock.table.logical.rex import AggregateCall
from penstock.table.operators.aggregate.functions.fold import Fold
from penstock.table.types.arrow_forms import array_of, values_of
from penstock.table.types.data_types import DataType


class UserAggregate(Fold):
    """A user's AggregateFunction. The function itself makes the accumulator."""

    def __init__(self, call: AggregateCall, types: Sequence[DataType]) -> None:
        super().__init__(call, types)
        own = getattr(type(call.udf.function), "merge", None)
        self.in_any_order = own not in (None, ImperativeAggregateFunction.merge)

    @property
    def function(self) -> Any:
        """The user's function."""
        return self.call.udf.function

    def open(self, context: Any) -> None:
        self.function.open(context)

    def close(self) -> None:
        self.function.close()

    def new(self) -> Any:
        return self.function.create_accumulator()

    def add(self, accumulator: Any, args: tuple[Any, ...], sign: int) -> Any:
        if sign > 0:
            self.function.accumulate(accumulator, *args)
        else:
            self.function.retract(accumulator, *args)
        return accumulator

    def merge(self, accumulator: Any, other: Any) -> Any:
        self.function.merge(accumulator, [other])
        return accumulator

    def copy_accumulator(self, accumulator: Any) -> Any:
        """Return a deep copy, because a function may keep parts of an accumulator that it merges."""
        return copy.deepcopy(accumulator)

    def value(self, accumulator: Any) -> Any:
        try:
            return freeze_result(self.function.get_value(accumulator))
        except Exception as error:
            raise TableException(f"the aggregate function {self.call.function} failed: {error!r}") from error

    def column(self, values: Sequence[Any]) -> pa.Array:
        return array_of(values, self.call.type)

    def rows(self, batch: pa.RecordBatch) -> list[tuple[Any, ...]]:
        """Return the arguments as the Python values that users know."""
        pairs = zip(self.call.args, self.types, strict=True)
        columns = [values_of(batch.column(index), declared) for index, declared in pairs]
        return list(zip(*columns, strict=True)) if columns else [()] * batch.num_rows


class ColumnsAggregate(UserAggregate):
    """A function from columns to a value.

    The accumulator keeps all arguments, and every result calls the function again.
    """

    def __init__(self, call: AggregateCall, types: Sequence[DataType]) -> None:
        super().__init__(call, types)
        self.in_any_order = False

    def new(self) -> list[tuple[Any, ...]]:
        return []

    def add(self, accumulator: list[tuple[Any, ...]], args: tuple[Any, ...], sign: int) -> list[tuple[Any, ...]]:
        if sign > 0:
            accumulator.append(args)
        elif args in accumulator:
            accumulator.remove(args)
        return accumulator

    def merge(self, accumulator: Any, other: Any) -> Any:
        return accumulator + other

    def open(self, context: Any) -> None:
        self.call.udf.open(context)

    def close(self) -> None:
        self.call.udf.close()

    def value(self, accumulator: list[tuple[Any, ...]]) -> Any:
        by_argument = list(zip(*accumulator, strict=True)) if accumulator else [()] * len(self.types)
        columns = [array_of(values, kind) for values, kind in zip(by_argument, self.types, strict=True)]
        given = [series_of(column) for column in columns] if self.call.udf.vectorised == "pandas" else columns
        return freeze_result(_plain(self._result(given)))

    def _result(self, given: Sequence[Any]) -> Any:
        function = self.call.udf.function
        if not isinstance(function, AggregateFunction):
            return self.call.udf.callable()(*given)
        accumulator = function.create_accumulator()
        function.accumulate(accumulator, *given)
        return function.get_value(accumulator)


def _plain(value: Any) -> Any:
    """Return a number of NumPy as a number of Python, also inside a row."""
    if isinstance(value, tuple | Row):
        return tuple(map(_plain, value))
    return value.item() if hasattr(value, "item") else value


def freeze_result(value: Any) -> Any:
    """Return a result that cannot change, even if the function changes its accumulator later."""
    if isinstance(value, dict):
        return tuple((freeze_result(key), freeze_result(part)) for key, part in value.items())
    return tuple(map(freeze_result, value)) if isinstance(value, list | tuple | Row) else value
