"""Two real drivers of one job, with every exactly-once sink: one is stopped, the other takes over, the first goes on.

The first then ends and says who has the job, its processes are gone, and every system holds every record once.
"""

import os
import signal
from collections import Counter
from contextlib import suppress

import psutil
import psycopg
import pytest

from tests.services.fixtures import started
from tests.services.kafka import Kafka
from tests.services.postgres import Postgres
from tests.spark.kill_job import KEYS
from tests.spark.kills import Victim
from tests.spark.sinks_kills import TOPIC, held, prepare
from tests.waiting import SPARK_SECONDS

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def kafka():
    yield from started(Kafka())


@pytest.fixture(scope="module")
def postgres():
    yield from started(Postgres())


@pytest.fixture
def drivers(tmp_path):
    """The one that is displaced, and the one that displaces it. Nothing of them survives the test."""
    first = Victim(tmp_path, "local[2]", "sinks_kill_job", log_name="log of the first")
    second = Victim(tmp_path, "local[2]", "sinks_kill_job", {"TAKEOVER": "true"}, log_name="log of the second")
    yield first, second
    for victim in (first, second):
        if victim.process is not None and victim.process.poll() is None:
            victim.kill_driver()


def send(processes, what):
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.send_signal(what)


@pytest.mark.parametrize(
    "everything",
    [pytest.param(False, id="the driver alone", marks=pytest.mark.soak), pytest.param(True, id="all its processes")],
)
def test_a_driver_that_was_stopped_and_goes_on_does_no_harm(drivers, kafka, postgres, tmp_path, everything):
    prepare(tmp_path, kafka, postgres)
    first, second = drivers
    first.start()
    first.await_checkpoint(2)
    family = first.processes()
    stopped_ones = family if everything else family[:1]
    send(stopped_ones, signal.SIGSTOP)
    newest = first.checkpoint()
    second.start()
    second.await_checkpoint(newest + 2)
    send(stopped_ones, signal.SIGCONT)
    assert first.process.wait(SPARK_SECONDS) != 0, first.log()
    assert (
        f"JobDisplaced: the job has a new owner: process {second.process.pid} on {os.uname().nodename}" in first.log()
    )
    _, alive = psutil.wait_procs(family, timeout=SPARK_SECONDS)
    assert alive == [], "its slots and its Spark are gone"
    second.await_checkpoint(second.checkpoint() + 2)
    second.finish()
    second.check(KEYS)
    expected = Counter(second.emitted())
    for name, found in held(tmp_path, kafka, postgres).items():
        assert found == expected, f"{name}: {len(found - expected)} too many, {len(expected - found)} too few"
    with psycopg.connect(postgres.dsn) as database:
        left = database.execute("SELECT gid FROM pg_prepared_xacts").fetchall()
    # One of two slots that was stopped just before it began a transaction prepares it when it goes on, for nobody.
    assert len(left) <= (2 if everything else 0)
    assert kafka.stable_offsets(TOPIC) == kafka.end_offsets(TOPIC), "a transaction is open"
