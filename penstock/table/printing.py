"""Rows as text: the table with a frame that TableResult.print shows, as Flink's has it."""

from __future__ import annotations

import datetime
import sys
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from typing import Any, TextIO

from penstock.common.types import Row
from penstock.table.types import (
    BooleanType,
    CharType,
    DataType,
    DateType,
    DecimalType,
    IntegralType,
    LocalZonedTimestampType,
    NumericType,
    TimestampType,
    TimeType,
    VarCharType,
)

NULL = "<NULL>"
WIDEST = 30
"""A column of a stream is no wider than this: rows are shown as they come, so that nobody can look ahead."""


def text_of(value: Any, declared: DataType | None = None) -> str:
    """A value as it is shown."""
    match value:
        case None:
            return NULL
        case bool():
            return "TRUE" if value else "FALSE"
        case datetime.datetime():
            return _moment(value, declared)
        case datetime.time():
            return value.isoformat("seconds" if not getattr(declared, "precision", 0) else "auto")
        case bytes() | bytearray():
            return "x'" + value.hex() + "'"
        case Decimal():
            return format(value, "f")
        case Row():
            return f"({', '.join(map(_inside, value))})"
        case dict():
            return "{" + ", ".join(f"{_inside(key)}={_inside(one)}" for key, one in value.items()) + "}"
        case list() | tuple():
            return f"[{', '.join(map(_inside, value))}]"
    return str(value)


def _inside(value: Any) -> str:
    return "NULL" if value is None else text_of(value)


def _moment(value: datetime.datetime, declared: DataType | None) -> str:
    precision = declared.precision if isinstance(declared, (TimestampType, LocalZonedTimestampType)) else 6
    text = value.replace(tzinfo=None).isoformat(" ", "seconds")
    fraction = f"{value.microsecond:06d}".ljust(precision, "0")[:precision]
    zone = "Z" if isinstance(declared, LocalZonedTimestampType) else ""
    return text + (f".{fraction}" if precision else "") + zone


def show(
    names: Sequence[str],
    types: Sequence[DataType],
    rows: Iterable[Row],
    streaming: bool,
    out: TextIO | None = None,
) -> int:
    """Print rows in a frame. In streaming mode the kind of change comes first, and rows are shown as they come."""
    out = out or sys.stdout
    cells = ([text_of(value, kind) for value, kind in zip(row, types, strict=False)] for row in rows)
    if streaming:
        cells = (
            [str(row.get_row_kind()), *(text_of(value, kind) for value, kind in zip(row, types, strict=False))]
            for row in rows
        )
        widths = [2, *(max(width(name), _widest(kind)) for name, kind in zip(names, types, strict=True))]
        return _framed(["op", *names], widths, cells, out, empty="Received a total of 0 rows\n")
    held = list(cells)
    widths = [max([width(name), *(width(row[i]) for row in held)]) for i, name in enumerate(names)]
    return _framed(names, widths, iter(held), out, empty="Empty set\n")


def _framed(
    names: Sequence[str],
    widths: Sequence[int],
    rows: Iterator[list[str]],
    out: TextIO,
    empty: str,
) -> int:
    first = next(rows, None)
    if first is None:
        out.write(empty)
        return 0
    line = "+" + "+".join("-" * (one + 2) for one in widths) + "+\n"
    out.write(line + _row(names, widths) + line)
    count = 0
    row: list[str] | None = first
    while row is not None:
        out.write(_row(row, widths))
        out.flush()
        count += 1
        row = next(rows, None)
    out.write(line + (f"{count} row in set\n" if count == 1 else f"{count} rows in set\n"))
    return count


def _row(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = [_padded(cell, wide) for cell, wide in zip(cells, widths, strict=True)]
    return "| " + " | ".join(padded) + " |\n"


def _padded(text: str, wide: int) -> str:
    if width(text) > wide:
        kept = ""
        for character in text:
            if width(kept + character) > wide - 3:
                break
            kept += character
        text = kept + "..."
    return " " * (wide - width(text)) + text


def width(text: str) -> int:
    """How many columns of a terminal a text takes."""
    return sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in text)


def _widest(declared: DataType) -> int:
    match declared:
        case IntegralType():
            return {8: 4, 16: 6, 32: 11, 64: 20}[declared.bits]
        case DecimalType():
            return declared.precision + 3
        case BooleanType():
            return 7
        case DateType():
            return 10
        case TimeType():
            return 8 if not declared.precision else 9 + declared.precision
        case TimestampType() | LocalZonedTimestampType():
            return 19 + (declared.precision + 1 if declared.precision else 0)
        case VarCharType() | CharType():
            return min(declared.length, WIDEST)
        case NumericType():
            return WIDEST
    return WIDEST
