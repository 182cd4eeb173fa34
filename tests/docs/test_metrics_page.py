"""The pages about metrics: the options are those of the code."""

import re
from pathlib import Path

from penstock.launch.metric_options import OPTIONS

DOCS = Path(__file__).parents[2] / "docs"
SECTION = (DOCS / "configuration.md").read_text().partition("### Metrics\n")[2].partition("\n### ")[0]


def code(cell):
    return re.findall(r"`([^`]+)`", cell)


def test_the_options_are_those_of_the_code():
    rows = [line.strip("|").split("|") for line in SECTION.splitlines() if line.startswith("| `")]
    listed = [(code(name)[0], tuple(code(others)), code(default)) for name, others, default, _ in rows]
    assert listed == [(option.name, option.others, [option.default]) for option in OPTIONS]
