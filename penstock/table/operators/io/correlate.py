"""LATERAL and UNNEST: every row is joined with the rows of a table function or of a nested value."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.common.types import Row
from penstock.engine.operators.operator import OperatorContext
from penstock.errors import TableException
from penstock.table.functions.user_functions import close_functions, open_functions
from penstock.table.logical.rex import Call, Rex
from penstock.table.operators.base.compiled_expressions import evaluator, evaluators, moment_of, truth
from penstock.table.operators.base.function_context import function_context
from penstock.table.operators.base.output_form import OutputForm
from penstock.table.operators.base.query_batches import kinds_of
from penstock.table.operators.base.table_operator import TableOperator
from penstock.table.operators.base.update_pairs import with_pairs_of_rows
from penstock.table.types.arrow_forms import array_of, arrow_type, values_of
from penstock.table.types.data_types import MultisetType, RowType

Made = tuple[pa.Array, list[pa.Array]]
"""For each new row, the position of the input row from which it is made; and the columns of the new rows."""


class Correlate(TableOperator):
    """Joins each row with the rows made from it. With `outer`, a row without any is joined with NULLs."""

    def __init__(
        self,
        call: Rex,
        outer: bool,
        condition: Rex | None,
        ordinality: bool,
        form: OutputForm,
        changelog: bool,
        zone: str = "UTC",
    ) -> None:
        super().__init__(form)
        self.call = call
        self.outer = outer
        self.condition = condition
        self.ordinality = ordinality
        self.changelog = changelog
        self.zone = zone

    def open(self, context: OperatorContext) -> None:
        super().open(context)
        assert isinstance(self.call, Call)
        self._args = evaluators(self.call.args)
        self._accepts = None if self.condition is None else evaluator(self.condition)
        open_functions(self._rexes(), function_context(context))

    def close(self) -> None:
        if hasattr(self, "context"):
            close_functions(self._rexes())

    def _rexes(self) -> list[Rex]:
        return [self.call] if self.condition is None else [self.call, self.condition]

    def batch(self, batch: pa.RecordBatch) -> None:
        moment = moment_of(self, self.zone)
        assert isinstance(self.call, Call)
        args = [compute(batch, moment) for compute in self._args]
        made = unnest(args[0], self.call) if self.call.udf is None else call_function(args, self.call, batch.num_rows)
        positions, columns = made
        if self.ordinality:
            columns = [*columns, _ordinals(positions, self.schema.field(self._width(batch) + len(columns)).type)]
        joined = self._join(batch, positions, columns)
        if self._accepts is not None:
            mask = truth(self._accepts(joined, moment))
            joined, positions = joined.filter(mask), positions.filter(mask)
        if self.outer:
            joined, positions = self._with_missing(batch, positions, joined, columns)
        self.send(with_pairs_of_rows(joined, positions) if self.changelog else joined)

    def _width(self, batch: pa.RecordBatch) -> int:
        return int(batch.num_columns) - (1 if self.changelog else 0)

    def _join(self, batch: pa.RecordBatch, positions: pa.Array, columns: list[pa.Array]) -> pa.RecordBatch:
        left = batch.take(positions)
        rest = [kinds_of(left)] if self.changelog else []
        return pa.RecordBatch.from_arrays([*left.columns[: self._width(batch)], *columns, *rest], schema=self.schema)

    def _with_missing(
        self, batch: pa.RecordBatch, positions: pa.Array, joined: pa.RecordBatch, columns: list[pa.Array]
    ) -> tuple[pa.RecordBatch, pa.Array]:
        """Add the rows from which nothing is made. Return all rows in order, and the positions of their input rows."""
        every = pa.array(range(batch.num_rows), pa.int64())
        missing = every.filter(pc.invert(pc.is_in(every, value_set=positions.cast(pa.int64()))))
        if not len(missing):
            return joined, positions
        padded = self._join(batch, missing, [pa.nulls(len(missing), column.type) for column in columns])
        both = pa.concat_arrays([positions.cast(pa.int64()), missing])
        order = pc.array_sort_indices(both)
        return pa.concat_batches([joined, padded]).take(order), both.take(order)


def _ordinals(positions: pa.Array, kind: pa.DataType) -> pa.Array:
    numbers, before, count = list[int](), None, 0
    for position in positions.to_pylist():
        count = count + 1 if position == before else 1
        before = position
        numbers.append(count)
    return pa.array(numbers, kind)


# --- UNNEST ---
def unnest(column: pa.Array, call: Call) -> Made:
    """Return the elements of arrays, the pairs of maps, or the elements of multisets with their repetitions."""
    assert isinstance(call.type, RowType)
    declared = call.args[0].type
    fields = [arrow_type(kind) for kind in call.type.field_types()]
    if pa.types.is_map(column.type):
        return _of_map(column, isinstance(declared, MultisetType), fields)
    positions = pc.list_parent_indices(column)
    elements = pc.list_flatten(column)
    if pa.types.is_struct(elements.type) and len(fields) == elements.type.num_fields:
        return positions, [part.cast(kind) for part, kind in zip(elements.flatten(), fields, strict=True)]
    return positions, [elements.cast(fields[0])]


def _of_map(column: pa.Array, multiset: bool, fields: list[pa.DataType]) -> Made:
    as_list = column.cast(pa.list_(pa.struct([("key", column.type.key_type), ("value", column.type.item_type)])))
    positions, (keys, values) = pc.list_parent_indices(as_list), pc.list_flatten(as_list).flatten()
    if not multiset:
        return positions, [keys.cast(fields[0]), values.cast(fields[1])]
    repeated = pa.array([index for index, count in enumerate(values.to_pylist()) for _ in range(count)], pa.int64())
    elements = keys.take(repeated)
    if pa.types.is_struct(elements.type):
        return positions.take(repeated), elements.flatten()
    return positions.take(repeated), [elements.cast(fields[0])]


# --- table functions ---
def call_function(args: list[pa.Array], call: Call, count: int) -> Made:
    """Return the rows that a user's function gives for every row."""
    assert isinstance(call.type, RowType)
    values = [values_of(column, arg.type) for column, arg in zip(args, call.args, strict=True)]
    rows = list(zip(*values, strict=True)) if values else [()] * count
    width, function = len(call.type.fields), call.udf.callable()
    positions, made = list[int](), list[tuple[Any, ...]]()
    for position, row in enumerate(rows):
        for result in _results(function, row, call):
            positions.append(position)
            made.append(_as_row(result, width, call))
    by_column = list(zip(*made, strict=True)) if made else [()] * width
    kinds = call.type.field_types()
    columns = [array_of(values, kind) for values, kind in zip(by_column, kinds, strict=True)]
    return pa.array(positions, pa.int64()), columns


def _results(function: Any, row: tuple[Any, ...], call: Call) -> Iterable[Any]:
    """Return the results of a function as an iterable. A function may return a generator, a list, one value or None."""
    try:
        given = function(*row)
        if given is None:
            return ()
        if isinstance(given, Row | tuple | str | bytes) or not hasattr(given, "__iter__"):
            return (given,)
        return list(given)
    except Exception as error:
        raise TableException(
            f"the table function {call.udf.name} failed for {row!r}: {type(error).__name__}: {error}"
        ) from error


def _as_row(result: Any, width: int, call: Call) -> tuple[Any, ...]:
    row = tuple(result) if isinstance(result, Row | tuple | list) and (width > 1 or len(result) == 1) else (result,)
    if len(row) != width:
        raise TableException(f"the table function {call.udf.name} gave {result!r}, but its rows have {width} columns")
    return row
