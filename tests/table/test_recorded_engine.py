"""More programs recorded from Flink, one for each way of an operator.

Left out of what was recorded is what differs from run to run in Flink: inputs that race, and the order of texts in
BATCH mode.
"""

from __future__ import annotations

import json

import pytest

from penstock.testing import in_process
from tests.table.test_recorded import RECORDED, harness

EXPECTED = json.loads((RECORDED / "engine_expected.json").read_text())


@pytest.mark.parametrize("case", EXPECTED)
def test_recorded_result(case: str) -> None:
    with in_process(epoch_records=3):
        wrong, _ = harness("engine_cases").differences(case, EXPECTED[case])
    assert wrong is None, wrong
