"""Kills servers, drivers and ZooKeeper while a job with an exactly-once sink runs, and measures the way back."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from tests.server.helping import HERE, check_counts
from tests.server.processes import Client, ServerProcess, driver_pids
from tests.services.zookeeper import ZooKeeper
from tests.waiting import SPARK_SECONDS, until

LEASE = {
    "high_availability__type": "storage",
    "high_availability__storage__lease_duration": "3 s",
    "high_availability__storage__retry_period": "500 ms",
}
ZOOKEEPER = {"high_availability__type": "zookeeper", "high_availability__zookeeper__client__session_timeout": "3 s"}


@dataclass
class Victims:
    """A job, the servers that look after it, and what is killed."""

    folder: Path
    servers: list[ServerProcess]
    zookeeper: ZooKeeper | None = None
    where: str = "spark"
    job: str = ""
    seconds: list[float] = field(default_factory=list)
    """From each kill to the first complete checkpoint that was ordered after it and can be seen over REST."""

    def __post_init__(self) -> None:
        self.client = Client(*self.servers)
        self.storage = f"{(self.folder / 'shared').as_uri()}/default"
        self.job = self.client.submit(HERE / "counting.py", str(self.folder / "out"), self.where, parallelism=2)
        self.await_checkpoint(0)

    def await_checkpoint(self, ordered_after: int) -> None:
        until(
            lambda: self._ordered() > ordered_after,
            progress=lambda: (self._ordered(), len(driver_pids(self.storage, self.job))),
            patience=SPARK_SECONDS,
            every=0.05,
            told=lambda: "\n".join(server.log() for server in self.servers),
        )

    def _ordered(self) -> int:
        latest = self.client.get(f"/jobs/{self.job}/checkpoints").get("latest", {}).get("completed") or {}
        return int(latest.get("trigger_timestamp", 0))

    def rounds(self, number: int, kill: Callable[[Victims], None], chance: random.Random) -> None:
        for _ in range(number):
            time.sleep(chance.uniform(0.0, 1.0))
            began = time.monotonic()
            now = int(time.time() * 1000)
            kill(self)
            self.await_checkpoint(now)
            self.seconds.append(time.monotonic() - began)

    def finish(self) -> int:
        """How many numbers there are, each of them once."""
        self.client.cancel(self.job)
        return check_counts(self.folder / "out", 2)


# --- what is killed ---
def kill_driver(victims: Victims) -> None:
    os.kill(driver_pids(victims.storage, victims.job)[-1], signal.SIGKILL)


def kill_server(victims: Victims) -> None:
    """Kill the only server and start it again."""
    victims.servers[0].kill()
    victims.servers[0].start()


def kill_leader(victims: Victims) -> None:
    """Kill the server that leads; it comes back as a standby when another has taken over."""
    leader = leading(victims.servers)
    leader.kill()
    leading([server for server in victims.servers if server is not leader])
    leader.start()


def kill_leader_and_driver(victims: Victims) -> None:
    kill_driver(victims)
    kill_leader(victims)


def stop_zookeeper(victims: Victims) -> None:
    """ZooKeeper is away for longer than a session lives."""
    assert victims.zookeeper is not None
    victims.zookeeper.kill()
    time.sleep(4)
    victims.zookeeper.start()


def leading(servers: list[ServerProcess]) -> ServerProcess:
    """The server that leads, once one does."""
    found: list[ServerProcess] = until(
        lambda: [server for server in servers if server.status()["leads"]], patience=SPARK_SECONDS, every=0.1
    )
    return found[0]


@dataclass(frozen=True)
class Scenario:
    """What is killed, and how many servers there are."""

    title: str
    kill: Callable[[Victims], None]
    servers: int = 1
    options: dict[str, str] = field(default_factory=dict)


SCENARIOS = {
    "driver": Scenario("the driver", kill_driver),
    "server": Scenario("the server, started again", kill_server),
    "leader": Scenario("the leader of two servers (lease of 3 s on the storage)", kill_leader, 2, LEASE),
    "leader-zookeeper": Scenario("the leader of two servers (ZooKeeper, session of 3 s)", kill_leader, 2, ZOOKEEPER),
    "both": Scenario("the leader of two servers (lease of 3 s), and the driver", kill_leader_and_driver, 2, LEASE),
    "zookeeper": Scenario("ZooKeeper, away for more than 4 s", stop_zookeeper, 2, ZOOKEEPER),
}


def run_rounds(folder: Path, name: str, rounds: int, seed: int, where: str = "spark") -> Victims:
    """One job through so many kills; then nothing is lost and nothing is doubled."""
    scenario = SCENARIOS[name]
    with ExitStack() as stack:
        options = {**scenario.options, "high_availability__storageDir": (folder / "shared").as_uri()}
        zookeeper = None
        if options.get("high_availability__type") == "zookeeper":
            zookeeper = ZooKeeper()
            stack.callback(zookeeper.remove)
            zookeeper.start()
            options["high_availability__zookeeper__quorum"] = zookeeper.quorum
        servers = [ServerProcess(folder / f"server-{number}", **options) for number in range(scenario.servers)]
        for server in servers:
            stack.callback(server.stop)
            server.start()
        victims = Victims(folder, servers, zookeeper, where)
        victims.rounds(rounds, scenario.kill, random.Random(seed))
        victims.finish()
        return victims


def run_many(folder: Path, number: int, where: str = "spark") -> dict[str, float]:
    """So many jobs submitted at once; seconds until all have taken a checkpoint, and until all have ended."""
    from concurrent.futures import ThreadPoolExecutor

    server = ServerProcess(folder / "server", penstock__server__submission_timeout="1 s").start()
    try:
        client = Client(server)
        began = time.monotonic()

        def submit(index: int) -> str:
            return client.submit(HERE / "counting.py", str(folder / f"out-{index}"), where, parallelism=1)

        with ThreadPoolExecutor(number) as pool:
            jobs = list(pool.map(submit, range(number)))
        for job in jobs:
            client.await_checkpoints(job, 1)
        all_run = time.monotonic() - began
        assert len(client.get("/jobs")["jobs"]) == number
        states = {client.state(job) for job in jobs}
        assert states == {"RUNNING"}, states
        for job in jobs:
            client.cancel(job)
        for index in range(number):
            check_counts(folder / f"out-{index}", 1)
        return {"run": all_run, "ended": time.monotonic() - began}
    finally:
        server.stop()
