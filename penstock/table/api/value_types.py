"""The SQL types of Python values for which no type is declared."""

from __future__ import annotations

import array
import datetime
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any

from penstock.base.arguments import invalid_argument
from penstock.common.types import Row
from penstock.errors import ValidationException
from penstock.table.expression.expression import Expression
from penstock.table.types import data_types as t


class NoElements(ValidationException, ValueError):
    """The error for an empty list of elements, from which no types can be inferred."""


class NoTypeFound(ValidationException, TypeError):
    """A value has no SQL type, or values of different types stand in one column."""


def type_of(value: Any) -> t.DataType:
    """Return the type of one value."""
    own = getattr(value, "__UDT__", None)
    if isinstance(own, t.UserDefinedType):
        return own
    match value:
        case None:
            return t.NullType()
        case bool():
            return t.BooleanType()
        case int():
            return t.BigIntType()
        case float():
            return t.DoubleType()
        case str():
            return t.DataTypes.STRING()
        case bytes() | bytearray():
            return t.DataTypes.BYTES()
        case Decimal():
            return t.DecimalType(38, 18)
        case datetime.datetime():
            return t.TimestampType(6)
        case datetime.date():
            return t.DateType()
        case datetime.time():
            return t.TimeType(0)
        case datetime.timedelta():
            return t.DayTimeIntervalType()
        case Row() | tuple():
            names = getattr(value, "_fields", None)
            return t.RowType(zip(names or _number_names(len(value)), map(type_of, value), strict=True))
        case dict():
            return t.MapType(_of_all(value).not_null(), _of_all(value.values()))
        case list() | set() | frozenset():
            return t.ArrayType(_of_all(value))
        case array.array() if value.typecode in _ARRAYS:
            return t.ArrayType(_ARRAYS[value.typecode])
    if _attributes(value):
        return t.RowType((name, type_of(one)) for name, one in sorted(_attributes(value).items()))
    raise NoTypeFound(f"{value!r} of {type(value).__name__} has no SQL type; give a schema with DataTypes")


def _attributes(value: Any) -> dict[str, Any]:
    """Return the public attributes of an object of a user's class, which are the fields of a row; nothing otherwise."""
    if isinstance(value, (type, Expression)) or callable(value) or hasattr(value, "__UDT__"):
        return {}
    return {name: one for name, one in getattr(value, "__dict__", {}).items() if not name.startswith("_")}


def _number_names(count: int) -> list[str]:
    return [f"_{index + 1}" for index in range(count)]


def _integers(bits: int) -> t.DataType:
    """Return the smallest type for whole numbers with this number of bits."""
    kinds = (t.TinyIntType, t.SmallIntType, t.IntType, t.BigIntType)
    return next(kind(False) for kind in kinds if bits <= kind.bits)


_ARRAYS: dict[str, t.DataType] = {
    "u": t.CharType(1, False),
    "f": t.FloatType(False),
    "d": t.DoubleType(False),
    **{code: _integers(8 * array.array(code).itemsize) for code in "bhilq"},
    **{code: _integers(8 * array.array(code).itemsize + 1) for code in "BHI"},
}
"""Types of the elements of an array.array, by its type code; numbers without a sign need one bit more."""


def _of_all(values: Iterable[Any]) -> t.DataType:
    """Return the type that all values have in common; that of NULL if there are no values."""
    found: t.DataType = t.NullType()
    for value in values:
        found = _merge_types(found, type_of(value))
    return found


def _fill_unknown(kind: t.DataType) -> t.DataType:
    """Return a type with STRING in place of unknown parts."""
    match kind:
        case t.NullType():
            return t.DataTypes.STRING(kind._nullable)
        case t.ArrayType():
            return t.ArrayType(_fill_unknown(kind.element_type), kind._nullable)
        case t.MapType():
            return t.MapType(_fill_unknown(kind.key_type), _fill_unknown(kind.value_type), kind._nullable)
        case t.RowType():
            return t.RowType(((field.name, _fill_unknown(field.data_type)) for field in kind.fields), kind._nullable)
    return kind


def common_type(values: Iterable[Any]) -> t.DataType:
    """Return the type that all values have in common."""
    return _fill_unknown(_of_all(values))


