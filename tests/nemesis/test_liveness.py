"""Jobs on a real cluster of several hosts through faults after which they could wait for ever, or end for good."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.nemesis.cluster import CORES, WORKERS, Cluster, Settings
from tests.nemesis.hosts import obstacle
from tests.nemesis.recoveries import measured, ordered_at, worker
from tests.nemesis.trial import DRIVER_JVM

REASON = obstacle("cc")
pytestmark = [
    pytest.mark.skipif(REASON is not None, reason=str(REASON)),
    pytest.mark.soak,
    pytest.mark.timeout(1800),
]
PARTED_SECONDS = 20.0
"""More than twice the `heartbeat.timeout` of 8 s."""


@pytest.fixture
def cluster(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Cluster]:
    settings = Settings("stream", "hashmap", 3, 100_000_000)
    with Cluster(tmp_path, settings, recovers=getattr(request, "param", True)) as made:
        made.await_checkpoint(0)
        yield made


def goes_on(cluster: Cluster) -> None:
    now = 1000 * time.time()
    cluster.until(lambda: ordered_at(cluster) > now, "no further checkpoint")


def test_two_workers_that_cannot_reach_each_other_are_named(cluster: Cluster) -> None:
    cluster.until(lambda: len(cluster.slots()) > 1, "all slots are on one worker")
    one, other, *_ = [cluster.hosts[name] for name in sorted(cluster.slots())]
    for sender, receiver in ((one, other), (other, one)):
        cluster.network.lose(sender, receiver)
    time.sleep(PARTED_SECONDS)
    for sender, receiver in ((one, other), (other, one)):
        cluster.network.heal(sender, receiver)
    goes_on(cluster)
    said = [line for line in cluster.log().splitlines() if "its host acknowledges nothing" in line]
    ends = [(one.address, other.address), (other.address, one.address)]
    assert any(f"on {a}: the link to slot" in line and f"on {b}:" in line for a, b in ends for line in said)


def test_a_restart_keeps_away_from_a_host_without_power(cluster: Cluster) -> None:
    """Two cores on each of the other workers are enough for three slots. The one without power stays off."""
    cluster.until(cluster.workers_are_back, "workers are missing")
    lost = worker(cluster)
    lost.lose_power()
    goes_on(cluster)
    assert "replacing the executors on " in cluster.log() and lost.address in cluster.log()
    assert "the slots did not start" not in cluster.log(), "no attempt was placed there"
    assert sum(cluster.slots().values()) == 3 and lost.name not in cluster.slots()


@pytest.mark.parametrize("cluster", [False], indirect=True)
def test_an_application_that_the_master_has_forgotten_is_replaced(cluster: Cluster) -> None:
    """The master keeps nothing. When it is back, workers register, and Spark ends the application it does not know."""
    cluster.kill_daemon("master")
    time.sleep(2)
    cluster.revive()
    goes_on(cluster)
    worker(cluster)
    cluster.kill(worker(cluster), "slot")
    goes_on(cluster)


def test_a_restart_on_a_full_disk_waits_for_space(cluster: Cluster) -> None:
    cluster.disk.fill()
    cluster.kill(worker(cluster), "slot")
    time.sleep(10)
    cluster.disk.mend()
    goes_on(cluster)


def test_a_parallelism_beyond_the_cores_stops_nothing(cluster: Cluster) -> None:
    attempts = cluster.log().count("is open")
    cluster.rescale_running(CORES * len(WORKERS) + 3)
    cluster.settings.parallelism = 3
    goes_on(cluster)
    assert "not rescaled: " in cluster.log()
    assert cluster.log().count("is open") == attempts


def test_a_jvm_that_dies_is_replaced(cluster: Cluster) -> None:
    cluster.kill(cluster.seat, DRIVER_JVM)
    goes_on(cluster)
    assert cluster.log().count("--- driver") == 1, "the driver's process is the same"


def test_another_parallelism_in_the_running_application(cluster: Cluster) -> None:
    cluster.until(cluster.workers_are_back, "workers are missing")
    cluster.rescale_running(5)
    cluster.until(lambda: sum(cluster.slots().values()) == 5, "there are not five slots")
    goes_on(cluster)
    assert cluster.log().count("--- driver") == 1
    measured(cluster, lambda cluster: cluster.rescale_running(2), settling=1)
    cluster.until(lambda: sum(cluster.slots().values()) == 2, "there are not two slots")
