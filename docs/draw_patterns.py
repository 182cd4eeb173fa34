"""Draws the pictures of the page on patterns, from matches that are really found: `python docs/draw_patterns.py`.

The events are a row of letters. Below it is a row for each match: a disc for an event that the match took, with the
name of the element beside it, and a dot for one that it passed over.
"""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from pathlib import Path

from penstock.cep import AfterMatchSkipStrategy, Pattern
from penstock.cep.automaton import Action, Automaton, Edge, StateKind
from penstock.cep.compiler import compile_pattern
from penstock.cep.conditions import condition_text
from penstock.cep.event_matching import Match
from penstock.cep.testing import PatternTester

PICTURES = Path(__file__).parent / "pictures"
Case = tuple[str, Pattern]
"""A label, and the pattern that it stands for."""


# --- what is drawn ---
def is_in(letters: str) -> Callable[[tuple[int, str]], bool]:
    return lambda event: event[1] in letters


def a() -> Pattern:
    return Pattern.begin("a").where(is_in("a"))


def loop() -> Pattern:
    return a().followed_by("b").where(is_in("b")).one_or_more()


def skipping(strategy: AfterMatchSkipStrategy) -> Pattern:
    digits = Pattern.begin("b", strategy).where(is_in("123")).one_or_more()
    return digits.followed_by("c").where(is_in("c"))


def contiguity() -> list[Case]:
    return [
        ("next", a().next("b").where(is_in("b"))),
        ("followed_by", a().followed_by("b").where(is_in("b"))),
        ("followed_by_any", a().followed_by_any("b").where(is_in("b"))),
        ("not_next", a().not_next("n").where(is_in("b")).followed_by("b").where(is_in("b"))),
        ("not_followed_by", a().not_followed_by("n").where(is_in("c")).followed_by("b").where(is_in("b"))),
    ]


def loops() -> list[Case]:
    return [
        ("one_or_more()", loop()),
        (".consecutive()", loop().consecutive()),
        (".allow_combinations()", loop().allow_combinations()),
        (".greedy(), then d", loop().greedy().followed_by("d").where(is_in("d"))),
    ]


def skips() -> list[Case]:
    strategy = AfterMatchSkipStrategy
    return [
        ("no_skip()", skipping(strategy.no_skip())),
        ("skip_to_next()", skipping(strategy.skip_to_next())),
        ("skip_past_last_event()", skipping(strategy.skip_past_last_event())),
        ('skip_to_first("b")', skipping(strategy.skip_to_first("b"))),
        ('skip_to_last("b")', skipping(strategy.skip_to_last("b"))),
    ]


ROWS = {
    "pattern_contiguity": ("a c b b", contiguity),
    "pattern_loops": ("a b c b b d", loops),
    "pattern_skipping": ("1 2 3 c", skips),
}
AUTOMATON = "pattern_automaton"
EXPLAINED = "start(type = 'a') -> middle+(value > 5) -> end(type = 'b') within 10 s"


def matches_of(pattern: Pattern, letters: str) -> list[Match]:
    """What the matcher finds. An event is its place and its letter."""
    tester = PatternTester(pattern)
    for event in enumerate(letters.split()):
        tester.feed(event)
    return tester.matches


# --- rows of matches ---
LEFT, STEP, ROW, TOP = 215, 56, 40, 34
STYLE = (
    "text{font:13px sans-serif;fill:#24292f}.code{font-family:monospace}.small{font-size:11px;fill:#57606a}"
    ".event{fill:#f6f8fa;stroke:#57606a}.taken{fill:#ddf4ff;stroke:#0969da;stroke-width:1.5}"
    ".passed{fill:#8c959f}.line{stroke:#0969da;stroke-width:1.5;fill:none}.rule{stroke:#d0d7de}"
    ".take{stroke:#0969da;fill:none;stroke-width:1.5}.ignore{stroke:#57606a;fill:none;stroke-dasharray:5 3}"
    ".proceed{stroke:#57606a;fill:none;stroke-dasharray:1 3;stroke-width:1.5}"
)


def x(place: int) -> int:
    return LEFT + place * STEP


def text(left: int, y: int, content: str, kind: str = "", anchor: str = "middle") -> str:
    return f'<text class="{kind}" x="{left}" y="{y}" text-anchor="{anchor}">{escape(content)}</text>'


def disc(place: int, y: int, letter: str, kind: str) -> list[str]:
    return [f'<circle class="{kind}" cx="{x(place)}" cy="{y}" r="11"/>', text(x(place), y + 4, letter)]


def match_row(match: Match, y: int) -> list[str]:
    taken = sorted((place, letter, name) for name, events in match.items() for place, letter in events)
    first, last = taken[0][0], taken[-1][0]
    lines = [f'<line class="line" x1="{x(first)}" y1="{y}" x2="{x(last)}" y2="{y}"/>']
    for place in range(first, last):
        lines.append(f'<circle class="passed" cx="{x(place)}" cy="{y}" r="3"/>')
    for place, letter, name in taken:
        lines += [*disc(place, y, letter, "taken"), text(x(place) + 13, y - 7, name, "small", "start")]
    return lines


