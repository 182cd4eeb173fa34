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
MASTERS = ["local[2]", "local-cluster[2,2,1024]"]
FILES = {"cases.py": "expected.json", "beyond_cases.py": "beyond_expected.json"}
CASES = [(file, case) for file, results in FILES.items() for case in sorted(json.loads((GOLDEN / results).read_text()))]


@cache
def outcome(master: str, file: str) -> dict[str, str]:
    """Run the harness once for all cases of a file; what it said of each."""
    done = subprocess.run(
        [sys.executable, "harness.py", "check", file, FILES[file]],
        cwd=GOLDEN,
        env={**os.environ, "PENSTOCK_MASTER": master, "CASE_PKG": "penstock"},
        capture_output=True,
        text=True,
        timeout=800,
        check=False,
    )
    said = {m.group(2): m.group(0) for m in re.finditer(r"^(ok  |FAIL) (\w+)[^\n]*(\n {4}[^\n]*)*", done.stdout, re.M)}
    return {**said, "": done.stdout + done.stderr}


@pytest.mark.parametrize("master", MASTERS)
@pytest.mark.parametrize(("file", "case"), CASES)
def test_recorded_result(master: str, file: str, case: str) -> None:
    said = outcome(master, file)
    assert said.get(case, said[""]).startswith("ok"), said.get(case, said[""])
