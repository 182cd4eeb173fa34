"""Real processes, really killed, a few rounds each; `make kills` has ten.

A slot's worker and the driver are those of a job with every exactly-once sink, each against the real system.
"""

import pytest

from tests.services.fixtures import started
from tests.services.kafka import Kafka
from tests.services.postgres import Postgres
from tests.spark.kill_job import KEYS
from tests.spark.kills import run_rounds
from tests.spark.sinks_kills import kill_sinks

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1800)]
ROUNDS = 2


@pytest.fixture(scope="module")
def kafka():
    yield from started(Kafka())


@pytest.fixture(scope="module")
def postgres():
    yield from started(Postgres())


@pytest.mark.parametrize("what", ["slot", "driver"])
def test_kill_9_with_every_exactly_once_sink(what, kafka, postgres, tmp_path):
    victim = kill_sinks(tmp_path, kafka, postgres, what, ROUNDS, seed=7)
    assert len(victim.recoveries) == ROUNDS


def test_kill_9_of_executors(tmp_path):
    victim = run_rounds(tmp_path, "executor", ROUNDS, seed=7)
    assert len(victim.recoveries) == ROUNDS
    victim.check(KEYS)
