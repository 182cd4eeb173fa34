"""A graph of boxes and arrows as SVG, from left to right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from penstock.base.display.short_texts import escape, shorten, shorten_middle

WIDTH = 212
"""Width of a box, in pixels, as all lengths here."""
_GAP_X, _GAP_Y, _LINE_HEIGHT, _TITLE_HEIGHT = 92, 18, 18, 34
_LANE = 22
"""Height of an arrow that passes a column of boxes."""
_LONGEST_TITLE, _LONGEST_LINE = 25, 30
_HALO = (
    "paint-order: stroke; stroke: var(--jp-layout-color0, var(--vscode-editor-background, Canvas)); stroke-width: 5px"
)
"""Style of a text on a line: a rim in the colour of the page."""


@dataclass(frozen=True)
class Box:
    """A node of the graph."""

    id: str
    title: str
    lines: tuple[str, ...] = ()
    colour: str = "hsl(210, 70%, 50%)"
    tooltip: str = ""


@dataclass(frozen=True)
class Arrow:
    """An edge of the graph."""

    source: str
    target: str
    label: str = ""


@dataclass
class _Point:
    """A box, or the place where an arrow passes a column between its ends."""

    column: int
    before: list[_Point]
    height: int
    y: float = 0.0

    @property
    def x(self) -> int:
        return 1 + self.column * (WIDTH + _GAP_X)

    @property
    def middle(self) -> float:
        return self.y + self.height / 2


def draw(boxes: Sequence[Box], arrows: Sequence[Arrow], about: str) -> str:
    """Return the graph as SVG.

    In `boxes`, each box comes after its predecessors. `about` is the title of the picture.
    """
    known = {box.id for box in boxes}
    arrows = [arrow for arrow in arrows if arrow.source in known and arrow.target in known]
    height = _TITLE_HEIGHT + _LINE_HEIGHT * max((len(box.lines) for box in boxes), default=0)
    points = _points(boxes, arrows, height)
    ways = [_way(points, arrow) for arrow in arrows]
    columns = _columns(list(points.values()), ways)
    for column in columns:
        _stack(column)
    wide = max((point.x for point in points.values()), default=0) + WIDTH + 1
    high = max((round(point.y) + point.height for column in columns for point in column), default=0) + 1
    drawn = [_arrow(way) for way in ways] + _labels(arrows, ways)
    drawn += [_box(box, points[box.id]) for box in boxes]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" width="{wide}" height="{high}" '
        f'viewBox="0 0 {wide} {high}" font-family="inherit"><title>{escape(about)}</title>{"".join(drawn)}</svg>'
    )


# --- places ---
def _points(boxes: Sequence[Box], arrows: Sequence[Arrow], height: int) -> dict[str, _Point]:
    """Return the place of each box: its column is after the columns of all its predecessors."""
    sources: dict[str, list[str]] = {box.id: [] for box in boxes}
    for arrow in arrows:
        sources[arrow.target].append(arrow.source)
    points: dict[str, _Point] = {}
    for box in boxes:
        column = max((points[one].column + 1 for one in sources[box.id] if one in points), default=0)
        points[box.id] = _Point(column, [], height)
    return points


def _way(points: Mapping[str, _Point], arrow: Arrow) -> list[_Point]:
    """Return the points that an arrow connects, with a lane in each column between its ends."""
    first, last = points[arrow.source], points[arrow.target]
    way = [first]
    for column in range(first.column + 1, last.column):
        way.append(_Point(column, [way[-1]], _LANE))
    last.before.append(way[-1])
    return [*way, last]


def _columns(boxes: Sequence[_Point], ways: Sequence[Sequence[_Point]]) -> list[list[_Point]]:
    columns: list[list[_Point]] = [[] for _ in range(max((point.column for point in boxes), default=-1) + 1)]
    for point in [*boxes, *(lane for way in ways for lane in way[1:-1])]:
        columns[point.column].append(point)
    return columns


def _stack(column: list[_Point]) -> None:
    """Stack the points of a column. If there is room, each point is beside the middle of its predecessors."""
    free = 1.0
    for point in sorted(column, key=_wish):
        wish = _wish(point) - point.height / 2
        point.y = max(free, wish)
        free = point.y + point.height + _GAP_Y


def _wish(point: _Point) -> float:
    if not point.before:
        return 0.0
    return sum(one.middle for one in point.before) / len(point.before)


# --- drawing ---
def _arrow(way: Sequence[_Point]) -> str:
    steps: list[str] = []
    for source, target in pairwise(way):
        x1, x2, y1, y2 = source.x + WIDTH, target.x, source.middle, target.middle
        bend = (x2 - x1) / 2
        start = f"M {x1} {y1:.0f}" if not steps else f"L {x1} {y1:.0f}"
        steps.append(f"{start} C {x1 + bend:.0f} {y1:.0f}, {x2 - bend:.0f} {y2:.0f}, {x2} {y2:.0f}")
    end = way[-1]
    tip = f"M {end.x - 6} {end.middle - 4:.0f} L {end.x} {end.middle:.0f} L {end.x - 6} {end.middle + 4:.0f}"
    return f'<path d="{" ".join([*steps, tip])}" fill="none" stroke="currentColor" stroke-opacity="0.55"/>'


def _labels(arrows: Sequence[Arrow], ways: Sequence[Sequence[_Point]]) -> list[str]:
    """Return the labels, each in the middle of its arrow's first part. Equal labels at one place are written once."""
    labels = [_label(arrow.label, way[0], way[1]) for arrow, way in zip(arrows, ways, strict=True) if arrow.label]
    return list(dict.fromkeys(labels))


def _label(label: str, source: _Point, target: _Point) -> str:
    x, y = (source.x + WIDTH + target.x) / 2, (source.middle + target.middle) / 2 + 3.5
    return (
        f'<text x="{x:.0f}" y="{y:.0f}" font-size="10" text-anchor="middle" fill="currentColor" style="{_HALO}">'
        f"{escape(label)}</text>"
    )


def _box(box: Box, point: _Point) -> str:
    x, y = point.x, round(point.y)
    texts = [_text(x + 10, y + 22, shorten_middle(box.title, _LONGEST_TITLE), ' font-weight="bold"')]
    texts += [
        _text(x + 10, y + 24 + _LINE_HEIGHT * number, shorten(line, _LONGEST_LINE))
        for number, line in enumerate(box.lines, start=1)
    ]
    frame = (
        f'<rect x="{x}" y="{y}" width="{WIDTH}" height="{point.height}" rx="8" fill="{box.colour}" '
        f'fill-opacity="0.15" stroke="{box.colour}"/>'
    )
    return f"<g><title>{escape(box.tooltip or box.title)}</title>{frame}{''.join(texts)}</g>"


def _text(x: int, y: int, said: str, more: str = "") -> str:
    return f'<text x="{x}" y="{y}" font-size="12" fill="currentColor"{more}>{escape(said)}</text>'
