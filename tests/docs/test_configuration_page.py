"""The configuration page lists the options that are understood: all of them, their spellings and their defaults."""

import re
from pathlib import Path

import pytest

from penstock.service.options.environment_options import OPTIONS

PAGE = Path(__file__).parents[2] / "docs/configuration.md"
HEADER = "| option | other spellings | default | meaning |"


def rows():
    """The cells of every table of options."""
    found, within = [], False
    for line in PAGE.read_text().splitlines():
        within = line.startswith("|") and (within or line == HEADER)
        if within and line != HEADER and not line.startswith("|---"):
            found.append([cell.strip() for cell in line.strip("|").split("|")])
    return found


def code(cell):
    return re.findall(r"`([^`]+)`", cell)


def test_the_page_lists_the_options_in_the_order_of_the_code():
    assert [row[0] for row in rows()] == [f"`{option.name}`" for option in OPTIONS]


@pytest.mark.parametrize(
    ("row", "option"), list(zip(rows(), OPTIONS, strict=False)), ids=lambda value: getattr(value, "name", "")
)
def test_a_row_is_what_the_code_says(row, option):
    name, others, default, meaning = row
    assert (code(name), tuple(code(others))) == ([option.name], option.others)
    assert code(default) == ([] if option.default is None else [option.default])
    assert default and meaning
