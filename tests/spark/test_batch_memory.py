"""A keyed BATCH job keeps within its memory, whatever the size of its input."""

import json
import subprocess
import sys

import pytest

from tests.spark.batch_memory_job import held
from tests.spark.kills import ROOT

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]
RECORDS = 250_000


@pytest.mark.soak
def test_the_input_is_several_times_the_memory():
    """Runs with little input, with little memory, and with memory for everything: the last shows that excess would be
    seen."""
    jobs = ["1000", "16 mb", str(RECORDS), "16 mb", str(RECORDS), "1 gb"]
    command = [sys.executable, "-m", "tests.spark.batch_memory_job", *jobs]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr[-4000:]
    tiny, bounded, unbounded = map(json.loads, ended.stdout.splitlines())
    assert held(RECORDS) > 7 * (16 << 20)
    assert tiny["right"] and bounded["right"] and unbounded["right"]
    assert unbounded["peak"] - tiny["peak"] > held(RECORDS)
    assert bounded["peak"] - tiny["peak"] < held(RECORDS) / 2
