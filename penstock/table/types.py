"""DataTypes: the types of SQL, by their names, with their Arrow form and the type that streams know."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Sequence
from enum import Enum
from typing import Any, ClassVar, Self

from penstock.common.types import Row, RowKind

__all__ = [
    "ArrayType",
    "AtomicType",
    "BigIntType",
    "BinaryType",
    "BooleanType",
    "CharType",
    "DataType",
    "DataTypes",
    "DateType",
    "DayTimeIntervalType",
    "DecimalType",
    "DoubleType",
    "FloatType",
    "FractionalType",
    "IntType",
    "IntegralType",
    "ListViewType",
    "LocalZonedTimestampType",
    "MapType",
    "MapViewType",
    "MultisetType",
    "NullType",
    "NumericType",
    "Resolution",
    "Row",
    "RowField",
    "RowKind",
    "RowType",
    "SmallIntType",
    "TimeType",
    "TimestampType",
    "TinyIntType",
    "VarBinaryType",
    "VarCharType",
    "YearMonthIntervalType",
]

LONGEST = 0x7FFFFFFF
"""The length of a STRING and of BYTES."""


class DataType:
    """A type and whether a value of it may be NULL. Types are never changed, and are equal if they say the same."""

    parts: ClassVar[tuple[str, ...]] = ()
    """The attributes that make up a type beside its class and nullability."""
    sql: ClassVar[str] = ""
    """The name in SQL."""

    def __init__(self, nullable: bool = True) -> None:
        self._nullable = nullable

    def nullable(self) -> Self:
        """The same type, with NULL."""
        return self._as_nullable(True)

    def not_null(self) -> Self:
        """The same type, without NULL."""
        return self._as_nullable(False)

    def _as_nullable(self, nullable: bool) -> Self:
        if self._nullable is nullable:
            return self
        same = copy.copy(self)
        same._nullable = nullable
        return same

    def bridged_to(self, conversion_cls: Any) -> Self:
        """Which class Java would use has no meaning here."""
        return self

    @classmethod
    def type_name(cls) -> str:
        return cls.__name__.removesuffix("Type").upper()

    def _identity(self) -> tuple[Any, ...]:
        return (type(self), self._nullable, *(getattr(self, part) for part in self.parts))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DataType) and self._identity() == other._identity()

    def __hash__(self) -> int:
        return hash(self._identity())

    def __repr__(self) -> str:
        parts = [repr(getattr(self, part)) for part in self.parts]
        return f"{type(self).__name__}({', '.join([*parts, str(self._nullable).lower()])})"

    def __str__(self) -> str:
        return self.type_name()

    def as_sql(self) -> str:
        """How SQL writes it, with NOT NULL if it has no NULL.

        >>> DataTypes.DECIMAL(10, 2).not_null().as_sql()
        'DECIMAL(10, 2) NOT NULL'
        """
        return self.summary() + ("" if self._nullable else " NOT NULL")

    def summary(self) -> str:
        """How SQL writes it, whether it has NULL or not."""
        return self.sql


class AtomicType(DataType):
    """A type without parts."""


class NumericType(AtomicType):
    """Numbers."""


class IntegralType(NumericType):
    """Whole numbers of a fixed width."""

    bits: ClassVar[int] = 0


class FractionalType(NumericType):
    """Numbers with a fraction."""


class NullType(AtomicType):
    """The type of NULL itself."""

    sql = "NULL"


class BooleanType(AtomicType):
    sql = "BOOLEAN"


class TinyIntType(IntegralType):
    sql, bits = "TINYINT", 8


class SmallIntType(IntegralType):
    sql, bits = "SMALLINT", 16


class IntType(IntegralType):
    sql, bits = "INT", 32


class BigIntType(IntegralType):
    sql, bits = "BIGINT", 64


class FloatType(FractionalType):
    sql = "FLOAT"


class DoubleType(FractionalType):
    sql = "DOUBLE"


class DecimalType(FractionalType):
    """Decimal numbers of at most `precision` digits, `scale` of them after the point."""

    sql, parts = "DECIMAL", ("precision", "scale")

    def __init__(self, precision: int = 10, scale: int = 0, nullable: bool = True) -> None:
        if not 1 <= precision <= 38 or not 0 <= scale <= precision:
            raise ValueError(
                f"DECIMAL({precision}, {scale}) does not exist: the precision is 1 to 38, the scale at most as much"
            )
        super().__init__(nullable)
        self.precision, self.scale = precision, scale

    def summary(self) -> str:
        return f"DECIMAL({self.precision}, {self.scale})"


class _SizedType(AtomicType):
    """Texts and bytes with a length."""

    parts = ("length",)
    unlimited: ClassVar[str | None] = None

    def __init__(self, length: int = 1, nullable: bool = True) -> None:
        if not 0 <= length <= LONGEST:
            raise ValueError(f"a {self.sql} has a length from 1 to {LONGEST}, not {length}")
        super().__init__(nullable)
        self.length = length

    def summary(self) -> str:
        return self.unlimited if self.length == LONGEST and self.unlimited else f"{self.sql}({self.length})"


class CharType(_SizedType):
    sql = "CHAR"


class VarCharType(_SizedType):
    sql, unlimited = "VARCHAR", "STRING"


class BinaryType(_SizedType):
    sql = "BINARY"


class VarBinaryType(_SizedType):
    sql, unlimited = "VARBINARY", "BYTES"


class DateType(AtomicType):
    sql = "DATE"


class _PreciseType(AtomicType):
    """Moments with a number of digits after the second. Values are kept in microseconds."""

    parts = ("precision",)

    def __init__(self, precision: int = 6, nullable: bool = True) -> None:
        if not 0 <= precision <= 9:
            raise ValueError(f"{self.sql} has a precision from 0 to 9, not {precision}")
        super().__init__(nullable)
        self.precision = precision

    def summary(self) -> str:
        return f"{self.sql}({self.precision})"


class TimeType(_PreciseType):
    sql = "TIME"

    def __init__(self, precision: int = 0, nullable: bool = True) -> None:
        super().__init__(precision, nullable)


class TimestampType(_PreciseType):
    sql = "TIMESTAMP"


class LocalZonedTimestampType(_PreciseType):
    """A moment in the world, shown in the zone of the session."""

    sql = "TIMESTAMP_LTZ"


class Resolution(Enum):
    """Units of intervals."""

    YEAR = "YEAR"
    MONTH = "MONTH"
    DAY = "DAY"
    HOUR = "HOUR"
    MINUTE = "MINUTE"
    SECOND = "SECOND"


class DayTimeIntervalType(AtomicType):
    """A span of milliseconds."""

    parts = ("first", "last")

    def __init__(
        self, first: Resolution = Resolution.DAY, last: Resolution = Resolution.SECOND, nullable: bool = True
    ) -> None:
        super().__init__(nullable)
        self.first, self.last = first, last

    def summary(self) -> str:
        return _interval(self.first, self.last)


class YearMonthIntervalType(AtomicType):
    """A span of months."""

    parts = ("first", "last")

    def __init__(
        self, first: Resolution = Resolution.YEAR, last: Resolution = Resolution.MONTH, nullable: bool = True
    ) -> None:
        super().__init__(nullable)
        self.first, self.last = first, last

    def summary(self) -> str:
        return _interval(self.first, self.last)


def _interval(first: Resolution, last: Resolution) -> str:
    return f"INTERVAL {first.value}" + ("" if first is last else f" TO {last.value}")


class ArrayType(DataType):
    parts = ("element_type",)

    def __init__(self, element_type: DataType, nullable: bool = True) -> None:
        super().__init__(nullable)
        self.element_type = element_type

    def summary(self) -> str:
        return f"ARRAY<{self.element_type.as_sql()}>"


class ListViewType(ArrayType):
    """Inside the accumulator of a function: a list that is kept in state of its own."""


class MultisetType(DataType):
    """How often each element occurs."""

    parts = ("element_type",)

    def __init__(self, element_type: DataType, nullable: bool = True) -> None:
        super().__init__(nullable)
        self.element_type = element_type

    def summary(self) -> str:
        return f"MULTISET<{self.element_type.as_sql()}>"


class MapType(DataType):
    parts = ("key_type", "value_type")

    def __init__(self, key_type: DataType, value_type: DataType, nullable: bool = True) -> None:
        super().__init__(nullable)
        self.key_type, self.value_type = key_type, value_type

    def summary(self) -> str:
        return f"MAP<{self.key_type.as_sql()}, {self.value_type.as_sql()}>"


class MapViewType(MapType):
    """Inside the accumulator of a function: a map that is kept in state of its own."""


class RowField:
    """A field of a ROW."""

    def __init__(self, name: str, data_type: DataType, description: str | None = None) -> None:
        if not isinstance(data_type, DataType):
            raise TypeError(f"the type of field {name} must be a DataType, such as DataTypes.INT(), not {data_type!r}")
        self.name, self.data_type, self.description = name, data_type, description

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RowField) and (self.name, self.data_type) == (other.name, other.data_type)

    def __hash__(self) -> int:
        return hash((self.name, self.data_type))

    def __repr__(self) -> str:
        return f"RowField({self.name}, {self.data_type!r})"

    def __iter__(self) -> Iterator[Any]:
        return iter((self.name, self.data_type))


class RowType(DataType):
    parts = ("fields",)

    def __init__(self, fields: Iterable[RowField | Sequence[Any]] = (), nullable: bool = True) -> None:
        super().__init__(nullable)
        self.fields = tuple(field if isinstance(field, RowField) else RowField(*field) for field in fields)

    def summary(self) -> str:
        fields = ", ".join(f"`{field.name}` {field.data_type.as_sql()}" for field in self.fields)
        return f"ROW<{fields}>"

    def add(self, field: RowField | str, data_type: DataType | None = None) -> RowType:
        """Add a field at the end, as PyFlink's does: this changes the type itself."""
        added = field if isinstance(field, RowField) else RowField(field, data_type or NullType())
        self.fields = (*self.fields, added)
        return self

    def field_names(self) -> list[str]:
        return [field.name for field in self.fields]

    def field_types(self) -> list[DataType]:
        return [field.data_type for field in self.fields]

    def __iter__(self) -> Iterator[RowField]:
        return iter(self.fields)

    def __len__(self) -> int:
        return len(self.fields)


