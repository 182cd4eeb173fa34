"""Graphs as SVG: boxes and lanes never lie on each other, arrows go from left to right, and labels are read."""

import re
import xml.etree.ElementTree as ET

from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.base.display.flow_graph import WIDTH, Arrow, Box, draw

SVG = "{http://www.w3.org/2000/svg}"


@st.composite
def graphs(data):
    count = data(st.integers(1, 25))
    arrows = [
        Arrow(str(source), str(target), data(st.sampled_from(["", "HASH", "REBALANCE"])))
        for target in range(1, count)
        for source in data(st.sets(st.integers(0, target - 1), max_size=3))
    ]
    lines = data(st.integers(0, 4))
    return [Box(str(n), f"box {n}", ("line",) * lines) for n in range(count)], arrows


def frames(drawn):
    return [tuple(float(rect.get(part)) for part in ("x", "y", "width", "height")) for rect in drawn.iter(f"{SVG}rect")]


@settings(deadline=None, max_examples=60)
@given(graphs())
def test_boxes_stand_apart_and_inside_of_the_picture(graph):
    drawn = ET.fromstring(draw(*graph, "a graph"))
    boxes = frames(drawn)
    assert len(boxes) == len(graph[0])
    for number, (x, y, width, height) in enumerate(boxes):
        assert x + width <= float(drawn.get("width")) and y + height <= float(drawn.get("height"))
        for ox, oy, _, _ in boxes[:number]:
            assert ox != x or abs(oy - y) >= height


@settings(deadline=None, max_examples=60)
@given(graphs())
def test_an_arrow_begins_and_ends_at_its_boxes_and_passes_none(graph):
    boxes, arrows = graph
    drawn = ET.fromstring(draw(boxes, arrows, "a graph"))
    places = {box.id: frame for box, frame in zip(boxes, frames(drawn), strict=True)}
    for arrow, path in zip(arrows, drawn.iter(f"{SVG}path"), strict=True):
        way, _, tip = path.get("d").rpartition("M")
        points = [tuple(map(float, pair)) for pair in re.findall(r"(-?[\d.]+) (-?[\d.]+)", way)]
        x, y, width, height = places[arrow.source]
        assert points[0][0] == x + width and abs(points[0][1] - (y + height / 2)) <= 1
        x, y, width, height = places[arrow.target]
        assert points[-1][0] == x and abs(points[-1][1] - (y + height / 2)) <= 1
        assert tip
        for x, y, width, height in places.values():
            assert not [one for one in points if x < one[0] < x + width and y < one[1] < y + height]


def test_a_label_is_written_once_for_arrows_of_one_way():
    arrows = [Arrow("a", "b", "HASH"), Arrow("a", "b", "HASH"), Arrow("a", "c", "HASH")]
    drawn = ET.fromstring(draw([Box(name, name) for name in "abc"], arrows, "joins"))
    labels = [text.text for text in drawn.iter(f"{SVG}text") if text.get("font-size") == "10"]
    assert labels == ["HASH", "HASH"]


def test_long_names_are_cut_and_whole_in_the_tooltip():
    drawn = ET.fromstring(draw([Box("a", "n" * 200)], [], "one"))
    (text,) = drawn.iter(f"{SVG}text")
    assert "…" in text.text and len(text.text) * 7 < WIDTH
    assert "n" * 200 in [title.text for title in drawn.iter(f"{SVG}title")]


def test_arrows_to_boxes_that_are_not_shown_are_left_out():
    assert "<path" not in draw([Box("a", "a")], [Arrow("a", "gone"), Arrow("gone", "a")], "part")
