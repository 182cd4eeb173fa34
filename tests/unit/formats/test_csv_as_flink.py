"""CSV as Flink 2.3 reads and writes it: the cases of PyFlink's own tests, and texts recorded from it."""

import json
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.common import Row, Types
from penstock.datastream.formats.csv import (
    CsvBulkWriters,
    CsvReaderFormat,
    CsvRowDeserializationSchema,
    CsvRowSerializationSchema,
    CsvSchema,
)
from penstock.datastream.formats.decimals import DECIMAL
from penstock.errors import TypeMismatch
from tests.unit.formats.reading import whole, written

QUOTES = json.loads(Path(__file__).with_name("flink_csv_quotes.json").read_text())
"""Delimiter, quote, escape character or none, text, and the line of that text and an è, as Flink wrote it."""


def two_strings():
    return CsvSchema.builder().add_string_column("string").add_string_column("string2")


def read(schema, *lines):
    return whole(CsvReaderFormat.for_schema(schema), "".join(lines).encode())


def rewritten(schema, *lines):
    return written(CsvBulkWriters.for_schema(schema), read(schema, *lines)).decode()


# --- the cases of PyFlink's test_csv.py ---
PRIMITIVE = (
    CsvSchema.builder()
    .add_number_column("tinyint", Types.BYTE())
    .add_number_column("smallint", Types.SHORT())
    .add_number_column("int", Types.INT())
    .add_number_column("bigint", Types.LONG())
    .add_number_column("float", Types.FLOAT())
    .add_number_column("double", Types.DOUBLE())
    .add_number_column("decimal", DECIMAL(2, 0))
    .add_boolean_column("boolean")
    .add_string_column("string")
    .build()
)
PRIMITIVE_LINE = "127,-32767,2147483647,-9223372036854775808,3e38,2e-308,1.5,true,string\n"


@pytest.mark.parametrize("schema", [PRIMITIVE, CsvSchema.builder().add_columns_from(PRIMITIVE).build()])
def test_primitive_columns(schema):
    (row,) = read(schema, PRIMITIVE_LINE)
    assert tuple(row)[:4] == (127, -32767, 2147483647, -9223372036854775808)
    assert row.float == pytest.approx(3e38)
    assert (row.double, row.decimal, row.boolean, row.string) == (2e-308, Decimal(2), True, "string")
    line = "127,-32767,2147483647,-9223372036854775808,3.0E38,2.0E-308,2,true,string\n"
    assert rewritten(schema, PRIMITIVE_LINE) == line


def test_array_columns():
    builder = CsvSchema.builder().add_array_column("numbers", separator=";", element_type=Types.INT())
    builder.add_array_column("booleans", separator=":", element_type=Types.BOOLEAN())
    builder.add_array_column("strings", separator=",", element_type=Types.STRING())
    schema = builder.set_column_separator("|").disable_quote_char().build()
    line = "1;2;3|true:false|a,b,c\n"
    assert read(schema, line) == [Row(numbers=[1, 2, 3], booleans=[True, False], strings=["a", "b", "c"])]
    assert rewritten(schema, line) == line


def test_comments_headers_and_the_null_value():
    comments = CsvSchema.builder().add_string_column("string").set_allow_comments().build()
    assert read(comments, "a\n", "# this is comment\n", "b\n") == [Row(string="a"), Row(string="b")]
    builder = CsvSchema.builder().add_string_column("string").add_number_column("number")
    assert read(builder.set_null_value("").build(), ",123\n") == [Row(string=None, number=123)]
    assert read(builder.set_use_header().build(), "h1,h2\n", "string,123\n") == [Row(string="string", number=123)]
    strict = builder.set_strict_headers().build()
    assert read(strict, "string,number\n", "string,123\n") == [Row(string="string", number=123)]


@pytest.mark.parametrize("quote", ['"', "`"])
def test_quote_characters(quote):
    schema = two_strings().set_column_separator("|").set_quote_char(quote).build()
    line = f"{quote}string{quote}|{quote}string2{quote}\n"
    assert read(schema, line) == [Row(string="string", string2="string2")]
    assert rewritten(schema, line) == line


def test_escape_characters():
    schema = two_strings().set_column_separator(",").set_escape_char("\\").build()
    line = 'string\\,,\\"string2\\"\n'
    assert read(schema, line) == [Row(string="string,", string2='"string2"')]
    assert rewritten(schema, line) == '"string,","""string2"""\n'