def rows_picture(title: str) -> str:
    letters, cases = ROWS[title]
    count, y = len(letters.split()), TOP + ROW
    width = x(count - 1) + 60
    lines = [text(16, TOP + 4, "events", "small", "start")]
    for place, letter in enumerate(letters.split()):
        lines += disc(place, TOP, letter, "event")
    for label, pattern in cases():
        lines.append(f'<line class="rule" x1="10" y1="{y - ROW // 2}" x2="{width - 10}" y2="{y - ROW // 2}"/>')
        lines.append(text(16, y + 4, label, "code", "start"))
        found = matches_of(pattern, letters)
        for match in found:
            lines += match_row(match, y)
            y += ROW
        if not found:
            lines.append(text(x(0) - 12, y + 4, "no match", "small", "start"))
            y += ROW
    return svg(title, width, y - ROW // 2 + 10, lines)


# --- the automaton ---
SPACE, MIDDLE, RADIUS = 220, 165, 34
RISE = {Action.TAKE: 1.0, Action.IGNORE: -0.75, Action.PROCEED: -1.3}
"""Takes go above the states, what takes nothing below them."""


def automaton_picture() -> str:
    automaton = compile_pattern(Pattern.parse(EXPLAINED))
    places = {state.number: place for place, state in enumerate(automaton.states[::-1])}
    lines: list[str] = []
    for state in automaton.states:
        for edge in state.edges:
            lines += arc(edge, places)
    lines += nodes(automaton, places)
    width = 2 * 90 + (len(places) - 1) * SPACE
    arrow = '<marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
    lines.insert(0, f'<defs>{arrow}<path d="M0 0L8 4L0 8z" fill="#57606a"/></marker></defs>')
    return svg(AUTOMATON, width, 2 * MIDDLE, lines)


def center(place: int) -> int:
    return 90 + place * SPACE


def nodes(automaton: Automaton, places: dict[int, int]) -> list[str]:
    lines = []
    for state in automaton.states:
        left, name = center(places[state.number]), state.name
        name = "match" if state.kind is StateKind.FINAL else name
        lines.append(f'<circle class="event" cx="{left}" cy="{MIDDLE}" r="{RADIUS}"/>')
        if state.kind is StateKind.FINAL:
            lines.append(f'<circle class="event" cx="{left}" cy="{MIDDLE}" r="{RADIUS - 4}"/>')
        lines.append(text(left, MIDDLE + 4, name, "small"))
    return lines


def arc(edge: Edge, places: dict[int, int]) -> list[str]:
    start, end = center(places[edge.source.number]), center(places[edge.target.number])
    side = RISE[edge.action]
    condition = condition_text(edge.condition)
    label = edge.action.value + ("" if condition == "always" else f" if {condition}")
    if start == end:
        y = MIDDLE - side * (RADIUS + 44)
        near = MIDDLE - (1 if side > 0 else -1) * (RADIUS - 3)
        path = f"M{start - 14} {near}C{start - 50} {y:.0f} {start + 50} {y:.0f} {start + 14} {near}"
        top = MIDDLE - side * (RADIUS + 52)
    else:
        height = 30 + 48 * abs(end - start) / SPACE
        up = (1 if side > 0 else -1) * height * (1.25 if end < start else 1) * abs(side)
        near = MIDDLE - (1 if side > 0 else -1) * (RADIUS - 8)
        toward = 20 if end > start else -20
        path = (
            f"M{start + toward} {near}Q{(start + end) // 2} {MIDDLE - RADIUS * (1 if up > 0 else -1) - up * 1.4:.0f} "
        )
        path += f"{end - toward} {near}"
        top = MIDDLE - RADIUS * (1 if up > 0 else -1) - up * 0.85
    return [
        f'<path class="{edge.action.value}" d="{path}" marker-end="url(#tip)"/>',
        text((start + end) // 2, int(top) + (0 if side > 0 else 12), label, "small"),
    ]


# --- files ---
def svg(title: str, width: int, height: int, lines: list[str]) -> str:
    body = "\n".join(lines)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">\n'
        f"<title>{title.replace('_', ' ')}</title>\n<style>{STYLE}</style>\n"
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>\n{body}\n</svg>\n'
    )


def pictures() -> dict[str, str]:
    """All pictures by their names; the same text every time."""
    return {**{title: rows_picture(title) for title in ROWS}, AUTOMATON: automaton_picture()}


def main() -> None:
    for title, content in pictures().items():
        (PICTURES / f"{title}.svg").write_text(content, encoding="utf-8")


if __name__ == "__main__":
    main()
