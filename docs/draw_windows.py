"""Draws the pictures of the page on windows, from the assigners themselves: `python docs/draw_windows.py`.

Each record is a dot on the line of time; each window is a bar above it that names the records it holds.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from penstock.datastream.window import (
    EventTimeSessionWindows,
    MergingWindowAssigner,
    SlidingEventTimeWindows,
    TimeWindow,
    TumblingEventTimeWindows,
)

PICTURES = Path(__file__).parent / "pictures"
RECORDS = {"a": 1, "b": 4, "c": 9, "d": 12, "e": 17, "f": 26}  # name: timestamp
ASSIGNERS = {
    "tumbling": TumblingEventTimeWindows.of(10),
    "sliding": SlidingEventTimeWindows.of(10, 5),
    "session": EventTimeSessionWindows.with_gap(4),
}

FIRST, LAST, SCALE = -5, 35, 20  # the stretch of time that is drawn, and pixels per millisecond
MARGIN, ROW, BAR = 20, 34, 24
STYLE = (
    "text{font:13px sans-serif;fill:#24292f}.axis{stroke:#57606a;stroke-width:1.5}.tick{stroke:#57606a}"
    ".window{fill:#ddf4ff;stroke:#0969da}.record{fill:#cf222e}.small{font-size:11px;fill:#57606a}"
)

Group = tuple[TimeWindow, list[str]]


class _Merged(MergingWindowAssigner.MergeCallback[TimeWindow]):
    """Puts the records of merged windows together."""

    def __init__(self, contents: dict[TimeWindow, list[str]]) -> None:
        self.contents = contents

    def merge(self, to_be_merged: Iterable[TimeWindow], merge_result: TimeWindow) -> None:
        names = [name for window in to_be_merged for name in self.contents.pop(window)]
        self.contents[merge_result] = names


def windows_of(assigner: Any) -> list[Group]:
    """Every window with the names of its records, in order of time."""
    contents: dict[TimeWindow, list[str]] = {}
    for name, timestamp in RECORDS.items():
        for window in assigner.assign_windows(name, timestamp, None):
            contents.setdefault(window, []).append(name)
    if isinstance(assigner, MergingWindowAssigner):
        assigner.merge_windows(list(contents), _Merged(contents))
    return [(window, sorted(names)) for window, names in sorted(contents.items())]


def rows_of(groups: list[Group]) -> list[list[Group]]:
    """The windows in rows in which none overlap."""
    rows: list[list[Group]] = []
    for group in groups:
        for row in rows:
            if row[-1][0].end <= group[0].start:
                row.append(group)
                break
        else:
            rows.append([group])
    return rows


def x(time: int) -> int:
    return MARGIN + (time - FIRST) * SCALE


def bar(group: Group, top: int) -> list[str]:
    window, names = group
    left, width = x(window.start), (window.end - window.start) * SCALE
    middle = left + width // 2
    return [
        f'<rect class="window" x="{left + 2}" y="{top}" width="{width - 4}" height="{BAR}" rx="4"/>',
        f'<text x="{middle}" y="{top + 17}" text-anchor="middle">'
        f"[{window.start}, {window.end}): {' '.join(names)}</text>",
    ]


def axis(y: int) -> list[str]:
    lines = [f'<line class="axis" x1="{x(FIRST)}" y1="{y}" x2="{x(LAST)}" y2="{y}"/>']
    for time in range(FIRST, LAST + 1, 5):
        lines.append(f'<line class="tick" x1="{x(time)}" y1="{y}" x2="{x(time)}" y2="{y + 6}"/>')
        lines.append(f'<text class="small" x="{x(time)}" y="{y + 19}" text-anchor="middle">{time}</text>')
    for name, timestamp in RECORDS.items():
        lines.append(f'<circle class="record" cx="{x(timestamp)}" cy="{y}" r="5"/>')
        lines.append(f'<text x="{x(timestamp)}" y="{y - 9}" text-anchor="middle">{name}</text>')
    return lines


def picture(title: str) -> str:
    """One SVG; the same text every time."""
    rows = rows_of(windows_of(ASSIGNERS[title]))
    line = MARGIN + len(rows) * ROW + 22
    width, height = x(LAST) + MARGIN, line + 30
    parts = [bar(group, MARGIN + number * ROW) for number, row in enumerate(rows) for group in row]
    body = "\n".join(element for part in [*parts, axis(line)] for element in part)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">\n'
        f"<title>{ASSIGNERS[title]!r}</title>\n<style>{STYLE}</style>\n"
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>\n{body}\n</svg>\n'
    )


def main() -> None:
    for title in ASSIGNERS:
        (PICTURES / f"{title}.svg").write_text(picture(title), encoding="utf-8")


if __name__ == "__main__":
    main()
