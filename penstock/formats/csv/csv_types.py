"""The form of values of each type in a field of CSV."""

from __future__ import annotations

import base64
import binascii
import datetime
from array import array
from collections.abc import Callable, Sequence
from decimal import Decimal, InvalidOperation
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
from penstock.common.composite_types import ByteArrayTypeInfo, ListTypeInfo, RowTypeInfo, TupleTypeInfo
from penstock.common.type_information import TypeInformation
from penstock.common.typeinfo import BasicTypeInfo
from penstock.common.types import make_row
from penstock.errors import TypeMismatch, UndecodableRecord
from penstock.formats.csv.csv_quotes import Dialect, Quotes
from penstock.formats.date_texts import (
    as_utc,
    instant_from,
    read_date,
    read_time,
    read_timestamp,
    time_text,
)
from penstock.formats.decimal_values import DecimalTypeInfo, without_zeros

MISREAD = (ValueError, KeyError, TypeError, ArithmeticError)
_ALLOWED = "allowed are basic types, dates and times, bytes, and lists and rows of these"


PLAIN = Dialect()


def one_character(what: str, character: Any) -> str:
    """Return a single character that is no line end; raise for other values."""
    if not isinstance(character, str) or len(character) != 1:
        raise ValueError(f"the {what} must be a single character, not {character!r}")
    if character in "\r\n":
        raise ValueError(f"the {what} must not be a line end")
    return character


# --- writing ---
def text_of(declared: TypeInformation, separator: str = ";", null: str = "") -> Callable[[Any], str]:
    """Return the function that writes a value other than None. `null` stands for None within lists and rows."""
    for kind, make in _WRITERS:
        if isinstance(declared, kind):
            return make(declared)
    if isinstance(declared, ListTypeInfo):
        element = _make_simple(declared.elem_type, text_of)
        return lambda values: separator.join([null if value is None else element(value) for value in values])
    if isinstance(declared, (RowTypeInfo, TupleTypeInfo)):
        parts = [_make_simple(part, text_of) for part in declared.field_types]
        return lambda row: separator.join(
            [null if value is None else write(value) for write, value in zip(parts, row, strict=True)]
        )
    raise TypeError(f"{declared.notation} has no form in a field of CSV; {_ALLOWED}")


def _make_simple(declared: TypeInformation, make: Callable[[TypeInformation], Any]) -> Any:
    if isinstance(declared, (RowTypeInfo, TupleTypeInfo)) or (
        isinstance(declared, ListTypeInfo) and not isinstance(declared, ByteArrayTypeInfo)
    ):
        raise TypeError(f"a field of CSV holds lists and rows of simple values, not of {declared.notation}")
    return make(declared)


def _printer(declared: TypeInformation) -> Callable[[Any], str]:
    return declared.text


def _double_text(declared: DoubleTypeInfo) -> Callable[[float], str]:
    """Return Python's own text for numbers that Python and Java write without an exponent. It is faster."""
    return lambda value: repr(value) if 1e-3 <= abs(value) < 1e7 else declared.text(value)


def _decimal_text(value: Decimal) -> str:
    return str(value if value else value.copy_abs())  # Java's decimals have no -0


_WRITERS: tuple[tuple[type, Callable[[Any], Callable[[Any], str]]], ...] = (
    (BooleanTypeInfo, lambda declared: lambda value: "true" if value else "false"),
    (FloatTypeInfo, _printer),
    (DoubleTypeInfo, _double_text),
    (InstantTypeInfo, _printer),
    (DecimalTypeInfo, lambda declared: without_zeros),
    (BigDecimalTypeInfo, lambda declared: _decimal_text),
    (BasicTypeInfo, lambda declared: int.__repr__ if declared.python_class is int else str),
    (DateTypeInfo, lambda declared: datetime.date.isoformat),
    (TimeTypeInfo, lambda declared: time_text),
    (TimestampTypeInfo, lambda declared: lambda value: declared.text(as_utc(value))),
    (ByteArrayTypeInfo, lambda declared: lambda value: base64.b64encode(value).decode("ascii")),
)


_NUMBERS = (BooleanTypeInfo, IntegerTypeInfo, DoubleTypeInfo, FloatTypeInfo, BigDecimalTypeInfo)
_OF_NUMBERS = set("0123456789+-.eE truefalsNInity")


def _is_number(declared: TypeInformation) -> bool:
    return isinstance(declared, _NUMBERS) or getattr(declared, "python_class", None) is int


