"""Queries of many forms, above all with queries inside, give what they gave in Flink 2.3.0."""

from __future__ import annotations

import json
from typing import Any

import pytest

from penstock.testing import in_process
from tests.table.test_recorded import RECORDED, harness

EXPECTED: dict[str, Any] = json.loads((RECORDED / "sql_expected.json").read_text())


@pytest.mark.parametrize("case", EXPECTED)
def test_recorded_query(case: str) -> None:
    with in_process(epoch_records=3):
        wrong, _ = harness("sql_cases").differences(case, EXPECTED[case])
    assert wrong is None, wrong
