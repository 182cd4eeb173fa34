"""How long a job on a cluster takes to go on after each kind of fault: `make recoveries`.

    python -m tests.nemesis.recoveries [--rounds N] [--only KIND ...] [--results FILE]

The cluster is that of `make nemesis`: a Spark master, three workers of two cores and two hosts for drivers, each in a
network namespace. The job has three slots, so that three cores are free. Measured is the time from the fault to the
next checkpoint that was ordered after it and is complete; there is one every 500 ms.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from tests.nemesis.cluster import Cluster, Settings
from tests.nemesis.hosts import Host, obstacle
from tests.nemesis.trial import EXECUTOR
from tests.waiting import until

SLOTS = 3
PARTED_SECONDS = 3.0
"""Time for which two workers cannot reach each other, less than the `heartbeat.timeout` of 8 s."""


SETTLING_SECONDS = 15.0
"""Time before each fault, in which new executors register and the cluster gets quiet."""


def worker(cluster: Cluster) -> Host:
    """A worker that has a slot."""
    return cluster.hosts[random.choice(sorted(cluster.slots()))]


def kill_slot(cluster: Cluster) -> None:
    cluster.kill(worker(cluster), "slot")


def kill_executor(cluster: Cluster) -> None:
    """Kill an executor, and wait for its slots, which may still take part in a checkpoint for a moment."""
    host = worker(cluster)
    slots = host.find("slot")
    cluster.kill(host, EXECUTOR)
    until(lambda: not set(slots) & set(host.processes()), every=0.005)


def kill_worker(cluster: Cluster) -> None:
    """Kill all processes of a worker's host, whose kernel says so to the others."""
    worker(cluster).kill_all()


def cut_power(cluster: Cluster) -> None:
    worker(cluster).lose_power()


def kill_master(cluster: Cluster) -> None:
    cluster.kill_daemon("master")


def kill_driver(cluster: Cluster) -> None:
    cluster.kill_driver()
    cluster.start_driver()


def cut_power_of_driver(cluster: Cluster) -> None:
    cluster.seat.lose_power()
    cluster.move_driver()
    cluster.start_driver()


def part_workers(cluster: Cluster) -> None:
    one, other, *_ = [cluster.hosts[name] for name in sorted(cluster.slots())]
    for sender, receiver in ((one, other), (other, one)):
        cluster.network.lose(sender, receiver)
    time.sleep(PARTED_SECONDS)
    for sender, receiver in ((one, other), (other, one)):
        cluster.network.heal(sender, receiver)


def rescale_by_savepoint(cluster: Cluster) -> None:
    cluster.rescale(SLOTS + 1 if cluster.settings.parallelism == SLOTS else SLOTS)


def rescale_running(cluster: Cluster) -> None:
    cluster.rescale_running(SLOTS + 1 if cluster.settings.parallelism == SLOTS else SLOTS)


FAULTS: dict[str, tuple[str, Callable[[Cluster], None]]] = {
    "slot": ("a slot's process is killed", kill_slot),
    "executor": ("an executor is killed, with its slots", kill_executor),
    "worker": ("all processes of a worker's host are killed", kill_worker),
    "power": ("a worker's host loses power", cut_power),
    "master": ("the master is killed, and started again", kill_master),
    "partition": (f"two workers cannot reach each other for {PARTED_SECONDS:g} s", part_workers),
    "driver": ("the driver is killed, and started again at once", kill_driver),
    "driver host": ("the driver's host loses power, and a driver is started on another host", cut_power_of_driver),
    "rescale": ("another parallelism from a savepoint, in a new driver", rescale_by_savepoint),
    "rescale running": ("another parallelism in the running application", rescale_running),
}


def measured(cluster: Cluster, fault: Callable[[Cluster], None], settling: float) -> float:
    """Return the seconds from a fault to the next checkpoint, and mend everything."""
    cluster.until(cluster.workers_are_back, "workers are missing")
    time.sleep(settling)
    settled = time.time()
    cluster.until(lambda: ordered_at(cluster) > 1000 * settled, "no checkpoint")
    time.sleep(random.uniform(0.0, 0.5))
    began = time.monotonic()
    fault(cluster)
    at = time.time()
    cluster.until(lambda: ordered_at(cluster) > 1000 * at, "no further checkpoint")
    seconds = time.monotonic() - began
    cluster.network.heal_all()
    cluster.revive()
    return seconds


def ordered_at(cluster: Cluster) -> int:
    """Return when the newest complete checkpoint was ordered, in milliseconds since 1970."""
    newest = (0, 0)
    for path in (cluster.disk.folder / "checkpoints").glob("*/chk-*/_metadata"):
        with suppress(OSError, ValueError, KeyError):
            ordered = json.loads(path.read_text().partition("\n")[2])["timestamp"]
            newest = max(newest, (int(path.parent.parent.name, 16), ordered))
    return newest[1]


def measure(kind: str, rounds: int, settling: float) -> list[float]:
    """Run one job through rounds of a fault."""
    with tempfile.TemporaryDirectory(prefix="penstock-recoveries-") as folder:
        settings = Settings("stream", "hashmap", SLOTS, 100_000_000)
        with Cluster(Path(folder), settings) as cluster:
            cluster.await_checkpoint(0)
            found = []
            for _ in range(rounds):
                found.append(measured(cluster, FAULTS[kind][1], settling))
                print(f"{kind}: {found[-1]:.1f} s", file=sys.stderr, flush=True)
            if os.environ.get("KEEP_LOG"):
                Path(os.environ["KEEP_LOG"]).write_text(cluster.log())
            return found


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(prog="python -m tests.nemesis.recoveries")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--settle", type=float, default=SETTLING_SECONDS)
    parser.add_argument("--only", nargs="*", choices=sorted(FAULTS), default=list(FAULTS))
    asked = parser.parse_args()
    reason = obstacle("cc")
    if reason is not None:
        print(f"skipped: {reason}")
        return
    print(f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, {asked.rounds} rounds each")
    print("| fault | median, s | all, s | load average |\n|---|---|---|---|")
    for kind in asked.only:
        before = os.getloadavg()[0]
        found = measure(kind, asked.rounds, asked.settle)
        load = f"{before:.0f} to {os.getloadavg()[0]:.0f}"
        each = ", ".join(f"{one:.1f}" for one in found)
        print(f"| {FAULTS[kind][0]} | {statistics.median(found):.1f} | {each} | {load} |", flush=True)


if __name__ == "__main__":
    main()
