"""Exceptions in Java's serialised form."""

from __future__ import annotations

import base64

from hypothesis import example, given, settings
from hypothesis import strategies as st

from penstock.service.rest.throwable import serialize_throwable

READ_BY_FLINK = (
    "rO0ABXNyAClvcmcuYXBhY2hlLmZsaW5rLnV0aWwuU2VyaWFsaXplZFRocm93YWJsZWUWnfUfpxPzAgADTAAZZnVsbFN0cmluZ2lmaWVkU3RhY2tU"
    "cmFjZXQAEkxqYXZhL2xhbmcvU3RyaW5nO0wAFm9yaWdpbmFsRXJyb3JDbGFzc05hbWVxAH4AAVsAE3NlcmlhbGl6ZWRFeGNlcHRpb250AAJbQnhy"
    "ABNqYXZhLmxhbmcuRXhjZXB0aW9u0P0fPho7HMQCAAB4cgATamF2YS5sYW5nLlRocm93YWJsZdXGNSc5d7jLAwAETAAFY2F1c2V0ABVMamF2YS9s"
    "YW5nL1Rocm93YWJsZTtMAA1kZXRhaWxNZXNzYWdlcQB+AAFbAApzdGFja1RyYWNldAAeW0xqYXZhL2xhbmcvU3RhY2tUcmFjZUVsZW1lbnQ7TAAU"
    "c3VwcHJlc3NlZEV4Y2VwdGlvbnN0ABBMamF2YS91dGlsL0xpc3Q7eHBwdAAJZGlzayBmdWxscHB4dAAIdGhlIGVuZDt0AAlhLmIuRXJyb3Jw"
)
"""Flink 2.3's command line shows this as `Caused by: a.b.Error: disk full`."""


def test_it_is_what_flink_reads():
    assert serialize_throwable("a.b.Error", "disk full", "the end;") == READ_BY_FLINK


def _strings(data: bytes) -> list[bytes]:
    """The strings behind the descriptions of classes: message, stack trace, name of the class."""
    found, at = [], data.index(b"Ljava/util/List;xp") + len(b"Ljava/util/List;xp")
    while at < len(data):
        width = {b"t": 2, b"|": 8}.get(data[at : at + 1], 0)
        length = int.from_bytes(data[at + 1 : at + 1 + width], "big")
        if width:
            found.append(data[at + 1 + width : at + 1 + width + length])
        at += 1 + width + length
    return found


def _as_java_reads(data: bytes) -> str:
    """Java's own UTF-8: a zero is two bytes long, and a character beyond the first plane is two surrogates."""
    plain = data.replace(b"\xc0\x80", b"\x00").decode("utf-8", "surrogatepass")
    return plain.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


@settings(deadline=None)
@given(st.text(), st.text())
@example("zero \0, beyond \U0001f30a", "long " * 20_000)
def test_any_text_arrives(message, stack_trace):
    data = base64.b64decode(serialize_throwable("a.B", message, stack_trace))
    assert [_as_java_reads(text) for text in _strings(data)] == [message, stack_trace, "a.B"]
