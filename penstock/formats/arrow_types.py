"""The mapping of row types to Arrow types, in which Parquet and ORC files are read and written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.common.basic_types import (
    BigDecimalTypeInfo,
    BooleanTypeInfo,
    DateTypeInfo,
    DoubleTypeInfo,
    FloatTypeInfo,
    InstantTypeInfo,
    IntegerTypeInfo,
    TimestampTypeInfo,
    TimeTypeInfo,
)
from penstock.common.composite_types import ByteArrayTypeInfo, ListTypeInfo, MapTypeInfo, RowTypeInfo, TupleTypeInfo
from penstock.common.time import Instant
from penstock.common.type_information import TypeInformation
from penstock.common.typeinfo import BasicTypeInfo, Types
from penstock.common.types import make_row
from penstock.errors import SchemaMismatch
from penstock.formats.date_texts import as_utc
from penstock.formats.decimal_values import DecimalTypeInfo
from penstock.formats.format_libraries import pyarrow

Convert = Callable[[Any], Any]
ArrowType = Any

_INTEGERS = {"b": "int8", "h": "int16", "i": "int32", "q": "int64"}
_NANOS = 1_000_000_000


@dataclass(frozen=True, repr=False)
class SymbolTypeInfo(BasicTypeInfo):
    """The symbols of an enum: strings, which parquet-avro stores without marking them as text."""


# --- writing ---
def arrow_type_of(declared: TypeInformation, utc: bool = False) -> ArrowType:
    """Return the Arrow type in which values are written. If `utc`, times are marked as being of UTC."""
    arrow = pyarrow()
    for kind, make in _SIMPLE:
        if isinstance(declared, kind):
            return make(arrow, declared, utc)
    if isinstance(declared, ListTypeInfo):
        return arrow.list_(arrow_type_of(declared.elem_type, utc))
    if isinstance(declared, MapTypeInfo):
        return arrow.map_(arrow_type_of(declared.key_type, utc), arrow_type_of(declared.value_type, utc))
    if isinstance(declared, (RowTypeInfo, TupleTypeInfo)) and declared.field_types:
        fields = zip(names_of(declared), declared.field_types, strict=True)
        return arrow.struct([arrow.field(name, arrow_type_of(part, utc)) for name, part in fields])
    raise TypeError(
        f"{declared.notation} has no form in a columnar file; allowed are basic types, dates and times, bytes, "
        "and lists, maps and rows of these"
    )


def names_of(declared: RowTypeInfo | TupleTypeInfo) -> tuple[str, ...]:
    """Return the names of a row's fields; f0, f1, … for a tuple."""
    if isinstance(declared, RowTypeInfo):
        return tuple(declared.get_field_names())
    return tuple(f"f{index}" for index in range(declared.get_arity()))


_SIMPLE: tuple[tuple[type, Callable[[Any, Any, bool], ArrowType]], ...] = (
    (BooleanTypeInfo, lambda arrow, declared, utc: arrow.bool_()),
    (IntegerTypeInfo, lambda arrow, declared, utc: getattr(arrow, _INTEGERS[declared.typecode])()),
    (FloatTypeInfo, lambda arrow, declared, utc: arrow.float32()),
    (DoubleTypeInfo, lambda arrow, declared, utc: arrow.float64()),
    (DecimalTypeInfo, lambda arrow, declared, utc: arrow.decimal128(declared.precision, declared.scale)),
    (BigDecimalTypeInfo, lambda arrow, declared, utc: arrow.decimal128(38, 18)),
    (InstantTypeInfo, lambda arrow, declared, utc: arrow.timestamp("ns", "UTC")),
    (BasicTypeInfo, lambda arrow, d, utc: arrow.decimal128(38, 0) if d.python_class is int else arrow.string()),
    (DateTypeInfo, lambda arrow, declared, utc: arrow.date32()),
    (TimeTypeInfo, lambda arrow, declared, utc: arrow.time64("us")),
    (TimestampTypeInfo, lambda arrow, declared, utc: arrow.timestamp("us", "UTC" if utc else None)),
    (ByteArrayTypeInfo, lambda arrow, declared, utc: arrow.binary()),
)


