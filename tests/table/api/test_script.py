"""Scripts are cut where a statement ends, and nowhere else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.service.cli.sql.script_statements import is_complete, statements

QUIET = st.text(st.characters(exclude_characters="'`\";-/*", exclude_categories=("Cs", "Cc")), min_size=1).filter(
    lambda text: bool(text.strip()) and text == text.strip()
)


@given(st.lists(QUIET, min_size=1, max_size=5))
def test_joined_statements_come_apart_again(parts):
    assert statements(";\n".join(parts)) == parts


@given(QUIET)
def test_a_semicolon_inside_quotes_ends_nothing(text):
    whole = f"SELECT '{text};', `{text};`"
    assert statements(whole + "; SELECT 2") == [whole, "SELECT 2"]


def test_comments_are_left_out_and_hints_are_kept():
    assert statements("-- one; two\nSELECT 1 /* three; */ + 2; SELECT /*+ OPTIONS('a'='b') */ 3") == [
        "SELECT 1   + 2",
        "SELECT /*+ OPTIONS('a'='b') */ 3",
    ]


def test_a_statement_set_is_one_statement():
    text = "EXECUTE STATEMENT SET BEGIN INSERT INTO a SELECT 1; INSERT INTO b SELECT 2; END; SELECT 3"
    assert statements(text) == [
        "EXECUTE STATEMENT SET BEGIN INSERT INTO a SELECT 1; INSERT INTO b SELECT 2; END",
        "SELECT 3",
    ]


@pytest.mark.parametrize("verb", ["EXPLAIN", "EXPLAIN EXECUTE", "EXPLAIN ESTIMATED_COST, CHANGELOG_MODE", "execute"])
def test_an_explained_statement_set_is_one_statement(verb):
    whole = f"{verb} STATEMENT SET\nBEGIN INSERT INTO a SELECT 1; INSERT INTO b SELECT 2; END"
    assert statements(f"{whole}; SELECT 3") == [whole, "SELECT 3"]


def test_a_set_that_is_gathered_has_a_statement_for_each_part():
    parts = ["BEGIN STATEMENT SET", "INSERT INTO a SELECT 1", "END"]
    assert statements(";".join(parts) + ";") == parts


@pytest.mark.parametrize(
    ("text", "complete"),
    [
        ("", True),
        ("SELECT 1", False),
        ("SELECT 1;", True),
        ("SELECT ';", False),
        ("SELECT 1; SELECT", False),
        ("/*;", False),
    ],
)
def test_a_prompt_knows_when_a_statement_is_whole(text, complete):
    assert is_complete(text) is complete
