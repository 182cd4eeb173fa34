"""The parts of HTML for all displays in notebooks. They need no script and fit light and dark themes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from penstock.base.display.short_texts import count, escape, one_line, shorten, tooltip

MOST_COLUMNS = 20
"""Greatest number of columns of a table. Of a wider table, the first and the last columns are shown."""
LONGEST_CELL, LONGEST_TYPE = 60, 34
"""Greatest lengths of a cell and of a type, in characters. The tooltip of a longer one has more of it."""
NULL = "NULL"
GREEN, BLUE, RED, GREY, YELLOW = "#1a7f37", "#0969da", "#cf222e", "#6e7781", "#9a6700"
"""Colours of badges, on which white is easy to read."""
_LINE, _SHADE = "rgba(128, 128, 128, 0.3)", "rgba(128, 128, 128, 0.08)"
_STYLE = f"""<style>
.penstock {{ font: 13px/1.5 var(--jp-ui-font-family, system-ui, sans-serif); color: inherit }}
.penstock .head {{ display: flex; flex-wrap: wrap; align-items: baseline; gap: 2px 10px; margin: 2px 0 6px }}
.penstock .head b {{ font-size: 14px }}
.penstock .muted {{ opacity: 0.7; font-weight: normal }}
.penstock .badge {{ color: white; border-radius: 8px; padding: 0 8px }}
.penstock .failure {{ color: inherit; border-left: 4px solid #cf222e; padding: 2px 10px; white-space: pre-wrap }}
.penstock .scroll {{ overflow-x: auto }}
.penstock table {{ border-collapse: collapse; border: 0; margin: 0 0 6px; font-size: 13px; table-layout: auto }}
.penstock th, .penstock td {{ padding: 4px 14px 4px 6px; border: 0; border-bottom: 1px solid {_LINE};
  text-align: left !important; vertical-align: top; white-space: nowrap; max-width: none; background: none;
  color: inherit }}
.penstock thead th {{ border-bottom-width: 2px; vertical-align: bottom }}
.penstock th small {{ display: block; font-size: 11px }}
.penstock td.number, .penstock th.number {{ text-align: right !important; padding: 4px 6px 4px 14px;
  font-variant-numeric: tabular-nums }}
.penstock tbody tr:nth-child(even) {{ background: {_SHADE} }}
.penstock td i {{ opacity: 0.6 }}
.penstock pre {{ font: 12px/1.45 var(--jp-code-font-family, ui-monospace, monospace); margin: 0; padding: 8px 10px;
  background: {_SHADE}; color: inherit; white-space: pre; overflow-x: auto; border-radius: 6px }}
.penstock summary {{ cursor: pointer; margin: 6px 0 }}
</style>"""


@dataclass(frozen=True)
class Heading:
    """The heading of a column."""

    name: str
    type: str = ""
    numeric: bool = False
    """True if the values are aligned at their last digits."""


def whole(*parts: str) -> str:
    """Return parts of HTML as one element that contains the required style."""
    return f'<div class="penstock">{_STYLE}{"".join(parts)}</div>'


def head(title: str, *facts: str, badge: str = "", colour: str = "") -> str:
    """Return a line with a title and further facts beside it."""
    mark = f'<span class="badge" style="background: {colour}">{escape(badge)}</span>' if badge else ""
    about = " · ".join(escape(fact) for fact in facts if fact)
    return f'<div class="head"><b>{escape(title)}</b>{mark}<span class="muted">{about}</span></div>'


def note(text: str) -> str:
    """Return a line of secondary information."""
    return f'<div class="muted">{escape(text)}</div>'


def failure(text: str) -> str:
    """Return an error's text."""
    return f'<div class="failure">{escape(text)}</div>'


def code(text: str) -> str:
    """Return a text in which blanks and line breaks count."""
    return f"<pre>{escape(text)}</pre>"


def fold(title: str, content: str, is_open: bool = False) -> str:
    """Return content that a click on its title shows and hides."""
    start = '<details open="open">' if is_open else "<details>"
    return f"{start}<summary>{escape(title)}</summary>{content}</details>"


def grid(headings: Sequence[Heading], rows: Sequence[Sequence[str | None]]) -> str:
    """Return a table. A cell is a text, or None for NULL."""
    places = _places(len(headings))
    top = "".join("<th>…</th>" if place is None else _heading(headings[place]) for place in places)
    body = "".join(
        f"<tr>{''.join('<td>…</td>' if place is None else _cell(row[place], headings[place]) for place in places)}</tr>"
        for row in rows
    )
    left_out = len(headings) - MOST_COLUMNS
    more = note(f"{count(left_out, 'column')} more in the middle") if left_out > 0 else ""
    return f'<div class="scroll"><table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>{more}'


def _places(columns: int) -> list[int | None]:
    """Return the columns to show, with None where some are left out."""
    if columns <= MOST_COLUMNS:
        return list(range(columns))
    half = MOST_COLUMNS // 2
    return [*range(half), None, *range(columns - half, columns)]


def _heading(heading: Heading) -> str:
    kind = f'<small class="muted">{escape(shorten(heading.type, LONGEST_TYPE))}</small>' if heading.type else ""
    more = tooltip(f"{heading.name} {heading.type}") if len(heading.type) > LONGEST_TYPE else ""
    return f"<th{_align(heading)}{more}>{escape(shorten(heading.name, LONGEST_CELL))}{kind}</th>"


def _cell(text: str | None, heading: Heading) -> str:
    if text is None:
        return f"<td{_align(heading)}><i>{NULL}</i></td>"
    line = one_line(text)
    more = tooltip(text) if len(line) > LONGEST_CELL else ""
    return f"<td{_align(heading)}{more}>{escape(shorten(line, LONGEST_CELL))}</td>"


def _align(heading: Heading) -> str:
    return ' class="number"' if heading.numeric else ""