def to_arrow(declared: TypeInformation) -> Convert | None:
    """Return the function that converts a value for Arrow; None if no conversion is needed."""
    if isinstance(declared, InstantTypeInfo):
        return lambda value: value.seconds * _NANOS + value.nanos
    if isinstance(declared, TimestampTypeInfo):
        return as_utc
    if isinstance(declared, MapTypeInfo):
        key, part = _or_same(to_arrow(declared.key_type)), _around_none(to_arrow(declared.value_type))
        return lambda value: [(key(k), part(v)) for k, v in value.items()]
    if isinstance(declared, (RowTypeInfo, TupleTypeInfo)):
        parts = [_around_none(to_arrow(part)) for part in declared.field_types]
        return lambda value: tuple([convert(part) for convert, part in zip(parts, value, strict=True)])
    if isinstance(declared, ListTypeInfo):
        return _each(to_arrow(declared.elem_type))
    return None


def _or_same(convert: Convert | None) -> Convert:
    return convert or (lambda value: value)


def _each(convert: Convert | None) -> Convert | None:
    if convert is None:
        return None
    around = _around_none(convert)
    return lambda values: [around(value) for value in values]


def _around_none(convert: Convert | None) -> Convert:
    if convert is None:
        return lambda value: value
    return lambda value: None if value is None else convert(value)


def convert_column(values: Sequence[Any], convert: Convert | None) -> Sequence[Any]:
    """Convert every value of a column except None."""
    return values if convert is None else [None if value is None else convert(value) for value in values]


# --- reading ---
def from_arrow(declared: TypeInformation) -> Convert | None:
    """Return the function that converts a value from `values_as`; None if no conversion is needed."""
    if isinstance(declared, BasicTypeInfo):
        return _basic_from_arrow(declared)
    if isinstance(declared, MapTypeInfo):
        key = _or_same(from_arrow(declared.key_type))
        part = _around_none(from_arrow(declared.value_type))
        return lambda value: {key(k): part(v) for k, v in value}
    if isinstance(declared, (RowTypeInfo, TupleTypeInfo)):
        return _record_from_arrow(declared)
    if isinstance(declared, ListTypeInfo) and not isinstance(declared, ByteArrayTypeInfo):
        return _each(from_arrow(declared.elem_type))
    return None


def _basic_from_arrow(declared: BasicTypeInfo) -> Convert | None:
    if isinstance(declared, InstantTypeInfo):
        return lambda value: Instant(*divmod(value, _NANOS))
    if isinstance(declared, DecimalTypeInfo):
        return declared.round_value
    return int if declared.name == "BIG_INT" else None


def _record_from_arrow(declared: RowTypeInfo | TupleTypeInfo) -> Convert:
    names = names_of(declared)
    parts = [_around_none(from_arrow(part)) for part in declared.field_types]
    fields = list(zip(names, parts, strict=True))
    if isinstance(declared, TupleTypeInfo):
        return lambda value: tuple([convert(value[name]) for name, convert in fields])
    return lambda value: make_row(names, tuple([convert(value[name]) for name, convert in fields]))


def readable_as(found: ArrowType, wanted: TypeInformation, column: str) -> ArrowType:
    """Return the type to which a file's column is cast before its values are read. The cast loses no values."""
    arrow = pyarrow()
    kinds = arrow.types
    if kinds.is_dictionary(found):
        return readable_as(found.value_type, wanted, column)
    if isinstance(wanted, (RowTypeInfo, TupleTypeInfo)) and kinds.is_struct(found):
        return _readable_struct(found, wanted, column)
    if isinstance(wanted, MapTypeInfo) and kinds.is_map(found):
        key = readable_as(found.key_type, wanted.key_type, f"{column}.key")
        return arrow.map_(key, readable_as(found.item_type, wanted.value_type, f"{column}.value"))
    if _is_list(kinds, found) and isinstance(wanted, ListTypeInfo) and not isinstance(wanted, ByteArrayTypeInfo):
        return arrow.list_(readable_as(found.value_type, wanted.elem_type, f"{column}[]"))
    for kind, suits in _SUITS:
        if isinstance(wanted, kind):
            if kinds.is_null(found) or suits(kinds, found, wanted):
                return _input_type(arrow, found, wanted)
            break
    raise SchemaMismatch(f"column '{column}': found {found}, wanted {wanted.notation}")


