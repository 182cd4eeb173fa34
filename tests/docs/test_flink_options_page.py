"""The page of Flink's options is what the code does with each option of Flink's references."""

import json
import re
import runpy
from pathlib import Path
from types import SimpleNamespace

import pytest

from penstock.service.options.known_options import is_known
from penstock.service.options.options_without_effect import _PATTERNS, reason_without_effect
from penstock.service.options.translated_options import OPTIONS

ROOT = Path(__file__).parents[2]
listed = SimpleNamespace(**runpy.run_path(str(ROOT / "docs/list_flink_options.py")))
RECORDED = json.loads(listed.RECORDED.read_text())
NAMES = sorted({*RECORDED["1.8"], *RECORDED["2.3"]})
ROW = re.compile(r"\| `[^`]+` \| (?:1\.8|2\.3|1\.8, 2\.3) \| (?:effect|translated|none) \| .* \|")


def test_the_page_is_what_its_script_writes() -> None:
    assert listed.PAGE.read_text() == listed.page(), "run docs/list_flink_options.py"


def test_every_option_of_flink_has_a_row() -> None:
    rows = [line for line in listed.PAGE.read_text().splitlines() if line.startswith("| `")]
    assert [row for row in rows if not ROW.fullmatch(row)] == []
    assert len(rows) == len(NAMES) > 1000


@pytest.mark.parametrize("name", [name for name in NAMES if listed.judge(name)[0] == listed.NONE])
def test_what_has_no_effect_has_a_reason(name: str) -> None:
    assert len(listed.judge(name)[1]) > 15


def test_no_option_that_something_reads_is_said_to_have_no_effect() -> None:
    effective = [name for name in NAMES if listed.judge(name)[0] != listed.NONE]
    assert [name for name in effective if not is_known(name)] == []


def test_every_pattern_is_there_for_an_option() -> None:
    unread = [name for name in NAMES if not is_known(name)]
    reasons = {reason_without_effect(name) for name in unread}
    assert {reason for pattern, reason in _PATTERNS if not pattern.startswith("sql-gateway.")} <= reasons


def test_every_translated_option_is_one_of_flink() -> None:
    assert [option.name for option in OPTIONS if option.name not in NAMES] == []
