"""The contract of aggregate functions at run time. A fold adds rows to an accumulator, one by one or in columns."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from penstock.engine.records.columns import state_values
from penstock.table.logical.rex import AggregateCall
from penstock.table.operators.base.query_batches import column_of
from penstock.table.types.arrow_forms import arrow_type
from penstock.table.types.data_types import DataType


class Part(NamedTuple):
    """A column that Arrow aggregates by group before Python folds the result."""

    column: pa.Array | None
    """The input of the function, or None for COUNT(*)."""
    function: str
    """The name of an Arrow function, without its prefix `hash_`."""


class Fold(ABC):
    """One aggregate call. Accumulators are plain values, so that state can hold them.

    `add` adds a row to the accumulator, or removes it if its sign is -1, and returns the accumulator.
    """

    in_any_order = False
    """True if accumulators can be merged and the order of their rows does not matter."""

    def __init__(self, call: AggregateCall, types: Sequence[DataType]) -> None:
        """Create a fold of a call whose arguments have these types."""
        self.call = call
        self.types = tuple(types)
        self.arrow_type = arrow_type(call.type)

    def open(self, context: Any) -> None:  # noqa: B027 - most have nothing to prepare
        """Prepare the function. The slot calls it before the first row."""

    def close(self) -> None:  # noqa: B027
        """Release what `open` acquired. The slot calls it at the end."""

    @abstractmethod
    def new(self) -> Any:
        """Return the accumulator of no rows."""

    @abstractmethod
    def add(self, accumulator: Any, args: tuple[Any, ...], sign: int) -> Any:
        """Add a row, or remove it if the sign is -1, and return the accumulator."""

    @abstractmethod
    def value(self, accumulator: Any) -> Any:
        """Return the result in the form in which state holds values."""

    def values(self, accumulators: Sequence[Any]) -> list[Any]:
        """Return the results of many accumulators."""
        value = self.value
        return [value(accumulator) for accumulator in accumulators]

    def merge(self, accumulator: Any, other: Any) -> Any:
        """Return one accumulator for the rows of both. The rows of `other` come later."""
        raise NotImplementedError(f"{self.call.function} cannot merge accumulators")

    def copy_accumulator(self, accumulator: Any) -> Any:
        """Return an accumulator that can be merged into another one and changed with it.

        The built-in folds keep no parts of what they merge, so that they need no copy.
        """
        return accumulator

    def column(self, values: Sequence[Any]) -> pa.Array:
        """Return results as a column."""
        return column_of(values, self.arrow_type)

    def rows(self, batch: pa.RecordBatch) -> list[tuple[Any, ...]]:
        """Return the arguments of every row."""
        columns = [state_values(batch.column(index)) for index in self.call.args]
        return list(zip(*columns, strict=True)) if columns else [()] * batch.num_rows

    def chosen(self, batch: pa.RecordBatch) -> list[bool] | None:
        """Return for each row whether FILTER accepts it, or None if all rows count."""
        if self.call.filter is None:
            return None
        kept: list[bool] = batch.column(self.call.filter).fill_null(False).to_pylist()
        return kept


class VectorFold(Fold):
    """An aggregate whose first phase runs in Arrow, before the exchange. Python sees one set of parts for each key."""

    in_any_order = True

    def __init__(self, call: AggregateCall, types: Sequence[DataType], signed: bool) -> None:
        """Create a fold. `signed` is True if rows can be retracted."""
        super().__init__(call, types)
        self.signed = signed

    @abstractmethod
    def parts(self, batch: pa.RecordBatch, signs: pa.Array | None) -> list[Part]:
        """Return the columns that Arrow aggregates. `signs` are 1 and -1, or None if all rows are inserts."""

    @abstractmethod
    def part_types(self) -> list[pa.DataType]:
        """Return the types of the parts after the first phase."""

    def functions(self) -> list[str]:
        """Return the Arrow functions that combine parts of the same group once more."""
        return ["sum"] * len(self.part_types())

    @abstractmethod
    def fold_all(self, accumulators: Sequence[Any], parts: Sequence[Sequence[Any]]) -> list[Any]:
        """Fold the results of the first phase, one column for each part, into one accumulator for each group."""

    def unfold(self, accumulators: Sequence[Any]) -> list[pa.Array]:
        """Return the parts, as columns of `part_types`, that give these accumulators again when they are folded."""
        raise NotImplementedError

    def result(self, parts: Sequence[pa.Array]) -> pa.Array:
        """Return the results of groups whose parts are complete, as a column."""
        fresh = [self.new() for _ in range(len(parts[0]))]
        return self.column(self.values(self.fold_all(fresh, [state_values(part) for part in parts])))

    def begin_all(self, parts: Sequence[Sequence[Any]], count: int) -> list[Any]:
        """Return the accumulators of `count` groups that had no state before."""
        return self.fold_all([self.new()] * count, parts)

    def argument(self, batch: pa.RecordBatch) -> pa.Array:
        """Return the only argument, with NULL in rows that FILTER rejects."""
        column = batch.column(self.call.args[0])
        if self.call.filter is None:
            return column
        kept = batch.column(self.call.filter).fill_null(False)
        return pc.if_else(kept, column, pa.scalar(None, column.type))
