"""Types as SQL writes them."""

from __future__ import annotations

from collections.abc import Callable

from penstock.errors import SqlParserException, ValidationException
from penstock.table.sql.parse.cursor import Cursor
from penstock.table.sql.parse.tokens import END, STRING
from penstock.table.types.data_types import (
    LONGEST,
    ArrayType,
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
    IntType,
    LocalZonedTimestampType,
    MapType,
    MultisetType,
    NullType,
    Resolution,
    RowField,
    RowType,
    SmallIntType,
    TimestampType,
    TimeType,
    TinyIntType,
    VarBinaryType,
    VarCharType,
    YearMonthIntervalType,
)

_PLAIN: dict[str, Callable[[], DataType]] = {
    "BOOLEAN": BooleanType,
    "TINYINT": TinyIntType,
    "SMALLINT": SmallIntType,
    "INT": IntType,
    "INTEGER": IntType,
    "BIGINT": BigIntType,
    "FLOAT": FloatType,
    "REAL": FloatType,
    "DATE": DateType,
    "STRING": lambda: VarCharType(LONGEST),
    "BYTES": lambda: VarBinaryType(LONGEST),
    "NULL": NullType,
}
_SIZED: dict[str, tuple[Callable[[int], DataType], int]] = {
    "CHAR": (CharType, 1),
    "CHARACTER": (CharType, 1),
    "VARCHAR": (VarCharType, LONGEST),
    "BINARY": (BinaryType, 1),
    "VARBINARY": (VarBinaryType, LONGEST),
    "TIMESTAMP_LTZ": (LocalZonedTimestampType, 6),
}
_UNITS = ("YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND")
_NAMES = [*_PLAIN, *_SIZED, "DOUBLE", "DECIMAL", "DEC", "NUMERIC", "TIME", "TIMESTAMP", "INTERVAL", "ARRAY", "MAP"]
_NAMES += ["MULTISET", "ROW"]


def read_data_type(cursor: Cursor, nullable: bool = True) -> DataType:
    """Parse a type, then NULL or NOT NULL, and perhaps ARRAY or MULTISET."""
    at = cursor.at
    try:
        found = _read_nullability(cursor, _read_plain_type(cursor), nullable)
    except ValueError as problem:
        raise SqlParserException(f"{at}: {problem}") from problem
    while True:
        if cursor.accept("ARRAY"):
            found = _read_nullability(cursor, ArrayType(found.not_null()), nullable)
        elif cursor.accept("MULTISET"):
            found = _read_nullability(cursor, MultisetType(found.not_null()), nullable)
        else:
            return found


def _read_nullability(cursor: Cursor, found: DataType, nullable: bool) -> DataType:
    if cursor.accept("NOT", "NULL"):
        return found.not_null()
    if not cursor.sees("NULL", "ON") and cursor.accept("NULL"):
        return found.nullable()
    return found if nullable else found.not_null()


def _read_plain_type(cursor: Cursor) -> DataType:
    if cursor.sees_name() and cursor.token.upper not in _NAMES:
        cursor.sees_any(*_NAMES)
        raise ValidationException(f"{cursor.at}: {cursor.complaint('a type')}")
    word = cursor.expect_any(*_NAMES)
    if word in _PLAIN:
        return _PLAIN[word]()
    if word in _SIZED:
        return _read_type_with_size(cursor, word)
    return _read_other_type(cursor, word)


def _read_type_with_size(cursor: Cursor, word: str) -> DataType:
    if word in {"CHAR", "CHARACTER"} and cursor.accept("VARYING"):
        word = "VARCHAR"
    make, usual = _SIZED[word]
    return make(_read_size(cursor, usual))


def _read_size(cursor: Cursor, usual: int) -> int:
    if not cursor.accept_symbol("("):
        return usual
    size = cursor.whole_number()
    cursor.expect_symbol(")")
    return size


def _read_other_type(cursor: Cursor, word: str) -> DataType:
    if word == "DOUBLE":
        cursor.accept("PRECISION")
        return DoubleType()
    if word in {"DECIMAL", "DEC", "NUMERIC"}:
        return _read_decimal(cursor)
    if word in {"TIME", "TIMESTAMP"}:
        return _read_moment(cursor, word)
    if word == "INTERVAL":
        return _read_interval(cursor)
    return _read_collection(cursor, word)


def _read_decimal(cursor: Cursor) -> DataType:
    if not cursor.accept_symbol("("):
        return DecimalType(10, 0)
    precision = cursor.whole_number()
    scale = cursor.whole_number() if cursor.accept_symbol(",") else 0
    cursor.expect_symbol(")")
    return DecimalType(precision, scale)


def _read_moment(cursor: Cursor, word: str) -> DataType:
    precision = _read_size(cursor, 0 if word == "TIME" else 6)
    if word == "TIMESTAMP" and cursor.accept("WITH", "LOCAL", "TIME", "ZONE"):
        return LocalZonedTimestampType(precision)
    cursor.accept("WITHOUT", "TIME", "ZONE")
    return TimeType(precision) if word == "TIME" else TimestampType(precision)


def _read_interval(cursor: Cursor) -> DataType:
    first = Resolution[cursor.expect_any(*_UNITS)]
    _read_size(cursor, 0)
    last = Resolution[cursor.expect_any(*_UNITS)] if cursor.accept("TO") else first
    _read_size(cursor, 0)
    months = first in {Resolution.YEAR, Resolution.MONTH}
    return (YearMonthIntervalType if months else DayTimeIntervalType)(first, last)


def _read_collection(cursor: Cursor, word: str) -> DataType:
    if word == "ROW":
        return _read_row(cursor)
    cursor.expect_symbol("<")
    first = read_data_type(cursor)
    if word == "MAP":
        cursor.expect_symbol(",")
        found: DataType = MapType(first, read_data_type(cursor))
    else:
        found = ArrayType(first) if word == "ARRAY" else MultisetType(first)
    cursor.expect_symbol(">")
    return found


def _read_row(cursor: Cursor) -> DataType:
    if cursor.accept_symbol("<>"):
        return RowType(())
    ends = ")" if cursor.accept_symbol("(") else ">"
    if ends == ">":
        cursor.expect_symbol("<")
    fields: list[RowField] = []
    while not fields or cursor.accept_symbol(","):
        name = cursor.name()
        kind = read_data_type(cursor)
        comment = cursor.advance().text if cursor.token.kind == STRING else None
        fields.append(RowField(name, kind, comment))
    cursor.expect_symbol(ends)
    return RowType(fields)


def parse_type(text: str) -> DataType:
    """Return the type that a text names.

    >>> parse_type("ARRAY<DECIMAL(5, 2) NOT NULL>").as_sql()
    'ARRAY<DECIMAL(5, 2) NOT NULL>'
    """
    cursor = Cursor(text)
    found = read_data_type(cursor)
    if cursor.token.kind != END:
        cursor.fail()
    return found
