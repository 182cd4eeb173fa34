"""Patterns as text, and as automata in text and dot."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.cep import AfterMatchSkipStrategy, MalformedPatternException, Pattern
from penstock.cep.testing import PatternTester
from penstock.common import Duration, Row


@pytest.mark.parametrize(
    ("text", "events", "found"),
    [
        ("a(t = 'x') => b", "xyz", ["xy"]),
        ("a(t = 'x') -> b(t = 'z')", "xyz", ["xz"]),
        ("a(t = 'x') ->> b(not t = 'y')", "xyzz", ["xz", "xz"]),
        ("a(t = 'x') !=> n(t = 'y') -> b(t = 'z')", "xyzxz", ["xz"]),
        ("a(t = 'x') !-> n(t = 'y') -> b(t = 'z')", "xwyzxwz", ["xz"]),
        ("a(t = 'x') => b?(t = 'y') => c(t = 'z')", "xyzxz", ["xyz", "xz"]),
        ("a(t = 'x')=>b*consecutive(t='y')=>c(t = 'z')", "xyyzxz", ["xyyz", "xz"]),
        ("a{2}(t = 'x')", "xxx", ["xx", "xx"]),
        ("a{2,3} consecutive greedy (t = 'x') -> b(t = 'y')", "xxxy", ["xxxy", "xxy"]),
        ("(a(t = 'x') => b(t = 'y')){2}", "xyxy", ["xxyy"]),
        ("a+(t = 'x') until (t = 'z')", "xz", ["x"]),
        ("a(t in ('x', 'y')) => b(n = a.n + 1 and n % 2 = 1 or false)", "xyxy", ["xy", "xy"]),
        ("a+ consecutive (t = 'x') => b(n > avg(a.n) and count(a) >= 2 and min(a.n) = first(a.n))", "xxy", ["xxy"]),
        ("a(t = 'x') -> b(t = 'y') within 2 ms", "xyxzy", ["xy"]),
        ("a(t = 'x') -> b(t = 'y') wait 2 ms", "xyxzy", ["xy"]),
        ("a(t = 'x') => b skip past last event", "xxxx", ["xx", "xx"]),
        ("a(t = 'x')\n  -> b(t != null)", "xy", ["xy"]),
    ],
)
def test_means_what_it_says(text, events, found):
    for form in (text, str(Pattern.parse(text))):
        tester = PatternTester(Pattern.parse(form))
        for number, kind in enumerate(events):
            tester.feed({"t": kind, "n": number})
        assert ["".join(e["t"] for events in match.values() for e in events) for match in tester.matches] == found


@pytest.mark.parametrize("event", [Row(t="x"), type("Event", (), {"t": "x"})(), {"t": "x"}])
def test_fields_of_what_events_may_be(event):
    assert PatternTester(Pattern.parse("a(t = 'x')")).feed(event) == [{"a": [event]}]


def test_fields_of_tuples_have_numbers():
    assert PatternTester(Pattern.parse("a(f1 = 'x')")).feed((1, "x")) == [{"a": [(1, "x")]}]


@pytest.mark.parametrize(
    ("text", "line", "column", "words"),
    [
        ("", 1, 1, "expected the name of an element"),
        ("a -> ", 1, 6, "expected the name of an element"),
        ("a(t = )", 1, 7, "expected a field, a number or a text"),
        ("a(t = 'x'", 1, 10, "expected ')'"),
        ("a ->\n b(t == 2)", 2, 7, "expected a field"),
        ("a b", 1, 3, "expected an arrow"),
        ("a within 5 parsecs", 1, 12, "expected 'ms' or 's'"),
        ("a{1.5}", 1, 3, "expected a whole number"),
        ("a -> b(sum(c.x) > 1)", 1, 8, "'c' is not an element of the pattern"),
        ("a -> b{0}", 1, 6, "'b': an element cannot match"),
        ("a? !-> b", 1, 8, "'b' cannot be a not_followed_by element behind 'a'"),
        ("a § b", 1, 3, "'§' has no meaning here"),
        ("a skip to last", 1, 15, "expected the name of an element"),
    ],
)
def test_an_error_shows_its_place(text, line, column, words):
    with pytest.raises(MalformedPatternException) as caught:
        Pattern.parse(text)
    assert (caught.value.line, caught.value.column) == (line, column)
    assert words in str(caught.value)


quantifiers = st.sampled_from(["", "?", "+", "*", "{2}", "{2,}", "{2,}?", "{1,3}", "+ consecutive", "* combinations"])
conditions = st.sampled_from(["", "(x = 1)", "(x > 1 and (y = 'b' or not (z = 3)))", "(x in (1, 'a'))", "(true)"])
arrows = st.sampled_from(["=>", "->", "->>"])
limits = st.sampled_from(["", " within 5 s", " wait 20 ms", " wait 1 s within 2 h"])


@st.composite
def texts(draw, depth=1, prefix="e"):
    text = ""
    for number in range(draw(st.integers(1, 3))):
        name = f"{prefix}{number}"
        if depth and draw(st.booleans()):
            element = f"({draw(texts(depth - 1, name))}){draw(quantifiers)}{draw(limits)}"
        else:
            how_often, condition = draw(quantifiers), draw(conditions)
            between = " " if condition and " " in how_often else ""
            element = f"{name}{how_often}{between}{condition}{draw(limits)}"
        text += f" {draw(arrows)} {element}" if text else element
    return text


@given(texts())
def test_prints_itself(text):
    assert str(Pattern.parse(text)) == text


def test_python_functions_are_printed_by_their_names():
    def cheap(event):
        return event < 5

    pattern = Pattern.begin("a", AfterMatchSkipStrategy.skip_to_next()).where(cheap).where(lambda e: e > 1)
    assert (
        str(pattern.next("b").within(Duration.of_seconds(90))) == "a(cheap and <lambda>) => b within 90 s skip to next"
    )


EXPLAINED = """\
within 10000 ms, no skip
start (start)
  take if type = 'a' -> middle:1
middle:1
  take if value > start.value -> middle
  ignore if not (value > start.value) -> middle:1
middle:0
  take if value > start.value -> middle
  ignore if not (value > start.value) -> middle:0
middle
  proceed -> end
  take if value > start.value -> middle
  ignore if not (value > start.value) -> middle:0
end (final)"""


def test_explain():
    pattern = Pattern.parse("start(type = 'a') -> middle+(value > start.value) within 10 s")
    assert pattern.explain() == EXPLAINED
    dot = pattern.explain("dot")
    assert (
        dot.startswith("digraph pattern {")
        and '"start" -> "middle:1" [label="take if type = \'a\'", style=solid];' in dot
    )
    with pytest.raises(ValueError, match="'text' and 'dot'"):
        pattern.explain("png")
