"""Formats of messages in files, with one message in each line."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import IO, Any

from penstock.common.serialization import BulkWriter, BulkWriterFactory
from penstock.formats.contracts import FormatReader, Reject, StreamFormat
from penstock.formats.file_lines import Lines, LinesReader
from penstock.table.connectors.contract import Options
from penstock.table.connectors.message_formats import Decode, Encode, decoder, encoder
from penstock.table.logical.nodes import Columns


@dataclass(frozen=True)
class MessageLines(StreamFormat):
    """The rows of lines, with kinds if the format has them."""

    decode: Decode
    splittable = True

    def open(self, file: IO[bytes], start: int, end: int, position: Any, reject: Reject) -> FormatReader:
        return _MessageLinesReader(Lines(file, start, end, position), reject, self.decode)


class _MessageLinesReader(LinesReader):
    def __init__(self, lines: Lines, reject: Reject, decode: Decode) -> None:
        super().__init__(lines, reject)
        self._decode = decode

    def decode_all(self, lines: list[bytes], begin: int) -> list[Any]:
        return list(self.decode_one_by_one(lines, begin, self._rows))

    def _rows(self, line: bytes) -> Iterable[Any]:
        return self._decode(line.removesuffix(b"\r"))


@dataclass(frozen=True)
class MessageLineWriters(BulkWriterFactory):
    """Writes every row as a line."""

    encode: Encode

    def create(self, stream: IO[bytes]) -> BulkWriter:
        return _MessageLineWriter(stream, self.encode)


class _MessageLineWriter(BulkWriter):
    def __init__(self, stream: IO[bytes], encode: Encode) -> None:
        self._stream = stream
        self._encode = encode

    def add_element(self, element: Any) -> None:
        self._stream.write((self._encode(element) or b"") + b"\n")

    def flush(self) -> None:
        self._stream.flush()

    def finish(self) -> None:
        self.flush()


def message_lines(options: Options, name: str, columns: Columns) -> tuple[MessageLines, MessageLineWriters]:
    """Return the reader and the writer of a message format in files."""
    return MessageLines(decoder(options, name, columns)), MessageLineWriters(encoder(options, name, columns))
