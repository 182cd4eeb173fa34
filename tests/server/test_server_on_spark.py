"""A server process and a job on real Spark: savepoint, rescaling, and kills of the driver and of the server."""

import os
import signal

import httpx
import pytest

from tests.server.helping import HERE, check_counts
from tests.server.processes import Client, ServerProcess, driver_pids
from tests.waiting import SPARK_SECONDS, until

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]


@pytest.fixture
def one(tmp_path):
    made = ServerProcess(tmp_path / "data").start()
    yield made
    made.stop()


def rescale(server, job, parallelism):
    answer = httpx.patch(f"{server.url}/jobs/{job}/rescaling?parallelism={parallelism}", timeout=60)
    trigger = answer.json()["request-id"]
    done = until(
        lambda: (
            (said := httpx.get(f"{server.url}/jobs/{job}/rescaling/{trigger}", timeout=60).json())
            and said["status"]["id"] == "COMPLETED"
            and said
        ),
        patience=SPARK_SECONDS,
        every=0.2,
        told=server.log,
    )
    assert "failure-cause" not in done.get("operation", {}), done


def test_savepoint_rescaling_and_kills(one, tmp_path):
    client, out = Client(one), tmp_path / "out"
    storage = (tmp_path / "data/storage/default").as_uri()
    job = client.submit(HERE / "counting.py", str(out), "spark", parallelism=1)
    client.await_checkpoints(job)

    os.kill(driver_pids(storage, job)[-1], signal.SIGKILL)
    client.await_checkpoints(job)
    assert len(driver_pids(storage, job)) == 2

    one.kill()
    one.start()
    client.await_checkpoints(job)
    assert len(driver_pids(storage, job)) == 2, "the driver was adopted"

    rescale(one, job, 2)
    client.await_checkpoints(job)
    assert {vertex["parallelism"] for vertex in client.get(f"/jobs/{job}")["vertices"]} == {2}
    managers = client.get("/taskmanagers")["taskmanagers"]
    assert any(manager["slotsNumber"] == 2 and manager["freeSlots"] == 0 for manager in managers)
    client.cancel(job)
    assert check_counts(out, 2) > 100
