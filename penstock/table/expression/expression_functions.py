"""Functions that make expressions: col, lit, call and functions that need no column."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import TYPE_CHECKING, Any

from penstock.base.arguments import check_arguments
from penstock.common.time import Instant
from penstock.common.types import Row
from penstock.errors import ValidationException
from penstock.table.expression.expression import Expression, JsonOnNull, TimePointUnit, Value, expression, make, word
from penstock.table.expression.expression_values import Constant
from penstock.table.types.data_types import DataType

if TYPE_CHECKING:
    from penstock.table.expression.function_declarations import UserDefinedFunction

__all__ = [
    "CURRENT_RANGE",
    "CURRENT_ROW",
    "UNBOUNDED_RANGE",
    "UNBOUNDED_ROW",
    "and_",
    "array",
    "atan2",
    "call",
    "call_sql",
    "coalesce",
    "col",
    "concat",
    "concat_ws",
    "convert_tz",
    "current_database",
    "current_date",
    "current_time",
    "current_timestamp",
    "current_watermark",
    "date_format",
    "descriptor",
    "e",
    "from_unixtime",
    "if_then_else",
    "json",
    "json_array",
    "json_array_agg",
    "json_object",
    "json_object_agg",
    "json_string",
    "lag",
    "lead",
    "lit",
    "local_time",
    "local_timestamp",
    "log",
    "map_",
    "map_from_arrays",
    "negative",
    "not_",
    "null_of",
    "object_of",
    "or_",
    "pi",
    "rand",
    "rand_integer",
    "range_",
    "row",
    "row_interval",
    "source_watermark",
    "temporal_overlaps",
    "timestamp_diff",
    "to_date",
    "to_timestamp",
    "to_timestamp_ltz",
    "unix_timestamp",
    "uuid",
    "with_all_columns",
    "with_columns",
    "without_columns",
]


@check_arguments
def col(name: str) -> Expression:
    """Return a column.

    >>> str(col("price") * 2 > col("limit"))
    'greaterThan(times(price, 2), limit)'
    """
    return Expression(("column", name))


@check_arguments
def lit(v: Constant | Row | Instant, data_type: DataType | None = None) -> Expression:
    """Return a value, in the type that suits it or in the given one."""
    return Expression(("literal", v, data_type))


@check_arguments
def null_of(data_type: DataType) -> Expression:
    """Return NULL in a type."""
    return Expression(("literal", None, data_type))


@check_arguments
def call(f: str | Callable[..., Any] | UserDefinedFunction, *args: Value | Enum) -> Expression:
    """Return a call of a function, which is given by its name or as a user-defined function."""
    if isinstance(f, str):
        return (
            make(f if "." in f else f.upper(), *args)
            if not args
            else Expression(("call", f, tuple(expression(arg) for arg in args)))
        )
    return Expression(("udf", _wrap(f), tuple(expression(arg) for arg in args)))


def _wrap(function: Any) -> Any:
    from penstock.table.expression.function_declarations import udf, wrapper_of

    found = wrapper_of(function)
    if found is not None:
        return found
    if callable(function):
        return udf(function)
    raise ValidationException(f"call takes the name of a function or a user-defined function, not {function!r}")


@check_arguments
def call_sql(sql_expression: str) -> Expression:
    """Return an expression that is written in SQL."""
    return Expression(("sql", sql_expression))


# --- logic and conditions ---
@check_arguments
def and_(predicate0: Value, predicate1: Value, *predicates: Value) -> Expression:
    """Return TRUE if all conditions are TRUE."""
    return _chain("AND", predicate0, predicate1, *predicates)


@check_arguments
def or_(predicate0: Value, predicate1: Value, *predicates: Value) -> Expression:
    """Return TRUE if one of the conditions is TRUE."""
    return _chain("OR", predicate0, predicate1, *predicates)


def _chain(function: str, first: Value, *others: Value) -> Expression:
    whole = expression(first)
    for other in others:
        whole = make(function, whole, other)
    return whole


@check_arguments
def not_(expression: Value) -> Expression:
    """Return the opposite of a condition; NULL for NULL."""
    return make("NOT", expression)


@check_arguments
def if_then_else(condition: Value, if_true: Value, if_false: Value) -> Expression:
    """Return `if_true` if a condition is TRUE, otherwise `if_false`."""
    return make("IF", condition, if_true, if_false)


@check_arguments
def coalesce(*args: Value) -> Expression:
    """Return the first value that is not NULL; NULL if there is none."""
    return make("COALESCE", *args)


# --- numbers ---
@check_arguments
def negative(v: Value) -> Expression:
    """Return the number with the opposite sign."""
    return make("NEGATE", v)


def pi() -> Expression:
    """Return the number pi."""
    return make("PI")


def e() -> Expression:
    """Return the base of natural logarithms."""
    return make("E")


@check_arguments
def rand(seed: Value = None) -> Expression:
    """Return a random number of at least 0 and less than 1."""
    return make("RAND") if seed is None else make("RAND", seed)


@check_arguments
def rand_integer(bound: Value, seed: Value = None) -> Expression:
    """Return a random whole number of at least 0 and less than `bound`."""
    return make("RAND_INTEGER", bound) if seed is None else make("RAND_INTEGER", seed, bound)


@check_arguments
def atan2(y: Value, x: Value) -> Expression:
    """Return the angle of the point (x, y), in radians."""
    return make("ATAN2", y, x)


@check_arguments
def log(v: Value, base: Value = None) -> Expression:
    """Return the logarithm of a number to a base, e by default."""
    return make("LOG", v) if base is None else make("LOG", base, v)


# --- texts ---
@check_arguments
def concat(first: Value, *others: Value) -> Expression:
    """Return the texts, joined."""
    return make("CONCAT", first, *others)


@check_arguments
def concat_ws(separator: Value, first: Value, *others: Value) -> Expression:
    """Return the texts, joined with a separator. NULLs are left out."""
    return make("CONCAT_WS", separator, first, *others)


def uuid() -> Expression:
    """Return a random UUID as a text, another one for each row."""
    return make("UUID")


# --- time ---
def current_date() -> Expression:
    """Return the current date in the time zone of the session."""
    return make("CURRENT_DATE")


def current_time() -> Expression:
    """Return the current time of day in the time zone of the session."""
    return make("CURRENT_TIME")


def current_timestamp() -> Expression:
    """Return the current time as TIMESTAMP_LTZ."""
    return make("CURRENT_TIMESTAMP")


@check_arguments
def current_watermark(rowtimeAttribute: Value) -> Expression:  # noqa: N803
    """Return the current watermark of an event time; NULL before the first one."""
    return make("CURRENT_WATERMARK", rowtimeAttribute)


def local_time() -> Expression:
    """Return the current time of day in the time zone of the session."""
    return make("LOCALTIME")


def local_timestamp() -> Expression:
    """Return the current time in the time zone of the session, as TIMESTAMP."""
    return make("LOCALTIMESTAMP")


@check_arguments
def to_date(date_str: Value, format: Value = None) -> Expression:
    """Return the DATE in a text of the given format, `yyyy-MM-dd` by default."""
    return make("TO_DATE", date_str) if format is None else make("TO_DATE", date_str, format)


@check_arguments
def to_timestamp(timestamp_str: Value, format: Value = None) -> Expression:
    """Return the TIMESTAMP in a text of the given format, `yyyy-MM-dd HH:mm:ss` by default."""
    return make("TO_TIMESTAMP", timestamp_str) if format is None else make("TO_TIMESTAMP", timestamp_str, format)


@check_arguments
def to_timestamp_ltz(*args: Value) -> Expression:
    """Return a TIMESTAMP_LTZ.

    Args:
        *args: A number since 1970 and its precision (0 for seconds, 3 for milliseconds, the default), or a text with
            its format and time zone.
    """
    return make("TO_TIMESTAMP_LTZ", *args)


@check_arguments
def date_format(timestamp: Value, format: Value) -> Expression:
    """Return a time as text in the given format."""
    return make("DATE_FORMAT", timestamp, format)


@check_arguments
def from_unixtime(unixtime: Value, format: Value = None) -> Expression:
    """Return seconds since 1970 as text in the given format, `yyyy-MM-dd HH:mm:ss` by default."""
    return make("FROM_UNIXTIME", unixtime) if format is None else make("FROM_UNIXTIME", unixtime, format)


@check_arguments
def unix_timestamp(date_str: Value = None, format: Value = None) -> Expression:
    """Return the seconds since 1970 of the current time, or of a text in the given format."""
    return make("UNIX_TIMESTAMP", *(value for value in (date_str, format) if value is not None))


@check_arguments
def convert_tz(date_str: Value, tz_from: Value, tz_to: Value) -> Expression:
    """Return a text `yyyy-MM-dd HH:mm:ss` of one time zone in another."""
    return make("CONVERT_TZ", date_str, tz_from, tz_to)


@check_arguments
def timestamp_diff(time_point_unit: TimePointUnit, time_point1: Value, time_point2: Value) -> Expression:
    """Return the whole units of time from the first time to the second."""
    return make("TIMESTAMPDIFF", word(time_point_unit.name), time_point1, time_point2)


@check_arguments
def temporal_overlaps(
    left_time_point: Value, left_temporal: Value, right_time_point: Value, right_temporal: Value
) -> Expression:
    """Return TRUE if two periods overlap. Each is a start, and an end or an interval."""
    return make("OVERLAPS", left_time_point, left_temporal, right_time_point, right_temporal)


def source_watermark() -> Expression:
    """Return the watermark of the source, for `Schema.Builder.watermark`."""
    return make("SOURCE_WATERMARK")


# --- rows, arrays, maps ---
@check_arguments
def row(head: Value, *tail: Value) -> Expression:
    """Return a row of values."""
    return make("ROW", head, *tail)


@check_arguments
def array(head: Value, *tail: Value) -> Expression:
    """Return an array of values."""
    return make("ARRAY", head, *tail)


@check_arguments
def map_(key: Value, value: Value, *tail: Value) -> Expression:
    """Return a map of keys and values, which alternate."""
    return make("MAP", key, value, *tail)


@check_arguments
def map_from_arrays(key: Value, value: Value) -> Expression:
    """Return a map of an array of keys and an array of values."""
    return make("MAP_FROM_ARRAYS", key, value)


@check_arguments
def object_of(class_name: Value, *args: Value) -> Expression:
    """Return a call of OBJECT_OF. SQL has no such function here, so a query with it is refused."""
    return make("OBJECT_OF", class_name, *args)


# --- JSON ---
@check_arguments
def json(value: Value) -> Expression:
    """Return a text that is JSON already, for use inside `json_object` and `json_array`."""
    return make("JSON", value)


@check_arguments
def json_string(value: Value) -> Expression:
    """Return a value as JSON text."""
    return make("JSON_STRING", value)


@check_arguments
def json_object(on_null: JsonOnNull = JsonOnNull.NULL, *args: Value) -> Expression:
    """Return a JSON object of names and values, which alternate."""
    return make("JSON_OBJECT", *args, _on_null(on_null))


@check_arguments
def json_array(on_null: JsonOnNull = JsonOnNull.ABSENT, *args: Value) -> Expression:
    """Return a JSON array of values."""
    return make("JSON_ARRAY", *args, _on_null(on_null))


@check_arguments
def json_object_agg(on_null: JsonOnNull, key_expr: Value, value_expr: Value) -> Expression:
    """Return a JSON object with one entry for each row of a group."""
    return make("JSON_OBJECTAGG", key_expr, value_expr, _on_null(on_null))


@check_arguments
def json_array_agg(on_null: JsonOnNull, item_expr: Value) -> Expression:
    """Return a JSON array with one item for each row of a group."""
    return make("JSON_ARRAYAGG", item_expr, _on_null(on_null))


def _on_null(behaviour: JsonOnNull) -> Expression:
    return word(f"{behaviour.name} ON NULL")


# --- windows and columns ---
@check_arguments
def lag(expr: Value, offset: Value = 1, default: Value = None) -> Expression:
    """Return the value of an earlier row, for aggregates over a window; `default` if there is no such row."""
    return make("LAG", expr, offset) if default is None else make("LAG", expr, offset, default)


@check_arguments
def lead(expr: Value, offset: Value = 1, default: Value = None) -> Expression:
    """Return the value of a later row, for aggregates over a window; `default` if there is no such row."""
    return make("LEAD", expr, offset) if default is None else make("LEAD", expr, offset, default)


@check_arguments
def row_interval(rows: int) -> Expression:
    """Return a number of rows, as the size of a window."""
    return Expression(("rows", rows))


def current_database() -> Expression:
    """Return the name of the current database."""
    return make("CURRENT_DATABASE")


@check_arguments
def descriptor(*column_names: str) -> Expression:
    """Return names of columns, as an argument of a table function."""
    return Expression(("descriptor", column_names))


@check_arguments
def range_(start: Value, end: Value) -> Expression:
    """Return the columns from one to another, by name or by position, which counts from 1."""
    return make("RANGE", _column(start), _column(end))


def with_all_columns() -> Expression:
    """Return all columns."""
    return make("WITH_ALL_COLUMNS")


@check_arguments
def with_columns(head: Value, *tails: Value) -> Expression:
    """Return columns, which are given by name, position or `range_`."""
    return make("WITH_COLUMNS", *map(_column, (head, *tails)))


@check_arguments
def without_columns(head: Value, *tails: Value) -> Expression:
    """Return all columns except those that are given by name, position or `range_`."""
    return make("WITHOUT_COLUMNS", *map(_column, (head, *tails)))


def _column(value: Any) -> Any:
    return col(value) if isinstance(value, str) else value


UNBOUNDED_ROW = make("UNBOUNDED_ROW")
UNBOUNDED_RANGE = make("UNBOUNDED_RANGE")
CURRENT_ROW = make("CURRENT_ROW")
CURRENT_RANGE = make("CURRENT_RANGE")
