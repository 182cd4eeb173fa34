"""Expression: an expression in a table program, in place of SQL text. It has no types before it is bound."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import TYPE_CHECKING, Any, TypeAlias, Union, cast

from penstock.base.arguments import check_arguments
from penstock.table.expression.expression_methods import CallsFunctions
from penstock.table.expression.expression_texts import text_of
from penstock.table.expression.expression_values import Constant
from penstock.table.expression.expression_words import (
    JsonExistsOnError,
    JsonOnNull,
    JsonQueryOnEmptyOrError,
    JsonQueryWrapper,
    JsonType,
    JsonValueOnEmptyOrError,
    TimeIntervalUnit,
    TimePointUnit,
)
from penstock.table.types.data_types import (
    DataType,
    DateType,
    DayTimeIntervalType,
    NullType,
    Resolution,
    TimestampType,
    TimeType,
    YearMonthIntervalType,
)

if TYPE_CHECKING:
    from penstock.table.api.table_api import Table

    class _Computed:
        """A property, as type checkers see it."""

        def __get__(self, instance: object, owner: object = None) -> Expression: ...


__all__ = [
    "Expression",
    "JsonExistsOnError",
    "JsonOnNull",
    "JsonQueryOnEmptyOrError",
    "JsonQueryWrapper",
    "JsonType",
    "JsonValueOnEmptyOrError",
    "TimeIntervalUnit",
    "TimePointUnit",
]


def _computed(compute: Callable[[Expression], Expression]) -> _Computed:
    return cast("_Computed", property(compute))


def _unary(function: str) -> _Computed:
    """Return a property that calls a function with the expression alone."""
    return _computed(lambda self: make(function, self))


def _cast_to(kind: DataType) -> _Computed:
    """Return a property that casts the expression."""
    return _computed(lambda self: self.cast(kind))


def _binary(function: str, behind: bool = False) -> Callable[[Expression, Any], Expression]:
    """Return an operator. Its own expression is the second operand if it stands `behind` the other."""

    def call(self: Expression, other: Value) -> Expression:
        return make(function, other, self) if behind else make(function, self, other)

    call.__qualname__ = f"Expression.{function}"
    return check_arguments(call)


def _span(milliseconds: int, unit: Resolution) -> _Computed:
    return _computed(lambda self: _interval(self, milliseconds, DayTimeIntervalType(unit, unit, False)))


def _months(months: int, unit: Resolution) -> _Computed:
    return _computed(lambda self: _interval(self, months, YearMonthIntervalType(unit, unit, False)))


class Expression(CallsFunctions):
    """An expression over the columns of a table.

    `node` is its content: ("column", name), ("literal", value, type or None), ("call", function, arguments),
    ("alias", expression, names), ("cast", expression, type, whether it may give NULL instead of failing),
    ("over", expression, window), ("udf", wrapper, arguments), ("sql", text), ("in", expression, table),
    or ("rex", a typed expression).

    Some properties call the corresponding SQL function with this expression alone:

    - numbers: `abs`, `sign`, `exp`, `sqrt`, `ln`, `log10`, `log2`, `sin`, `cos`, `tan`, `cot`, `asin`, `acos`,
      `atan`, `sinh`, `cosh`, `tanh`, `degrees`, `radians`, `bin`, `hex`, `unhex`
    - tests: `is_null`, `is_not_null`, `is_true`, `is_not_true`, `is_false`, `is_not_false`
    - order: `asc`, `desc`
    - aggregates: `sum`, `sum0`, `avg`, `count`, `min`, `max`, `collect`, `first_value`, `last_value`, `array_agg`,
      `stddev_pop`, `stddev_samp`, `var_pop`, `var_samp`
    - windows: `start`, `end`, `rowtime`, `proctime`
    - texts: `upper_case`, `lower_case`, `init_cap`, `char_length`, `ascii`, `chr`, `reverse`, `from_base64`,
      `to_base64`, `md5`, `sha1`, `sha224`, `sha256`, `sha384`, `sha512`
    - casts: `to_date`, `to_time`, `to_timestamp`
    - parts: `cardinality`, `element`, `flatten`, `map_keys`, `map_values`, `map_entries`

    Some methods call the corresponding SQL function with this expression as the first argument:

    - arrays: `array_append`, `array_contains`, `array_distinct`, `array_except`, `array_intersect`, `array_max`,
      `array_min`, `array_position`, `array_prepend`, `array_remove`, `array_reverse`, `array_union`
    - bitmaps: `bitmap_and`, `bitmap_and_agg`, `bitmap_and_cardinality_agg`, `bitmap_andnot`, `bitmap_build`,
      `bitmap_build_agg`, `bitmap_build_cardinality_agg`, `bitmap_cardinality`, `bitmap_from_bytes`, `bitmap_or`,
      `bitmap_or_agg`, `bitmap_or_cardinality_agg`, `bitmap_to_array`, `bitmap_to_bytes`, `bitmap_to_string`,
      `bitmap_xor`, `bitmap_xor_agg`, `bitmap_xor_cardinality_agg`
    - texts: `decode`, `encode`, `ends_with`, `inet_aton`, `inet_ntoa`, `json_quote`, `json_unquote`, `left`,
      `regexp`, `regexp_count`, `regexp_instr`, `regexp_substr`, `repeat`, `right`, `sha2`, `split`, `starts_with`,
      `url_decode`, `url_encode`
    """

    def __init__(self, j_expr_or_property_name: str | tuple[Any, ...]) -> None:
        node = j_expr_or_property_name
        self.node: tuple[Any, ...] = ("column", node) if isinstance(node, str) else node

    __hash__ = object.__hash__

    # --- operators ---
    if TYPE_CHECKING:

        def __eq__(self, other: object) -> Expression: ...  # type: ignore[override]

        def __ne__(self, other: object) -> Expression: ...  # type: ignore[override]
    else:
        __eq__ = _binary("=")
        __ne__ = _binary("<>")
    __lt__ = _binary("<")
    __gt__ = _binary(">")
    __le__ = _binary("<=")
    __ge__ = _binary(">=")
    __and__ = _binary("AND")
    __or__ = _binary("OR")
    __rand__ = _binary("AND", behind=True)
    __ror__ = _binary("OR", behind=True)
    __add__ = _binary("+")
    __sub__ = _binary("-")
    __mul__ = _binary("*")
    __truediv__ = _binary("/")
    __mod__ = _binary("%")
    __pow__ = _binary("POWER")
    __radd__ = _binary("+", behind=True)
    __rsub__ = _binary("-", behind=True)
    __rmul__ = _binary("*", behind=True)
    __rtruediv__ = _binary("/", behind=True)
    __rmod__ = _binary("%", behind=True)
    __rpow__ = _binary("POWER", behind=True)

    def __abs__(self) -> Expression:
        return make("ABS", self)

    def __invert__(self) -> Expression:
        return make("IS NOT TRUE", self)

    def __neg__(self) -> Expression:
        return make("NEGATE", self)

    def __pos__(self) -> Expression:
        return self

    def __getitem__(self, index: Any) -> Expression:
        return self.at(index)

    def __bool__(self) -> bool:
        raise ValueError("an expression has no truth value: use &, | and ~ instead of and, or and not")

    def __iter__(self) -> Any:
        raise TypeError("an expression cannot be iterated")

    def __getattr__(self, name: str) -> Expression:
        if name.startswith("__") or name == "node":
            raise AttributeError(name)
        return self.get(name)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    def __str__(self) -> str:
        return text_of(self)

    def __repr__(self) -> str:
        return f"Expression({expression_text(self)})"

    def _call(self, function: str, *args: Value) -> Expression:
        return make(function, self, *args)

    # --- numbers ---
    abs, sign, exp, sqrt = _unary("ABS"), _unary("SIGN"), _unary("EXP"), _unary("SQRT")
    ln, log10, log2 = _unary("LN"), _unary("LOG10"), _unary("LOG2")
    sin, cos, tan, cot = _unary("SIN"), _unary("COS"), _unary("TAN"), _unary("COT")
    asin, acos, atan = _unary("ASIN"), _unary("ACOS"), _unary("ATAN")
    sinh, cosh, tanh = _unary("SINH"), _unary("COSH"), _unary("TANH")
    degrees, radians = _unary("DEGREES"), _unary("RADIANS")
    bin, hex, unhex = _unary("BIN"), _unary("HEX"), _unary("UNHEX")

    def log(self, base: Value = None) -> Expression:
        """Return the logarithm to a base, e by default."""
        return make("LOG", self) if base is None else make("LOG", base, self)

    def round(self, places: Value) -> Expression:
        """Return the number, rounded to `places` decimal places."""
        return make("ROUND", self, places)

    def truncate(self, n: Value = 0) -> Expression:
        """Return the number, cut off after `n` decimal places."""
        return make("TRUNCATE", self, n)

    def floor(self, time_interval_unit: TimeIntervalUnit | None = None) -> Expression:
        """Return the greatest whole number that is not greater; with a unit, the time rounded down to it."""
        return make("FLOOR", self, *_words(time_interval_unit))

    def ceil(self, time_interval_unit: TimeIntervalUnit | None = None) -> Expression:
        """Return the least whole number that is not less; with a unit, the time rounded up to it."""
        return make("CEIL", self, *_words(time_interval_unit))

    # --- tests ---
    is_null, is_not_null = _unary("IS NULL"), _unary("IS NOT NULL")
    is_true, is_not_true = _unary("IS TRUE"), _unary("IS NOT TRUE")
    is_false, is_not_false = _unary("IS FALSE"), _unary("IS NOT FALSE")

    def between(self, lower_bound: Value, upper_bound: Value) -> Expression:
        """Return TRUE if the value is between two bounds. Both bounds are included."""
        return make("BETWEEN", self, lower_bound, upper_bound)

    def not_between(self, lower_bound: Value, upper_bound: Value) -> Expression:
        """Return TRUE if the value is less than the lower bound or greater than the upper one."""
        return make("NOT", self.between(lower_bound, upper_bound))

    def in_(self, first_element_or_table: Value | Table, *remaining_elements: Value) -> Expression:
        """Return TRUE if the value is one of the elements, or in the only column of a Table."""
        if not isinstance(first_element_or_table, Expression) and hasattr(first_element_or_table, "get_schema"):
            return Expression(("in", self, first_element_or_table))
        return make("IN", self, first_element_or_table, *remaining_elements)

    def then(self, if_true: Value, if_false: Value) -> Expression:
        """Return `if_true` where this condition is TRUE, otherwise `if_false`."""
        return make("IF", self, if_true, if_false)

    def if_null(self, null_replacement: Value) -> Expression:
        """Return the value, or a replacement if it is NULL."""
        return make("IFNULL", self, null_replacement)

    def like(self, pattern: Expression | str | None = None, escape: Expression | str | None = None) -> Expression:
        """Return TRUE if the text matches a LIKE pattern, with % for any text and _ for one character."""
        return make("LIKE", self, pattern, *_as_list(escape))

    def similar(self, pattern: Expression | str | None = None) -> Expression:
        """Return TRUE if the text matches a pattern of SIMILAR TO."""
        return make("SIMILAR TO", self, pattern)

    # --- types and names ---
    def cast(self, data_type: DataType) -> Expression:
        """Return the value in another type. The query fails if a value does not fit."""
        return Expression(("cast", self, data_type, False))

    def try_cast(self, data_type: DataType) -> Expression:
        """Return the value in another type, and NULL if it does not fit."""
        return Expression(("cast", self, data_type, True))

    def alias(self, name: str, *extra_names: str) -> Expression:
        """Return the expression with another name, or with several names if it has several columns."""
        return Expression(("alias", self, (name, *extra_names)))

    def as_argument(self, name: str) -> Expression:
        """Return the expression as a named argument of a function."""
        return Expression(("argument", self, name))

    asc, desc = _unary("ASC"), _unary("DESC")

    # --- aggregates ---
    sum, sum0, avg, count = _unary("SUM"), _unary("SUM0"), _unary("AVG"), _unary("COUNT")
    min, max, collect = _unary("MIN"), _unary("MAX"), _unary("COLLECT")
    first_value, last_value, array_agg = _unary("FIRST_VALUE"), _unary("LAST_VALUE"), _unary("ARRAY_AGG")
    stddev_pop, stddev_samp = _unary("STDDEV_POP"), _unary("STDDEV_SAMP")
    var_pop, var_samp = _unary("VAR_POP"), _unary("VAR_SAMP")
    distinct = _unary("DISTINCT")
    """The same aggregate over distinct values: `col("n").sum.distinct`."""

    def list_agg(self, separator: Value = None) -> Expression:
        """Return the texts of a group, joined with a separator, a comma by default."""
        return make("LISTAGG", self, *_as_list(separator))

    def percentile(self, percentage: Value, frequency: Value = None) -> Expression:
        """Return the percentile of a group.

        Args:
            percentage: A number from 0 to 1, or an array of such numbers.
            frequency: The number of times that a value counts, 1 by default.
        """
        return make("PERCENTILE", self, percentage, *_as_list(frequency))

    def over(self, alias: Expression | str) -> Expression:
        """Return the aggregate over a window of `Table.over_window`, which is named by its alias."""
        return Expression(("over", self, expression(alias)))

    # --- windows ---
    start, end = _unary("WINDOW_START"), _unary("WINDOW_END")
    rowtime, proctime = _unary("ROWTIME"), _unary("PROCTIME")

    # --- texts ---
    upper_case, lower_case, init_cap = _unary("UPPER"), _unary("LOWER"), _unary("INITCAP")
    char_length, ascii, chr, reverse = _unary("CHAR_LENGTH"), _unary("ASCII"), _unary("CHR"), _unary("REVERSE")
    from_base64, to_base64 = _unary("FROM_BASE64"), _unary("TO_BASE64")
    md5, sha1, sha224 = _unary("MD5"), _unary("SHA1"), _unary("SHA224")
    sha256, sha384, sha512 = _unary("SHA256"), _unary("SHA384"), _unary("SHA512")

    def concat(self, other: Value) -> Expression:
        """Return the text, followed by another."""
        return make("CONCAT", self, other)

    def substring(self, begin_index: Value, length: Value = None) -> Expression:
        """Return the part of the text from a position, which counts from 1, with at most `length` characters."""
        return make("SUBSTRING", self, begin_index, *_as_list(length))

    def substr(self, begin_index: Value, length: Value = None) -> Expression:
        """Return the part of the text from a position, which counts from 1, with at most `length` characters."""
        return make("SUBSTR", self, begin_index, *_as_list(length))

    def trim(self, character: Value = None) -> Expression:
        """Return the text without a character at its start and end, a space by default."""
        return make("TRIM", word("BOTH"), " " if character is None else character, self)

    def trim_leading(self, character: Value = None) -> Expression:
        """Return the text without a character at its start, a space by default."""
        return make("TRIM", word("LEADING"), " " if character is None else character, self)

    def trim_trailing(self, character: Value = None) -> Expression:
        """Return the text without a character at its end, a space by default."""
        return make("TRIM", word("TRAILING"), " " if character is None else character, self)

    def ltrim(self, trim_str: Value = None) -> Expression:
        """Return the text without the characters of `trim_str` at its start, spaces by default."""
        return make("LTRIM", self, *_as_list(trim_str))

    def rtrim(self, trim_str: Value = None) -> Expression:
        """Return the text without the characters of `trim_str` at its end, spaces by default."""
        return make("RTRIM", self, *_as_list(trim_str))

    def btrim(self, trim_str: Value = None) -> Expression:
        """Return the text without the characters of `trim_str` at its start and end, spaces by default."""
        return make("BTRIM", self, *_as_list(trim_str))

    def replace(self, search: Value = None, replacement: Value = None) -> Expression:
        """Return the text, with every occurrence of `search` replaced."""
        return make("REPLACE", self, search, replacement)

    def position(self, haystack: Value = None) -> Expression:
        """Return the position of this text in `haystack`, from 1; 0 if it does not occur."""
        return make("POSITION", self, haystack)

    def locate(self, s: Value, pos: Value = None) -> Expression:
        """Return the position of this text in `s`, from 1, at `pos` or later; 0 if it does not occur."""
        return make("LOCATE", self, s, *_as_list(pos))

    def instr(self, s: Value) -> Expression:
        """Return the position of `s` in this text, from 1; 0 if it does not occur."""
        return make("INSTR", self, s)

    def lpad(self, length: Value, pad: Value) -> Expression:
        """Return the text with `length` characters: filled at its start with `pad`, or cut off."""
        return make("LPAD", self, length, pad)

    def rpad(self, length: Value, pad: Value) -> Expression:
        """Return the text with `length` characters: filled at its end with `pad`, or cut off."""
        return make("RPAD", self, length, pad)

    def overlay(self, new_string: Value, starting: Value, length: Value = None) -> Expression:
        """Return the text, with a part from position `starting` replaced by `new_string`.

        The part has `length` characters, by default those of `new_string`.
        """
        return make("OVERLAY", self, new_string, starting, *_as_list(length))

    def parse_url(self, part_to_extract: Value, key: Value = None) -> Expression:
        """Return a part of a URL, such as 'HOST'. For 'QUERY', `key` selects one parameter."""
        return make("PARSE_URL", self, part_to_extract, *_as_list(key))

    def printf(self, *obj: Value) -> Expression:
        """Return the values in the form of this text, a format with % as in Java's printf."""
        return make("PRINTF", self, *obj)

    def elt(self, expr: Value, *exprs: Value) -> Expression:
        """Return one of the expressions. This number is its position, from 1."""
        return make("ELT", self, expr, *exprs)

    def regexp_extract(self, regex: Value, extract_index: Value = None) -> Expression:
        """Return the text of a group of a regular expression's first match, by default the whole match."""
        return make("REGEXP_EXTRACT", self, regex, *_as_list(extract_index))

    def regexp_extract_all(self, regex: Value, extract_index: Value = None) -> Expression:
        """Return an array with the text of a group of a regular expression, by default the first, in each match."""
        return make("REGEXP_EXTRACT_ALL", self, regex, *_as_list(extract_index))

    def regexp_replace(self, regex: Value, replacement: Value) -> Expression:
        """Return the text, with all matches of a regular expression replaced."""
        return make("REGEXP_REPLACE", self, regex, replacement)

    def split_index(self, separator: Value, index: Value) -> Expression:
        """Return a part of the text between separators. Parts count from 0."""
        return make("SPLIT_INDEX", self, separator, index)

    def str_to_map(self, list_delimiter: Value = None, key_value_delimiter: Value = None) -> Expression:
        """Return the map in a text. Entries are separated by a comma, keys and values by =, unless given."""
        if list_delimiter is None:
            return make("STR_TO_MAP", self)
        return make("STR_TO_MAP", self, list_delimiter, "=" if key_value_delimiter is None else key_value_delimiter)

    def translate(self, from_str: Value, to_str: Value) -> Expression:
        """Return the text, with each character of `from_str` replaced by the one at its position in `to_str`."""
        return make("TRANSLATE", self, from_str, to_str)

    # --- time ---
    to_date, to_time, to_timestamp = _cast_to(DateType()), _cast_to(TimeType(0)), _cast_to(TimestampType(3))
    year = years = _months(12, Resolution.YEAR)
    """Interval of as many years as the number."""
    quarter = quarters = _months(3, Resolution.MONTH)
    """Interval of as many quarters as the number."""
    month = months = _months(1, Resolution.MONTH)
    """Interval of as many months as the number."""
    week = weeks = _span(604_800_000, Resolution.DAY)
    """Interval of as many weeks as the number."""
    day = days = _span(86_400_000, Resolution.DAY)
    """Interval of as many days as the number."""
    hour = hours = _span(3_600_000, Resolution.HOUR)
    """Interval of as many hours as the number."""
    minute = minutes = _span(60_000, Resolution.MINUTE)
    """Interval of as many minutes as the number."""
    second = seconds = _span(1000, Resolution.SECOND)
    """Interval of as many seconds as the number."""
    milli = millis = _span(1, Resolution.SECOND)
    """Interval of as many milliseconds as the number."""

    def extract(self, time_interval_unit: TimeIntervalUnit) -> Expression:
        """Return a part of a time, such as its year."""
        return make("EXTRACT", word(time_interval_unit.name), self)

    # --- parts ---
    cardinality, element, flatten = _unary("CARDINALITY"), _unary("ELEMENT"), _unary("FLATTEN")
    map_keys, map_values, map_entries = _unary("MAP_KEYS"), _unary("MAP_VALUES"), _unary("MAP_ENTRIES")

    def get(self, name_or_index: str | int) -> Expression:
        """Return a field of a row, by its name or its position, which counts from 0."""
        return make("GET", self, name_or_index)

    def at(self, index: Value) -> Expression:
        """Return an element of an array, which counts from 1, or the value of a key."""
        return make("ITEM", self, index)

    def array_join(self, delimiter: Value, null_replacement: Value = None) -> Expression:
        """Return the texts of an array, joined with a delimiter. NULLs are left out, unless they have a replacement."""
        return make("ARRAY_JOIN", self, delimiter, *_as_list(null_replacement))

    def array_slice(self, start_offset: Value, end_offset: Value = None) -> Expression:
        """Return the part of an array between two positions, both included. Negative positions count from the end."""
        return make("ARRAY_SLICE", self, start_offset, *_as_list(end_offset))

    def array_sort(self, ascending_order: Value = None, null_first: Value = None) -> Expression:
        """Return the array in order, ascending by default.

        Args:
            ascending_order: FALSE for descending order.
            null_first: TRUE for NULLs at the start. The default is TRUE in ascending order, FALSE in descending order.
        """
        return make("ARRAY_SORT", self, *_as_list(ascending_order), *_as_list(null_first))

    def array_concat(self, *arrays: Value) -> Expression:
        """Return the array, followed by the elements of other arrays."""
        return make("ARRAY_CONCAT", self, *arrays)

    def map_union(self, *maps: Value) -> Expression:
        """Return the map with the entries of others. For a key in several maps, the last one wins."""
        return make("MAP_UNION", self, *maps)

    def object_update(self, *kv: Value) -> Expression:
        """Return a call of OBJECT_UPDATE. SQL has no such function here, so a query with it is refused."""
        return make("OBJECT_UPDATE", self, *kv)

    # --- JSON ---
    def is_json(self, json_type: JsonType | None = None) -> Expression:
        """Return TRUE if the text is JSON, of the given type if there is one."""
        return make("IS JSON", self, *_words(json_type))

    def json_exists(self, path: str, on_error: JsonExistsOnError | None = None) -> Expression:
        """Return TRUE if a JSON text has a value at a path."""
        return make("JSON_EXISTS", self, path, *_behaviour(on_error, None, "ON ERROR"))

    def json_value(
        self,
        path: str,
        returning_type: DataType | None = None,
        on_empty: JsonValueOnEmptyOrError = JsonValueOnEmptyOrError.NULL,
        default_on_empty: Value = None,
        on_error: JsonValueOnEmptyOrError = JsonValueOnEmptyOrError.NULL,
        default_on_error: Value = None,
    ) -> Expression:
        """Return the scalar at a path of a JSON text, as a text or in `returning_type`."""
        returning = [] if returning_type is None else [word("RETURNING"), Expression(("literal", None, returning_type))]
        empty = _behaviour(on_empty, default_on_empty, "ON EMPTY")
        return make("JSON_VALUE", self, path, *returning, *empty, *_behaviour(on_error, default_on_error, "ON ERROR"))

    def json_query(
        self,
        path: str,
        wrapping_behavior: JsonQueryWrapper = JsonQueryWrapper.WITHOUT_ARRAY,
        on_empty: JsonQueryOnEmptyOrError = JsonQueryOnEmptyOrError.NULL,
        on_error: JsonQueryOnEmptyOrError = JsonQueryOnEmptyOrError.NULL,
    ) -> Expression:
        """Return the part at a path of a JSON text, as JSON text."""
        wrapper = word(_WRAPPERS[wrapping_behavior])
        empty = _behaviour(on_empty, None, "ON EMPTY")
        return make("JSON_QUERY", self, path, wrapper, *empty, *_behaviour(on_error, None, "ON ERROR"))


