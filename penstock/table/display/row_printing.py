"""Rows as text: the table with a frame that TableResult.print shows, as Flink's has it."""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TextIO

from penstock.common.types import Row
from penstock.table.functions.library.text_forms import text_form
from penstock.table.types.data_types import (
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    IntegralType,
    LocalZonedTimestampType,
    TimestampType,
    TimeType,
    VarBinaryType,
)

NULL = "<NULL>"
WIDEST = 30
"""Default width of a column of a query: rows are shown as they come, so that nobody can look ahead."""


def text_of(value: Any, declared: DataType, zone: str = "UTC") -> str:
    """Return a value as CAST to STRING writes it, but bytes as a literal, and TIMESTAMP_LTZ in `zone`."""
    if value is None:
        return NULL
    if isinstance(declared, (BinaryType, VarBinaryType)):
        return "x'" + bytes(value).hex() + "'"
    return text_form(declared, zone)(value)


def texts_of(row: Row, types: Sequence[DataType], zone: str) -> tuple[str | None, ...]:
    """Return the values of a row as texts, and None for NULL."""
    pairs = zip(row, types, strict=True)
    return tuple(None if value is None else text_of(value, kind, zone) for value, kind in pairs)


def show(
    names: Sequence[str],
    types: Sequence[DataType],
    rows: Iterable[Row],
    streaming: bool,
    out: TextIO | None = None,
    widest: int = WIDEST,
    zone: str = "UTC",
    total: bool = False,
) -> int:
    """Print the rows of a query in a frame, as they come. In streaming mode the kind of change comes first.

    With `total`, the last line counts the changes that came, as Flink's SQL client does.
    """
    widths = [max(width(name), _widest(kind, widest)) for name, kind in zip(names, types, strict=True)]
    cells = ((row, [text_of(value, kind, zone) for value, kind in zip(row, types, strict=False)]) for row in rows)
    if not streaming:
        return _print_framed(names, widths, (texts for _, texts in cells), out or sys.stdout)
    marked = ([str(row.get_row_kind()), *texts] for row, texts in cells)
    return _print_framed(["op", *names], [2, *widths], marked, out or sys.stdout, total)


def show_all(names: Sequence[str], types: Sequence[DataType], rows: Iterable[Row], out: TextIO | None = None) -> int:
    """Print what a statement such as SHOW says, in a frame that is as wide as the texts in it."""
    held = [
        ["" if value is None else text_of(value, kind) for value, kind in zip(row, types, strict=False)] for row in rows
    ]
    widths = [max([width(name), *(width(row[i]) for row in held)]) for i, name in enumerate(names)]
    return _print_framed(names, widths, iter(held), out or sys.stdout)


def show_bounded(
    names: Sequence[str],
    types: Sequence[DataType],
    rows: Iterable[Row],
    out: TextIO | None = None,
    widest: int = WIDEST,
    zone: str = "UTC",
) -> int:
    """Print the rows of a query that has an end: columns are as wide as their texts, and at most `widest`."""
    held = [[text_of(value, kind, zone) for value, kind in zip(row, types, strict=False)] for row in rows]
    texts = [max((width(row[i]) for row in held), default=0) for i in range(len(names))]
    widths = [max(width(name), min(text, widest)) for name, text in zip(names, texts, strict=True)]
    return _print_framed(names, widths, iter(held), out or sys.stdout)


def frame(names: Sequence[str], rows: Sequence[Sequence[str | None]], out: TextIO, closing: str = "") -> int:
    """Print texts in a frame with columns that are as wide as their texts. `closing` is the last line."""
    held = [[NULL if text is None else text for text in row] for row in rows]
    widths = [max([width(name), *(width(row[i]) for row in held)]) for i, name in enumerate(names)]
    return _print_framed(names, widths, iter(held), out, closing=closing)


def show_vertically(names: Sequence[str], rows: Sequence[Sequence[str | None]], out: TextIO, closing: str = "") -> None:
    """Print each value in a line of its own. `closing` is the last line."""
    first = max(map(width, names), default=0)
    for number, row in enumerate(rows):
        out.write(f"-RECORD {number}".ljust(first + 6, "-") + "\n")
        for name, text in zip(names, row, strict=True):
            out.write(f" {name}{' ' * (first - width(name))} | {NULL if text is None else text}\n")
    out.write(f"{closing}\n")


def _print_framed(
    names: Sequence[str],
    widths: Sequence[int],
    rows: Iterator[list[str]],
    out: TextIO,
    total: bool = False,
    closing: str = "",
) -> int:
    first = next(rows, None)
    if first is None:
        out.write("Empty set\n")
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
    counted = f"{count} row" if count == 1 else f"{count} rows"
    last = closing or (f"Received a total of {counted}" if total else f"{counted} in set")
    out.write(f"{line}{last}\n")
    return count


def _row(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = [_pad(cell, wide) for cell, wide in zip(cells, widths, strict=True)]
    return "| " + " | ".join(padded) + " |\n"


def _pad(text: str, wide: int) -> str:
    text = cut(text, wide)
    return " " * (wide - width(text)) + text


def cut(text: str, wide: int) -> str:
    """Return a text that occupies at most `wide` terminal columns."""
    if width(text) <= wide:
        return text
    kept = ""
    for character in text:
        if width(kept + character) > wide - 3:
            break
        kept += character
    return kept + "..."


def width(text: str) -> int:
    """Return the number of terminal columns that a text occupies."""
    return sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in text)


def _widest(declared: DataType, widest: int) -> int:
    match declared:
        case IntegralType():
            return {8: 4, 16: 6, 32: 11, 64: 20}[declared.bits]
        case DecimalType():
            return declared.precision + 2
        case BooleanType():
            return 6
        case DateType():
            return 10
        case TimeType():
            return 8 if not declared.precision else 9 + declared.precision
        case TimestampType() | LocalZonedTimestampType():
            return 19 + (declared.precision + 1 if declared.precision else 0)
    return widest
