"""A standalone Spark cluster on hosts, and the driver of a job on one of them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import pyspark

from tests.nemesis import job
from tests.nemesis.hosts import Disk, Host, Network, build_clock
from tests.waiting import SPARK_SECONDS, until

ROOT = Path(__file__).parents[2]
SPARK = Path(pyspark.__file__).parent
WORKERS = ("worker1", "worker2", "worker3")
DRIVERS = ("driver", "standby")
"""The hosts that can have the driver."""
CORES = 2
"""Cores of each worker."""
SETTINGS = """
spark.executor.memory                            512m
spark.driver.memory                              512m
spark.scheduler.minRegisteredResourcesRatio      0
"""


@dataclass
class Settings:
    """One job: the program, and how it runs."""

    kind: str
    backend: str
    parallelism: int
    count: int
    """Number of numbers that it reads."""
    restore: str = ""
    generation: int = 0
    """Number of savepoints from which it has gone on. Each begins another job."""


class Cluster:
    """The hosts, their disk, and what runs there."""

    def __init__(self, folder: Path, settings: Settings, recovers: bool = True) -> None:
        """With `recovers` the master keeps what it knows in files."""
        self.folder = folder
        self.settings = settings
        self._recovers = recovers
        self.network = Network(["master", *WORKERS, *DRIVERS])
        self.disk = Disk(folder)
        self._started: dict[str, subprocess.Popen[bytes]] = {}
        self.seat = self.hosts["driver"]
        """The host that has the driver."""
        self._stack = ExitStack()
        self._runs = 0

    @property
    def hosts(self) -> dict[str, Host]:
        return self.network.hosts

    @property
    def workers(self) -> list[Host]:
        return [self.hosts[name] for name in WORKERS]

    def __enter__(self) -> Cluster:
        with ExitStack() as stack:
            stack.enter_context(self.disk)
            stack.enter_context(self.network)
            library = build_clock(self.folder)
            for host in self.hosts.values():
                host.give_clock(library, self.folder / f"clock-{host.name}")
            (self.folder / "conf").mkdir()
            (self.folder / "conf" / "spark-defaults.conf").write_text(SETTINGS)
            job.prepare(self.disk.folder, self.settings.kind)
            self.revive()
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with suppress(OSError):
            self.disk.mend()
        self._stack.__exit__(kind, error, trace)

    # --- what runs ---
    def revive(self) -> None:
        """Start whatever does not run: the master, workers, the driver."""
        if not self._is_alive("master"):
            recovery = f"-Dspark.deploy.recoveryMode=FILESYSTEM -Dspark.deploy.recoveryDirectory={self.folder}/recovery"
            options = ["--host", self.hosts["master"].address, "--port", "7077", "--webui-port", "0"]
            self._start_daemon("master", "master.Master", options, recovery if self._recovers else "")
        for name in WORKERS:
            if not self._is_alive(name):
                options = ["--host", self.hosts[name].address, "--webui-port", "0", "--cores", str(CORES)]
                options += ["--memory", "1g", "--work-dir", str(self.folder / f"work-{name}"), self.master]
                self._start_daemon(name, "worker.Worker", options, "")
        self.start_driver()

    @property
    def master(self) -> str:
        return f"spark://{self.hosts['master'].address}:7077"

    def _is_alive(self, name: str) -> bool:
        return name in self._started and self._started[name].poll() is None

    def _start_daemon(self, name: str, kind: str, options: list[str], java: str) -> None:
        command = [str(SPARK / "bin" / "spark-class"), f"org.apache.spark.deploy.{kind}", *options]
        environment = {"PYTHONPATH": str(ROOT), "SPARK_DAEMON_MEMORY": "256m", "SPARK_DAEMON_JAVA_OPTS": java}
        with (self.folder / f"{name}.log").open("ab") as out:
            self._started[name] = self.hosts[name].start(command, out, environment)

    def start_driver(self) -> None:
        """Start the driver where it belongs, unless it runs or is not needed any more."""
        if self._is_alive("driver") or self.has_ended() or not self.seat.is_on:
            return
        settings = self.settings
        environment = {
            "PYTHONPATH": str(ROOT),
            "SPARK_CONF_DIR": str(self.folder / "conf"),
            "MASTER": self.master,
            "PARALLELISM": str(settings.parallelism),
            "BACKEND": settings.backend,
            "COUNT": str(settings.count),
            "RESTORE": settings.restore,
            "JOB_ID": f"{settings.generation:032x}",
        }
        self._runs += 1
        command = [sys.executable, "-m", "tests.nemesis.job", str(self.folder), str(self.disk.folder), settings.kind]
        with (self.folder / "driver.log").open("ab") as out:
            out.write(f"--- driver {self._runs} on {self.seat.name}\n".encode())
            self._started["driver"] = self.seat.start(command, out, environment)

    def driver_failure(self) -> int | None:
        """Return the exit code of a driver that has ended by itself with an error; None otherwise."""
        code = self._started["driver"].poll() if "driver" in self._started else None
        return code if code is not None and code > 0 else None

    # --- what dies ---
    def kill(self, host: Host, word: str) -> bool:
        """Kill the newest process in whose name or command line a word occurs, and return whether there was one."""
        found = host.find(word)
        if found:
            self._signal(found[-1], signal.SIGKILL)
        return bool(found)

    def kill_daemon(self, name: str) -> None:
        """Kill a worker or a master by itself; executors stay."""
        self._signal(self._started[name].pid, signal.SIGKILL)
        for process in self.hosts[name].find("org.apache.spark.deploy"):
            self._signal(process, signal.SIGKILL)
        self._started[name].wait()

    def kill_driver(self) -> None:
        """Kill the driver's process; its JVM follows by itself."""
        for process in self.seat.find("tests.nemesis.job"):
            self._signal(process, signal.SIGKILL)
        with suppress(KeyError):
            self._started["driver"].wait()

    def pause(self, host: Host, word: str) -> list[int]:
        """Stop processes; returns them, to be continued by `resume`."""
        found = host.find(word)
        for process in found:
            self._signal(process, signal.SIGSTOP)
        return found

    def resume(self, processes: list[int]) -> None:
        for process in processes:
            self._signal(process, signal.SIGCONT)

    def move_driver(self) -> None:
        """Let the driver run on the other host from now on."""
        self.seat = next(self.hosts[name] for name in DRIVERS if self.hosts[name] is not self.seat)

    @staticmethod
    def _signal(process: int, number: int) -> None:
        with suppress(ProcessLookupError):
            os.kill(process, number)

    # --- what is seen ---
    def has_ended(self) -> bool:
        return (self.folder / "ended").exists()

    def slots(self) -> dict[str, int]:
        """The number of slots on each worker that has any."""
        return {host.name: count for host in self.workers if (count := len(host.find("slot")))}

    def workers_are_back(self) -> bool:
        """Return True if every worker has an executor, so that all cores can be used."""
        return all(host.find("CoarseGrainedExecutorBackend") for host in self.workers)

    def checkpoint(self) -> tuple[int, int, int]:
        """The newest complete checkpoint: its job, its number, and when it was published in milliseconds.

        The clock is that of the machine, since those of the hosts can be wrong.
        """
        newest = (0, 0, 0)
        for path in (self.disk.folder / "checkpoints").glob("*/chk-*/_metadata"):
            with suppress(OSError, ValueError, KeyError):
                number = int(path.parent.name.removeprefix("chk-"))
                generation = int(path.parent.parent.name, 16)
                if (generation, number) > newest[:2]:
                    newest = (generation, number, path.stat().st_mtime_ns // 1_000_000)
        return newest

    def log(self) -> str:
        return (self.folder / "driver.log").read_text()

    def await_checkpoint(self, after_millis: int) -> None:
        """Wait for a checkpoint that was published after a moment, or for the end. Start drivers that die again."""
        self.until(lambda: self.checkpoint()[2] > after_millis or self.has_ended(), "no further checkpoint")

    def until(self, condition: Callable[[], Any], missing: str) -> None:
        """Wait for something, for as long as anything moves. Drivers that die are started again."""

        def holds() -> Any:
            assert self.driver_failure() is None, f"the job has ended for good:\n{self.log()[-4000:]}"
            self.start_driver()
            return condition()

        until(
            holds,
            progress=lambda: (self.checkpoint(), len(self.log())),
            patience=SPARK_SECONDS,
            every=0.05,
            told=lambda: f"{missing}:\n{self.log()[-4000:]}",
        )

    # --- savepoints ---
    def rescale_running(self, parallelism: int) -> None:
        """Let the job continue with another parallelism in the same driver, if that lives long enough."""
        wanted, draft = self.folder / "parallelism", self.folder / "parallelism.draft"
        draft.write_text(str(parallelism))
        draft.rename(wanted)
        self.settings.parallelism = parallelism
        self.until(lambda: self.has_ended() or not wanted.exists(), "no other parallelism")

    def rescale(self, parallelism: int) -> bool:
        """Stop the job with a savepoint and let it go on with another parallelism, unless it is over before."""
        savepoint, stop = self.folder / "savepoint", self.folder / "stop"
        stop.touch()
        self.until(lambda: savepoint.exists() or self.has_ended() or not stop.exists(), "no savepoint")
        if not savepoint.exists():
            stop.unlink(missing_ok=True)
            return False
        self._started["driver"].wait()
        self.settings.restore = savepoint.read_text()
        self.settings.generation += 1
        self.settings.parallelism = parallelism
        savepoint.unlink()
        self.start_driver()
        return True