class DataTypes:
    """Types by their SQL names.

    >>> DataTypes.ROW([DataTypes.FIELD("n", DataTypes.BIGINT())]).as_sql()
    'ROW<`n` BIGINT>'
    """

    # ruff: noqa: N802

    @staticmethod
    def NULL() -> NullType:
        return NullType()

    @staticmethod
    def STRING(nullable: bool = True) -> VarCharType:
        return VarCharType(LONGEST, nullable)

    @staticmethod
    def CHAR(length: int, nullable: bool = True) -> CharType:
        return CharType(length, nullable)

    @staticmethod
    def VARCHAR(length: int, nullable: bool = True) -> VarCharType:
        return VarCharType(length, nullable)

    @staticmethod
    def BOOLEAN(nullable: bool = True) -> BooleanType:
        return BooleanType(nullable)

    @staticmethod
    def BYTES(nullable: bool = True) -> VarBinaryType:
        return VarBinaryType(LONGEST, nullable)

    @staticmethod
    def BINARY(length: int, nullable: bool = True) -> BinaryType:
        return BinaryType(length, nullable)

    @staticmethod
    def VARBINARY(length: int, nullable: bool = True) -> VarBinaryType:
        return VarBinaryType(length, nullable)

    @staticmethod
    def DECIMAL(precision: int, scale: int, nullable: bool = True) -> DecimalType:
        return DecimalType(precision, scale, nullable)

    @staticmethod
    def TINYINT(nullable: bool = True) -> TinyIntType:
        return TinyIntType(nullable)

    @staticmethod
    def SMALLINT(nullable: bool = True) -> SmallIntType:
        return SmallIntType(nullable)

    @staticmethod
    def INT(nullable: bool = True) -> IntType:
        return IntType(nullable)

    @staticmethod
    def BIGINT(nullable: bool = True) -> BigIntType:
        return BigIntType(nullable)

    @staticmethod
    def FLOAT(nullable: bool = True) -> FloatType:
        return FloatType(nullable)

    @staticmethod
    def DOUBLE(nullable: bool = True) -> DoubleType:
        return DoubleType(nullable)

    @staticmethod
    def DATE(nullable: bool = True) -> DateType:
        return DateType(nullable)

    @staticmethod
    def TIME(precision: int = 0, nullable: bool = True) -> TimeType:
        return TimeType(precision, nullable)

    @staticmethod
    def TIMESTAMP(precision: int = 6, nullable: bool = True) -> TimestampType:
        return TimestampType(precision, nullable)

    @staticmethod
    def TIMESTAMP_LTZ(precision: int = 6, nullable: bool = True) -> LocalZonedTimestampType:
        return LocalZonedTimestampType(precision, nullable)

    TIMESTAMP_WITH_LOCAL_TIME_ZONE = TIMESTAMP_LTZ

    @staticmethod
    def ARRAY(element_type: DataType, nullable: bool = True) -> ArrayType:
        return ArrayType(element_type, nullable)

    @staticmethod
    def LIST_VIEW(element_type: DataType) -> ListViewType:
        return ListViewType(element_type)

    @staticmethod
    def MAP(key_type: DataType, value_type: DataType, nullable: bool = True) -> MapType:
        return MapType(key_type, value_type, nullable)

    @staticmethod
    def MAP_VIEW(key_type: DataType, value_type: DataType) -> MapViewType:
        return MapViewType(key_type, value_type)

    @staticmethod
    def MULTISET(element_type: DataType, nullable: bool = True) -> MultisetType:
        return MultisetType(element_type, nullable)

    @staticmethod
    def FIELD(name: str, data_type: DataType, description: str | None = None) -> RowField:
        return RowField(name, data_type, description)

    @staticmethod
    def ROW(row_fields: Iterable[RowField | Sequence[Any]] = (), nullable: bool = True) -> RowType:
        return RowType(row_fields, nullable)

    @staticmethod
    def YEAR(precision: int = 2) -> Resolution:
        return Resolution.YEAR

    @staticmethod
    def MONTH() -> Resolution:
        return Resolution.MONTH

    @staticmethod
    def DAY(precision: int = 2) -> Resolution:
        return Resolution.DAY

    @staticmethod
    def HOUR() -> Resolution:
        return Resolution.HOUR

    @staticmethod
    def MINUTE() -> Resolution:
        return Resolution.MINUTE

    @staticmethod
    def SECOND(precision: int = 6) -> Resolution:
        return Resolution.SECOND

    @staticmethod
    def INTERVAL(
        upper_resolution: Resolution, lower_resolution: Resolution | None = None
    ) -> DayTimeIntervalType | YearMonthIntervalType:
        """A span of time: of months, or of days to seconds."""
        lower = lower_resolution or upper_resolution
        months = {Resolution.YEAR, Resolution.MONTH}
        if (upper_resolution in months) is not (lower in months):
            raise ValueError(f"there is no interval from {upper_resolution.value} to {lower.value}")
        kind = YearMonthIntervalType if upper_resolution in months else DayTimeIntervalType
        return kind(upper_resolution, lower)
