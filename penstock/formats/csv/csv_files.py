"""Reading CSV: records of one line or, if a quoted field continues, of several."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from typing import Any

from penstock.common.types import Row, make_row
from penstock.errors import UndecodableRecord
from penstock.formats.contracts import Reject
from penstock.formats.csv.csv_quotes import Dialect
from penstock.formats.csv.csv_types import MISREAD, FieldsReader, is_comment
from penstock.formats.file_lines import Lines, LinesReader, decode_lines
from penstock.formats.message_batches import Gathering

_LARGEST_FIELD = 64 << 20


def parse_options(dialect: Dialect) -> dict[str, Any]:
    """Return a dialect in the form of the csv module, and allow large fields there."""
    if csv.field_size_limit() < _LARGEST_FIELD:
        csv.field_size_limit(_LARGEST_FIELD)
    return {
        "delimiter": dialect.delimiter,
        "quotechar": dialect.quote,
        "quoting": csv.QUOTE_NONE if dialect.quote is None else csv.QUOTE_MINIMAL,
        "escapechar": dialect.escape,
        "strict": True,
    }


class Records:
    """Cuts some lines into records of fields.

    The csv module takes as many lines as a record has. If the last record continues after the given lines, it takes
    more lines, so the position of `source` is always between two records.
    """

    def __init__(self, lines: list[bytes], source: Lines, dialect: Dialect) -> None:
        self.lines = lines
        self.begin = 0
        """Number of the first line of the latest record."""
        self.taken = 0
        self._source = source
        self._comments = dialect.comments
        self._within = False
        self._reader = csv.reader(self._texts(), **parse_options(dialect))

    def _texts(self) -> Iterator[str]:
        while self.taken < len(self.lines) or self._take_more():
            text = self.lines[self.taken].decode("utf-8", "surrogateescape") + "\n"
            self.taken += 1
            if self._comments and not self._within and is_comment(text):
                self.begin = self.taken
                continue
            self._within = True
            yield text

    def _take_more(self) -> bool:
        more = self._source.take(1)
        self.lines.extend(more)
        return bool(more)

    def next(self) -> list[str] | None:
        """Return the fields of a record; none for a blank line. Return None if no record begins in the given lines."""
        self._within = False
        self.begin = self.taken
        if self.taken >= len(self.lines):
            return None
        try:
            fields = next(self._reader, None)
        except csv.Error as error:
            raise UndecodableRecord(f"not CSV: {error}") from None
        if fields is not None:
            _check_text(fields)
        return fields


def _check_text(fields: list[str]) -> None:
    try:
        "".join(fields).encode()
    except UnicodeEncodeError:
        raise UndecodableRecord("not UTF-8") from None


class CsvRecordsReader(LinesReader):
    """Reads rows of one or more lines each."""

    def __init__(self, lines: Lines, fields: FieldsReader, dialect: Dialect, reject: Reject) -> None:
        super().__init__(lines, reject)
        self._fields = fields
        self._dialect = dialect
        self._gathering = Gathering(fields.row_type)
        marks = (dialect.quote, dialect.escape, "#" if dialect.comments else None)
        self._marks = [mark.encode() for mark in marks if mark is not None]

    def next_fields(self) -> list[str] | None:
        """Return the fields of the next record that is not blank, in order to read a header."""
        while lines := self._lines.take(1):
            fields = Records(lines, self._lines, self._dialect).next()
            if fields:
                self.finished = not self._lines.more()
                return fields
        self.finished = True
        return None

    def decode_all(self, lines: list[bytes], begin: int) -> Sequence[Row]:
        together = b"\n".join(lines)
        if not any(mark in together for mark in self._marks):
            try:
                return self._rows(lines)
            except (csv.Error, *MISREAD):
                pass
        return list(self._one_by_one(Records(lines, self._lines, self._dialect), begin))

    def _rows(self, lines: list[bytes]) -> Sequence[Row]:
        """Return the rows of lines that are one record each."""
        parsed = csv.reader(decode_lines(lines, "utf-8"), **parse_options(self._dialect))
        records = [record for record in parsed if record]
        if not records:
            return []
        return self._gathering.rows(self._fields.columns(records))

    def _one_by_one(self, records: Records, begin: int) -> Iterator[Row]:
        while True:
            try:
                fields = records.next()
                if fields is None:
                    return
                if fields:
                    yield make_row(self._fields.names, self._fields.values(fields))
            except UndecodableRecord as error:
                self.reject(records.lines, (records.begin, records.taken), begin, error)
