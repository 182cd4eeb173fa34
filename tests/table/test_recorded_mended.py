"""What once differed from Flink: results, printed texts, and the classes of errors."""

from __future__ import annotations

import json
from typing import Any

import pytest

from penstock.testing import in_process
from tests.table.test_recorded import RECORDED, harness

REFUSALS: list[tuple[str, str, str]] = json.loads((RECORDED / "refusals.json").read_text())
EXPECTED: dict[str, Any] = json.loads((RECORDED / "mended_expected.json").read_text())
EXPECTED |= {f"refused_{number}": {"error": kind} for number, (_, _, kind) in enumerate(REFUSALS)}


@pytest.mark.parametrize("case", EXPECTED)
def test_recorded_result(case: str) -> None:
    with in_process(epoch_records=3):
        wrong, _ = harness("mended_cases").differences(case, EXPECTED[case])
    assert wrong is None, wrong
