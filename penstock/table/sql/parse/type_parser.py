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


class TypeParser(Cursor):
    """Parses types. The parsers of expressions and statements are subclasses."""

    def data_type(self, nullable: bool = True) -> DataType:
        """Parse a type, then NULL or NOT NULL, and perhaps ARRAY or MULTISET."""
        at = self.at
        try:
            found = self._nullability(self._plain_type(), nullable)
        except ValueError as problem:
            raise SqlParserException(f"{at}: {problem}") from problem
        while True:
            if self.accept("ARRAY"):
                found = self._nullability(ArrayType(found.not_null()), nullable)
            elif self.accept("MULTISET"):
                found = self._nullability(MultisetType(found.not_null()), nullable)
            else:
                return found

    def _nullability(self, found: DataType, nullable: bool) -> DataType:
        if self.accept("NOT", "NULL"):
            return found.not_null()
        if not self.sees("NULL", "ON") and self.accept("NULL"):
            return found.nullable()
        return found if nullable else found.not_null()

    def _plain_type(self) -> DataType:
        if self.sees_name() and self.token.upper not in _NAMES:
            self.sees_any(*_NAMES)
            raise ValidationException(f"{self.at}: {self._complaint('a type')}")
        word = self.expect_any(*_NAMES)
        if word in _PLAIN:
            return _PLAIN[word]()
        if word in _SIZED:
            return self._type_with_size(word)
        return self._other_type(word)

    def _type_with_size(self, word: str) -> DataType:
        if word in {"CHAR", "CHARACTER"} and self.accept("VARYING"):
            word = "VARCHAR"
        make, usual = _SIZED[word]
        return make(self._size(usual))

    def _size(self, usual: int) -> int:
        if not self.accept_symbol("("):
            return usual
        size = self.whole_number()
        self.expect_symbol(")")
        return size

    def _other_type(self, word: str) -> DataType:
        if word == "DOUBLE":
            self.accept("PRECISION")
            return DoubleType()
        if word in {"DECIMAL", "DEC", "NUMERIC"}:
            return self._decimal()
        if word in {"TIME", "TIMESTAMP"}:
            return self._moment(word)
        if word == "INTERVAL":
            return self._interval()
        return self._collection(word)

    def _decimal(self) -> DataType:
        if not self.accept_symbol("("):
            return DecimalType(10, 0)
        precision = self.whole_number()
        scale = self.whole_number() if self.accept_symbol(",") else 0
        self.expect_symbol(")")
        return DecimalType(precision, scale)

    def _moment(self, word: str) -> DataType:
        precision = self._size(0 if word == "TIME" else 6)
        if word == "TIMESTAMP" and self.accept("WITH", "LOCAL", "TIME", "ZONE"):
            return LocalZonedTimestampType(precision)
        self.accept("WITHOUT", "TIME", "ZONE")
        return TimeType(precision) if word == "TIME" else TimestampType(precision)

    def _interval(self) -> DataType:
        first = Resolution[self.expect_any(*_UNITS)]
        self._size(0)
        last = Resolution[self.expect_any(*_UNITS)] if self.accept("TO") else first
        self._size(0)
        months = first in {Resolution.YEAR, Resolution.MONTH}
        return (YearMonthIntervalType if months else DayTimeIntervalType)(first, last)

    def _collection(self, word: str) -> DataType:
        if word == "ROW":
            return self._row()
        self.expect_symbol("<")
        first = self.data_type()
        if word == "MAP":
            self.expect_symbol(",")
            found: DataType = MapType(first, self.data_type())
        else:
            found = ArrayType(first) if word == "ARRAY" else MultisetType(first)
        self.expect_symbol(">")
        return found

    def _row(self) -> DataType:
        if self.accept_symbol("<>"):
            return RowType(())
        ends = ")" if self.accept_symbol("(") else ">"
        if ends == ">":
            self.expect_symbol("<")
        fields: list[RowField] = []
        while not fields or self.accept_symbol(","):
            name = self.name()
            kind = self.data_type()
            comment = self.advance().text if self.token.kind == STRING else None
            fields.append(RowField(name, kind, comment))
        self.expect_symbol(ends)
        return RowType(fields)


def parse_type(text: str) -> DataType:
    """Return the type that a text names.

    >>> parse_type("ARRAY<DECIMAL(5, 2) NOT NULL>").as_sql()
    'ARRAY<DECIMAL(5, 2) NOT NULL>'
    """
    parser = TypeParser(text)
    found = parser.data_type()
    if parser.token.kind != END:
        parser.fail()
    return found
