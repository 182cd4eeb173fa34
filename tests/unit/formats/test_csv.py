import csv
import datetime
import io
import itertools
import pickle
from decimal import Decimal

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
from penstock.errors import SchemaMismatch, TypeMismatch, UndecodableRecord
from tests.unit.formats.reading import Rejected, in_pieces, whole, with_stops, written
from tests.unit.formats.rows import SIMPLE, TEXT, row_types, simple_types, tables

NULL = "<none>"
WORDS = st.text(st.characters(codec="utf-8", exclude_characters=";"), min_size=1, max_size=4)
PLAIN = (
    CsvSchema.builder()
    .add_number_column("id")
    .add_string_column("name")
    .add_boolean_column("ok")
    .add_array_column("tags")
)


def schema_of(declared, builder=None):
    builder = builder or CsvSchema.builder()
    for name, part in zip(declared.get_field_names(), declared.field_types, strict=True):
        builder.add_column(name, part)
    return builder


# --- files ---
DIALECTS = st.fixed_dictionaries(
    {
        "delimiter": st.sampled_from([",", ";", "\t", "|"]),
        "quote": st.sampled_from(['"', "'"]),
        "escape": st.sampled_from([None, "\\", "!"]),
        "header": st.booleans(),
        "comments": st.booleans(),
        "end": st.sampled_from(["\n", "\r\n"]),
    }
)


@given(tables(row_types(simple_types)), DIALECTS, st.integers(1, 5))
@settings(max_examples=300, deadline=None)
def test_files_come_back_as_they_were(table, dialect, most):
    declared, rows = table
    builder = schema_of(declared).set_null_value(NULL).set_column_separator(dialect["delimiter"])
    builder.set_quote_char(dialect["quote"]).set_use_header(dialect["header"]).set_line_separator(dialect["end"])
    builder.set_allow_comments(dialect["comments"]).set_strict_headers()
    if dialect["escape"] is not None:
        builder.set_escape_char(dialect["escape"])
    schema = builder.build()
    data = written(CsvBulkWriters.for_schema(schema), rows)
    format = CsvReaderFormat.for_schema(schema)
    assert not format.splittable
    assert whole(format, data) == rows
    assert with_stops(format, data, most) == rows
    assert format.get_produced_type() == declared


LETTERS = st.text("abc #'\"\\é", max_size=4)


@given(st.lists(st.tuples(LETTERS, st.integers(-9, 9)), max_size=12), st.booleans(), st.data())
@settings(deadline=None)
def test_files_without_quotes_are_read_in_pieces(rows, header, cuts):
    builder = CsvSchema.builder().add_string_column("text").add_number_column("n").disable_quote_char()
    schema = builder.set_use_header(header).set_strict_headers(header).build()
    rows = [Row(text=text, n=n) for text, n in rows]
    data = written(CsvBulkWriters.for_schema(schema), rows)
    format = CsvReaderFormat.for_schema(schema)
    cuts = cuts.draw(st.sets(st.integers(0, len(data)), max_size=4))
    assert format.splittable
    assert whole(format, data) == rows
    assert list(itertools.chain(*in_pieces(format, data, cuts))) == rows
    assert with_stops(format, data, 2) == rows


@given(st.lists(st.tuples(TEXT, TEXT), max_size=8))
@settings(deadline=None)
def test_the_csv_module_reads_what_is_written_and_writes_what_is_read(rows):
    schema = CsvSchema.builder().add_string_column("a").add_string_column("b").build()
    data = written(CsvBulkWriters.for_schema(schema), [Row(a=a, b=b) for a, b in rows])
    assert [tuple(record) for record in csv.reader(io.StringIO(data.decode(), newline=""))] == rows
    stream = io.StringIO(newline="")
    csv.writer(stream).writerows(rows)
    assert whole(CsvReaderFormat.for_schema(schema), stream.getvalue().encode()) == [Row(a=a, b=b) for a, b in rows]


