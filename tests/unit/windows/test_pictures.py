"""The pictures of the page on windows are what the assigners say."""

import importlib.util
import sys
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import pytest

from penstock.datastream.window import TimeWindow

DOCS = Path(__file__).parents[3] / "docs"


@pytest.fixture
def drawing(monkeypatch):
    spec = importlib.util.spec_from_file_location("draw_windows", DOCS / "draw_windows.py")
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)
    spec.loader.exec_module(module)
    return module


def test_the_script_draws_the_pictures_that_are_shown(drawing):
    drawn = {f"{title}.svg": drawing.picture(title).encode() for title in drawing.ASSIGNERS}
    shown = [path for path in (DOCS / "pictures").glob("*.*") if not path.name.startswith("pattern_")]
    assert {path.name: path.read_bytes() for path in shown} == drawn


def test_the_pictures_are_well_formed(drawing):
    for title in drawing.ASSIGNERS:
        assert ElementTree.fromstring(drawing.picture(title)).tag.endswith("svg")


def test_the_pictures_hold_every_record_where_it_belongs(drawing):
    for assigner in drawing.ASSIGNERS.values():
        groups = drawing.windows_of(assigner)
        assert {name for _, names in groups for name in names} == set(drawing.RECORDS)
        assert all(window.start <= drawing.RECORDS[name] < window.end for window, names in groups for name in names)
    assert drawing.windows_of(drawing.ASSIGNERS["session"])[0] == (TimeWindow(1, 8), ["a", "b"])


def test_windows_of_a_row_do_not_overlap(drawing):
    for assigner in drawing.ASSIGNERS.values():
        for row in drawing.rows_of(drawing.windows_of(assigner)):
            assert all(left[0].end <= right[0].start for left, right in pairwise(row))


def test_the_page_shows_every_picture(drawing):
    text = (DOCS / "windows.md").read_text()
    assert all(f"(pictures/{title}.svg)" in text for title in drawing.ASSIGNERS)
