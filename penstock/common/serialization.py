"""Schemas that turn values into bytes and back, for sources, sinks and files."""

from __future__ import annotations

import codecs
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import IO, Any, Generic

from penstock.base.arguments import check_arguments
from penstock.base.type_variables import IN, OUT
from penstock.common.type_information import TypeInformation, mismatch
from penstock.common.typeinfo import Types
from penstock.common.types import Row

__all__ = [
    "BulkWriter",
    "BulkWriterFactory",
    "ByteArraySchema",
    "DeserializationSchema",
    "Encoder",
    "RowFieldExtractorSchema",
    "SerializationSchema",
    "SimpleStringEncoder",
    "SimpleStringSchema",
]


class SerializationSchema(ABC, Generic[IN]):
    """Turns a value into the bytes of one message."""

    @abstractmethod
    def serialize(self, value: IN, /) -> bytes:
        """Return the bytes of one message for a value."""


class DeserializationSchema(ABC, Generic[OUT]):
    """Turns the bytes of one message into a value."""

    @abstractmethod
    def deserialize(self, message: bytes, /) -> OUT:
        """Return the value in the bytes of one message."""

    def is_end_of_stream(self, next_element: Any, /) -> bool:
        """Return True if this value marks the end of the stream. The value itself is dropped."""
        return False

    def get_produced_type(self) -> TypeInformation[OUT]:
        """Return the type of the values that `deserialize` returns."""
        return Types.PICKLED_BYTE_ARRAY()


@check_arguments
class SimpleStringSchema(SerializationSchema[str], DeserializationSchema[str]):
    """Strings in one charset."""

    def __init__(self, charset: str = "UTF-8") -> None:
        self.charset = check_charset(charset)

    def serialize(self, value: str) -> bytes:
        if not isinstance(value, str):
            raise mismatch(value, "STRING")
        return value.encode(self.charset)

    def deserialize(self, message: bytes) -> str:
        try:
            return message.decode(self.charset)
        except UnicodeDecodeError:
            return message.decode(self.charset, "replace")

    def get_produced_type(self) -> TypeInformation[str]:
        return Types.STRING()


class ByteArraySchema(SerializationSchema[bytes], DeserializationSchema[bytes]):
    """Bytes as they are."""

    def serialize(self, value: bytes) -> bytes:
        return _bytes(value)

    def deserialize(self, message: bytes) -> bytes:
        return bytes(message)

    def get_produced_type(self) -> TypeInformation:
        return Types.PRIMITIVE_ARRAY(Types.BYTE())


@check_arguments
class RowFieldExtractorSchema(SerializationSchema[Any]):
    """Extracts one field of a row, which must hold bytes; useful for the keys of messages.

    No bytes are written for None, be it the row or the field.
    """

    def __init__(self, field_index: int) -> None:
        if field_index < 0:
            raise ValueError(f"the field index must not be negative, but is {field_index}")
        self.field_index = field_index

    def serialize(self, value: Any) -> bytes:
        if value is None:
            return b""
        if not isinstance(value, (Row, tuple, list)) or len(value) <= self.field_index:
            raise mismatch(value, f"a row with a field {self.field_index}")
        extracted = value[self.field_index]
        return b"" if extracted is None else _bytes(extracted)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RowFieldExtractorSchema) and self.field_index == other.field_index

    def __hash__(self) -> int:
        return hash((RowFieldExtractorSchema, self.field_index))


class Encoder(ABC, Generic[IN]):
    """Turns a value into the bytes that a file sink appends to a file."""

    @abstractmethod
    def encode(self, value: IN, type_info: TypeInformation | None = None, /) -> bytes:
        """Return the bytes of a value. Its declared type, if the sink knows it, decides its text."""

    def encode_all(self, values: list[Any], type_info: TypeInformation | None = None) -> bytes:
        """Return the bytes of many values, one after the other."""
        encode = self.encode
        return b"".join([encode(value, type_info) for value in values])

    @staticmethod
    @check_arguments
    def simple_string_encoder(charset_name: str = "UTF-8") -> Encoder[Any]:
        """Return an encoder that writes the text of every value on its own line."""
        return SimpleStringEncoder(check_charset(charset_name))


@check_arguments
@dataclass(frozen=True)
class SimpleStringEncoder(Encoder[Any]):
    """Writes each value as one line of text in a charset."""

    charset: str = "UTF-8"

    def encode(self, value: Any, type_info: TypeInformation | None = None) -> bytes:
        text = str(value) if type_info is None else type_info.text(value)
        return f"{text}\n".encode(self.charset)

    def encode_all(self, values: list[Any], type_info: TypeInformation | None = None) -> bytes:
        if "\n".encode(self.charset) != b"\n":  # this charset writes a byte order mark in front of each text
            return super().encode_all(values, type_info)
        text = str if type_info is None else type_info.text
        return "".join([f"{text(value)}\n" for value in values]).encode(self.charset)


class BulkWriter(ABC):
    """Writes values into one file whose format needs more than appending."""

    @abstractmethod
    def add_element(self, element: Any) -> None:
        """Write one value."""

    def add_batch(self, batch: Any) -> bool:
        """Add the rows of a pyarrow.RecordBatch without making rows. Return False if that is not possible."""
        return False

    @abstractmethod
    def flush(self) -> None:
        """Write out buffered data, as far as the format allows."""

    @abstractmethod
    def finish(self) -> None:
        """Complete the file. The stream stays open: its owner closes it."""


class BulkWriterFactory(ABC):
    """Makes the writer of a new file."""

    @abstractmethod
    def create(self, stream: IO[bytes]) -> BulkWriter:
        """Return the writer of a new file, which writes into `stream`."""


def check_charset(charset: str) -> str:
    """Return the given charset. Raise an error if Python does not know it."""
    try:
        codecs.lookup(charset)
    except LookupError:
        raise ValueError(f"unknown charset {charset!r}") from None
    return charset


def _bytes(value: Any) -> bytes:
    if not isinstance(value, (bytes, bytearray, memoryview)):
        raise mismatch(value, "bytes")
    return bytes(value)
