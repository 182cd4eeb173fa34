"""Functions that make expressions: col, lit, call and those that have no column in front."""

from __future__ import annotations

from typing import Any

from penstock.errors import ValidationException
from penstock.table.expression.expression import Expression, JsonOnNull, TimePointUnit, expression, make, word
from penstock.table.types.data_types import DataType

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


def col(name: str) -> Expression:
    """A column.

    >>> str(col("price") * 2 > col("limit"))
    '((price * 2) > limit)'
    """
    if not isinstance(name, str):
        raise TypeError(f"col takes the name of a column, not {name!r}")
    return Expression(("column", name))


def lit(v: Any, data_type: DataType | None = None) -> Expression:
    """A value, with the type that suits it or with the one given."""
    return Expression(("literal", v, data_type))


def null_of(data_type: DataType) -> Expression:
    return Expression(("literal", None, data_type))


def call(f: Any, *args: Any) -> Expression:
    """A function by its name, or a function of the user."""
    if isinstance(f, str):
        return (
            make(f if "." in f else f.upper(), *args)
            if not args
            else Expression(("call", f, tuple(expression(arg) for arg in args)))
        )
    return Expression(("udf", _wrapped(f), tuple(expression(arg) for arg in args)))


def _wrapped(function: Any) -> Any:
    from penstock.table.expression.function_declarations import udf, wrapper_of

    found = wrapper_of(function)
    if found is not None:
        return found
    if callable(function):
        return udf(function)
    raise ValidationException(f"call takes the name of a function or a function of the user, not {function!r}")


def call_sql(sql_expression: str) -> Expression:
    """An expression as SQL writes it."""
    return Expression(("sql", sql_expression))


# --- logic and conditions ---
def and_(predicate0: Any, predicate1: Any, *predicates: Any) -> Expression:
    return _chain("AND", predicate0, predicate1, *predicates)


def or_(predicate0: Any, predicate1: Any, *predicates: Any) -> Expression:
    return _chain("OR", predicate0, predicate1, *predicates)


def _chain(function: str, first: Any, *others: Any) -> Expression:
    whole = expression(first)
    for other in others:
        whole = make(function, whole, other)
    return whole


def not_(expression: Any) -> Expression:
    return make("NOT", expression)


def if_then_else(condition: Any, if_true: Any, if_false: Any) -> Expression:
    return make("IF", condition, if_true, if_false)


def coalesce(*args: Any) -> Expression:
    return make("COALESCE", *args)


# --- numbers ---
def negative(v: Any) -> Expression:
    return make("NEGATE", v)


def pi() -> Expression:
    return make("PI")


def e() -> Expression:
    return make("E")


def rand(seed: Any = None) -> Expression:
    return make("RAND") if seed is None else make("RAND", seed)


def rand_integer(bound: Any, seed: Any = None) -> Expression:
    return make("RAND_INTEGER", bound) if seed is None else make("RAND_INTEGER", seed, bound)


def atan2(y: Any, x: Any) -> Expression:
    return make("ATAN2", y, x)


def log(v: Any, base: Any = None) -> Expression:
    return make("LOG", v) if base is None else make("LOG", base, v)


# --- texts ---
def concat(first: Any, *others: Any) -> Expression:
    return make("CONCAT", first, *others)


def concat_ws(separator: Any, first: Any, *others: Any) -> Expression:
    return make("CONCAT_WS", separator, first, *others)


def uuid() -> Expression:
    return make("UUID")


# --- time ---
def current_date() -> Expression:
    return make("CURRENT_DATE")


def current_time() -> Expression:
    return make("CURRENT_TIME")


def current_timestamp() -> Expression:
    return make("CURRENT_TIMESTAMP")


def current_watermark(rowtimeAttribute: Any) -> Expression:  # noqa: N803
    return make("CURRENT_WATERMARK", rowtimeAttribute)


def local_time() -> Expression:
    return make("LOCALTIME")


def local_timestamp() -> Expression:
    return make("LOCALTIMESTAMP")


def to_date(date_str: Any, format: Any = None) -> Expression:
    return make("TO_DATE", date_str) if format is None else make("TO_DATE", date_str, format)


def to_timestamp(timestamp_str: Any, format: Any = None) -> Expression:
    return make("TO_TIMESTAMP", timestamp_str) if format is None else make("TO_TIMESTAMP", timestamp_str, format)


