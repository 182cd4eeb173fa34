"""Runs the plan of a seed: harms the cluster step by step, mends it, and looks at what the job has left."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from tests.nemesis import job
from tests.nemesis.cluster import CORES, WORKERS, Cluster
from tests.nemesis.hosts import Host
from tests.nemesis.schedule import JUMPS, Fault, Plan

FLAPS = 0.3
"""Seconds for which a flapping link is up, and then down."""
SLOW_KILOBITS = 2000
EXECUTOR = "CoarseGrainedExecutorBackend"
DRIVER_PROGRAM = "tests.nemesis.job"
DRIVER_JVM = "pyspark-shell"
Mending = Callable[[], None]


class Trial:
    """One seed."""

    def __init__(self, folder: Path, plan: Plan, say: Callable[[str], None]) -> None:
        self._plan = plan
        self._say = say
        self.cluster = Cluster(folder, plan.settings)

    def run(self) -> None:
        """Raises AssertionError when the job hangs, has ended for good, or its output is wrong."""
        with self.cluster as cluster:
            self._say(f"seed {self._plan.seed}: {self._plan.settings}")
            cluster.await_checkpoint(0)
            for faults in self._plan.steps:
                if not cluster.has_ended():
                    self._step(faults)
            cluster.until(cluster.has_ended, "the job does not end")
            found = job.wrong(cluster.disk.folder, self._plan.settings.kind, self._plan.settings.count)
            assert found is None, found

    def _step(self, faults: tuple[Fault, ...]) -> None:
        began = time.monotonic()
        mendings = []
        for fault in faults:
            self._say(f"  {fault}")
            mendings.append(harm(self.cluster, fault))
        time.sleep(max(fault.seconds for fault in faults))
        for mend in mendings:
            mend()
        self.cluster.revive()
        mended = time.monotonic()
        self.cluster.await_checkpoint(int(1000 * time.time()))
        now = time.monotonic()
        self._say(f"    in force for {mended - began:.1f} s, next checkpoint {now - mended:.1f} s later")


def harm(cluster: Cluster, fault: Fault) -> Mending:
    """Let something go wrong; returns what puts it right again."""
    return HARMS[fault.kind](cluster, fault)


def _nothing() -> None:
    """Mend nothing: what died is started again anyway."""


def worker_of(cluster: Cluster, choice: int) -> Host:
    """One of the workers with slots, if there are any."""
    with_slots = sorted(cluster.slots())
    names = with_slots or list(WORKERS)
    return cluster.hosts[names[choice % len(names)]]


def _kill(cluster: Cluster, fault: Fault) -> Mending:
    host = worker_of(cluster, fault.choice)
    match fault.what:
        case "slot":
            cluster.kill(host, "slot")
        case "executor":
            cluster.kill(host, EXECUTOR)
        case "worker":
            cluster.kill_daemon(host.name)
        case "driver":
            cluster.kill_driver()
        case "jvm":
            cluster.kill(cluster.seat, DRIVER_JVM)
        case "master":
            cluster.kill_daemon("master")
    return _nothing


def _power(cluster: Cluster, fault: Fault) -> Mending:
    host = cluster.seat if fault.what == "driver" else worker_of(cluster, fault.choice)
    host.lose_power()
    if fault.what == "driver":
        cluster.move_driver()
        cluster.start_driver()
    return lambda: cluster.network.plug_in(host)


def ends_of(cluster: Cluster, fault: Fault) -> tuple[Host, Host]:
    """The two hosts between which a link is."""
    one = worker_of(cluster, fault.choice)
    others = [host for host in cluster.workers if host is not one]
    pairs = {
        "workers": (one, others[fault.choice % len(others)]),
        "driver and worker": (cluster.seat, one),
        "driver and master": (cluster.seat, cluster.hosts["master"]),
        "worker and master": (one, cluster.hosts["master"]),
    }
    return pairs[fault.what]


def _partition(cluster: Cluster, fault: Fault) -> Mending:
    one, other = ends_of(cluster, fault)
    return _parted(cluster, (one, other), (other, one))


def _one_way(cluster: Cluster, fault: Fault) -> Mending:
    one, other = ends_of(cluster, fault)
    return _parted(cluster, (one, other) if fault.choice % 2 else (other, one))


def _parted(cluster: Cluster, *ways: tuple[Host, Host]) -> Mending:
    def mend() -> None:
        for sender, receiver in ways:
            cluster.network.heal(sender, receiver)

    for sender, receiver in ways:
        cluster.network.lose(sender, receiver)
    return mend


def _flap(cluster: Cluster, fault: Fault) -> Mending:
    one, other = ends_of(cluster, fault)
    until = time.monotonic() + fault.seconds
    while time.monotonic() < until:
        mend = _parted(cluster, (one, other), (other, one))
        time.sleep(FLAPS)
        mend()
        time.sleep(FLAPS)
    return _nothing


def _slow(cluster: Cluster, fault: Fault) -> Mending:
    hosts = {"worker": worker_of(cluster, fault.choice), "driver": cluster.seat, "master": cluster.hosts["master"]}
    host = hosts[fault.what]
    cluster.network.slow(host, SLOW_KILOBITS)
    return lambda: cluster.network.hasten(host)


def _storage(cluster: Cluster, fault: Fault) -> Mending:
    {"full": cluster.disk.fill, "read-only": cluster.disk.make_read_only, "frozen": cluster.disk.freeze}[fault.what]()
    return cluster.disk.mend


def _pause(cluster: Cluster, fault: Fault) -> Mending:
    host = worker_of(cluster, fault.choice)
    places = {
        "slot": (host, "slot"),
        "executor": (host, EXECUTOR),
        "worker": (host, "worker.Worker"),
        "driver": (cluster.seat, DRIVER_PROGRAM),
        "jvm": (cluster.seat, DRIVER_JVM),
        "master": (cluster.hosts["master"], "master.Master"),
    }
    stopped = cluster.pause(*places[fault.what])
    return lambda: cluster.resume(stopped)


def _rescale(cluster: Cluster, fault: Fault) -> Mending:
    parallelism = 1 + fault.choice % (CORES * (len(WORKERS) - 1))
    if fault.what == "savepoint":
        cluster.rescale(parallelism)
    elif fault.what == "running":
        cluster.rescale_running(parallelism)
    else:
        cluster.kill_driver()
        cluster.settings.parallelism = parallelism
        cluster.start_driver()
    return _nothing


def _clock(cluster: Cluster, fault: Fault) -> Mending:
    hosts = {"worker": worker_of(cluster, fault.choice), "driver": cluster.seat, "master": cluster.hosts["master"]}
    host = hosts[fault.what]
    host.set_clock(JUMPS[fault.choice % len(JUMPS)])
    return lambda: host.set_clock(0.0)


HARMS: dict[str, Callable[[Cluster, Fault], Mending]] = {
    "kill": _kill,
    "power": _power,
    "partition": _partition,
    "one-way": _one_way,
    "flap": _flap,
    "slow": _slow,
    "storage": _storage,
    "pause": _pause,
    "rescale": _rescale,
    "clock": _clock,
}
