"""The meaning of the expressions in a select: names, columns by pattern, aggregates, and properties of windows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, TypeAlias

from penstock.errors import ValidationException
from penstock.table import functions
from penstock.table.expression.expression import Expression
from penstock.table.expression.expression_functions import col, lit
from penstock.table.expression.function_declarations import UserDefinedFunction, UserDefinedFunctionWrapper
from penstock.table.functions.typing.binding import bind
from penstock.table.logical.building import project
from penstock.table.logical.nodes import Columns, Project, Relation
from penstock.table.logical.rex import AggregateCall, InputRef, Literal, Rex
from penstock.table.types.data_types import RowType

FieldLike: TypeAlias = Expression | str
"""An expression, or the name of a column."""
TableFunctionCall: TypeAlias = Expression | UserDefinedFunctionWrapper
RowFunction: TypeAlias = Expression | UserDefinedFunctionWrapper | UserDefinedFunction
"""A function that is called with a row: a call of it, or the function itself."""

CALLS = ("call", "udf")
WRAPPED = ("alias", "argument", "cast")
"""Kinds of expressions around another one."""
PROPERTIES = {"WINDOW_START": "start", "WINDOW_END": "end", "ROWTIME": "rowtime", "PROCTIME": "proctime"}
COLUMN_RANGES = {"WITHCOLUMNS": True, "WITHOUTCOLUMNS": False}


# --- looking at expressions ---
def as_expression(value: Any, method: str) -> Expression:
    """Return an expression. A text is the name of a column."""
    if isinstance(value, Expression):
        return value
    if isinstance(value, str):
        return col(value)
    raise TypeError(f"{method} takes expressions, such as col('name'), not {value!r}")


def kind_of(expression: Any) -> str:
    """Return the kind of an expression, the first part of its node."""
    return str(expression.node[0])


def function_of(expression: Any) -> str | None:
    """Return the name of the called function; None if the expression is no call, or calls a user-defined function."""
    node = expression.node
    return str(node[1]).upper() if node[0] == "call" else None


def user_function(expression: Any) -> Any:
    """Return the called user-defined function; None if the expression is something else."""
    node = expression.node
    return node[1] if node[0] == "udf" else None


def arguments(expression: Any) -> tuple[Any, ...]:
    """Return the arguments of a call; nothing for other expressions."""
    node = expression.node
    return tuple(node[2]) if node[0] in CALLS else ()


def without_alias(expression: Any) -> Any:
    """Return the expression under an alias, or the expression itself."""
    return expression.node[1] if kind_of(expression) == "alias" else expression


def column_name(expression: Any) -> str | None:
    """Return the column's name; None if the expression is no column."""
    return expression.node[1] if kind_of(expression) == "column" else None


def name_of(expression: Any, fresh_names: Callable[[], str]) -> str:
    """Return the name of the expression's column: its alias, its own name, or a fresh one."""
    if kind_of(expression) == "alias":
        return str(expression.node[2][0])
    return column_name(expression) or fresh_names()


def is_aggregate(expression: Any) -> bool:
    """Return True for a call of an aggregate, also with DISTINCT."""
    name, wrapper = function_of(expression), user_function(expression)
    if name == "DISTINCT":
        return True
    return wrapper.kind == "aggregate" if wrapper is not None else name is not None and functions.is_aggregate(name)


def contains(expression: Any, found: Callable[[Any], bool]) -> bool:
    """Return True if a part of an expression meets a condition. Parts of an aggregate with OVER do not count."""
    if found(expression):
        return True
    if kind_of(expression) == "over":
        return False
    parts = (expression.node[1],) if kind_of(expression) in WRAPPED else arguments(expression)
    return any(contains(part, found) for part in parts if isinstance(part, Expression))


def replace_parts(expression: Any, change: Callable[[Any], Any]) -> Any:
    """Replace the parts of an expression for which `change` returns another one, from the top down."""
    changed = change(expression)
    if changed is not None:
        return changed
    node = expression.node
    if node[0] in WRAPPED:
        return Expression((node[0], replace_parts(node[1], change), *node[2:]))
    if node[0] not in CALLS:
        return expression
    parts = tuple(replace_parts(part, change) if isinstance(part, Expression) else part for part in node[2])
    return Expression((node[0], node[1], parts, *node[3:]))


# --- columns by pattern ---
def expand_fields(fields: Iterable[Any], columns: Columns) -> list[Any]:
    """Write out `*`, ranges of columns, and the fields of a flattened row."""
    made: list[Any] = []
    for one in fields:
        if column_name(one) == "*":
            made += [col(column.name) for column in columns]
        elif (wanted := COLUMN_RANGES.get((function_of(one) or "").replace("_", ""))) is not None:
            inside = {name for part in arguments(one) for name in _range(part, columns)}
            made += [col(column.name) for column in columns if (column.name in inside) is wanted]
        elif function_of(one) == "FLATTEN":
            made += _fields(arguments(one)[0], columns)
        else:
            made.append(one)
    return made


def _fields(row: Any, columns: Columns) -> list[Any]:
    """Return the fields of a row, named after the row and the field; any other expression is returned itself."""
    kind = bind(row, columns).type
    if not isinstance(kind, RowType):
        return [row]
    return [row.get(name).alias(f"{_path(row)}${name}") for name in kind.field_names()]


