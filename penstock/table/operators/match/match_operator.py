"""MATCH_RECOGNIZE at run time: rows are events of a pattern, and DEFINE and MEASURES are expressions over them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from penstock.cep.conditions import ConditionContext, RichIterativeCondition
from penstock.cep.pattern_functions import PatternProcessFunction
from penstock.engine.operators.operator import Operator
from penstock.engine.records.columns import Columns
from penstock.engine.records.elements import Chunk, Timestamps, Values
from penstock.engine.records.failures import USER_ERRORS
from penstock.table.logical.rex import AggregateCall, Call, InputRef, Literal, Rex, rewritten
from penstock.table.operators.aggregate.functions import Fold, fold_for
from penstock.table.operators.base.output_form import OutputForm
from penstock.table.operators.base.query_batches import Held, batch_of, state_rows
from penstock.table.operators.base.rowwise import rowwise
from penstock.table.operators.base.table_operator import TableOperator
from penstock.table.operators.io.row_conversions import millis_of
from penstock.table.types.arrow_forms import arrow_type

ANY = "*"
Rows = Callable[[str], list[Held]]
"""A function from the name of a variable to its rows, in order."""


class EventsOfBatches(TableOperator):
    """Converts batches to events: held rows with their time."""

    def __init__(self, form: OutputForm, time: int | None) -> None:
        super().__init__(form)
        self.time = time

    def batch(self, batch: pa.RecordBatch) -> None:
        stamps = None if self.time is None else millis_of(batch.column(self.time)).to_pylist()
        self.emit(state_rows(batch), stamps)


class BatchesOfRows(Operator):
    """Converts held rows to batches."""

    def __init__(self, schema: pa.Schema) -> None:
        super().__init__()
        self.schema = schema

    def records(self, values: Values, timestamps: Timestamps) -> None:
        try:
            batch = batch_of(values, self.schema)
        except USER_ERRORS as error:
            raise self.failure(error, []) from error
        self.emit_chunk(Chunk.of(Columns(batch)))


# --- expressions over the rows of a match ---
@dataclass
class Seen:
    """Expressions over the rows of a match. Their accesses to rows become columns, over which the rest is computed.

    A reference to a column replaces a call such as LAST(A, price, 0). The function of `takers` computes the column from
    the rows.
    """

    columns: pa.Schema
    """The columns of the input."""
    time: int | None
    takes: list[Rex] = field(default_factory=list)

    def over_takes(self, rex: Rex) -> Rex:
        """Return an expression over the columns of accesses."""
        return rewritten(rex, self._replace_access)

    def _replace_access(self, rex: Rex) -> Rex | None:
        if not isinstance(rex, Call) or rex.function not in {"LAST", "FIRST", "MATCH_AGG", "MATCH_ROWTIME"}:
            return None
        if rex not in self.takes:
            self.takes.append(rex)
        return InputRef(rex.type, self.takes.index(rex))

    def schema(self) -> pa.Schema:
        """Return the schema of the columns of accesses."""
        return pa.schema([pa.field(f"taken{index}", arrow_type(rex.type)) for index, rex in enumerate(self.takes)])

    def takers(self) -> list[Callable[[Rows], Any]]:
        """Return a function for each access that computes its value from the rows."""
        return [_taker(rex, self) for rex in self.takes if isinstance(rex, Call)]


def _taker(call: Call, seen: Seen) -> Callable[[Rows], Any]:
    if call.function == "MATCH_ROWTIME":
        time = seen.time
        assert time is not None
        return lambda rows: max(row[time] for row in rows(ANY))
    if call.function == "MATCH_AGG":
        return _aggregate(call, seen)
    variable, rex, offset = _word(call.args[0]), call.args[1], _word(call.args[2])
    value_of = _value(rex, seen.columns)
    last = call.function == "LAST"

    def take(rows: Rows) -> Any:
        found = rows(variable)
        if len(found) <= offset:
            return None
        return value_of(found[-1 - offset] if last else found[offset])

    return take


def _word(rex: Rex) -> Any:
    assert isinstance(rex, Literal)
    return rex.value


def _value(rex: Rex, schema: pa.Schema) -> Callable[[Held], Any]:
    """Return a function for the value of an expression over one row."""
    return rowwise(rex, schema)


def _aggregate(call: Call, seen: Seen) -> Callable[[Rows], Any]:
    name, variable, _ = (_word(arg) for arg in call.args[:3])
    args = call.args[3:]
    described = AggregateCall(name, tuple(range(len(args))), call.type, udf=call.udf)
    fold: Fold = fold_for(described, [arg.type for arg in args], signed=False)
    values_of = [_value(arg, seen.columns) for arg in args]

    def take(rows: Rows) -> Any:
        accumulator = fold.new()
        for row in rows(variable):
            accumulator = fold.add(accumulator, tuple([value_of(row) for value_of in values_of]), 1)
        return fold.value(accumulator)

    return take


@dataclass
class Variables:
    """The variables that a name stands for: those of a subset, or all for "*"."""

    order: tuple[str, ...]
    """The variables of the pattern, in order."""
    subsets: Mapping[str, tuple[str, ...]]

    def of(self, name: str) -> Sequence[str]:
        """Return the variables of a name, in the order of the pattern."""
        if name == ANY:
            return self.order
        return tuple(one for one in self.order if one in self.subsets[name]) if name in self.subsets else (name,)


class Define(RichIterativeCondition):
    """A condition of DEFINE. The current row counts as a row of the variable."""

    def __init__(self, variable: str, rex: Rex, seen: Seen, variables: Variables) -> None:
        self.variable = variable
        self.seen = replace(seen, takes=[])
        self.rex = self.seen.over_takes(rex)
        self.variables = variables

    def open(self, runtime_context: Any) -> None:
        self._takers = self.seen.takers()
        self._holds = rowwise(self.rex, self.seen.schema())

    def filter(self, value: Held, ctx: ConditionContext) -> bool:
        def rows(name: str) -> list[Held]:
            found: list[Held] = []
            for variable in self.variables.of(name):
                found += ctx.get_events_for_pattern(variable)
            return [*found, value] if name == ANY or self.variable in self.variables.of(name) else found

        return self._holds(tuple([take(rows) for take in self._takers])) is True


class Measures(PatternProcessFunction):
    """Makes a row of each match: the columns of PARTITION BY, then the accesses of the measures."""

    def __init__(self, partition: Sequence[int], seen: Seen, variables: Variables) -> None:
        self.partition = tuple(partition)
        self.seen = seen
        self.variables = variables

    def open(self, runtime_context: Any) -> None:
        self._takers = self.seen.takers()

    def process_match(self, match: dict[str, list[Held]], ctx: PatternProcessFunction.Context) -> list[Held]:
        def rows(name: str) -> list[Held]:
            return [row for variable in self.variables.of(name) for row in match.get(variable, ())]

        first = next(row for variable in self.variables.order for row in match.get(variable, ()))
        keys = tuple([first[position] for position in self.partition])
        return [keys + tuple([take(rows) for take in self._takers])]
