"""Rows of a result as records of a Python class: `collect(as_=Order)`."""

from __future__ import annotations

import dataclasses
import datetime
import types
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import (
    Any,
    NamedTuple,
    NotRequired,
    Required,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

from penstock.base.arguments import invalid_argument
from penstock.common.types import Row, RowKind
from penstock.errors import TableException, ValidationException
from penstock.table.types import data_types as t

Convert = Callable[[Any], Any]

_RECORDS = "a dataclass, a NamedTuple or a TypedDict"


class _Misfit(Exception):
    """The reason why columns do not fit the fields of a class."""


class _Field(NamedTuple):
    """A field of a record class."""

    name: str
    annotation: Any
    required: bool


def record_maker(record: Any, names: Sequence[str], kinds: Sequence[t.DataType]) -> Convert:
    """Return a function that turns a row with these columns into a record of a class.

    Raise if the fields of the class do not fit the columns. The function itself raises for NULL in a field that does
    not allow None, and for a row that changes or deletes an earlier one.
    """
    if _fields_of(record) is None:
        raise invalid_argument("TableResult.collect", "as_", record, _RECORDS)
    try:
        make = _record(record, names, kinds, "")
    except _Misfit as misfit:
        columns = ", ".join(f"{name} {kind.as_sql()}" for name, kind in zip(names, kinds, strict=True))
        raise ValidationException(f"collect(as_={record.__qualname__}): {misfit}. The columns are: {columns}") from None

    def convert(row: Row) -> Any:
        if row.get_row_kind() is not RowKind.INSERT:
            raise TableException(
                f"collect(as_={record.__qualname__}): the row {row!r} of kind {row.get_row_kind()} is a change of an "
                "earlier row, which a record cannot express: use collect() without as_, or run the query in BATCH mode"
            )
        try:
            return make(row)
        except _Misfit as misfit:
            raise TableException(f"collect(as_={record.__qualname__}): {misfit}, in the row {row!r}") from None

    return convert


def _fields_of(record: Any) -> list[_Field] | None:
    """Return the fields that a record is made of, or None if a class is no record."""
    if not isinstance(record, type):
        return None
    if dataclasses.is_dataclass(record):
        hints, missing = _hints(record), dataclasses.MISSING
        return [
            _Field(one.name, hints[one.name], one.default is missing and one.default_factory is missing)
            for one in dataclasses.fields(record)
            if one.init
        ]
    if issubclass(record, tuple) and (defaults := getattr(record, "_field_defaults", None)) is not None:
        hints, names = _hints(record), getattr(record, "_fields", ())
        return [_Field(name, hints.get(name, Any), name not in defaults) for name in names]
    if is_typeddict(record):
        return [_Field(name, hint, _is_required(record, name)) for name, hint in _hints(record).items()]
    return None


def _is_required(record: Any, name: str) -> bool:
    """Return True if a TypedDict has the key always. Annotations that are texts are not in `__required_keys__`."""
    qualifier = get_origin(get_type_hints(record, include_extras=True)[name])
    return name in record.__required_keys__ if qualifier not in (Required, NotRequired) else qualifier is Required


def _hints(record: type) -> dict[str, Any]:
    try:
        return get_type_hints(record)
    except NameError as error:
        raise ValidationException(
            f"collect(as_={record.__qualname__}): the types of its fields cannot be evaluated: {error}. Define the "
            "classes that they name in a module, not in a function"
        ) from error


def _record(record: Any, names: Sequence[str], kinds: Sequence[t.DataType], path: str) -> Convert:
    fields = _fields_of(record)
    assert fields is not None
    columns = {name: place for place, name in enumerate(names)}
    known = {field.name for field in fields}
    owner = record.__qualname__
    if missing := [field.name for field in fields if field.required and field.name not in columns]:
        raise _Misfit(f"{owner} has fields without a column: {', '.join(path + name for name in missing)}")
    if surplus := [name for name in names if name not in known]:
        raise _Misfit(f"{owner} has no field for these columns: {', '.join(path + name for name in surplus)}")
    parts = [
        (field.name, columns[field.name], _field(field.annotation, kinds[columns[field.name]], path + field.name))
        for field in fields
        if field.name in columns
    ]

    def make(row: Any) -> Any:
        return record(**{name: convert(row[place]) for name, place, convert in parts})

    return make


def _field(annotation: Any, kind: t.DataType, path: str) -> Convert:
    """Return the conversion of the values of a column, with NULL only where the annotation allows None."""
    allowed, convert = _conversion(annotation, kind, path)
    if allowed:
        return lambda value: None if value is None else convert(value)

    def convert_present(value: Any) -> Any:
        if value is None:
            raise _Misfit(f"{path} is NULL, and its field is annotated {_name(annotation)}, which does not allow None")
        return convert(value)

    return convert_present


def _conversion(annotation: Any, kind: t.DataType, path: str) -> tuple[bool, Convert]:
    """Return True if an annotation allows None, and the conversion of other values."""
    if annotation is Any or annotation is object or isinstance(annotation, TypeVar):
        return True, _same
    if get_origin(annotation) in (Union, types.UnionType):
        args = get_args(annotation)
        present = [arg for arg in args if arg is not type(None)]
        return len(present) < len(args), _first_that_fits(present, annotation, kind, path)
    return annotation is type(None), _present(annotation, kind, path)


def _first_that_fits(annotations: Sequence[Any], whole: Any, kind: t.DataType, path: str) -> Convert:
    """Return the conversion for the first type of a union that fits a column."""
    if len(annotations) == 1:
        return _present(annotations[0], kind, path)
    for annotation in annotations:
        try:
            return _present(annotation, kind, path)
        except _Misfit:
            continue
    raise _misfit(whole, kind, path)


def _present(annotation: Any, kind: t.DataType, path: str) -> Convert:
    """Return the conversion of the values of a column that are not NULL."""
    origin, args = get_origin(annotation) or annotation, get_args(annotation)
    match kind:
        case t.RawType() | t.UserDefinedType() | t.NullType():
            return _same
        case t.RowType():
            return _row(annotation, kind, path)
        case t.ArrayType() if origin in (list, Sequence):
            element = _field(args[0] if args else Any, kind.element_type, f"{path}[]")
            return lambda value: [element(one) for one in value]
        case t.MapType() | t.MultisetType() if origin in (dict, Mapping):
            parts = (
                (kind.key_type, kind.value_type) if isinstance(kind, t.MapType) else (kind.element_type, t.IntType())
            )
            key, part = (
                _field(one, other, f"{path}{{}}") for one, other in zip(args or (Any, Any), parts, strict=True)
            )
            return lambda value: {key(one): part(other) for one, other in value.items()}
        case t.IntegralType() if annotation is float:
            return float
    expected = next((python for sql, python in _PYTHON if isinstance(kind, sql)), None)
    if expected is None or annotation is not expected:
        raise _misfit(annotation, kind, path)
    return _same


def _row(annotation: Any, kind: t.RowType, path: str) -> Convert:
    if annotation is Row:
        return _same
    if _fields_of(annotation) is None:
        raise _misfit(annotation, kind, path)
    return _record(annotation, kind.names, kind.field_types(), f"{path}.")


def _same(value: Any) -> Any:
    return value


_PYTHON: tuple[tuple[type, type], ...] = (
    (t.CharType, str),
    (t.VarCharType, str),
    (t.BinaryType, bytes),
    (t.VarBinaryType, bytes),
    (t.BooleanType, bool),
    (t.IntegralType, int),
    (t.DecimalType, Decimal),
    (t.FloatType, float),
    (t.DoubleType, float),
    (t.DateType, datetime.date),
    (t.TimeType, datetime.time),
    (t.TimestampType, datetime.datetime),
    (t.LocalZonedTimestampType, datetime.datetime),
    (t.DayTimeIntervalType, datetime.timedelta),
)


def _misfit(annotation: Any, kind: t.DataType, path: str) -> _Misfit:
    return _Misfit(f"{path} is {kind.as_sql()}, whose values are {_python_of(kind)}, not {_name(annotation)}")


def _python_of(kind: t.DataType) -> str:
    if isinstance(kind, t.RowType):
        return f"{_RECORDS}, or a Row"
    if isinstance(kind, t.ArrayType):
        return "a list"
    if isinstance(kind, (t.MapType, t.MultisetType)):
        return "a dict"
    return next((python.__name__ for sql, python in _PYTHON if isinstance(kind, sql)), "of no Python type; use Any")


def _name(annotation: Any) -> str:
    return annotation.__qualname__ if type(annotation) is type else str(annotation).replace("typing.", "")