@pytest.mark.parametrize(
    ("declared", "text", "value"),
    [
        (Types.STRING(), "'123''4**'", "123'4*"),
        (Types.STRING(), "'a;b''c'", "a;b'c"),
        (Types.INT(), "12", 12),
        (Types.ROW([Types.STRING(), Types.STRING()]), "'1:hello'", Row("1", "hello")),
        (Types.ROW([Types.STRING(), Types.STRING()]), "'1:hello world'", Row("1", "hello world")),
        (Types.STRING(), "null", "null"),
    ],
)
def test_messages(declared, text, value):
    row_type = Types.ROW([Types.STRING(), declared, Types.STRING()])

    def built(builder):
        builder.set_escape_character("*").set_quote_character("'").set_array_element_delimiter(":")
        return builder.set_field_delimiter(";").build()

    message = f"BEGIN;{text};END\n".encode()
    assert built(CsvRowSerializationSchema.Builder(row_type)).serialize(Row("BEGIN", value, "END")) == message
    found = built(CsvRowDeserializationSchema.Builder(row_type)).deserialize(message)
    assert row_type.fit([found]) == row_type.fit([Row("BEGIN", value, "END")])


# --- texts recorded from Flink ---
def test_quotes_are_where_flink_has_them():
    for delimiter, quote, escape, text, line in QUOTES:
        builder = two_strings().set_column_separator(delimiter).set_quote_char(quote)
        schema = (builder if escape is None else builder.set_escape_char(escape)).build()
        row = Row(string=text, string2="è")
        assert written(CsvBulkWriters.for_schema(schema), [row]).decode() == line
        assert read(schema, line) == [row]


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("", ""), ("a", "a"), (" a", '" a"'), ("a ", '"a "'), ("a'b", '"a\'b"'), ("+", '"+"'), ("-", "-"), ("#", '"#"'),
        ("a\tb", '"a\tb"'), ("a\x01b", '"a\x01b"'), ("a\\b", '"a\\b"'), ("a;b", "a;b"), ("é", "é"), ("null", "null"),
        ("x" * 24, "x" * 24), ("x" * 25, f'"{"x" * 25}"'), ("😀" * 12, "😀" * 12), ("😀" * 13, f'"{"😀" * 13}"'),
    ],
)  # fmt: skip
def test_texts_between_commas(text, field):
    schema = two_strings().build()
    assert written(CsvBulkWriters.for_schema(schema), [Row(text, "z")]).decode() == f"{field},z\n"
    message = CsvRowSerializationSchema.Builder(schema.row_type).build().serialize(Row(text, "z"))
    assert message.decode() == f"{field},z\n"


def test_headers_are_quoted_as_texts_are():
    builder = CsvSchema.builder().add_string_column("a b").add_string_column("c").set_use_header()
    row = [Row("1", "2")]
    assert written(CsvBulkWriters.for_schema(builder.build()), row) == b'"a b",c\n1,2\n'
    bars = builder.set_column_separator("|").build()
    assert written(CsvBulkWriters.for_schema(bars), row) == b'"a b"|"c"\n"1"|"2"\n'


@pytest.mark.parametrize("delimiter", [",", "|"])
@pytest.mark.parametrize(
    ("declared", "value", "text"),
    [
        (Types.DOUBLE(), 1.5, "1.5"),
        (Types.DOUBLE(), 1e10, "1.0E10"),
        (Types.DOUBLE(), 0.001, "0.001"),
        (Types.DOUBLE(), 1e-4, "1.0E-4"),
        (Types.DOUBLE(), 1e7, "1.0E7"),
        (Types.DOUBLE(), 9999999.0, "9999999.0"),
        (Types.DOUBLE(), 123456789.123, "1.23456789123E8"),
        (Types.DOUBLE(), -0.0, "-0.0"),
        (Types.DOUBLE(), float("-inf"), "-Infinity"),
        (Types.FLOAT(), 0.1, "0.1"),
        (Types.FLOAT(), 16777216.0, "1.6777216E7"),
        (Types.BIG_INT(), 10**20, "1" + "0" * 20),
        (Types.BIG_DEC(), Decimal("1.50"), "1.50"),
        (Types.BIG_DEC(), Decimal("1E+2"), "1E+2"),
        (Types.BIG_DEC(), Decimal("-0.0"), "0.0"),
        (DECIMAL(10, 2), Decimal("1.50"), "1.5"),
        (DECIMAL(10, 2), Decimal("100"), "1E+2"),
        (DECIMAL(10, 2), Decimal("123.456"), "123.46"),
        (DECIMAL(10, 2), Decimal("0"), "0"),
        (DECIMAL(20, 2), Decimal("12300000000000000"), "1.23E+16"),
        (DECIMAL(38, 18), Decimal("1E-12"), "1E-12"),
        (DECIMAL(38, 0), Decimal("12345678901234567890123456789012345678"), "12345678901234567890123456789012345678"),
        (DECIMAL(2, 0), Decimal("99.5"), ""),
        (Types.BOOLEAN(), True, "true"),
    ],
)
def test_numbers_are_written_as_java_does_and_never_in_quotes(declared, value, text, delimiter):
    builder = CsvSchema.builder().add_column("n", declared).add_string_column("s")
    schema = builder.set_column_separator(delimiter).build()
    assert written(CsvBulkWriters.for_schema(schema), [(value, "é")]).decode() == f"{text}{delimiter}é\n"


