"""Translation of expressions to Spark SQL, if Spark gives them the same meaning.

The sessions of our queries turn ANSI mode off, so that integers wrap around, as they do in Flink.
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

from penstock.spark.sql.batch_transport import spark_type, transport_type
from penstock.table.functions.typing.coercion import BYTES, INTEGERS, TEXTS
from penstock.table.logical.rex import Call, InputRef, Literal, Rex
from penstock.table.types import data_types as t
from penstock.table.types.arrow_forms import arrow_type

FLOATS = (t.FloatType, t.DoubleType)
SAME = (*INTEGERS, *TEXTS, *BYTES, t.BooleanType, t.DateType, t.TimeType, t.TimestampType, t.LocalZonedTimestampType)
"""Types that Flink and Spark compare, hash and sort alike. DECIMAL and intervals are further such types."""
_WRAPPING = (t.IntType, t.BigIntType)
_SAFE = re.compile(r"[A-Za-z0-9 _.,:;+-]*")


def is_same(kind: t.DataType) -> bool:
    """Return True if Spark compares and sorts values of this type as Flink does."""
    return isinstance(kind, (*SAME, t.DecimalType, t.DayTimeIntervalType, t.YearMonthIntervalType))


def type_name(kind: t.DataType) -> str:
    """Return Spark's name for a type."""
    return spark_type(transport_type(arrow_type(kind)))


def text_of(rex: Rex, names: Sequence[str]) -> str | None:
    """Return an expression over columns of these names in Spark SQL, or None if Spark's meaning differs."""
    match rex:
        case InputRef():
            return names[rex.index]
        case Literal():
            return literal(rex)
        case Call() if rex.udf is None:
            make = _CALLS.get(rex.function)
            args = [text_of(arg, names) for arg in rex.args] if make else [None]
            found = [arg for arg in args if arg is not None]
            return make(rex, found) if make is not None and len(found) == len(args) else None
    return None


# --- literals ---
def literal(rex: Literal) -> str | None:
    """Return a constant in Spark SQL, or None if its type has no short form."""
    kind, value = rex.type, rex.value
    if not (is_same(kind) or isinstance(kind, FLOATS)):
        return None
    if value is None:
        return f"CAST(NULL AS {type_name(kind)})"
    written = _literal_text(kind, value)
    return None if written is None else f"CAST({written} AS {type_name(kind)})"


def _literal_text(kind: t.DataType, value: Any) -> str | None:
    match kind, value:
        case t.BooleanType(), bool():
            return str(value).upper()
        case ((t.CharType() | t.VarCharType()), str()):
            return f"'{value}'" if _SAFE.fullmatch(value) else f"X'{value.encode().hex()}'"
        case ((t.BinaryType() | t.VarBinaryType()), (bytes() | bytearray())):
            return f"X'{bytes(value).hex()}'"
        case ((t.FloatType() | t.DoubleType()), (int() | float() | Decimal())):
            number = f"'{_number(float(value))}'"
            return number if isinstance(kind, t.DoubleType) else f"CAST({number} AS DOUBLE)"
        case t.DecimalType(), (int() | Decimal()):
            return f"'{Decimal(value):f}'"
        case t.TimeType(), datetime.time():
            whole = datetime.datetime.combine(datetime.date.min, value) - datetime.datetime.min
            return f"'{whole // datetime.timedelta(microseconds=1)}'"
        case t.TimestampType(), datetime.datetime() if value.tzinfo is None:
            return f"'{value.isoformat(' ')}'"
        case t.LocalZonedTimestampType(), datetime.datetime() if value.tzinfo in (None, datetime.UTC):
            return f"'{value.replace(tzinfo=None).isoformat(' ')}'"
        case t.DateType(), datetime.date() if not isinstance(value, datetime.datetime):
            return f"'{value.isoformat()}'"
        case _, int() if not isinstance(value, bool) and not isinstance(kind, (*_MOMENTS, t.BooleanType)):
            return f"'{value}'"
    return None


_MOMENTS = (t.DateType, t.TimeType, t.TimestampType, t.LocalZonedTimestampType)


def _number(value: float) -> str:
    return {"inf": "Infinity", "-inf": "-Infinity", "nan": "NaN"}.get(repr(value), repr(value))


# --- calls ---
Make = Callable[[Call, list[str]], "str | None"]


def _join_with(word: str) -> Make:
    return lambda call, args: f"({f' {word} '.join(args)})"


def _after(words: str) -> Make:
    return lambda call, args: f"({args[0]} {words})"


def _alike(call: Call) -> bool:
    """Return True if the arguments have one type whose values Flink and Spark compare alike."""
    first = call.args[0].type
    for group in (INTEGERS, TEXTS, BYTES):
        if isinstance(first, group):
            return all(isinstance(arg.type, group) for arg in call.args)
    return is_same(first) and all(arg.type.not_null() == first.not_null() for arg in call.args)


