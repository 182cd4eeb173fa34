"""Conditions in text form: expressions over the fields of an event and of events that were matched before."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from penstock.cep.conditions import ConditionContext, IterativeCondition, SimpleCondition
from penstock.engine.state.key_groups import short_repr
from penstock.errors import RecordError

COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "%": operator.mod,
}
AGGREGATES: dict[str, Callable[[list[Any]], Any]] = {
    "count": len,
    "sum": sum,
    "avg": lambda values: sum(values) / len(values) if values else None,
    "first": lambda values: values[0] if values else None,
    "last": lambda values: values[-1] if values else None,
    "min": lambda values: min(values, default=None),
    "max": lambda values: max(values, default=None),
}


@dataclass(frozen=True)
class Literal:
    """A number, a text in single quotes, true, false or null."""

    value: Any

    def of(self, event: Any, ctx: Any) -> Any:
        return self.value

    def __str__(self) -> str:
        if isinstance(self.value, str):
            return "'" + self.value.replace("'", "''") + "'"
        if self.value is None:
            return "null"
        return str(self.value).lower() if isinstance(self.value, bool) else repr(self.value)


@dataclass(frozen=True)
class Field:
    """A field of the event, or of a field of it."""

    path: tuple[str, ...]

    def of(self, event: Any, ctx: Any) -> Any:
        return field_of(event, self.path)

    def __str__(self) -> str:
        return ".".join(self.path)


@dataclass(frozen=True)
class Aggregate:
    """An aggregate over a field of all events that an element has so far.

    `start.value` is the value of the last event.
    """

    function: str
    element: str
    path: tuple[str, ...] = ()

    def of(self, event: Any, ctx: Any) -> Any:
        events = ctx.get_events_for_pattern(self.element)
        return AGGREGATES[self.function]([field_of(each, self.path) for each in events])

    def __str__(self) -> str:
        what = ".".join((self.element, *self.path))
        return what if self.function == "last" and self.path else f"{self.function}({what})"


@dataclass(frozen=True)
class Calculation:
    """Two terms and an operator. The result is missing if a term is missing."""

    sign: str
    left: Expression
    right: Expression

    def of(self, event: Any, ctx: Any) -> Any:
        left, right = self.left.of(event, ctx), self.right.of(event, ctx)
        return None if left is None or right is None else ARITHMETIC[self.sign](left, right)

    def __str__(self) -> str:
        return f"({self.left} {self.sign} {self.right})"


@dataclass(frozen=True)
class Comparison:
    """A comparison of two terms. It is false if a term is missing, unless it asks for null."""

    sign: str
    left: Expression
    right: Expression

    def of(self, event: Any, ctx: Any) -> bool:
        left, right = self.left.of(event, ctx), self.right.of(event, ctx)
        if self.right == Literal(None) or self.left == Literal(None):
            return bool(COMPARISONS[self.sign](left, right))
        return left is not None and right is not None and bool(COMPARISONS[self.sign](left, right))

    def __str__(self) -> str:
        return f"{self.left} {self.sign} {self.right}"


@dataclass(frozen=True)
class OneOf:
    """A term is one of several values."""

    term: Expression
    values: tuple[Literal, ...]

    def of(self, event: Any, ctx: Any) -> bool:
        value = self.term.of(event, ctx)
        return any(value == each.value for each in self.values)

    def __str__(self) -> str:
        return f"{self.term} in ({', '.join(map(str, self.values))})"


@dataclass(frozen=True)
class Negation:
    """The negation of a condition."""

    of_what: Expression

    def of(self, event: Any, ctx: Any) -> bool:
        return not self.of_what.of(event, ctx)

    def __str__(self) -> str:
        return f"not ({self.of_what})"


@dataclass(frozen=True)
class Junction:
    """Several conditions joined by `and` or by `or`."""

    word: str
    parts: tuple[Expression, ...]

    def of(self, event: Any, ctx: Any) -> bool:
        answers = (part.of(event, ctx) for part in self.parts)
        return all(answers) if self.word == "and" else any(answers)

    def __str__(self) -> str:
        shown = (f"({part})" if isinstance(part, Junction) else str(part) for part in self.parts)
        return f" {self.word} ".join(shown)


Expression: TypeAlias = Literal | Field | Aggregate | Calculation | Comparison | OneOf | Negation | Junction


class TextCondition(SimpleCondition):
    """An expression over the event alone."""

    def __init__(self, expression: Expression) -> None:
        self.expression = expression

    def filter(self, value: Any) -> bool:  # type: ignore[override]
        return bool(self.expression.of(value, None))

    def __str__(self) -> str:
        return str(self.expression)


class IterativeTextCondition(IterativeCondition):
    """An expression that looks at events which were matched before."""

    def __init__(self, expression: Expression) -> None:
        self.expression = expression

    def filter(self, value: Any, ctx: ConditionContext) -> bool:
        return bool(self.expression.of(value, ctx))

    def __str__(self) -> str:
        return str(self.expression)


def condition_of(expression: Expression) -> IterativeCondition:
    """Return an expression as a condition."""
    looks_back = any(isinstance(each, Aggregate) for each in parts(expression))
    return IterativeTextCondition(expression) if looks_back else TextCondition(expression)


def parts(expression: Expression) -> Iterable[Expression]:
    """Yield an expression and everything in it."""
    yield expression
    inner: tuple[Expression, ...] = ()
    if isinstance(expression, Calculation | Comparison):
        inner = (expression.left, expression.right)
    elif isinstance(expression, OneOf):
        inner = (expression.term,)
    elif isinstance(expression, Negation):
        inner = (expression.of_what,)
    elif isinstance(expression, Junction):
        inner = expression.parts
    for each in inner:
        yield from parts(each)


def field_of(event: Any, path: Sequence[str]) -> Any:
    """Return the value at a path of names: entries of mappings, attributes, or `f0`, `f1` … of a tuple."""
    value = event
    for name in path:
        if isinstance(value, Mapping):
            value = value.get(name)
        elif hasattr(value, name):
            value = getattr(value, name)
        elif isinstance(value, Sequence) and name[0] == "f" and name[1:].isdigit() and int(name[1:]) < len(value):
            value = value[int(name[1:])]
        elif value is not None:
            raise RecordError(f"there is no field '{name}' in {short_repr(value)}")
    return value