class LineWriter:
    """Writes rows as lines of CSV, a chunk at a time, column by column."""

    def __init__(self, row_type: RowTypeInfo, dialect: Dialect, separators: Sequence[str] | None = None) -> None:
        self._row_type = row_type
        self._dialect = dialect
        self._quotes = Quotes(dialect)
        self._null = self._quotes.bare(dialect.null_literal or "")
        separators = separators or [";"] * row_type.get_arity()
        self._writers = [self._writer(part, sep) for part, sep in zip(row_type.field_types, separators, strict=True)]

    def _writer(self, declared: TypeInformation, separator: str) -> Callable[[Any], str]:
        """Return the function that writes a field with the quotes that it needs."""
        write = text_of(declared, separator, self._dialect.null_literal or "")
        protect = self._quotes.text
        if _is_number(declared):
            if not self._dialect.marks & _OF_NUMBERS:
                return write
            protect = self._quotes.bare
        return protect if write is str else lambda value: protect(write(value))

    def line(self, value: Any) -> str:
        """Return the line of one row, without a line end."""
        row = self._row_type.fit([value])[0]
        texts = [self._null if part is None else write(part) for write, part in zip(self._writers, row, strict=True)]
        return self._mark_line(self._dialect.delimiter.join(texts))

    def lines(self, values: list[Any]) -> list[str]:
        """Return the lines of some rows, without line ends."""
        if not values:
            return []
        return self.lines_of(list(zip(*self._row_type.fit(values), strict=True)))

    def lines_of(self, columns: Sequence[Sequence[Any]]) -> list[str]:
        """Return the lines of rows whose fields are given column by column, in the form of their types."""
        written = [self._column(write, column) for write, column in zip(self._writers, columns, strict=True)]
        lines = map(self._dialect.delimiter.join, zip(*written, strict=True))
        return [self._mark_line(line) for line in lines]

    def header(self) -> str:
        return self._dialect.delimiter.join(map(self._quotes.text, self._row_type.get_field_names()))

    def _column(self, write: Callable[[Any], str], column: Sequence[Any]) -> list[str]:
        return [self._null if value is None else write(value) for value in column]

    def _mark_line(self, line: str) -> str:
        """Put quotes at the beginning of a line that would be read as an empty line or a comment."""
        dialect = self._dialect
        if line and not (dialect.comments and line.lstrip().startswith("#")):
            return line
        if dialect.quote is None:
            raise TypeMismatch(f"the line {line[:60]!r} would be skipped by readers, and no quote character is set")
        first, delimiter, rest = line.partition(dialect.delimiter)
        return f"{dialect.quote}{first}{dialect.quote}{delimiter}{rest}"


# --- reading ---
def value_from(declared: TypeInformation, separator: str = ";", null: str | None = None) -> Callable[[str], Any]:
    """Return the function that reads a field.

    It raises one of MISREAD for a text that does not fit the type. `null` stands for None within lists and rows.
    """
    for kind, make in _READERS:
        if isinstance(declared, kind):
            return make(declared)
    if isinstance(declared, ListTypeInfo):
        element = _element_from(declared.elem_type, null)
        return lambda text: [element(part) for part in _split(text, separator)] if text else []
    if isinstance(declared, (RowTypeInfo, TupleTypeInfo)):
        return _inner_row_reader(declared, separator, null)
    raise TypeError(f"{declared.notation} has no form in a field of CSV; {_ALLOWED}")


def _element_from(declared: TypeInformation, null: str | None) -> Callable[[str], Any]:
    read: Callable[[str], Any] = _make_simple(declared, value_from)
    if null is None and keeps_empty(declared):
        return read
    nulls = {null} if keeps_empty(declared) else {null, ""}
    return lambda text: None if text in nulls else read(text)


def keeps_empty(declared: TypeInformation) -> bool:
    """Return True if an empty text is a value of the type, False if it stands for None."""
    return getattr(declared, "python_class", None) is str or isinstance(declared, ListTypeInfo)


def _split(text: str, separator: str) -> list[str]:
    return text.split(separator) if separator else [text]


def _inner_row_reader(declared: RowTypeInfo | TupleTypeInfo, separator: str, null: str | None) -> Callable[[str], Any]:
    readers = [_element_from(part, null) for part in declared.field_types]
    names = tuple(declared.get_field_names()) if isinstance(declared, RowTypeInfo) else None

    def read(text: str) -> Any:
        parts = zip(readers, _split(text, separator), strict=True)
        values = tuple([one(part) for one, part in parts])
        return values if names is None else make_row(names, values)

    return read


def _plain_number(text: str) -> str:
    if "_" in text:
        raise ValueError(text)
    return text


def _integer_from(declared: IntegerTypeInfo) -> Callable[[str], int]:
    def read(text: str) -> int:
        value = int(_plain_number(text))
        array(declared.typecode, [value])
        return value

    return read


def _single(text: str) -> float:
    return float(array("f", [float(_plain_number(text))])[0])


def _decimal(text: str) -> Decimal:
    try:
        value = Decimal(_plain_number(text).strip())
    except InvalidOperation:
        raise ValueError(text) from None
    if not value.is_finite():
        raise ValueError(text)
    return value


def _character(text: str) -> str:
    if len(text) != 1:
        raise ValueError(text)
    return text


def _basic_reader(declared: BasicTypeInfo) -> Callable[[str], Any]:
    if declared.python_class is int:
        return lambda text: int(_plain_number(text))
    return _character if declared.name == "CHAR" else str


