"""The texts of expressions, with the names that Flink's Java API gives functions: `plus(a, 1)`."""

from __future__ import annotations

import datetime
from typing import Any

from penstock.table.types.data_types import NullType

_NAMES = {
    "=": "equals",
    "<>": "notEquals",
    "<": "lessThan",
    "<=": "lessThanOrEqual",
    ">": "greaterThan",
    ">=": "greaterThanOrEqual",
    "+": "plus",
    "-": "minus",
    "*": "times",
    "/": "divide",
    "%": "mod",
    "NEGATE": "minusPrefix",
    "IF": "ifThenElse",
    "IFNULL": "ifNull",
    "SIMILAR TO": "similar",
    "IS JSON": "IS_JSON",
    "ITEM": "at",
    "OVERLAPS": "temporalOverlaps",
    "TIMESTAMPDIFF": "timestampDiff",
    "WINDOW_START": "start",
    "WINDOW_END": "end",
    "LISTAGG": "listAgg",
    "INITCAP": "initCap",
    "RANGE": "rangeTo",
    "CONCAT_WS": "concat_ws",
    "FIRST_VALUE": "first_value",
    "LAST_VALUE": "last_value",
    "LOCALTIME": "localTime",
    "LOCALTIMESTAMP": "localTimestamp",
    "ROWTIME": "rowtime",
    "PROCTIME": "proctime",
    "LOG": "log",
}
"""Functions whose names differ in more than their case."""

_CAMEL_CASE = {
    *("AND", "OR", "NOT", "IN", "BETWEEN", "NOT BETWEEN", "IS NULL", "IS NOT NULL", "IS TRUE", "IS NOT TRUE"),
    *("IS FALSE", "IS NOT FALSE", "ABS", "SIGN", "EXP", "SQRT", "LN", "LOG10", "LOG2", "SIN", "COS", "TAN", "COT"),
    *("ASIN", "ACOS", "ATAN", "ATAN2", "SINH", "COSH", "TANH", "DEGREES", "RADIANS", "BIN", "HEX", "POWER", "ROUND"),
    *("TRUNCATE", "FLOOR", "CEIL", "ASC", "DESC", "SUM", "SUM0", "AVG", "COUNT", "MIN", "MAX", "COLLECT", "DISTINCT"),
    *("STDDEV_POP", "STDDEV_SAMP", "VAR_POP", "VAR_SAMP", "UPPER", "LOWER", "CHAR_LENGTH", "ASCII", "CHR", "REVERSE"),
    *("FROM_BASE64", "TO_BASE64", "SUBSTRING", "SUBSTR", "TRIM", "REPLACE", "POSITION", "LPAD", "RPAD", "OVERLAY"),
    *("DECODE", "ENCODE", "LEFT", "RIGHT", "INSTR", "LOCATE", "PARSE_URL", "LTRIM", "RTRIM", "REPEAT", "SPLIT_INDEX"),
    *("STR_TO_MAP", "REGEXP", "REGEXP_EXTRACT", "REGEXP_REPLACE", "EXTRACT", "GET", "FLATTEN", "AT", "CARDINALITY"),
    *("ELEMENT", "MD5", "SHA1", "SHA224", "SHA256", "SHA384", "SHA512", "SHA2", "CURRENT_DATABASE", "CURRENT_DATE"),
    *("CURRENT_TIME", "CURRENT_TIMESTAMP", "TO_DATE", "TO_TIMESTAMP", "TEMPORAL_OVERLAPS", "DATE_FORMAT"),
    *("TIMESTAMP_DIFF", "CONVERT_TZ", "FROM_UNIXTIME", "UNIX_TIMESTAMP", "ARRAY", "ROW", "MAP", "PI", "E", "RAND"),
    *("RAND_INTEGER", "CONCAT", "UUID", "WITH_COLUMNS", "WITHOUT_COLUMNS"),
}
"""Functions whose names are those of SQL in camel case. All others are written as in SQL."""