def _merge_types(one: t.DataType, other: t.DataType) -> t.DataType:
    if one == other or isinstance(other, t.NullType):
        return one
    if isinstance(one, t.NullType):
        return other
    match one, other:
        case t.NumericType(), t.NumericType():
            return t.DoubleType()
        case t.ArrayType(), t.ArrayType():
            return t.ArrayType(_merge_types(one.element_type, other.element_type))
        case t.MapType(), t.MapType():
            return t.MapType(_merge_types(one.key_type, other.key_type), _merge_types(one.value_type, other.value_type))
        case t.RowType(), t.RowType():
            return _merge_rows(one, other)
    raise NoTypeFound(f"values of {one.as_sql()} and of {other.as_sql()} cannot be in one column; give a schema")


def _merge_rows(one: t.RowType, other: t.RowType) -> t.RowType:
    """Return the fields of both rows, matched by name. Fields of the second alone come last."""
    own, others = (dict(zip(kind.names, kind.field_types(), strict=True)) for kind in (one, other))
    fields = [(name, _merge_types(kind, others.get(name, t.NullType()))) for name, kind in own.items()]
    return t.RowType([*fields, *((name, kind) for name, kind in others.items() if name not in own)])


def row_type(elements: Sequence[Any], schema: Any = None) -> t.RowType:
    """Return the columns of elements: declared by a ROW, a type, or a list of names or fields; otherwise inferred."""
    if isinstance(schema, t.RowType):
        return schema
    if isinstance(schema, t.DataType):
        return t.RowType([("value", schema)])
    if schema and all(isinstance(field, t.RowField) for field in schema):
        return t.RowType(schema)
    if schema is not None and not isinstance(schema, (list, tuple)):
        allowed = "a DataType, or a list of names or of fields"
        raise invalid_argument("TableEnvironment.from_elements", "schema", schema, allowed)
    if not elements:
        raise NoElements("there are no elements from which to infer the types; give a schema with DataTypes")
    found = common_type(element if _attributes(element) else _as_row(element) for element in elements)
    assert isinstance(found, t.RowType)
    if schema is None:
        return found
    if len(schema) > len(found):
        raise ValidationException(f"{len(schema)} names ({', '.join(schema)}) do not fit {len(found)} columns")
    return t.RowType(zip([*schema, *found.field_names()[len(schema) :]], found.field_types(), strict=True))


def plain_values(value: Any) -> Any:
    """Return a value with rows, lists and dicts in place of calls of row, array and map_ over constants."""
    if not isinstance(value, Expression):
        return value
    match value.node:
        case ("literal", constant, _):
            return constant
        case ("call", "ROW", args):
            return Row(*map(plain_values, args))
        case ("call", "ARRAY", args):
            return [plain_values(one) for one in args]
        case ("call", "MAP", args):
            parts = [plain_values(one) for one in args]
            return dict(zip(parts[::2], parts[1::2], strict=True))
    raise ValidationException(f"from_elements: an element can consist of row, array, map_ and lit, not of {value}")


def _as_row(element: Any) -> Any:
    if isinstance(element, (Row, tuple)):
        return element
    if isinstance(element, dict):
        return Row(**dict(sorted(element.items())))
    return tuple(element) if isinstance(element, list) else (element,)


def as_rows(elements: Iterable[Any], declared: t.RowType) -> tuple[tuple[Any, ...], ...]:
    """Elements as tuples in the order of the columns; each is checked to have as many values."""
    names, wide = declared.field_names(), len(declared)
    rows = []
    for element in elements:
        if isinstance(element, dict):
            row: tuple[Any, ...] = tuple(element.get(name) for name in names)
        elif isinstance(element, Row) and (found := element.get_field_names()) and set(found) == set(names):
            row = tuple(element[name] for name in names)
        elif (attributes := _attributes(element)).keys() & set(names):
            row = tuple(attributes.get(name) for name in names)
        else:
            row = tuple(_as_row(element))
        if len(row) != wide:
            raise ValidationException(f"{element!r} has {len(row)} values, and the table {wide} columns: {names}")
        rows.append(row)
    return tuple(rows)


# Names of PyFlink's module `types`, which libraries on top of it import.
_infer_type, _infer_schema_from_data, _merge_type = type_of, row_type, _merge_types
