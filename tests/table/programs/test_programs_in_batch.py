"""Programs in BATCH mode on Penstock's operators: they give what Flink's sinks hold at the end of the stream."""

from __future__ import annotations

import pytest

from penstock.testing import in_process
from tests.table.programs.batch import NAMES, expected_rows, result
from tests.table.programs.test_programs import script

__all__ = ["script"]


@pytest.mark.parametrize("name", NAMES)
def test_a_program_in_batch_mode(name: str) -> None:
    with in_process():
        assert result(name, "penstock") == expected_rows(name)
