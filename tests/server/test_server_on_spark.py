"""A server process and a job on real Spark, whose driver and whose server are killed; more is run by the page."""

import os
import signal

import pytest

from tests.server.helping import HERE, check_counts
from tests.server.processes import Client, ServerProcess, driver_pids

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]


@pytest.fixture
def one(tmp_path):
    made = ServerProcess(tmp_path / "data").start()
    yield made
    made.stop()


def test_kills_of_driver_and_server(one, tmp_path):
    client, out = Client(one), tmp_path / "out"
    storage = (tmp_path / "data/storage/default").as_uri()
    job = client.submit(HERE / "counting.py", str(out), "spark", parallelism=2)
    client.await_checkpoints(job)

    os.kill(driver_pids(storage, job)[-1], signal.SIGKILL)
    client.await_checkpoints(job)
    assert len(driver_pids(storage, job)) == 2

    one.kill()
    one.start()
    client.await_checkpoints(job)
    assert len(driver_pids(storage, job)) == 2, "the driver was adopted"

    managers = client.get("/taskmanagers")["taskmanagers"]
    assert any(manager["slotsNumber"] == 2 and manager["freeSlots"] == 0 for manager in managers)
    client.cancel(job)
    assert check_counts(out, 2) > 100