def _path(row: Any) -> str:
    """Return the name of a column, or of a field in it."""
    if function_of(row) == "GET":
        inner, key = arguments(row)
        return f"{_path(inner)}${key.node[1]}"
    return column_name(row) or "_c0"


def _range(part: Any, columns: Columns) -> list[str]:
    names = [column.name for column in columns]
    if function_of(part) in {"RANGE", "RANGETO", "RANGE_"}:
        first, last = (_position(end, names) for end in arguments(part))
        return names[first : last + 1]
    return [names[_position(part, names)]]


def _position(end: Any, names: list[str]) -> int:
    name = column_name(end)
    if name is not None:
        return position(name, names)
    return int(end.node[1]) - 1


def position(name: str, names: Sequence[str]) -> int:
    """Return the position of a column. If there is no such column, the error names those that exist."""
    if name in names:
        return list(names).index(name)
    close = get_close_matches(name, names, 1)
    meant = f"; did you mean {close[0]}?" if close else ""
    raise ValidationException(f"there is no column {name}; there are: {', '.join(names)}{meant}")


# --- aggregates ---
@dataclass
class Prepared:
    """Columns that are computed before an aggregation: keys, arguments, filters."""

    input: Relation
    exprs: list[Rex] = field(default_factory=list)
    names: list[str] = field(default_factory=list)

    def add(self, expression: Any, name: str | None = None) -> int:
        """Add an expression, and return the position of its column."""
        return self.add_rex(bind(without_alias(expression), self.input.columns), name)

    def add_rex(self, rex: Rex, name: str | None = None) -> int:
        """Add a bound expression if it is new, and return the position of its column."""
        for index, known in enumerate(self.exprs):
            if known == rex and (name is None or self.names[index] == name):
                return index
        self.exprs.append(rex)
        self.names.append(name or f"$f{len(self.exprs) - 1}")
        return len(self.exprs) - 1

    def relation(self) -> Project:
        """Return the projection that computes all columns."""
        if not self.exprs:  # a batch without columns would not know how many rows it has
            self.add_rex(bind(lit(True), ()))
        return project(self.input, self.exprs, self.names)


@dataclass
class Aggregates:
    """The aggregates in some expressions, each under a name of its own."""

    prepared: Prepared
    calls: list[AggregateCall] = field(default_factory=list)

    def extract(self, expression: Any) -> Any:
        """Replace the aggregates in an expression by columns."""
        return replace_parts(expression, self._column_for)

    def _column_for(self, expression: Any) -> Any:
        if kind_of(expression) == "over" or not is_aggregate(expression):
            return None
        call = self.call(expression)
        for known in self.calls:
            if (known.function, known.args, known.distinct, known.literals, known.udf) == (
                call.function,
                call.args,
                call.distinct,
                call.literals,
                call.udf,
            ):
                return col(known.name)
        self.calls.append(call)
        return col(call.name)

    def call(self, expression: Any) -> AggregateCall:
        """Return an aggregate with its arguments as columns."""
        distinct = function_of(expression) == "DISTINCT"
        inner = arguments(expression)[0] if distinct else expression
        rexes = [bind(argument, self.prepared.input.columns) for argument in arguments(inner)]
        constants = tuple(rex.value for rex in rexes[1:] if isinstance(rex, Literal))
        varying = [rex for place, rex in enumerate(rexes) if place == 0 or not isinstance(rex, Literal)]
        wrapper, name = user_function(inner), f"$agg{len(self.calls)}"
        if wrapper is not None:
            args = tuple(self.prepared.add_rex(rex) for rex in rexes)
            return AggregateCall(wrapper.name, args, wrapper.result_type, name, distinct, udf=wrapper)
        function = function_of(inner) or ""
        kind = functions.resolve_aggregate(function, [rex.type for rex in rexes], distinct)
        args = tuple(self.prepared.add_rex(rex) for rex in varying)
        return AggregateCall(function, args, kind, name, distinct, literals=constants)


def fresh_names(prefix: str) -> Callable[[], str]:
    """Return a source of names for expressions without one: prefix0, prefix1..."""
    count = iter(range(1 << 30))
    return lambda: f"{prefix}{next(count)}"


def select_fields(relation: Relation, fields: Iterable[Any], names: Sequence[str] | None = None) -> Project:
    """Return a projection by expressions, with their own names unless others are given."""
    chosen = expand_fields(fields, relation.columns)
    exprs = [bind(without_alias(one), relation.columns) for one in chosen]
    numbered = [name_of(one, f"_c{place}".__str__) for place, one in enumerate(chosen)]
    names = numbered if names is None else list(names)
    doubled = {name for name in names if names.count(name) > 1}
    if doubled:
        raise ValidationException(
            f"two columns would have the name {', '.join(sorted(doubled))}; give one of them an alias"
        )
    return project(relation, exprs, names)


def column_index(expression: Any, columns: Columns, what: str) -> int:
    """Return the position of the column that is given as an expression."""
    rex = bind(without_alias(expression), columns)
    if not isinstance(rex, InputRef):
        raise ValidationException(f"{what} is a column, not {expression}")
    return rex.index
