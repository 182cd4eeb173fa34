"""Parts of HTML: whatever is in them stays text, and what is too long or too wide is cut."""

import xml.etree.ElementTree as ET

from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.base.display.html_parts import (
    LONGEST_CELL,
    MOST_COLUMNS,
    Heading,
    code,
    failure,
    fold,
    grid,
    head,
    note,
    whole,
)
from penstock.base.display.short_texts import MOST_IN_TOOLTIP, printable

OWN_TAGS = {
    *("div", "style", "b", "span", "pre", "details", "summary"),
    *("table", "thead", "tbody", "tr", "th", "td", "small"),
}
ANY_TEXT = st.text(max_size=60) | st.sampled_from(
    ["<script>alert(1)</script>", "]]>", "&amp;", "\x00", "\ud800", "a\nb"]
)


def parsed(*parts):
    """The parts as XML: what is well-formed there is so in HTML, and no text has become an element."""
    return ET.fromstring(whole(*parts))


@settings(deadline=None)
@given(ANY_TEXT)
def test_texts_stay_texts(text):
    parts = [head(text, text, badge=text, colour="red"), note(text), failure(text), code(text), fold(text, code(text))]
    drawn = parsed(*parts, grid([Heading(text, text)], [[text]]))
    tags = {element.tag for element in drawn.iter()}
    assert tags <= OWN_TAGS
    lines = printable(text).replace("\r\n", "\n").replace("\r", "\n")  # as every parser reads them
    assert "".join(drawn.find(".//pre").itertext()) == lines


def cells(drawn):
    return ["".join(cell.itertext()) for cell in drawn.iter("td")]


def test_null_is_no_text():
    drawn = parsed(grid([Heading("a"), Heading("b")], [["NULL", None]]))
    text, null = drawn.iter("td")
    assert text.text == "NULL" and text.find("i") is None
    assert null.find("i").text == "NULL"


def test_numbers_are_aligned_at_their_last_digits():
    drawn = parsed(grid([Heading("n", "INT", numeric=True), Heading("s", "STRING")], [["1", "a"]]))
    assert [cell.get("class") for cell in drawn.iter("td")] == ["number", None]


def test_a_long_value_is_cut_and_its_tooltip_has_more():
    drawn = parsed(grid([Heading("a")], [["x" * 5000], ["y" * LONGEST_CELL]]))
    long, short = drawn.iter("td")
    assert long.text == "x" * (LONGEST_CELL - 1) + "…" and len(long.get("title")) == MOST_IN_TOOLTIP
    assert short.text == "y" * LONGEST_CELL and short.get("title") is None


def test_line_breaks_do_not_make_a_row_higher():
    assert cells(parsed(grid([Heading("a")], [["one\ntwo\tthree"]]))) == ["one↵two⇥three"]


def test_of_a_wide_table_the_first_and_last_columns_are_shown():
    wide = MOST_COLUMNS + 5
    drawn = parsed(grid([Heading(f"c{n}") for n in range(wide)], [[str(n) for n in range(wide)]]))
    shown = cells(drawn)
    assert (shown[0], shown[-1], shown[MOST_COLUMNS // 2]) == ("0", str(wide - 1), "…")
    assert len(shown) == MOST_COLUMNS + 1
    assert "5 columns more in the middle" in "".join(drawn.itertext())


def test_a_table_without_rows_has_its_headings():
    assert [one.text for one in parsed(grid([Heading("a"), Heading("b")], [])).iter("th")] == ["a", "b"]
