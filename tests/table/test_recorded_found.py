"""Queries that once differed from Flink, each in a line of found.json with the tables it reads and what Flink gave."""

from __future__ import annotations

import json
from typing import Any

import pytest

from penstock.testing import in_process
from tests.table.test_recorded import RECORDED, harness

FOUND: dict[str, Any] = json.loads((RECORDED / "found.json").read_text())


@pytest.mark.parametrize("case", FOUND)
def test_recorded_result(case: str) -> None:
    with in_process(epoch_records=3):
        wrong, _ = harness("found_cases").differences(case, FOUND[case]["expected"])
    assert wrong is None, wrong
