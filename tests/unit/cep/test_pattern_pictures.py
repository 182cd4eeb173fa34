"""The pictures of the page on patterns are what the matcher finds."""

import importlib.util
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

DOCS = Path(__file__).parents[3] / "docs"


@pytest.fixture
def drawing(monkeypatch):
    spec = importlib.util.spec_from_file_location("draw_patterns", DOCS / "draw_patterns.py")
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)
    spec.loader.exec_module(module)
    return module


def test_the_script_draws_the_pictures_that_are_shown(drawing):
    drawn = {f"{title}.svg": content.encode() for title, content in drawing.pictures().items()}
    assert {path.name: path.read_bytes() for path in (DOCS / "pictures").glob("pattern_*")} == drawn


def test_the_pictures_hold_every_match(drawing):
    for title, (letters, cases) in drawing.ROWS.items():
        root = ElementTree.fromstring(drawing.rows_picture(title))
        discs = [element for element in root.iter() if element.get("class") == "taken"]
        found = [match for _, pattern in cases() for match in drawing.matches_of(pattern, letters)]
        assert len(discs) == sum(len(events) for match in found for events in match.values()) > 0


def test_the_automaton_has_every_edge(drawing):
    root = ElementTree.fromstring(drawing.automaton_picture())
    states = drawing.compile_pattern(drawing.Pattern.parse(drawing.EXPLAINED)).states
    edges = [element for element in root.iter() if element.get("marker-end")]
    assert len(edges) == sum(len(state.edges) for state in states)


def test_the_page_shows_every_picture(drawing):
    text = (DOCS / "cep.md").read_text()
    assert all(f"(pictures/{title}.svg)" in text for title in drawing.pictures())