_WRAPPERS = {
    JsonQueryWrapper.WITHOUT_ARRAY: "WITHOUT WRAPPER",
    JsonQueryWrapper.CONDITIONAL_ARRAY: "WITH CONDITIONAL WRAPPER",
    JsonQueryWrapper.UNCONDITIONAL_ARRAY: "WITH UNCONDITIONAL WRAPPER",
}


check_arguments(Expression)

Value: TypeAlias = Union[Expression, Constant]  # noqa: UP007 - mypy wants it so
"""An argument that is an expression, or a value that becomes a literal."""


# --- making expressions ---
def expression(value: Any) -> Expression:
    """Return the value itself if it is an expression, otherwise a literal."""
    if isinstance(value, Expression):
        return value
    if isinstance(value, Enum):
        return word(value.name)
    return Expression(("literal", value, None))


def make(function: str, *args: Any) -> Expression:
    """Return a call of a function of SQL."""
    return Expression(("call", function, tuple(expression(arg) for arg in args)))


def word(text: str) -> Expression:
    """Return a word of the syntax, such as the unit of EXTRACT."""
    return Expression(("literal", text, NullType()))


def _words(unit: Enum | None) -> list[Expression]:
    return [] if unit is None else [word(unit.name)]


def _as_list(value: Any) -> list[Any]:
    return [] if value is None else [value]