def text_of(value: Any) -> str:
    """Return an expression in the form in which Flink's Java API prints it."""
    node = getattr(value, "node", None)
    if not isinstance(node, tuple):
        return str(value)
    match node:
        case ("column" | "sql", name):
            return str(name)
        case ("literal", str(word), NullType()):
            return word
        case ("literal", constant, _):
            return _constant(constant)
        case ("call", "UNBOUNDED_ROW" | "UNBOUNDED_RANGE" | "CURRENT_ROW" | "CURRENT_RANGE" as bound, ()):
            return str(bound)
        case ("call", function, args):
            name, texts = _call(function, args)
            return f"{name}({', '.join(texts)})"
        case ("rows", count):
            return str(count)
        case ("alias", inner, names):
            return f"as({', '.join([text_of(inner), *map(_constant, names)])})"
        case ("cast", inner, kind, safe):
            return f"{'TRY_CAST' if safe else 'cast'}({text_of(inner)}, {kind.as_sql()})"
        case ("udf", wrapper, args):
            return f"{wrapper.name}({', '.join(map(text_of, args))})"
        case ("over", inner, window):
            return f"over({text_of(inner)}, {text_of(window)})"
        case ("argument", inner, name):
            return f"ASSIGNMENT({_constant(name)}, {text_of(inner)})"
        case ("in", inner, table):
            return f"in({text_of(inner)}, {table})"
    return " ".join(map(text_of, node))


def _call(function: str, args: tuple[Any, ...]) -> tuple[str, list[str]]:
    """Return the name of a function and its arguments."""
    texts = list(map(text_of, args))
    match function, texts:
        case "NOT", [one] if one.startswith("between("):
            return "notBetween", list(map(text_of, args[0].node[2]))
        case "AND" | "OR", [_, last] if args[0].node[:2] == ("call", function):
            return function_name(function), [*_call(function, args[0].node[2])[1], last]
        case "TRIM", ["LEADING" | "TRAILING" | "BOTH" as side, *others]:
            return "trim", [str(side != "TRAILING").lower(), str(side != "LEADING").lower(), *others]
        case "JSON_EXISTS", [value, path, behaviour, "ON ERROR"]:
            return function, [value, path, behaviour]
        case "JSON_VALUE", [value, path, *others]:
            kind = args[3].node[2].as_sql() if "RETURNING" in others else "STRING"
            return function, [value, path, kind, *_behaviours(others, "null")]
        case "JSON_QUERY", [value, path, wrapper, *others]:
            return function, [value, path, "STRING", _WRAPPERS[wrapper], *_behaviours(others)]
    return function_name(function), texts


_WRAPPERS = {
    "WITHOUT WRAPPER": "WITHOUT_ARRAY",
    "WITH CONDITIONAL WRAPPER": "CONDITIONAL_ARRAY",
    "WITH UNCONDITIONAL WRAPPER": "UNCONDITIONAL_ARRAY",
}


def _behaviours(words: list[str], *default: str) -> list[str]:
    """Return the behaviour of a JSON function ON EMPTY and ON ERROR, each with its default."""
    found, part = [], list[str]()
    for word in words[2:] if words[:1] == ["RETURNING"] else words:
        if word in {"ON EMPTY", "ON ERROR"}:
            found += [part[0].replace(" ", "_"), *(part[1:] or default)]
            part = []
        else:
            part.append(word)
    return found


def function_name(function: str) -> str:
    """Return the name that Flink's Java API gives a function of SQL."""
    if function in _NAMES:
        return _NAMES[function]
    if function not in _CAMEL_CASE:
        return function
    first, *others = function.replace("_", " ").lower().split()
    return first + "".join(map(str.capitalize, others))


def _constant(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case str():
            return "'" + value.replace("'", "''") + "'"
        case datetime.timedelta():
            return str(value // datetime.timedelta(milliseconds=1))
    return str(value)
