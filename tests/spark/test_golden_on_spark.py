"""Programs whose results were recorded from Apache Flink, on Spark with one executor and with two."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

GOLDEN = Path(__file__).parent.parent / "golden"
MASTERS = ["local[2]", "local-cluster[2,1,1024]"]
NEED_WINDOWS = {
    "aggregate_then_process_window",
    "count_window_and_sliding_count",
    "global_window_purging_count_trigger",
    "late_records_to_side_output",
    "session_windows_merge",
    "sliding_event_time_apply",
    "tumbling_event_time_reduce",
    "tumbling_with_offset_process_window",
    "window_all_over_the_stream",
}
CASES = sorted(set(json.loads((GOLDEN / "expected.json").read_text())) - NEED_WINDOWS)


@cache
def outcome(master: str) -> dict[str, str]:
    """Run the harness once for all cases; what it said of each."""
    done = subprocess.run(
        [sys.executable, "harness.py", "check", "cases.py", "expected.json", *CASES],
        cwd=GOLDEN,
        env={**os.environ, "PENSTOCK_MASTER": master, "CASE_PKG": "penstock"},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    said = {m.group(2): m.group(0) for m in re.finditer(r"^(ok  |FAIL) (\w+)[^\n]*(\n {4}[^\n]*)*", done.stdout, re.M)}
    return {**said, "": done.stdout + done.stderr}


@pytest.mark.parametrize("master", MASTERS)
@pytest.mark.parametrize("case", CASES)
def test_recorded_result(master: str, case: str) -> None:
    said = outcome(master)
    assert said.get(case, said[""]).startswith("ok"), said.get(case, said[""])