def _readable_struct(found: ArrowType, wanted: RowTypeInfo | TupleTypeInfo, column: str) -> ArrowType:
    arrow = pyarrow()
    targets = {field.name: field.type for field in found}
    for name, part in zip(names_of(wanted), wanted.field_types, strict=True):
        if name not in targets:
            raise SchemaMismatch(f"column '{column}.{name}': not there, wanted {part.notation}; found {found}")
        targets[name] = readable_as(targets[name], part, f"{column}.{name}")
    return arrow.struct([arrow.field(name, target) for name, target in targets.items()])


def _is_list(kinds: Any, found: ArrowType) -> bool:
    return bool(kinds.is_list(found) or kinds.is_large_list(found) or kinds.is_fixed_size_list(found))


def _fits_integer(kinds: Any, found: ArrowType, wanted: IntegerTypeInfo) -> bool:
    bits = {"b": 8, "h": 16, "i": 32, "q": 64}[wanted.typecode]
    if kinds.is_signed_integer(found):
        return bool(found.bit_width <= bits)
    return bool(kinds.is_unsigned_integer(found) and found.bit_width < bits)


def _is_exact(kinds: Any, found: ArrowType, wanted: TypeInformation) -> bool:
    return bool(kinds.is_decimal(found) or kinds.is_integer(found))


def _is_text(kinds: Any, found: ArrowType, wanted: TypeInformation) -> bool:
    return bool(kinds.is_string(found) or kinds.is_large_string(found))


def _is_bytes(kinds: Any, found: ArrowType, wanted: TypeInformation) -> bool:
    return bool(kinds.is_binary(found) or kinds.is_large_binary(found) or kinds.is_fixed_size_binary(found))


def _basic_suits(kinds: Any, found: ArrowType, wanted: BasicTypeInfo) -> bool:
    if wanted.python_class is int:
        return bool(kinds.is_integer(found) or (kinds.is_decimal(found) and found.scale == 0))
    return _is_text(kinds, found, wanted)


_SUITS: tuple[tuple[type, Callable[[Any, ArrowType, Any], bool]], ...] = (
    (BooleanTypeInfo, lambda kinds, found, wanted: kinds.is_boolean(found)),
    (IntegerTypeInfo, _fits_integer),
    (FloatTypeInfo, lambda kinds, found, wanted: kinds.is_floating(found) and found.bit_width <= 32),
    (DoubleTypeInfo, lambda kinds, found, wanted: kinds.is_floating(found)),
    (BigDecimalTypeInfo, _is_exact),
    (InstantTypeInfo, lambda kinds, found, wanted: kinds.is_timestamp(found)),
    (SymbolTypeInfo, lambda kinds, found, wanted: _is_text(kinds, found, wanted) or _is_bytes(kinds, found, wanted)),
    (BasicTypeInfo, _basic_suits),
    (DateTypeInfo, lambda kinds, found, wanted: kinds.is_date(found)),
    (TimeTypeInfo, lambda kinds, found, wanted: kinds.is_time(found)),
    (TimestampTypeInfo, lambda kinds, found, wanted: kinds.is_timestamp(found)),
    (ByteArrayTypeInfo, _is_bytes),
)


def _input_type(arrow: Any, found: ArrowType, wanted: TypeInformation) -> ArrowType:
    if isinstance(wanted, InstantTypeInfo):
        return arrow.timestamp("ns", "UTC")
    if isinstance(wanted, BigDecimalTypeInfo) and arrow.types.is_integer(found):
        return arrow.decimal128(20, 0)
    if isinstance(wanted, BigDecimalTypeInfo) or getattr(wanted, "name", "") == "BIG_INT":
        return found
    return arrow_type_of(wanted)