@given(st.lists(st.lists(WORDS, max_size=3) | st.none(), max_size=5), st.lists(st.integers(), max_size=3))
@settings(deadline=None)
def test_arrays_come_back_as_they_were(words, numbers):
    builder = CsvSchema.builder().add_array_column("words").add_array_column("n", "/", Types.BIG_INT())
    schema = builder.set_null_value(NULL).build()
    rows = [Row(words=some, n=numbers) for some in words]
    assert whole(CsvReaderFormat.for_schema(schema), written(CsvBulkWriters.for_schema(schema), rows)) == rows


def test_one_known_file():
    schema = PLAIN.build()
    data = b'1,"Ann ""A""",true,x;y\r\n,"two\nlines",FALSE,\n\n3,,,z\n'
    rows = [
        Row(id=1, name='Ann "A"', ok=True, tags=["x", "y"]),
        Row(id=None, name="two\nlines", ok=False, tags=[]),
        Row(id=3, name="", ok=None, tags=["z"]),
    ]
    assert whole(CsvReaderFormat.for_schema(schema), data) == rows
    assert written(CsvBulkWriters.for_schema(schema), rows) == b'1,"Ann ""A""",true,x;y\n,"two\nlines",false,\n3,,,z\n'
    assert str(schema) == "CsvSchema(id LONG, name STRING, ok BOOLEAN, tags LIST(STRING))"


def test_bad_records_are_rejected_with_their_place():
    data = b'1,a,true,\nx,b,true,\n2,b\n3,"c\nd"x,true,\n4,"\xff",true,\n5_0,f,true,\n6,"ok\n",true,\n7,"open,true,'
    rejected = Rejected()
    rows = whole(CsvReaderFormat.for_schema(PLAIN.build()), data, rejected)
    assert [row.id for row in rows] == [1, 6]
    assert [raw for raw, _ in rejected] == [
        b"x,b,true,",
        b"2,b",
        b'3,"c\nd"x,true,',
        b'4,"\xff",true,',
        b"5_0,f,true,",
        b'7,"open,true,',
    ]
    assert [position for _, position in rejected] == [f"line at byte {data.index(raw)}" for raw, _ in rejected]


def test_an_error_names_the_field():
    def check(data, problem):
        with pytest.raises(UndecodableRecord, match=problem):
            whole(CsvReaderFormat.for_schema(PLAIN.build()), data, raise_it)

    def raise_it(raw, error, position):
        raise error

    check(b"x,a,true,\n", "field 'id': 'x' is not LONG")
    check(b"9223372036854775808,a,true,\n", "field 'id'")
    check(b"1,a,yes,\n", "field 'ok': 'yes' is not BOOLEAN")
    check(b"1,a,true\n", "3 fields, but the row type has 4")


def test_headers_and_first_rows():
    builder = CsvSchema.builder().add_string_column("a").add_string_column("b")
    data = b"a,b\n1,2\n3,4\n"

    def read(data):
        return [tuple(row) for row in whole(CsvReaderFormat.for_schema(builder.build()), data)]

    assert read(data) == read(b"\xef\xbb\xbf" + data) == [("a", "b"), ("1", "2"), ("3", "4")]
    builder.set_use_header().set_strict_headers()
    assert read(data) == [("1", "2"), ("3", "4")]
    assert read(b"") == []
    assert read(b"a,b") == []
    assert read(b"\xef\xbb\xbfa, b\r\n1,2") == [("1", "2")]
    builder.set_skip_first_data_row()
    assert not CsvReaderFormat.for_schema(builder.build()).splittable
    assert read(data) == [("3", "4")]
    with pytest.raises(SchemaMismatch, match="column 2 of the CSV header: found 'c', wanted 'b'"):
        read(b"a,c\n1,2\n")
    with pytest.raises(SchemaMismatch, match="found nothing, wanted 'b'"):
        read(b"a\n1\n")
    with pytest.raises(SchemaMismatch, match="has 3 columns, wanted 2"):
        read(b"a,b,c\n")
    builder.set_strict_headers(False).set_skip_first_data_row(False)
    assert read(b"a,c\n1,2\n") == [("1", "2")]