def _behaviour(behaviour: Enum | None, default: Any, occasion: str) -> list[Expression]:
    if behaviour is None:
        return []
    values = [expression(default)] if behaviour.name == "DEFAULT" else []
    return [word(behaviour.name.replace("_", " ")), *values, word(occasion)]


def _interval(count: Expression, unit: int, kind: DataType) -> Expression:
    node = count.node
    if node[0] == "literal" and isinstance(node[1], int):
        return Expression(("literal", node[1] * unit, kind))
    return make("*", count, Expression(("literal", unit, kind)))


def expression_text(value: Any) -> str:
    """Return an expression as text, for messages and names of columns."""
    if not isinstance(value, Expression):
        return str(value)
    match value.node:
        case ("column", name):
            return str(name)
        case ("literal", constant, _):
            return repr(constant)
        case ("call", function, args):
            if len(args) == 2 and not function[0].isalpha():
                return f"({expression_text(args[0])} {function} {expression_text(args[1])})"
            return f"{function}({', '.join(map(expression_text, args))})"
        case ("alias", inner, names):
            return f"{expression_text(inner)} AS {', '.join(names)}"
        case ("cast", inner, kind, safe):
            return f"{'TRY_CAST' if safe else 'CAST'}({expression_text(inner)} AS {kind.summary()})"
        case ("udf", wrapper, args):
            return f"{wrapper.name}({', '.join(map(expression_text, args))})"
        case ("over", inner, window):
            return f"{expression_text(inner)} OVER {expression_text(window)}"
    return " ".join(map(expression_text, value.node))
