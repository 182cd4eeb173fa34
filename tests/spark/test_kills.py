"""Real processes, really killed: ten rounds each for a slot's worker, an executor and the driver."""

import pytest

from tests.spark.kill_job import KEYS
from tests.spark.kills import run_rounds

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]
ROUNDS = 10


@pytest.mark.parametrize("what", ["slot", "executor", "driver"])
def test_kill_9(what, tmp_path):
    victim = run_rounds(tmp_path, what, ROUNDS, seed=7)
    assert len(victim.recoveries) == ROUNDS
    victim.check(KEYS)
