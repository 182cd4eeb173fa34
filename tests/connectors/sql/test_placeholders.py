"""Placeholders are the question marks outside quotes and comments, and nothing else of a statement changes."""

import sqlite3

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.connectors.jdbc.jdbc_statements import Sql

TEXT = st.text(st.characters(codec="utf-8", exclude_characters="'\"`$*/-?\\\0"), max_size=8)
INSIDE = st.text(st.sampled_from("ab ?%:$-/*\n"), max_size=8)
PIECES = st.one_of(
    TEXT.map(lambda text: (text, False)),
    INSIDE.map(lambda text: (f"'{text}'", False)),
    INSIDE.map(lambda text: (f"' it''s {text}'", False)),
    INSIDE.map(lambda text: (f'"{text}"', False)),
    INSIDE.map(lambda text: (f"`{text}`", False)),
    INSIDE.map(lambda text: (f"-- {text.replace(chr(10), '')}\n", False)),
    INSIDE.map(lambda text: (f"/* {text.replace('*/', '')} */", False)),
    INSIDE.map(lambda text: (f" $tag${text.replace('$', '')}$tag$", False)),
    INSIDE.map(lambda text: (f" $${text.replace('$', '')}$$", False)),
    INSIDE.map(lambda text: (f" E'\\'{text}'", False)),
    st.just((" ? ", True)),
)


@given(st.lists(PIECES, min_size=1))
def test_only_free_question_marks_are_placeholders(pieces):
    text = "SELECT " + " ".join(piece for piece, _ in pieces)
    sql = Sql.parse(text)
    assert sql.placeholders == sum(is_placeholder for _, is_placeholder in pieces)
    assert "?".join(sql.pieces) == text
    assert sql.render("qmark") == text


@given(st.lists(PIECES, min_size=1))
def test_a_driver_that_formats_gets_the_text_back(pieces):
    sql = Sql.parse("SELECT " + " ".join(piece for piece, _ in pieces))
    filled = sql.render("pyformat") % tuple("<?>" for _ in range(sql.placeholders))
    assert filled == "<?>".join(sql.pieces)


@given(st.text(st.sampled_from("?'\"-/*\n$ab\\eE"), min_size=1).filter(str.strip))
def test_nothing_is_ever_lost(text):
    """Whatever the text: what is not a placeholder comes back, and two marks become one."""
    sql = Sql.parse(text)
    marks = "".join(sql.pieces).count("?") + sql.placeholders
    assert text.replace("?", "") == "".join(sql.pieces).replace("?", "")
    assert marks <= text.count("?") <= 2 * marks


@pytest.mark.parametrize(
    ("text", "count", "qmark"),
    [
        ("INSERT INTO t VALUES (?, ?)", 2, "INSERT INTO t VALUES (?, ?)"),
        ("SELECT a ?? b, ?", 1, "SELECT a ? b, ?"),
        ("SELECT '?', ?, 'it''s ?'", 1, None),
        ("SELECT ? -- why?", 1, None),
        ("SELECT $1, a$b, ?", 1, None),
        ("SELECT 'open ?", 0, None),
        ("SELECT 'back\\', ?", 1, None),
        ("SELECT E'back\\', ?'", 0, None),
        ("SELECT name'?'", 0, None),
    ],
)
def test_examples(text, count, qmark):
    sql = Sql.parse(text)
    assert (sql.placeholders, sql.render("qmark")) == (count, qmark or text)


def test_every_style_of_parameters():
    sql = Sql.parse("UPDATE t SET a = ?, b = '5%' WHERE c = ?")
    assert sql.render("format") == sql.render("pyformat") == "UPDATE t SET a = %s, b = '5%%' WHERE c = %s"
    assert sql.render("numeric") == "UPDATE t SET a = :1, b = '5%' WHERE c = :2"
    assert sql.render("numeric_dollar") == "UPDATE t SET a = $1, b = '5%' WHERE c = $2"


@given(st.lists(st.one_of(INSIDE, st.none()), min_size=1, max_size=6))
def test_sqlite_counts_as_we_do(values):
    """SQLite itself says how many parameters a statement has."""
    text = "SELECT " + ", ".join("?" if value is None else f"'{value}'" for value in values)
    free = values.count(None)
    assert Sql.parse(text).placeholders == free
    assert sqlite3.connect(":memory:").execute(text, ["x"] * free).fetchone() is not None


@pytest.mark.parametrize("nothing", ["", "  ", None, 7])
def test_no_statement(nothing):
    with pytest.raises(ValueError, match="expected an SQL statement"):
        Sql.parse(nothing)
