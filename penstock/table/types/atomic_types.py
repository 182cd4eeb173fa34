"""The types of SQL without parts, and the base of all types."""

from __future__ import annotations

import copy
from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar, Self

from penstock.base.arguments import check_arguments

if TYPE_CHECKING:
    from penstock.common.type_information import TypeInformation

LONGEST = 0x7FFFFFFF
"""Length of a STRING and of BYTES."""


class DataType:
    """A type, with or without NULL. Types are immutable, and equal if they express the same."""

    parts: ClassVar[tuple[str, ...]] = ()
    """Names of the attributes that make up a type besides its class and nullability."""
    sql: ClassVar[str] = ""
    """Name in SQL."""

    def __init__(self, nullable: bool = True) -> None:
        self._nullable = nullable

    def nullable(self) -> Self:
        """Return the same type with NULL."""
        return self._as_nullable(True)

    def not_null(self) -> Self:
        """Return the same type without NULL."""
        return self._as_nullable(False)

    @property
    def is_nullable(self) -> bool:
        """True if values of this type may be NULL."""
        return self._nullable

    def _as_nullable(self, nullable: bool) -> Self:
        if self._nullable is nullable:
            return self
        same = copy.copy(self)
        same._nullable = nullable
        return same

    def bridged_to(self, conversion_cls: Any) -> Self:
        """Ignore the class: Java's classes have no meaning here."""
        return self

    @classmethod
    def type_name(cls) -> str:
        """Return the name of the class in upper case, without Type: `BIGINT` for BigIntType."""
        return cls.__name__.removesuffix("Type").upper()

    def to_type_information(self) -> TypeInformation:
        """Return the corresponding type of streams and formats."""
        from penstock.table.types.stream_types import type_information

        return type_information(self)

    def need_conversion(self) -> bool:
        """Return True if values are stored in their own form, which `to_sql_type` makes."""
        from penstock.table.types.storage_forms import has_storage_form

        return has_storage_form(self)

    def to_sql_type(self, obj: Any) -> Any:
        """Return the form in which a value is stored: days, microseconds, lists, dicts and tuples."""
        from penstock.table.types.storage_forms import to_storage

        return to_storage(self, obj)

    def from_sql_type(self, obj: Any) -> Any:
        """Return the value of a stored form."""
        from penstock.table.types.storage_forms import from_storage

        return from_storage(self, obj)

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
        """Return the type in SQL, with NOT NULL if it excludes NULL.

        >>> DecimalType(10, 2).not_null().as_sql()
        'DECIMAL(10, 2) NOT NULL'
        """
        return self.summary() + ("" if self._nullable else " NOT NULL")

    def summary(self) -> str:
        """Return the type in SQL, without NOT NULL."""
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
    """True and false."""

    sql = "BOOLEAN"


class TinyIntType(IntegralType):
    """Whole numbers of 8 bits."""

    sql, bits = "TINYINT", 8


class SmallIntType(IntegralType):
    """Whole numbers of 16 bits."""

    sql, bits = "SMALLINT", 16


class IntType(IntegralType):
    """Whole numbers of 32 bits."""

    sql, bits = "INT", 32


class BigIntType(IntegralType):
    """Whole numbers of 64 bits."""

    sql, bits = "BIGINT", 64


class FloatType(FractionalType):
    """Numbers of single precision."""

    sql = "FLOAT"


class DoubleType(FractionalType):
    """Numbers of double precision."""

    sql = "DOUBLE"


@check_arguments
class DecimalType(FractionalType):
    """Decimal numbers of at most `precision` digits, `scale` of them after the point."""

    sql, parts = "DECIMAL", ("precision", "scale")

    def __init__(self, precision: int = 10, scale: int = 0, nullable: bool = True) -> None:
        if not 1 <= precision <= 38 or not 0 <= scale <= precision:
            raise ValueError(
                f"DECIMAL({precision}, {scale}) does not exist: the precision must be between 1 and 38, and the "
                "scale between 0 and the precision"
            )
        super().__init__(nullable)
        self.precision, self.scale = precision, scale

    def summary(self) -> str:
        return f"DECIMAL({self.precision}, {self.scale})"


@check_arguments
class _SizedType(AtomicType):
    """Texts and bytes with a length."""

    parts = ("length",)
    unlimited: ClassVar[str | None] = None

    def __init__(self, length: int = 1, nullable: bool = True) -> None:
        if not 0 <= length <= LONGEST:
            raise ValueError(f"the length of a {self.sql} must be between 1 and {LONGEST}, not {length}")
        super().__init__(nullable)
        self.length = length

    def summary(self) -> str:
        return self.unlimited if self.length == LONGEST and self.unlimited else f"{self.sql}({self.length})"


class CharType(_SizedType):
    """Texts of a fixed length."""

    sql = "CHAR"


class VarCharType(_SizedType):
    """Texts of at most a given length."""

    sql, unlimited = "VARCHAR", "STRING"


class BinaryType(_SizedType):
    """Bytes of a fixed length."""

    sql = "BINARY"


class VarBinaryType(_SizedType):
    """Bytes of at most a given length."""

    sql, unlimited = "VARBINARY", "BYTES"


class DateType(AtomicType):
    """Days of the calendar."""

    sql = "DATE"


@check_arguments
class _PreciseType(AtomicType):
    """Moments with a number of digits after the second. Values are kept in microseconds."""

    parts = ("precision",)

    def __init__(self, precision: int = 6, nullable: bool = True) -> None:
        if not 0 <= precision <= 9:
            raise ValueError(f"the precision of {self.sql} must be between 0 and 9, not {precision}")
        super().__init__(nullable)
        self.precision = precision

    def summary(self) -> str:
        return f"{self.sql}({self.precision})"


@check_arguments
class TimeType(_PreciseType):
    """Times of day."""

    sql = "TIME"

    def __init__(self, precision: int = 0, nullable: bool = True) -> None:
        super().__init__(precision, nullable)


class TimestampType(_PreciseType):
    """Moments without a zone."""

    sql = "TIMESTAMP"


class LocalZonedTimestampType(_PreciseType):
    """A moment in time, shown in the zone of the session."""

    sql = "TIMESTAMP_LTZ"


class ZonedTimestampType(_PreciseType):
    """A moment with the zone in which it was written. As in Flink, no column of a table has this type."""

    sql = "TIMESTAMP WITH TIME ZONE"

    def summary(self) -> str:
        return f"TIMESTAMP({self.precision}) WITH TIME ZONE"


class Resolution(Enum):
    """Units of intervals."""

    YEAR = "YEAR"
    MONTH = "MONTH"
    DAY = "DAY"
    HOUR = "HOUR"
    MINUTE = "MINUTE"
    SECOND = "SECOND"


@check_arguments
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


@check_arguments
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
