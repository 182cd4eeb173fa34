"""An exception in Java's serialised form, which Flink's command line needs to show why an operation failed.

Flink's client reads the field `serialized-throwable` of a failure and ignores the text beside it; without that field it
waits until it gives up. This module writes one object of Flink's class SerializedThrowable: a message, the name of the
original class and a stack trace, all as text, so that Flink needs no class of Penstock.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Callable
from dataclasses import dataclass, field

_HEAD = b"\xac\xed\x00\x05"
_NULL, _REFERENCE, _CLASS, _OBJECT, _STRING, _END, _LONG_STRING = (bytes([code]) for code in b"pqrstx|")
_FIRST_HANDLE = 0x7E0000
_SERIALIZABLE, _WITH_OWN_WRITER = 2, 3
_TEXT = "Ljava/lang/String;"


@dataclass(frozen=True)
class _Class:
    """A Java class. `fields` maps the names of its fields to the type signatures of Java's virtual machine."""

    name: str
    version: int
    fields: dict[str, str] = field(default_factory=dict)
    flags: int = _SERIALIZABLE


_THROWABLE = _Class(
    "java.lang.Throwable",
    0xD5C635273977B8CB,
    {
        "cause": "Ljava/lang/Throwable;",
        "detailMessage": _TEXT,
        "stackTrace": "[Ljava/lang/StackTraceElement;",
        "suppressedExceptions": "Ljava/util/List;",
    },
    _WITH_OWN_WRITER,
)
_EXCEPTION = _Class("java.lang.Exception", 0xD0FD1F3E1A3B1CC4)
_SERIALIZED = _Class(
    "org.apache.flink.util.SerializedThrowable",
    0x65169DF51FA713F3,
    {"fullStringifiedStackTrace": _TEXT, "originalErrorClassName": _TEXT, "serializedException": "[B"},
)
"""The versions are those of Java and of Flink 2.3."""


class _Writer:
    """Counts the handles under which the stream can refer back to strings and classes."""

    def __init__(self) -> None:
        self._handles = 0
        self._signatures: dict[str, int] = {}

    def new_handle(self) -> int:
        self._handles += 1
        return _FIRST_HANDLE + self._handles - 1

    def string(self, text: str) -> bytes:
        self.new_handle()
        data = _encode_modified_utf8(text)
        if len(data) < 1 << 16:
            return _STRING + struct.pack(">H", len(data)) + data
        return _LONG_STRING + struct.pack(">Q", len(data)) + data

    def classes(self, chain: list[_Class]) -> bytes:
        """Return the first class of a chain, followed by the classes that it extends."""
        if not chain:
            return _NULL
        one = chain[0]
        self.new_handle()
        head = _CLASS + _name(one.name) + struct.pack(">QBH", one.version, one.flags, len(one.fields))
        fields = b"".join(self._field(name, signature) for name, signature in one.fields.items())
        return head + fields + _END + self.classes(chain[1:])

    def _field(self, name: str, signature: str) -> bytes:
        return signature[0].encode() + _name(name) + self._signature(signature)

    def _signature(self, signature: str) -> bytes:
        known = self._signatures.get(signature)
        if known is not None:
            return _REFERENCE + struct.pack(">I", known)
        self._signatures[signature] = _FIRST_HANDLE + self._handles
        return self.string(signature)


def _name(text: str) -> bytes:
    return struct.pack(">H", len(text)) + text.encode("ascii")


def _encode_modified_utf8(text: str) -> bytes:
    """Encode a text as Java does: a zero takes two bytes, a character beyond the first plane becomes two surrogates."""
    units = text.encode("utf-16-be", "surrogatepass")
    return b"".join(_unit(high << 8 | low) for high, low in zip(units[::2], units[1::2], strict=True))


def _unit(unit: int) -> bytes:
    if 0 < unit < 0x80:
        return bytes([unit])
    if unit < 0x800:
        return bytes([0xC0 | unit >> 6, 0x80 | unit & 0x3F])
    return bytes([0xE0 | unit >> 12, 0x80 | unit >> 6 & 0x3F, 0x80 | unit & 0x3F])


def serialize_throwable(kind: str, message: str, stack_trace: str) -> str:
    """Return the exception as a serialised Java object, in base64."""
    writer = _Writer()
    string: Callable[[str], bytes] = writer.string
    class_data = writer.classes([_SERIALIZED, _EXCEPTION, _THROWABLE])
    writer.new_handle()
    of_throwable = _NULL + string(message) + _NULL + _NULL + _END
    own = string(stack_trace) + string(kind) + _NULL
    return base64.b64encode(_HEAD + _OBJECT + class_data + of_throwable + own).decode()
