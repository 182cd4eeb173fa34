"""DataTypes: the types of SQL, by their names, with their Arrow form and the type that streams know."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from penstock.base.arguments import check_arguments
from penstock.common.types import Row, RowKind
from penstock.table.types.atomic_types import (
    LONGEST,
    AtomicType,
    BigIntType,
    BinaryType,
    BooleanType,
    CharType,
    DataType,
    DateType,
    DayTimeIntervalType,
    DecimalType,
    DoubleType,
    FloatType,
    FractionalType,
    IntegralType,
    IntType,
    LocalZonedTimestampType,
    NullType,
    NumericType,
    Resolution,
    SmallIntType,
    TimestampType,
    TimeType,
    TinyIntType,
    VarBinaryType,
    VarCharType,
    YearMonthIntervalType,
    ZonedTimestampType,
)

__all__ = [
    "LONGEST",
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
    "RawType",
    "Resolution",
    "Row",
    "RowField",
    "RowKind",
    "RowType",
    "SmallIntType",
    "TimeType",
    "TimestampType",
    "TinyIntType",
    "UserDefinedType",
    "VarBinaryType",
    "VarCharType",
    "YearMonthIntervalType",
    "ZonedTimestampType",
]


@check_arguments
class ArrayType(DataType):
    """Lists of elements of one type."""

    parts = ("element_type",)

    def __init__(self, element_type: DataType, nullable: bool = True) -> None:
        super().__init__(nullable)
        self.element_type = element_type

    def summary(self) -> str:
        return f"ARRAY<{self.element_type.as_sql()}>"


class ListViewType(ArrayType):
    """Inside the accumulator of a function: a list that has its own state."""


@check_arguments
class MultisetType(DataType):
    """The number of occurrences of each element."""

    parts = ("element_type",)

    def __init__(self, element_type: DataType, nullable: bool = True) -> None:
        super().__init__(nullable)
        self.element_type = element_type

    def summary(self) -> str:
        return f"MULTISET<{self.element_type.as_sql()}>"


@check_arguments
class MapType(DataType):
    """Maps from keys of one type to values of another."""

    parts = ("key_type", "value_type")

    def __init__(self, key_type: DataType, value_type: DataType, nullable: bool = True) -> None:
        super().__init__(nullable)
        self.key_type, self.value_type = key_type, value_type

    def summary(self) -> str:
        return f"MAP<{self.key_type.as_sql()}, {self.value_type.as_sql()}>"


class MapViewType(MapType):
    """Inside the accumulator of a function: a map that has its own state."""


class RowField:
    """A field of a ROW."""

    @check_arguments
    def __init__(self, name: str, data_type: DataType, description: str | None = None) -> None:
        if not isinstance(name, str):
            raise TypeError(f"the name of a field must be a string, not {name!r}")
        if not isinstance(data_type, DataType):
            raise TypeError(f"the type of field {name} must be a DataType, such as DataTypes.INT(), not {data_type!r}")
        self.name, self.data_type, self.description = name, data_type, description

    def need_conversion(self) -> bool:
        """Return True if values are stored in their own form."""
        return self.data_type.need_conversion()

    def to_sql_type(self, obj: Any) -> Any:
        """Return the form in which a value is stored."""
        return self.data_type.to_sql_type(obj)

    def from_sql_type(self, obj: Any) -> Any:
        """Return the value of a stored form."""
        return self.data_type.from_sql_type(obj)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RowField) and (self.name, self.data_type) == (other.name, other.data_type)

    def __hash__(self) -> int:
        return hash((self.name, self.data_type))

    def __repr__(self) -> str:
        return f"RowField({self.name}, {self.data_type!r}, {self.description or '...'})"

    def __str__(self) -> str:
        return f"RowField({self.name}, {self.data_type})"

    def __iter__(self) -> Iterator[Any]:
        return iter((self.name, self.data_type))


@check_arguments
class RowType(DataType):
    """Fields with names. A field is found by its name or its position.

    >>> DataTypes.ROW([DataTypes.FIELD("n", DataTypes.INT())])["n"].data_type
    IntType(true)
    """

    parts = ("fields",)

    def __init__(self, fields: Iterable[RowField | Sequence[Any]] = (), nullable: bool = True) -> None:
        super().__init__(nullable)
        self.fields = [field if isinstance(field, RowField) else RowField(*field) for field in fields]

    def _identity(self) -> tuple[Any, ...]:
        return (type(self), self._nullable, *self.fields)

    def summary(self) -> str:
        fields = ", ".join(f"`{field.name}` {field.data_type.as_sql()}" for field in self.fields)
        return f"ROW<{fields}>"

    def add(self, field: RowField | str, data_type: DataType | None = None) -> RowType:
        """Add a field at the end, as in PyFlink. This changes the type itself."""
        if not isinstance(field, RowField):
            if data_type is None:
                raise ValueError(f"RowType.add: the field {field!r} needs a type; give a DataType, or a RowField")
            field = RowField(field, data_type)
        self.fields.append(field)
        return self

    @property
    def names(self) -> list[str]:
        """Names of the fields."""
        return [field.name for field in self.fields]

    def field_names(self) -> list[str]:
        """Return the names of the fields."""
        return self.names

    def field_types(self) -> list[DataType]:
        """Return the types of the fields."""
        return [field.data_type for field in self.fields]

    def __iter__(self) -> Iterator[RowField]:
        return iter(self.fields)

    def __len__(self) -> int:
        return len(self.fields)

    def __getitem__(self, key: str | int | slice) -> RowField | RowType:
        if isinstance(key, slice):
            return RowType(self.fields[key])
        if isinstance(key, int) and not isinstance(key, bool):
            if not -len(self) <= key < len(self):
                raise IndexError(f"a ROW with {len(self)} fields has no field {key}")
            return self.fields[key]
        if not isinstance(key, str):
            raise TypeError(f"a field must be given by its name, its position or a slice, not by {key!r}")
        found = next((field for field in self.fields if field.name == key), None)
        if found is None:
            raise KeyError(f"the ROW has no field {key}; it has: {', '.join(self.names)}")
        return found

    def __repr__(self) -> str:
        return f"RowType({','.join(map(repr, self.fields))})"


class RawType(DataType):
    """A Python object that is stored as a whole, in bytes. SQL can only pass it on."""

    def summary(self) -> str:
        return "RAW('[B', '...')"


class UserDefinedType(DataType):
    """A type for objects of a class of your own, which are stored as values of a type of SQL.

    A subclass has `sql_type`, `serialize` and `deserialize`. A class whose attribute `__UDT__` is such a type needs no
    declaration in `from_elements`.
    """

    @classmethod
    def type_name(cls) -> str:
        """Return the name of the class in lower case."""
        return cls.__name__.lower()

    @classmethod
    def sql_type(cls) -> DataType:
        """Return the type of the stored values."""
        raise NotImplementedError(f"{cls.__name__}: a user-defined type must define the method sql_type")

    @classmethod
    def module(cls) -> str:
        """Return the module of the type."""
        return cls.__module__

    @classmethod
    def java_udt(cls) -> str:
        """Return an empty name, because no class of Java corresponds to the type."""
        return ""

    def serialize(self, obj: Any) -> Any:
        """Return the stored value of an object."""
        raise NotImplementedError(f"{type(self).__name__}: a user-defined type must define the method serialize")

    def deserialize(self, datum: Any) -> Any:
        """Return the object of a stored value."""
        raise NotImplementedError(f"{type(self).__name__}: a user-defined type must define the method deserialize")

    def summary(self) -> str:
        return self.sql_type().summary()


@check_arguments
class DataTypes:
    """Types by their SQL names.

    >>> DataTypes.ROW([DataTypes.FIELD("n", DataTypes.BIGINT())]).as_sql()
    'ROW<`n` BIGINT>'
    """

    # ruff: noqa: N802

    @staticmethod
    def NULL() -> NullType:
        """Return the type of NULL itself."""
        return NullType()

    @staticmethod
    def STRING(nullable: bool = True) -> VarCharType:
        """Return the type of texts of any length."""
        return VarCharType(LONGEST, nullable)

    @staticmethod
    def CHAR(length: int, nullable: bool = True) -> CharType:
        """Return the type of texts with `length` characters."""
        return CharType(length, nullable)

    @staticmethod
    def VARCHAR(length: int, nullable: bool = True) -> VarCharType:
        """Return the type of texts with at most `length` characters."""
        return VarCharType(length, nullable)

    @staticmethod
    def BOOLEAN(nullable: bool = True) -> BooleanType:
        """Return the type of TRUE and FALSE."""
        return BooleanType(nullable)

    @staticmethod
    def BYTES(nullable: bool = True) -> VarBinaryType:
        """Return the type of bytes of any length."""
        return VarBinaryType(LONGEST, nullable)

    @staticmethod
    def BINARY(length: int, nullable: bool = True) -> BinaryType:
        """Return the type of `length` bytes."""
        return BinaryType(length, nullable)

    @staticmethod
    def VARBINARY(length: int, nullable: bool = True) -> VarBinaryType:
        """Return the type of at most `length` bytes."""
        return VarBinaryType(length, nullable)

    @staticmethod
    def DECIMAL(precision: int, scale: int, nullable: bool = True) -> DecimalType:
        """Return the type of exact numbers with `precision` digits, of which `scale` are behind the point."""
        return DecimalType(precision, scale, nullable)

    @staticmethod
    def TINYINT(nullable: bool = True) -> TinyIntType:
        """Return the type of whole numbers with 8 bits."""
        return TinyIntType(nullable)

    @staticmethod
    def SMALLINT(nullable: bool = True) -> SmallIntType:
        """Return the type of whole numbers with 16 bits."""
        return SmallIntType(nullable)

    @staticmethod
    def INT(nullable: bool = True) -> IntType:
        """Return the type of whole numbers with 32 bits."""
        return IntType(nullable)

    @staticmethod
    def BIGINT(nullable: bool = True) -> BigIntType:
        """Return the type of whole numbers with 64 bits."""
        return BigIntType(nullable)

    @staticmethod
    def FLOAT(nullable: bool = True) -> FloatType:
        """Return the type of floating-point numbers with 32 bits."""
        return FloatType(nullable)

    @staticmethod
    def DOUBLE(nullable: bool = True) -> DoubleType:
        """Return the type of floating-point numbers with 64 bits."""
        return DoubleType(nullable)

    @staticmethod
    def DATE(nullable: bool = True) -> DateType:
        """Return the type of dates."""
        return DateType(nullable)

    @staticmethod
    def TIME(precision: int = 0, nullable: bool = True) -> TimeType:
        """Return the type of times of day, with `precision` digits of a second."""
        return TimeType(precision, nullable)

    @staticmethod
    def TIMESTAMP(precision: int = 6, nullable: bool = True) -> TimestampType:
        """Return the type of times without a time zone, with `precision` digits of a second."""
        return TimestampType(precision, nullable)

    @staticmethod
    def TIMESTAMP_LTZ(precision: int = 6, nullable: bool = True) -> LocalZonedTimestampType:
        """Return the type of moments, shown in the session's time zone, with `precision` digits of a second."""
        return LocalZonedTimestampType(precision, nullable)

    TIMESTAMP_WITH_LOCAL_TIME_ZONE = TIMESTAMP_LTZ

    @staticmethod
    def ARRAY(element_type: DataType, nullable: bool = True) -> ArrayType:
        """Return the type of arrays of one type of element."""
        return ArrayType(element_type, nullable)

    @staticmethod
    def LIST_VIEW(element_type: DataType) -> ListViewType:
        """Return the type of a ListView in an accumulator."""
        return ListViewType(element_type)

    @staticmethod
    def MAP(key_type: DataType, value_type: DataType, nullable: bool = True) -> MapType:
        """Return the type of maps."""
        return MapType(key_type, value_type, nullable)

    @staticmethod
    def MAP_VIEW(key_type: DataType, value_type: DataType) -> MapViewType:
        """Return the type of a MapView in an accumulator."""
        return MapViewType(key_type, value_type)

    @staticmethod
    def MULTISET(element_type: DataType, nullable: bool = True) -> MultisetType:
        """Return the type of multisets: elements with their number of occurrences."""
        return MultisetType(element_type, nullable)

    @staticmethod
    def FIELD(name: str, data_type: DataType, description: str | None = None) -> RowField:
        """Return a field of a ROW."""
        return RowField(name, data_type, description)

    @staticmethod
    def ROW(row_fields: Iterable[RowField | Sequence[Any]] = (), nullable: bool = True) -> RowType:
        """Return the type of rows with named fields."""
        return RowType(row_fields, nullable)

    @staticmethod
    def YEAR(precision: int = 2) -> Resolution:
        """Return the unit year, for `INTERVAL`."""
        return Resolution.YEAR

    @staticmethod
    def MONTH() -> Resolution:
        """Return the unit month, for `INTERVAL`."""
        return Resolution.MONTH

    @staticmethod
    def DAY(precision: int = 2) -> Resolution:
        """Return the unit day, for `INTERVAL`."""
        return Resolution.DAY

    @staticmethod
    def HOUR() -> Resolution:
        """Return the unit hour, for `INTERVAL`."""
        return Resolution.HOUR

    @staticmethod
    def MINUTE() -> Resolution:
        """Return the unit minute, for `INTERVAL`."""
        return Resolution.MINUTE

    @staticmethod
    def SECOND(precision: int = 6) -> Resolution:
        """Return the unit second, for `INTERVAL`."""
        return Resolution.SECOND

    @staticmethod
    def INTERVAL(
        upper_resolution: Resolution, lower_resolution: Resolution | None = None
    ) -> DayTimeIntervalType | YearMonthIntervalType:
        """Return the type of intervals: of months, or of days to seconds."""
        lower = lower_resolution or upper_resolution
        months = {Resolution.YEAR, Resolution.MONTH}
        if (upper_resolution in months) is not (lower in months):
            raise ValueError(f"there is no interval from {upper_resolution.value} to {lower.value}")
        kind = YearMonthIntervalType if upper_resolution in months else DayTimeIntervalType
        return kind(upper_resolution, lower)
