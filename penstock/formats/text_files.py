"""Text files with one record in each line."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import IO, Any

from penstock.base.arguments import check_arguments
from penstock.common.serialization import check_charset
from penstock.common.typeinfo import TypeInformation, Types
from penstock.errors import UndecodableRecord
from penstock.formats.contracts import FormatReader, Reject, StreamFormat
from penstock.formats.file_lines import BLOCK_BYTES, Lines, LinesReader, decode_line, decode_lines

__all__ = ["TextLineFormat"]

_WITH_SHIFT_STATES = ("iso2022", "hz", "utf-7")


@check_arguments
@dataclass(frozen=True)
class TextLineFormat(StreamFormat[str]):
    r"""Lines of text, each a record without its line end, which is `\n` or `\r\n`.

    A line that is not text of the charset is a bad record. Files in a charset in which a line feed is not one byte,
    such as UTF-16, are read whole; there, bytes that are not of the charset end the job. So are files with another
    delimiter.
    """

    charset: str = "UTF-8"
    delimiter: str = "\n"
    """Text between two lines."""
    skips_first: bool = False
    """True if the first line of each file is not a record."""

    def __post_init__(self) -> None:
        check_charset(self.charset)
        if not self.delimiter:
            raise ValueError("a line delimiter must not be empty")

    @property
    def splittable(self) -> bool:  # type: ignore[override]
        """True if the ends of lines can be found in the bytes of the charset, without decoding them."""
        name = codecs.lookup(self.charset).name
        if self.delimiter != "\n":
            return False
        return "\n".encode(self.charset) == b"\n" and not name.startswith(_WITH_SHIFT_STATES)

    def open(self, file: IO[bytes], start: int, end: int, position: Any, reject: Reject) -> FormatReader:
        skips = self.skips_first and start == 0 and position is None
        if self.splittable:
            lines = Lines(file, start, end, position)
            if skips:
                lines.take(1)
            return _TextLinesReader(lines, reject, self.charset)
        return _WholeTextReader(file, position or int(skips), self)

    def get_produced_type(self) -> TypeInformation:
        return Types.STRING()


class _TextLinesReader(LinesReader):
    def __init__(self, lines: Lines, reject: Reject, charset: str) -> None:
        super().__init__(lines, reject)
        self._charset = charset

    def decode_all(self, lines: list[bytes], begin: int) -> list[Any]:
        try:
            return decode_lines(lines, self._charset)
        except UnicodeDecodeError:
            return list(self.decode_one_by_one(lines, begin, lambda line: [decode_line(line, self._charset)]))


class _WholeTextReader(FormatReader):
    """Reads a file from its beginning. A position is the number of lines that were read."""

    def __init__(self, file: IO[bytes], done: int, form: TextLineFormat) -> None:
        file.seek(0)
        self._lines = _text_lines(file, form.charset, form.delimiter)
        self._done = sum(1 for _ in islice(self._lines, done))
        self._next = next(self._lines, None)
        self.finished = self._next is None

    def read(self, most: int) -> list[Any]:
        if self._next is None:
            return []
        lines = [self._next, *islice(self._lines, most - 1)]
        self._done += len(lines)
        self._next = next(self._lines, None)
        self.finished = self._next is None
        return lines

    def position(self) -> int:
        return self._done


def _text_lines(file: IO[bytes], charset: str, delimiter: str) -> Iterator[str]:
    decoder = codecs.getincrementaldecoder(charset)()
    ending = "\r" if delimiter == "\n" else ""
    rest = ""
    block = b"start"
    while block:
        block = file.read(BLOCK_BYTES)
        try:
            text = rest + decoder.decode(block, final=not block)
        except UnicodeError as error:
            raise UndecodableRecord(f"the file is not {charset}: {error}") from None
        *lines, rest = text.split(delimiter)
        for line in lines:
            yield line.removesuffix(ending)
    if rest:
        yield rest.removesuffix(ending)
