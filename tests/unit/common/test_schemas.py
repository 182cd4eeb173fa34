"""Schemas and encoders."""

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.common import (
    ByteArraySchema,
    Encoder,
    Row,
    RowFieldExtractorSchema,
    SimpleStringSchema,
    Types,
    TypeSerializer,
)
from penstock.errors import TypeMismatch


@given(st.text())
def test_strings_round_trip(text):
    schema = pickle.loads(pickle.dumps(SimpleStringSchema()))
    assert schema.deserialize(schema.serialize(text)) == text


def test_charsets():
    assert SimpleStringSchema("ISO-8859-1").serialize("é") == b"\xe9"
    assert SimpleStringSchema("UTF-16").deserialize("é".encode("UTF-16")) == "é"
    with pytest.raises(ValueError, match="unknown charset 'none'"):
        SimpleStringSchema("none")
    with pytest.raises(TypeMismatch, match=r"3 \(int\) does not fit STRING"):
        SimpleStringSchema().serialize(3)


def test_bytes_stay_as_they_are():
    assert ByteArraySchema().serialize(bytearray(b"a")) == b"a"
    assert ByteArraySchema().deserialize(b"a") == b"a"
    assert ByteArraySchema().get_produced_type() == Types.PRIMITIVE_ARRAY(Types.BYTE())
    with pytest.raises(TypeMismatch):
        ByteArraySchema().serialize("a")


def test_one_field_of_a_row():
    schema = RowFieldExtractorSchema(1)
    assert schema.serialize(Row("k", b"v")) == b"v"
    assert schema.serialize(Row("k", None)) == b""
    assert schema.serialize(None) == b""
    assert schema == RowFieldExtractorSchema(1) != RowFieldExtractorSchema(0)
    for bad in (Row("k", "v"), Row(b"v"), 3):
        with pytest.raises(TypeMismatch):
            schema.serialize(bad)
    with pytest.raises(ValueError):
        RowFieldExtractorSchema(-1)


def test_a_string_encoder_writes_lines():
    encoder = pickle.loads(pickle.dumps(Encoder.simple_string_encoder()))
    assert encoder.encode("é") == "é\n".encode()
    assert encoder.encode(("a", 1)) == b"('a', 1)\n"
    assert encoder.encode(("a", 1), Types.TUPLE([Types.STRING(), Types.INT()])) == b"(a,1)\n"


class Letter(TypeSerializer[str]):
    def serialize(self, element, stream):
        stream.write(element.encode())

    def deserialize(self, stream):
        return stream.read(1).decode()


def test_serialisers_compare_by_their_attributes():
    assert Letter() == Letter() and hash(Letter()) == hash(Letter())
    other = Letter()
    other.setting = 1
    assert other != Letter()
    assert repr(other) == "Letter()"