def test_comments_are_passed_over_but_not_within_quotes():
    builder = CsvSchema.builder().add_string_column("a").add_string_column("b").set_allow_comments()
    format = CsvReaderFormat.for_schema(builder.build())
    data = b'# one "quote\nx,"a\n# no comment"\n  # more\n"#y",z\n# end'
    rows = [Row(a="x", b="a\n# no comment"), Row(a="#y", b="z")]
    assert whole(format, data) == rows
    assert with_stops(format, data) == rows
    assert whole(format, b"# only\n# comments\n", most=1) == []


def test_extra_fields_are_dropped_where_they_are_allowed():
    builder = CsvSchema.builder().add_number_column("a")
    with pytest.raises(AssertionError, match="2 fields"):
        whole(CsvReaderFormat.for_schema(builder.build()), b"1,2\n")
    builder.set_any_property_name("rest")
    assert whole(CsvReaderFormat.for_schema(builder.build()), b"1,2\n3\n") == [Row(a=1), Row(a=3)]


def test_builders_change_columns_and_separators():
    builder = CsvSchema.builder().add_columns_from(PLAIN.build()).add_array_column("more", ",", Types.INT())
    assert len(builder) == builder.size() == 5
    builder.set_array_element_separator("/").remove_array_element_separator(3).set_column_separator("|")
    assert builder.build().separators == ["", "", "", "", "/"]
    rows = whole(CsvReaderFormat.for_schema(builder.build()), b"1|a|true|x;y|1/2\n")
    assert rows == [Row(id=1, name="a", ok=True, tags=["x;y"], more=[1, 2])]
    assert builder.disable_array_element_separator().build().separators == [""] * 5
    assert builder.clear_columns().size() == 0
    with pytest.raises(ValueError, match="at least one column"):
        builder.build()
    with pytest.raises(ValueError, match="must differ"):
        builder.add_string_column("a").add_string_column("a").build()
    with pytest.raises(ValueError, match="must differ"):
        builder.set_quote_char("|")
    with pytest.raises(ValueError, match="single character"):
        builder.set_escape_char("ab")
    with pytest.raises(ValueError, match="line end"):
        builder.set_column_separator("\n")
    with pytest.raises(ValueError, match="line separator"):
        builder.set_line_separator(";")
    with pytest.raises(TypeError, match="is a number"):
        builder.add_number_column("n", Types.STRING())
    with pytest.raises(TypeError, match="simple values"):
        builder.add_array_column("n", element_type=Types.LIST(Types.INT()))
    with pytest.raises(TypeError, match="no form in a field"):
        builder.add_column("m", Types.MAP(Types.STRING(), Types.INT()))
    with pytest.raises(TypeError, match="CsvSchema"):
        CsvReaderFormat.for_schema(builder)


def test_what_cannot_be_told_from_other_lines_is_refused():
    builder = CsvSchema.builder().add_string_column("a").disable_quote_char().set_allow_comments()
    factory = CsvBulkWriters.for_schema(builder.build())
    for text in ("a,b", "a\nb", "# a", ""):
        with pytest.raises(TypeMismatch):
            written(factory, [Row(a=text)])
    assert written(factory, [Row(a='"')]) == b'"\n'


def test_an_escape_character_does_without_quotes():
    builder = (
        CsvSchema.builder().add_string_column("a").add_string_column("b").disable_quote_char().set_escape_char("\\")
    )
    schema = builder.build()
    rows = [Row(a="x,y\\z", b='li\nne "q"\r\n'), Row(a="", b="\\")]
    data = written(CsvBulkWriters.for_schema(schema), rows)
    assert whole(CsvReaderFormat.for_schema(schema), data) == rows
    assert not CsvReaderFormat.for_schema(schema).splittable


def test_large_fields_are_read():
    schema = CsvSchema.builder().add_string_column("a").add_string_column("b").build()
    row = Row(a="x" * 300_000, b='"\n' * 100_000)
    assert whole(CsvReaderFormat.for_schema(schema), written(CsvBulkWriters.for_schema(schema), [row])) == [row]


# --- messages ---
PERSON = Types.ROW_NAMED(
    ["name", "age", "tags", "home", "at"],
    [
        Types.STRING(),
        Types.INT(),
        Types.OBJECT_ARRAY(Types.STRING()),
        Types.ROW_NAMED(["x", "y"], [Types.DOUBLE(), Types.DOUBLE()]),
        Types.SQL_TIMESTAMP(),
    ],
)


