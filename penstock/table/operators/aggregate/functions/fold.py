"""What an aggregate function is at run time: an accumulator that rows are folded into, one by one or in columns."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from penstock.engine.records.columns import held_values
from penstock.table.logical.rex import AggregateCall
from penstock.table.operators.base.query_batches import column_of
from penstock.table.types.arrow_forms import arrow_type
from penstock.table.types.data_types import DataType


class Part(NamedTuple):
    """A column that Arrow aggregates by group before the rest is folded in Python."""

    column: pa.Array | None
    """None for COUNT(*)."""
    function: str
    """One of Arrow's, without `hash_`."""


class Fold(ABC):
    """One aggregate call. Accumulators are plain values, so that state can hold them.

    `add` folds a row in, or takes it out again if its sign is -1, and returns the accumulator.
    """

    in_any_order = False
    """Whether it can merge accumulators, and the order of their rows does not matter."""

    def __init__(self, call: AggregateCall, types: Sequence[DataType]) -> None:
        """`types` are those of the arguments."""
        self.call = call
        self.types = tuple(types)
        self.arrow_type = arrow_type(call.type)

    def open(self, context: Any) -> None:  # noqa: B027 - most have nothing to prepare
        """Called in the slot before the first row."""

    def close(self) -> None:  # noqa: B027
        """Called at the end."""

    @abstractmethod
    def new(self) -> Any:
        """The accumulator of no rows."""

    @abstractmethod
    def add(self, accumulator: Any, args: tuple[Any, ...], sign: int) -> Any:
        """Fold a row in, or take it out again, and return the accumulator."""

    @abstractmethod
    def value(self, accumulator: Any) -> Any:
        """The result, as state holds values."""

    def values(self, accumulators: Sequence[Any]) -> list[Any]:
        """The results of many accumulators."""
        value = self.value
        return [value(accumulator) for accumulator in accumulators]

    def merge(self, accumulator: Any, other: Any) -> Any:
        """Two accumulators of different rows as one; the rows of the second come later."""
        raise NotImplementedError(f"{self.call.function} cannot merge accumulators")

    def copied(self, accumulator: Any) -> Any:
        """An accumulator that can be merged into another one which will be changed. Ours keep nothing of it."""
        return accumulator

    def column(self, values: Sequence[Any]) -> pa.Array:
        """Results as a column."""
        return column_of(values, self.arrow_type)

    def rows(self, batch: pa.RecordBatch) -> list[tuple[Any, ...]]:
        """The arguments of every row."""
        columns = [held_values(batch.column(index)) for index in self.call.args]
        return list(zip(*columns, strict=True)) if columns else [()] * batch.num_rows

    def chosen(self, batch: pa.RecordBatch) -> list[bool] | None:
        """For every row whether FILTER lets it count; None if all do."""
        if self.call.filter is None:
            return None
        kept: list[bool] = batch.column(self.call.filter).fill_null(False).to_pylist()
        return kept


class VectorFold(Fold):
    """An aggregate whose first phase runs in Arrow, before the exchange; Python sees one set of parts for each key."""

    in_any_order = True

    def __init__(self, call: AggregateCall, types: Sequence[DataType], signed: bool) -> None:
        """`signed`: rows can be taken back."""
        super().__init__(call, types)
        self.signed = signed

    @abstractmethod
    def parts(self, batch: pa.RecordBatch, signs: pa.Array | None) -> list[Part]:
        """What Arrow is to aggregate. `signs` are 1 and -1, or None if all rows are inserts."""

    @abstractmethod
    def part_types(self) -> list[pa.DataType]:
        """The types of the parts after the first phase."""

    def functions(self) -> list[str]:
        """Arrow's functions that put parts of the same group together once more."""
        return ["sum"] * len(self.part_types())

    @abstractmethod
    def fold_all(self, accumulators: Sequence[Any], parts: Sequence[Sequence[Any]]) -> list[Any]:
        """Fold what the first phase made, a column for each part, into the accumulators of as many groups."""

    def unfolded(self, accumulators: Sequence[Any]) -> list[pa.Array]:
        """Parts that give these accumulators again when they are folded, as columns of `part_types`."""
        raise NotImplementedError

    def result(self, parts: Sequence[pa.Array]) -> pa.Array:
        """The results of groups whose parts are complete, as a column."""
        fresh = [self.new() for _ in range(len(parts[0]))]
        return self.column(self.values(self.fold_all(fresh, [held_values(part) for part in parts])))

    def begin_all(self, parts: Sequence[Sequence[Any]], count: int) -> list[Any]:
        """The accumulators of so many groups of which nothing was known before."""
        return self.fold_all([self.new()] * count, parts)

    def argument(self, batch: pa.RecordBatch) -> pa.Array:
        """The only argument, NULL where FILTER leaves a row out."""
        column = batch.column(self.call.args[0])
        if self.call.filter is None:
            return column
        kept = batch.column(self.call.filter).fill_null(False)
        return pc.if_else(kept, column, pa.scalar(None, column.type))