def to_timestamp_ltz(*args: Any) -> Expression:
    return make("TO_TIMESTAMP_LTZ", *args)


def date_format(timestamp: Any, format: Any) -> Expression:
    return make("DATE_FORMAT", timestamp, format)


def from_unixtime(unixtime: Any, format: Any = None) -> Expression:
    return make("FROM_UNIXTIME", unixtime) if format is None else make("FROM_UNIXTIME", unixtime, format)


def unix_timestamp(date_str: Any = None, format: Any = None) -> Expression:
    return make("UNIX_TIMESTAMP", *(value for value in (date_str, format) if value is not None))


def convert_tz(date_str: Any, tz_from: Any, tz_to: Any) -> Expression:
    return make("CONVERT_TZ", date_str, tz_from, tz_to)


def timestamp_diff(time_point_unit: TimePointUnit, time_point1: Any, time_point2: Any) -> Expression:
    return make("TIMESTAMPDIFF", word(time_point_unit.name), time_point1, time_point2)


def temporal_overlaps(
    left_time_point: Any, left_temporal: Any, right_time_point: Any, right_temporal: Any
) -> Expression:
    return make("OVERLAPS", left_time_point, left_temporal, right_time_point, right_temporal)


def source_watermark() -> Expression:
    return make("SOURCE_WATERMARK")


# --- rows, arrays, maps ---
def row(head: Any, *tail: Any) -> Expression:
    return make("ROW", head, *tail)


def array(head: Any, *tail: Any) -> Expression:
    return make("ARRAY", head, *tail)


def map_(key: Any, value: Any, *tail: Any) -> Expression:
    return make("MAP", key, value, *tail)


def map_from_arrays(key: Any, value: Any) -> Expression:
    return make("MAP_FROM_ARRAYS", key, value)


def object_of(class_name: Any, *args: Any) -> Expression:
    return make("OBJECT_OF", class_name, *args)


# --- JSON ---
def json(value: Any) -> Expression:
    return make("JSON", value)


def json_string(value: Any) -> Expression:
    return make("JSON_STRING", value)


def json_object(on_null: JsonOnNull = JsonOnNull.NULL, *args: Any) -> Expression:
    return make("JSON_OBJECT", *args, _on_null(on_null))


def json_array(on_null: JsonOnNull = JsonOnNull.ABSENT, *args: Any) -> Expression:
    return make("JSON_ARRAY", *args, _on_null(on_null))


def json_object_agg(on_null: JsonOnNull, key_expr: Any, value_expr: Any) -> Expression:
    return make("JSON_OBJECTAGG", key_expr, value_expr, _on_null(on_null))


def json_array_agg(on_null: JsonOnNull, item_expr: Any) -> Expression:
    return make("JSON_ARRAYAGG", item_expr, _on_null(on_null))


def _on_null(behaviour: JsonOnNull) -> Expression:
    return word(f"{behaviour.name} ON NULL")


# --- windows and columns ---
def lag(expr: Any, offset: Any = 1, default: Any = None) -> Expression:
    return make("LAG", expr, offset) if default is None else make("LAG", expr, offset, default)


def lead(expr: Any, offset: Any = 1, default: Any = None) -> Expression:
    return make("LEAD", expr, offset) if default is None else make("LEAD", expr, offset, default)


def row_interval(rows: int) -> Expression:
    """A number of rows, as the size of a window."""
    return Expression(("rows", rows))


def current_database() -> Expression:
    return make("CURRENT_DATABASE")


def descriptor(*column_names: str) -> Expression:
    return Expression(("descriptor", column_names))


def range_(start: Any, end: Any) -> Expression:
    """Columns from one to another, by name or by position from 1 on."""
    return make("RANGE", _column(start), _column(end))


def with_all_columns() -> Expression:
    return make("WITH_ALL_COLUMNS")


def with_columns(head: Any, *tails: Any) -> Expression:
    return make("WITH_COLUMNS", *map(_column, (head, *tails)))


def without_columns(head: Any, *tails: Any) -> Expression:
    return make("WITHOUT_COLUMNS", *map(_column, (head, *tails)))


def _column(value: Any) -> Any:
    return col(value) if isinstance(value, str) else value


UNBOUNDED_ROW = make("UNBOUNDED_ROW")
UNBOUNDED_RANGE = make("UNBOUNDED_RANGE")
CURRENT_ROW = make("CURRENT_ROW")
CURRENT_RANGE = make("CURRENT_RANGE")
