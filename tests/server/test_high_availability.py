"""Two servers, of which one leads: it is killed, drivers are killed, ZooKeeper is away. Nothing is lost or doubled."""

import os
import signal

import httpx
import pytest

from tests.server.helping import HERE, check_counts
from tests.server.processes import Client, ServerProcess, driver_pids
from tests.services.fixtures import started
from tests.services.zookeeper import ZooKeeper
from tests.waiting import SPARK_SECONDS, until

pytestmark = [pytest.mark.service, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def zookeeper():
    yield from started(ZooKeeper())


@pytest.fixture
def pair(tmp_path):
    """Makes two servers of one cluster, which are stopped in the end with their jobs."""
    made = []

    def make(**options):
        shared = (tmp_path / "shared").as_uri()
        for name in ("first", "second"):
            made.append(ServerProcess(tmp_path / name, high_availability__storageDir=shared, **options).start())
        return made

    yield make
    for server in made:
        server.stop()


def leading(servers):
    """The server that leads, and the others, once one does."""

    def found():
        leaders = [server for server in servers if server.status()["leads"]]
        assert len(leaders) <= 1
        return leaders

    leader = until(found, patience=SPARK_SECONDS, every=0.1, told=lambda: "\n".join(s.log() for s in servers))[0]
    return [leader, *(server for server in servers if server is not leader)]


def kill_leader_and_driver(servers, tmp_path, between=lambda client, job: None):
    leader, standby = leading(servers)
    client, storage = Client(standby, leader), f"{(tmp_path / 'shared').as_uri()}/default"
    sent_on = httpx.get(f"{standby.url}/jobs/overview?x=1", timeout=60)
    assert sent_on.status_code == 307 and sent_on.headers["location"] == f"{leader.url}/jobs/overview?x=1"
    job = client.submit(HERE / "counting.py", str(tmp_path / "out"), parallelism=2)
    client.await_checkpoints(job)

    leader.kill()
    assert leading([standby])[0] is standby
    client.await_checkpoints(job)
    assert len(driver_pids(storage, job)) == 1, "the driver was adopted"

    os.kill(driver_pids(storage, job)[-1], signal.SIGKILL)
    client.await_checkpoints(job)
    assert len(driver_pids(storage, job)) == 2

    between(client, job)
    leader.start()
    assert not leader.status()["leads"] and leader.status()["leader"] == standby.url
    standby.stop()
    assert leading([leader])[0] is leader
    client.await_checkpoints(job)
    assert len(driver_pids(storage, job)) == 3, "a server that is stopped suspends its jobs, and the next one goes on"
    client.cancel(job)
    assert check_counts(tmp_path / "out", 2) > 100


def test_a_lease_on_the_storage(pair, tmp_path):
    lease = {"high_availability__storage__lease_duration": "3 s", "high_availability__storage__retry_period": "300 ms"}
    kill_leader_and_driver(pair(high_availability__type="storage", **lease), tmp_path)


def test_zookeeper(pair, tmp_path, zookeeper):
    def away(client, job):
        """Without ZooKeeper nobody leads; jobs do not mind."""
        zookeeper.stop()
        until(lambda: not any(server.status()["leads"] for server in client.servers), patience=SPARK_SECONDS)
        zookeeper.start()
        client.await_checkpoints(job, 3)

    servers = pair(
        high_availability__type="zookeeper",
        high_availability__zookeeper__quorum=zookeeper.quorum,
        high_availability__zookeeper__client__session_timeout="3 s",
    )
    kill_leader_and_driver(servers, tmp_path, away)