def values_as(column: Any, cast: ArrowType) -> list[Any]:
    """Return the values of a column, cast to the type from `readable_as`. Moments become nanoseconds."""
    numbers, column = _with_moments_as_numbers(cast), cast_as(column, cast)
    return list((column if numbers is cast else column.cast(numbers)).to_pylist())


def cast_as(column: Any, cast: ArrowType) -> Any:
    """Cast a column of a file to the type from `readable_as`."""
    if column.type == cast:
        return column
    return column.cast(cast, safe=_with_moments_as_numbers(cast) is not cast)  # only fractions of µs may be lost


def _with_moments_as_numbers(cast: ArrowType) -> ArrowType:
    """Return the type with its timestamps of nanoseconds replaced by numbers; the same object if it has none."""
    arrow = pyarrow()
    kinds = arrow.types
    if kinds.is_timestamp(cast):
        return arrow.int64() if cast.unit == "ns" else cast
    if kinds.is_list(cast):
        inner = _with_moments_as_numbers(cast.value_type)
        return cast if inner == cast.value_type else arrow.list_(inner)
    if kinds.is_map(cast):
        key, item = _with_moments_as_numbers(cast.key_type), _with_moments_as_numbers(cast.item_type)
        return cast if key == cast.key_type and item == cast.item_type else arrow.map_(key, item)
    if kinds.is_struct(cast):
        fields = [arrow.field(field.name, _with_moments_as_numbers(field.type)) for field in cast]
        return cast if [field.type for field in fields] == [field.type for field in cast] else arrow.struct(fields)
    return cast


def type_from(found: ArrowType, column: str) -> TypeInformation:
    """Return the type of a column from the file's schema."""
    kinds = pyarrow().types
    if kinds.is_dictionary(found):
        return type_from(found.value_type, column)
    if kinds.is_struct(found):
        return Types.ROW_NAMED([f.name for f in found], [type_from(f.type, f"{column}.{f.name}") for f in found])
    if kinds.is_map(found):
        return Types.MAP(type_from(found.key_type, f"{column}.key"), type_from(found.item_type, f"{column}.value"))
    if _is_list(kinds, found):
        return Types.LIST(type_from(found.value_type, f"{column}[]"))
    return _simple_type_from(found, column)


def _simple_type_from(found: ArrowType, column: str) -> TypeInformation:
    kinds = pyarrow().types
    if kinds.is_decimal(found):
        return Types.BIG_DEC()
    for candidate in _CANDIDATES:
        suits = next(suits for kind, suits in _SUITS if isinstance(candidate, kind))
        if suits(kinds, found, candidate):
            return candidate
    if kinds.is_null(found):
        return Types.STRING()
    raise SchemaMismatch(f"column '{column}': found {found}, which has no corresponding type")


_CANDIDATES: tuple[TypeInformation, ...] = (
    Types.BOOLEAN(),
    Types.BYTE(),
    Types.SHORT(),
    Types.INT(),
    Types.LONG(),
    Types.BIG_INT(),
    Types.FLOAT(),
    Types.DOUBLE(),
    Types.STRING(),
    Types.SQL_DATE(),
    Types.SQL_TIME(),
    Types.SQL_TIMESTAMP(),
    Types.PRIMITIVE_ARRAY(Types.BYTE()),
)


def holds_times(declared: TypeInformation) -> bool:
    """Return True if a type contains a time of day."""
    return holds(declared, TimeTypeInfo)


def holds(declared: TypeInformation, kind: type[TypeInformation]) -> bool:
    """Return True if a type is of a kind, or contains one of that kind."""
    parts: list[Any] = [getattr(declared, name, None) for name in ("elem_type", "key_type", "value_type")]
    parts.extend(getattr(declared, "field_types", ()))
    return isinstance(declared, kind) or any(holds(part, kind) for part in parts if isinstance(part, TypeInformation))