def _bytes_from(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise ValueError(str(error)) from None


_BOOLEANS = {"true": True, "false": False}

_READERS: tuple[tuple[type, Callable[[Any], Callable[[str], Any]]], ...] = (
    (BooleanTypeInfo, lambda declared: lambda text: _BOOLEANS[text.strip().lower()]),
    (IntegerTypeInfo, _integer_from),
    (FloatTypeInfo, lambda declared: _single),
    (DoubleTypeInfo, lambda declared: lambda text: float(_plain_number(text))),
    (DecimalTypeInfo, lambda declared: lambda text: declared.round_value(_decimal(text))),
    (BigDecimalTypeInfo, lambda declared: _decimal),
    (InstantTypeInfo, lambda declared: lambda text: instant_from(text.strip())),
    (BasicTypeInfo, _basic_reader),
    (DateTypeInfo, lambda declared: lambda text: read_date(text.strip())),
    (TimeTypeInfo, lambda declared: lambda text: read_time(text.strip())),
    (TimestampTypeInfo, lambda declared: lambda text: read_timestamp(text.strip())),
    (ByteArrayTypeInfo, lambda declared: _bytes_from),
)


def _integers(declared: IntegerTypeInfo) -> Callable[[Sequence[str]], list[Any]]:
    def read(texts: Sequence[str]) -> list[Any]:
        values = list(map(int, texts))
        array(declared.typecode, values)
        return values

    return read


def column_from(declared: TypeInformation) -> Callable[[Sequence[str]], list[Any]] | None:
    """Return the function that reads many fields at once, or None if there is no fast way.

    The function may refuse fields that are readable one by one.
    """
    if isinstance(declared, IntegerTypeInfo):
        return _integers(declared)
    if isinstance(declared, DoubleTypeInfo):
        return lambda texts: list(map(float, texts))
    if isinstance(declared, BooleanTypeInfo):
        return lambda texts: list(map(_BOOLEANS.__getitem__, texts))
    return None


class FieldsReader:
    """Turns the fields of lines into the values of rows, one line or a chunk of them at a time."""

    def __init__(
        self,
        row_type: RowTypeInfo,
        dialect: Dialect,
        separators: Sequence[str] | None = None,
        *,
        extra_fields: bool = False,
        lenient: bool = False,
    ) -> None:
        self.row_type = row_type
        self.names = tuple(row_type.get_field_names())
        separators = separators or [";"] * len(self.names)
        self._null = dialect.null_literal
        fields = zip(row_type.field_types, separators, strict=True)
        self._readers = [value_from(part, separator, self._null) for part, separator in fields]
        self._fast = [column_from(part) for part in row_type.field_types]
        self._empty = [keeps_empty(part) for part in row_type.field_types]
        self._extra_fields = extra_fields
        self._lenient = lenient

    def column(self, index: int, texts: Sequence[str]) -> Sequence[Any]:
        read, null, keeps = self._readers[index], self._null, self._empty[index]
        if read is str:
            return texts if null is None else [None if text == null else text for text in texts]
        if null is None and (keeps or "" not in texts):
            return self._fast_column(index, texts) or list(map(read, texts))
        return [None if text == null or not (text or keeps) else read(text) for text in texts]

    def _fast_column(self, index: int, texts: Sequence[str]) -> list[Any] | None:
        read = self._fast[index]
        if read is None or "_" in "".join(texts):  # which Python allows within numbers
            return None
        try:
            return read(texts)
        except MISREAD:
            return None

    def columns(self, records: list[list[str]]) -> list[Sequence[Any]]:
        """Return the columns of lines that have all fields. Raise one of MISREAD if any field of any line is wrong."""
        columns = list(zip(*records, strict=True))
        if len(columns) != len(self.names):
            raise ValueError("the number of fields is different")
        return [self.column(index, texts) for index, texts in enumerate(columns)]

    def values(self, fields: list[str]) -> tuple[Any, ...]:
        """Return the values of one line. Raise UndecodableRecord for the first wrong field."""
        wanted = len(self.names)
        tolerated = self._lenient or (self._extra_fields and len(fields) > wanted)
        if len(fields) != wanted and not tolerated:
            raise UndecodableRecord(f"{len(fields)} fields, but the row type has {wanted}")
        values = tuple([self._field(index, text) for index, text in enumerate(fields[:wanted])])
        return values + (None,) * (wanted - len(values))

    def _field(self, index: int, text: str) -> Any:
        if text == self._null or not (text or self._empty[index]):
            return None
        try:
            return self._readers[index](text)
        except MISREAD:
            if self._lenient:
                return None
            declared = self.row_type.field_types[index]
            raise UndecodableRecord(f"field '{self.names[index]}': {text[:60]!r} is not {declared.notation}") from None


def is_comment(line: str) -> bool:
    """Return True if a line begins with `#`, after blanks."""
    return line.lstrip().startswith("#")