@given(tables(row_types(simple_types)))
@settings(max_examples=100, deadline=None)
def test_messages_come_back_as_they_were(table):
    declared, rows = table
    writing = CsvRowSerializationSchema.Builder(declared).set_null_literal(NULL).build()
    reading = CsvRowDeserializationSchema.Builder(declared).set_null_literal(NULL).build()
    writing, reading = pickle.loads(pickle.dumps((writing, reading)))
    assert [reading.deserialize(writing.serialize(row)) for row in rows] == rows
    assert reading.get_produced_type() == declared


def test_a_message_as_text():
    writing = CsvRowSerializationSchema.Builder(PERSON).build()
    row = Row(name="A,n", age=None, tags=["a", "b"], home=Row(x=1.5, y=None), at=datetime.datetime(2024, 5, 1, 10))
    assert writing.serialize(row) == b'"A,n",,a;b,1.5;,"2024-05-01 10:00:00.0"\n'
    assert CsvRowDeserializationSchema.Builder(PERSON).build().deserialize(writing.serialize(row)) == row


def test_setters_of_both_builders():
    declared = Types.ROW_NAMED(["a", "b"], [Types.STRING(), Types.LIST(Types.INT())])
    writing = CsvRowSerializationSchema.Builder(declared).set_field_delimiter("|").set_array_element_delimiter("/")
    writing.set_quote_character("'").set_escape_character("!").set_null_literal("-").set_line_delimiter("\r\n")
    reading = CsvRowDeserializationSchema.Builder(declared).set_field_delimiter("|").set_array_element_delimiter("/")
    reading.set_quote_character("'").set_escape_character("!").set_null_literal("-").set_allow_comments(True)
    rows = [Row(a="x|'!", b=[1, 2]), Row(a=None, b=None)]
    messages = [writing.build().serialize(row) for row in rows]
    assert messages == [b"'x|''!!'|'1/2'\r\n", b"-|-\r\n"]
    assert [reading.build().deserialize(message) for message in messages] == rows
    assert reading.build().deserialize(b"# comment") is None
    assert writing.disable_quote_character().set_line_delimiter("").build().serialize(rows[0]) == b"x!|'!!|1/2"
    with pytest.raises(ValueError, match="line delimiter"):
        writing.set_line_delimiter("x")
    with pytest.raises(TypeError, match="type of a row"):
        CsvRowSerializationSchema.Builder(Types.STRING())


def test_messages_that_cannot_be_decoded():
    declared = Types.ROW_NAMED(["a", "b"], [Types.INT(), Types.STRING()])
    strict = CsvRowDeserializationSchema.Builder(declared).build()
    lenient = CsvRowDeserializationSchema.Builder(declared).set_ignore_parse_errors(True).build()
    for message, row in [
        (b"x,b", Row(a=None, b="b")),
        (b"1", Row(a=1, b=None)),
        (b"1,b,c", Row(a=1, b="b")),
        (b'1,"b', None),
        (b"1,\xff", None),
        (b"1,a\n2,b", None),
    ]:
        with pytest.raises(UndecodableRecord):
            strict.deserialize(message)
        assert lenient.deserialize(message) == row
    assert strict.deserialize(None) is None
    assert strict.deserialize(b"") is None


def test_each_type_has_the_form_that_flink_gives_it():
    declared = Types.ROW(list(SIMPLE))
    row = [
        "s", "c", True, 1, 2, 3, 4, 5, 0.5, float("nan"), Decimal("1E+2"), datetime.date(2024, 5, 1),
        datetime.time(10, 30), datetime.datetime(2024, 5, 1, 10, 30, 0, 5000), None, b"\xff",
    ]  # fmt: skip
    writing = CsvRowSerializationSchema.Builder(declared).build()
    text = b's,c,true,1,2,3,4,5,0.5,NaN,1E+2,2024-05-01,10:30:00,"2024-05-01 10:30:00.005",,/w==\n'
    assert writing.serialize(tuple(row)) == text