def _compare(call: Call, args: list[str]) -> str | None:
    plain = f"({args[0]} {call.function} {args[1]})"
    if _alike(call):
        return plain
    kinds = {type(arg.type) for arg in call.args}
    if len(kinds) > 1 or not kinds <= set(FLOATS):
        return None
    return _compare_floats(call, args, plain)


def _compare_floats(call: Call, args: list[str], plain: str) -> str:
    """Return a comparison of floats that treats NaN as Flink does.

    In Flink, as in Java, every comparison with NaN fails. In Spark, NaN equals itself and is the largest number.
    """
    one, other = args
    left, right = call.args
    if _is_number(right):
        return f"({plain} AND NOT isnan({one}))" if call.function in {">", ">="} else plain
    if _is_number(left):
        return f"({plain} AND NOT isnan({other}))" if call.function in {"<", "<="} else plain
    failed = "TRUE" if call.function == "<>" else "FALSE"
    return (
        f"CASE WHEN {one} IS NULL OR {other} IS NULL THEN NULL WHEN isnan({one}) OR isnan({other}) THEN {failed} "
        f"ELSE {plain} END"
    )


def _is_number(rex: Rex) -> bool:
    return isinstance(rex, Literal) and rex.value is not None and not math.isnan(float(rex.value))


def _distinct(call: Call, args: list[str]) -> str | None:
    if not _alike(call):
        return None
    equal = f"({args[0]} <=> {args[1]})"
    return equal if call.function == "IS NOT DISTINCT FROM" else f"(NOT {equal})"


def _in(call: Call, args: list[str]) -> str | None:
    return f"({args[0]} IN ({', '.join(args[1:])}))" if _alike(call) else None


def _arithmetic(call: Call, args: list[str]) -> str | None:
    """Return a sum, difference or product of integers that wrap around, or of doubles.

    Divisions are not translated, because Spark divides by 0 in another way.
    """
    kinds = {type(arg.type) for arg in call.args}
    if len(args) != 2 or type(call.type) not in (*_WRAPPING, t.DoubleType) or kinds != {type(call.type)}:
        return None
    return f"({args[0]} {call.function} {args[1]})"


def _negate(call: Call, args: list[str]) -> str | None:
    same = type(call.type) is type(call.args[0].type) and isinstance(call.type, (*_WRAPPING, t.DoubleType))
    return f"(- {args[0]})" if same else None


def _cast(call: Call, args: list[str]) -> str | None:
    """Return a cast that keeps every value, or None for any other cast."""
    kind, aim = call.args[0].type, call.type
    if kind.not_null() == aim.not_null() and (is_same(kind) or isinstance(kind, FLOATS)):
        return args[0]
    if isinstance(kind, TEXTS) and isinstance(aim, t.VarCharType):
        return args[0] if aim.length >= kind.length else None
    if isinstance(kind, t.NullType) and is_same(aim):
        return f"CAST(NULL AS {type_name(aim)})"
    widened = isinstance(kind, INTEGERS) and isinstance(aim, INTEGERS) and _width(kind) <= _width(aim)
    if widened or (isinstance(kind, (*INTEGERS, t.FloatType)) and isinstance(aim, t.DoubleType)):
        return f"CAST({args[0]} AS {type_name(aim)})"
    return None


def _width(kind: t.DataType) -> int:
    return INTEGERS.index(type(kind))


def _choose(call: Call, args: list[str]) -> str | None:
    if not _one_form(call, call.args[1::2] + call.args[-1:]):
        return None
    cases = " ".join(f"WHEN {when} THEN {then}" for when, then in zip(args[:-1:2], args[1::2], strict=True))
    return f"(CASE {cases} ELSE {args[-1]} END)"


def _first(call: Call, args: list[str]) -> str | None:
    return f"coalesce({', '.join(args)})" if _one_form(call, call.args) else None


def _one_form(call: Call, args: Sequence[Rex]) -> bool:
    """Return True if all arguments have the Arrow type of the result, so that Spark casts none of them."""
    return all(arrow_type(arg.type) == arrow_type(call.type) for arg in args)


_CALLS: dict[str, Make] = {
    "AND": _join_with("AND"),
    "OR": _join_with("OR"),
    "NOT": lambda call, args: f"(NOT {args[0]})",
    "IS NULL": _after("IS NULL"),
    "IS NOT NULL": _after("IS NOT NULL"),
    "IS TRUE": _after("IS TRUE"),
    "IS NOT TRUE": _after("IS NOT TRUE"),
    "IS FALSE": _after("IS FALSE"),
    "IS NOT FALSE": _after("IS NOT FALSE"),
    "IS UNKNOWN": _after("IS NULL"),
    "IS NOT UNKNOWN": _after("IS NOT NULL"),
    **dict.fromkeys(("=", "<>", "<", "<=", ">", ">="), _compare),
    "IS DISTINCT FROM": _distinct,
    "IS NOT DISTINCT FROM": _distinct,
    "IN": _in,
    **dict.fromkeys(("+", "-", "*"), _arithmetic),
    "NEGATE": _negate,
    "CAST": _cast,
    "CASE": _choose,
    "COALESCE": _first,
}
