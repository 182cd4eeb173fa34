"""Typed expressions over the columns of a relation. They are plain data; functions give them their meaning."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from penstock.table.types.data_types import BooleanType, DataType

if TYPE_CHECKING:
    from penstock.table.logical.nodes import Relation


@dataclass(frozen=True)
class Rex:
    """An expression with the type of its value."""

    type: DataType

    def parts(self) -> tuple[Rex, ...]:
        """Return the expressions of which it consists."""
        return ()

    def with_parts(self, parts: tuple[Rex, ...]) -> Rex:
        """Return the same expression with other parts."""
        return self


@dataclass(frozen=True)
class InputRef(Rex):
    """A column of the input. In a join, the columns of the right follow those of the left."""

    index: int

    def __str__(self) -> str:
        return f"${self.index}"


@dataclass(frozen=True)
class Literal(Rex):
    """A value in its Python form: int, float, Decimal, str, bytes, bool, date, time, datetime or None.

    Intervals are milliseconds or months as int, arrays are tuples, rows are tuples, maps are tuples of pairs.
    """

    value: Any

    def __str__(self) -> str:
        return "NULL" if self.value is None else repr(self.value)


@dataclass(frozen=True)
class Call(Rex):
    """A function of the registry, by its name in capitals: "+", "AND", "CASE", "CAST", "UPPER", "ITEM", "ROW"...

    CASE has condition, value, condition, value, ..., value otherwise. CAST and TRY_CAST have one argument, and the type
    of the call is the target. "FIELD" has a row and a Literal with the index of the field; "ITEM" has an array or map
    and an index or key. Words of the syntax (units, trimming sides, JSON behaviours) are Literals of type NULL.
    """

    function: str
    args: tuple[Rex, ...]
    udf: Any = None
    """The user's function: a wrapper of penstock.table.expression.function_declarations."""

    def parts(self) -> tuple[Rex, ...]:
        return self.args

    def with_parts(self, parts: tuple[Rex, ...]) -> Call:
        return replace(self, args=parts)

    def __str__(self) -> str:
        if len(self.args) == 2 and not self.function[0].isalpha():
            return f"({self.args[0]} {self.function} {self.args[1]})"
        aim = f" AS {self.type.summary()}" if self.function in {"CAST", "TRY_CAST"} else ""
        return f"{self.function}({', '.join(map(str, self.args))}{aim})"


@dataclass(frozen=True)
class OuterRef(Rex):
    """A column of the surrounding query, in a subquery. Decorrelation removes it."""

    index: int
    depth: int = 1

    def __str__(self) -> str:
        return f"${'^' * self.depth}{self.index}"


@dataclass(frozen=True)
class Subquery(Rex):
    """A query inside an expression. Decorrelation removes it.

    `kind` is "EXISTS", "IN" or "SCALAR". `args` are the values before IN; NOT IN is a Call around it.
    """

    kind: str
    plan: Relation
    args: tuple[Rex, ...] = ()

    def parts(self) -> tuple[Rex, ...]:
        return self.args

    def with_parts(self, parts: tuple[Rex, ...]) -> Subquery:
        return replace(self, args=parts)


@dataclass(frozen=True)
class SortKey:
    """A column to sort by. Without an explicit word NULL is the least value: first if ascending, last if descending."""

    index: int
    descending: bool = False
    nulls_first: bool = True

    def __str__(self) -> str:
        return f"${self.index}{' DESC' if self.descending else ''}"


@dataclass(frozen=True)
class AggregateCall:
    """An aggregate over columns of the input. Arguments and filter are columns, so they are computed before."""

    function: str
    """The name in capitals: COUNT, SUM, AVG, MIN, MAX, LISTAGG, FIRST_VALUE, ROW_NUMBER, RANK, LAG..."""
    args: tuple[int, ...]
    """The columns of the arguments. COUNT(*) has none."""
    type: DataType
    name: str = ""
    distinct: bool = False
    filter: int | None = None
    """A column of BOOLEAN. Only rows with TRUE count."""
    literals: tuple[Any, ...] = ()
    """Further arguments that are constants, such as the separator of LISTAGG or offset and default of LAG."""
    order: tuple[SortKey, ...] = ()
    """The order within the group, for functions with an ORDER BY such as ARRAY_AGG."""
    ignore_nulls: bool | None = None
    udf: Any = None

    def __str__(self) -> str:
        inside = ", ".join([*(f"${index}" for index in self.args), *map(repr, self.literals)]) or "*"
        filtered = "" if self.filter is None else f" FILTER ${self.filter}"
        return f"{self.function}({'DISTINCT ' if self.distinct else ''}{inside}){filtered}"


@dataclass(frozen=True)
class Frame:
    """The rows around the current one that an OVER aggregate sees.

    Bounds are rows (ROWS) or milliseconds (RANGE over time). Bounds below 0 are before the current row, and bounds
    above 0 behind it. None is UNBOUNDED, and 0 is the current row, with RANGE also its peers.
    """

    rows: bool = False
    start: int | None = None
    end: int | None = 0

    def __str__(self) -> str:
        return f"{'ROWS' if self.rows else 'RANGE'} {_describe_bound(self.start)} TO {_describe_bound(self.end)}"


def _describe_bound(bound: int | None) -> str:
    return "UNBOUNDED" if bound is None else str(bound)


@dataclass(frozen=True)
class OverSpec:
    """A window of OVER, and the aggregates that share it."""

    partition: tuple[int, ...]
    order: tuple[SortKey, ...]
    frame: Frame
    calls: tuple[AggregateCall, ...] = field(default=())

    def __str__(self) -> str:
        calls = ", ".join(map(str, self.calls))
        return f"{calls} OVER (BY {list(self.partition)} ORDER {list(map(str, self.order))} {self.frame})"


# --- walking ---
def walk(rex: Rex) -> Iterator[Rex]:
    """Yield an expression and everything in it."""
    yield rex
    for part in rex.parts():
        yield from walk(part)


def rewritten(rex: Rex, change: Callable[[Rex], Rex | None]) -> Rex:
    """Return an expression in which parts are replaced by the results of `change`, from the top down."""
    changed = change(rex)
    if changed is not None:
        return changed
    parts = rex.parts()
    new = tuple(rewritten(part, change) for part in parts)
    return rex if new == parts else rex.with_parts(new)


def shift_refs(rex: Rex, by: int) -> Rex:
    """Return an expression for an input with `by` more columns in front."""
    return rewritten(rex, lambda one: replace(one, index=one.index + by) if isinstance(one, InputRef) else None)


def refs(rex: Rex) -> set[int]:
    """Return the columns of the input that an expression reads."""
    return {part.index for part in walk(rex) if isinstance(part, InputRef)}


def conjunction(rexes: list[Rex]) -> Rex | None:
    """Return the conjunction of conditions, or None if there are none."""
    if not rexes:
        return None
    whole = rexes[0]
    for rex in rexes[1:]:
        whole = Call(BooleanType(whole.type.is_nullable or rex.type.is_nullable), "AND", (whole, rex))
    return whole


def conjuncts(rex: Rex | None) -> list[Rex]:
    """Return the conditions that AND combines."""
    if rex is None:
        return []
    if isinstance(rex, Call) and rex.function == "AND":
        return [one for arg in rex.args for one in conjuncts(arg)]
    return [rex]
