"""Rules from the types of arguments to the type of a result, which the tables of functions combine."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from penstock.table.functions.typing.cast_types import cast
from penstock.table.functions.typing.coercion import (
    BYTES,
    INTEGERS,
    TEXTS,
    TIMESTAMPS,
    common_type,
    implicitly,
    with_nullability,
)
from penstock.table.functions.typing.registry import Infer, Unfit
from penstock.table.logical.rex import Literal, Rex
from penstock.table.types import data_types as t

Result = Callable[[Sequence[t.DataType]], t.DataType]
"""A function from the types of the arguments to the type of the result, before its nullability is decided."""
Check = tuple[str, Callable[[t.DataType], bool]]
"""A condition on an argument: in words, and as a test."""


def _kind(name: str, *classes: type[t.DataType]) -> Check:
    return name, lambda kind: isinstance(kind, classes)


ANY: Check = ("any value", lambda kind: True)
BOOLEAN = _kind("BOOLEAN", t.BooleanType)
TEXT = _kind("text", *TEXTS)
BINARY = _kind("bytes", *BYTES)
TEXT_OR_BYTES = _kind("text or bytes", *TEXTS, *BYTES)
NUMBER = _kind("a number", t.NumericType)
EXACT = _kind("an exact number", t.DecimalType, *INTEGERS)
INTEGER = _kind("a whole number", *INTEGERS)
INT = _kind("INT", t.IntType, t.SmallIntType, t.TinyIntType)
DATE = _kind("DATE", t.DateType)
TIME = _kind("TIME", t.TimeType)
TIMESTAMP = _kind("TIMESTAMP", *TIMESTAMPS)
MOMENT = _kind("a date or time", t.DateType, t.TimeType, *TIMESTAMPS)
ARRAY = _kind("ARRAY", t.ArrayType)
MAP = _kind("MAP", t.MapType)
WORD = _kind("a word", t.NullType)


def is_null(rex: Rex) -> bool:
    """Return True for the NULL without a type."""
    return isinstance(rex, Literal) and isinstance(rex.type, t.NullType) and rex.value is None


def fits(rex: Rex, check: Check) -> bool:
    """Return True if an expression satisfies a condition. The NULL without a type always does."""
    return is_null(rex) or check[1](rex.type)


def describe(checks: Sequence[Check], optional: int, more: Check | None) -> str:
    """Return the allowed arguments of a function as text, for errors."""
    words = [check[0] for check in checks]
    required = words[: len(words) - optional]
    shown = ", ".join(required + [f"[{word}]" for word in words[len(required) :]])
    return f"({', '.join(part for part in (shown, more and f'{more[0]}, ...') if part)})"


def signature(
    *checks: Check,
    result: t.DataType | Result,
    optional: int = 0,
    more: Check | None = None,
    nulls: bool | None = None,
) -> Infer:
    """Return the rule for arguments of fixed kinds.

    The last `optional` arguments may be missing, and any number of `more` may follow. `nulls` is True if the result may
    be NULL, and None if it may be NULL only with a nullable argument.
    """

    def infer(args: tuple[Rex, ...]) -> tuple[tuple[Rex, ...], t.DataType]:
        least = len(checks) - optional
        if not least <= len(args) or (more is None and len(args) > len(checks)):
            raise Unfit(describe(checks, optional, more))
        wanted = [*checks[: len(args)], *([more] * (len(args) - len(checks)) if more else [])]
        if not all(fits(arg, check) for arg, check in zip(args, wanted, strict=True)):
            raise Unfit(describe(checks, optional, more))
        kinds = [arg.type for arg in args]
        kind = result(kinds) if callable(result) else result
        return args, with_nullability(kind, _has_null(args) if nulls is None else nulls)

    return infer


def _has_null(args: Sequence[Rex]) -> bool:
    """Return True if an argument may be NULL. Words of the syntax are not values."""
    return any(
        arg.type.is_nullable
        for arg in args
        if not (isinstance(arg, Literal) and isinstance(arg.type, t.NullType) and arg.value is not None)
    )


def either(*rules: Infer) -> Infer:
    """Return a rule that applies the first of several rules that fits."""

    def infer(args: tuple[Rex, ...]) -> tuple[tuple[Rex, ...], t.DataType]:
        refused = []
        for rule in rules:
            try:
                return rule(args)
            except Unfit as unfit:
                refused.append(str(unfit))
        raise Unfit(" or ".join(dict.fromkeys(refused)))

    return infer


def casting(infer: Infer, *aims: t.DataType | None) -> Infer:
    """Return a rule that casts the arguments of another rule to fixed types.

    The last type is for all further arguments.
    """

    def with_casts(args: tuple[Rex, ...]) -> tuple[tuple[Rex, ...], t.DataType]:
        fitted, kind = infer(args)
        padded = [*aims, *[aims[-1]] * (len(fitted) - len(aims))][: len(fitted)]
        return tuple(arg if aim is None else coerce(arg, aim) for arg, aim in zip(fitted, padded, strict=True)), kind

    return with_casts


def coerce(rex: Rex, aim: t.DataType) -> Rex:
    """Return the expression, cast to a type if it has another one. Its nullability remains."""
    aim = with_nullability(aim, rex.type.is_nullable)
    return rex if rex.type == aim else cast(rex, aim)


def alike(args: Sequence[Rex]) -> tuple[tuple[Rex, ...], t.DataType]:
    """Return arguments cast to their common type."""
    aim = common_type([arg.type for arg in args])
    if aim is None:
        raise Unfit("values of one type")
    return tuple(coerce(arg, aim) for arg in args), aim


def same_as(index: int) -> Result:
    """Return a function that gives the type of an argument."""
    return lambda kinds: kinds[index]


def implicit(arg: Rex, aim: t.DataType) -> Rex | None:
    """Return the argument as a value of a type if an implicit cast allows it, or None."""
    return coerce(arg, aim) if implicitly(arg.type, aim) else None


def texts_of(index: int) -> Result:
    """Return a function that gives VARCHAR with the length of an argument."""

    def result(kinds: Sequence[t.DataType]) -> t.DataType:
        kind = kinds[index]
        return t.VarCharType(kind.length) if isinstance(kind, TEXTS) else t.DataTypes.STRING()

    return result