@given(st.floats(allow_nan=False))
@settings(deadline=None)
def test_doubles_are_written_as_they_are_printed(value):
    schema = CsvSchema.builder().add_number_column("n", Types.DOUBLE()).build()
    data = written(CsvBulkWriters.for_schema(schema), [(value,)])
    assert data.decode() == Types.DOUBLE().text(value) + "\n"
    assert read(schema, data.decode()) == [Row(n=value)]


def test_the_null_literal_stands_bare_and_within_lists_and_rows():
    pair = Types.ROW_NAMED(["x", "y"], [Types.STRING(), Types.INT()])
    row_type = Types.ROW_NAMED(["a", "b", "c"], [Types.OBJECT_ARRAY(Types.STRING()), pair, Types.STRING()])
    row = Row(a=[None, "x"], b=Row(x="x", y=None), c=None)
    bare = CsvRowSerializationSchema.Builder(row_type).build()
    assert bare.serialize(row) == b";x,x;,\n"
    literal = CsvRowSerializationSchema.Builder(row_type).set_null_literal("no value").build()
    assert literal.serialize(row) == b'"no value;x","x;no value",no value\n'
    reading = CsvRowDeserializationSchema.Builder(row_type).set_null_literal("no value").build()
    assert reading.deserialize(literal.serialize(row)) == row


def test_a_null_literal_that_would_end_a_field_is_protected():
    schema = two_strings().set_null_value("a,b").build()
    assert written(CsvBulkWriters.for_schema(schema), [(None, "z")]) == b'"a,b",z\n'
    with pytest.raises(TypeMismatch, match="neither a quote nor an escape character"):
        CsvBulkWriters.for_schema(two_strings().disable_quote_char().set_null_value("a,b").build()).create(None)


# --- decimals ---
def test_a_file_with_decimals_is_read_and_written_as_by_a_job_of_flink():
    builder = CsvSchema.builder().add_number_column("a", DECIMAL(2, 0)).add_number_column("b", DECIMAL(10, 2))
    schema = builder.add_number_column("c", Types.DOUBLE()).add_string_column("e").set_null_value("null").build()
    lines = ("1.5,100,2e-308,x y\n", "2.345,123.456,1e10,\n", "-0.4,99999999999,1.5,x\n")
    rows = read(schema, *lines)
    assert [(str(row.a), str(row.b)) for row in rows] == [("2", "100.00"), ("2", "123.46"), ("0", "None")]
    assert rewritten(schema, *lines) == '2,1E+2,2.0E-308,"x y"\n2,123.46,1.0E10,\n0,null,1.5,x\n'
    produced = CsvReaderFormat.for_schema(schema).get_produced_type()
    assert produced.get_field_types()[:2] == [Types.BIG_DEC(), Types.BIG_DEC()]


def test_decimals_of_rows_are_rounded_when_they_are_written():
    schema = CsvSchema.builder().add_number_column("a", DECIMAL(6, 2)).add_string_column("b").build()
    rows = [(Decimal("12.345"), "k"), (Decimal(100), "k"), (Decimal(99999999999), "k"), (None, None)]
    assert written(CsvBulkWriters.for_schema(schema), rows) == b"12.35,k\n1E+2,k\n,k\n,\n"


@pytest.mark.parametrize("text", ["abc", "NaN", "Infinity", "1_0", "0x1"])
@pytest.mark.parametrize("declared", [Types.BIG_DEC(), DECIMAL(10, 2)])
def test_what_is_no_decimal_is_a_bad_record(declared, text):
    row_type = Types.ROW_NAMED(["a", "b"], [declared, Types.STRING()])
    lenient = CsvRowDeserializationSchema.Builder(row_type).set_ignore_parse_errors(True).build()
    assert lenient.deserialize(f"{text},z".encode()) == Row(a=None, b="z")
    with pytest.raises(AssertionError, match="field 'a'"):
        read(CsvSchema.builder().add_column("a", declared).add_string_column("b").build(), f"{text},z\n")
