"""Jobs in this process that stop, crash or lose their driver at a chosen epoch."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from penstock.common.configuration import Configuration
from penstock.common.job import JobClient
from penstock.datastream import StreamExecutionEnvironment
from penstock.engine.job.cluster_protocol import Cluster
from penstock.engine.job.facts import CancelWanted, SavepointWanted
from penstock.engine.messages.commands_and_reports import Command, Deployment, Report
from penstock.engine.snapshots import writing as checkpoints
from penstock.errors import JobCancelled, SlotLost
from penstock.service.launch.execution_settings import EnvironmentSettings
from penstock.service.launch.submission import with_defaults
from penstock.testing import InProcessCluster, ManualClock, in_process
from penstock.testing.crashes import ImmediateWriter
from tests.waiting import until

PATIENCE = 60
"""Seconds after which a job that does not move is a failed test."""
Build = Callable[[StreamExecutionEnvironment], Any]


@pytest.fixture(autouse=True)
def immediate_checkpoints(monkeypatch: pytest.MonkeyPatch) -> None:
    """Checkpoints are written at once: with a thread of their own, the number of epochs would be left to chance."""
    monkeypatch.setattr(checkpoints, "new_writer", ImmediateWriter)


class DriverGone(BaseException):
    """The driver dies: not an Exception, so that nothing is tidied up on the way out."""


class SteeredCluster(InProcessCluster):
    """Counts epochs over all attempts. Waits before one of them, and loses its slots before or after others."""

    def __init__(self, hold_at: int | None = None, crashes: Mapping[int, str] | None = None) -> None:
        super().__init__()
        self.hold_at = hold_at
        self.hold_when: Callable[[], bool] = lambda: False
        """Another moment at which to wait, asked before every epoch."""
        self.crashes = dict(crashes or {})
        self.ran = 0
        self.held = threading.Event()
        self.going = threading.Event()
        self.driver_dies = False

    def run(self, command: Command) -> list[Report]:
        number, self.ran = self.ran, self.ran + 1
        if number == self.hold_at or self.hold_when():
            self._hold()
        if self.driver_dies:
            raise DriverGone
        if self.crashes.get(number) == "before":
            self._lose(number)
        reports = super().run(command)
        if self.crashes.get(number) == "after":
            self._lose(number)
        return reports

    def _hold(self) -> None:
        self.held.set()
        assert self.going.wait(PATIENCE), "nobody let the job go on"
        self.held.clear()
        self.going.clear()

    def _lose(self, number: int) -> None:
        """Lose the slots as if their processes were gone: nothing is closed."""
        self.lose()
        raise SlotLost(f"a slot was lost in epoch {number}")


class Job:
    """A job that was started, and that a test stops in one way or another."""

    def __init__(self, client: JobClient, cluster: SteeredCluster) -> None:
        self.client = client
        self.cluster = cluster
        self._handle: Any = client._job

    # --- waiting and going on ---
    def wait_until_held(self) -> Job:
        """Wait until the job stands before the epoch at which it is held."""
        while not self.cluster.held.wait(0.01):
            assert not self._handle._ended.is_set(), f"the job ended after {self.cluster.ran} epochs: {self.outcome()}"
        return self

    def go_on(self) -> None:
        self.cluster.going.set()

    def outcome(self) -> Any:
        """How the job ended: its result, or the error."""
        try:
            return self._handle.result(PATIENCE)
        except Exception as error:
            return error

    def restarts(self) -> int:
        """How often the job was started again."""
        return int(self._handle.view.attempt)

    def finish(self) -> None:
        """Let the job come to its end."""
        self.go_on()
        self._handle.result(PATIENCE)

    # --- ways to stop ---
    def asked(self, drain: bool | None, directory: Path | str | None) -> Any:
        """Ask for a savepoint, to stop behind it unless `drain` is None, and let the job go on when it has heard."""
        self.wait_until_held()
        folder = None if directory is None else str(directory)
        client = self.client
        future = client.trigger_savepoint(folder) if drain is None else client.stop_with_savepoint(drain, folder)
        self.until(lambda: self.waiting_requests() or future.done())
        self.go_on()
        return future

    def stop(self, directory: Path | str, drain: bool = False) -> str:
        """Stop with a savepoint, and return its path."""
        path: str = self.asked(drain, directory).result(PATIENCE)
        return path

    def savepoint(self, directory: Path | str) -> str:
        """Take a savepoint while the job goes on."""
        path: str = self.asked(None, directory).result(PATIENCE)
        return path

    def savepoint_and_cancel(self, directory: Path | str) -> str:
        """Take a savepoint, and cancel before the job has done anything more."""
        self.wait_until_held()
        coordinator = self._handle.job_driver.coordinator
        self.cluster.hold_when = lambda: any(checkpoint.savepoint for checkpoint in coordinator.history)
        path: str = self.asked(None, directory).result(PATIENCE)
        self.wait_until_held()
        self.cluster.hold_when = lambda: False
        self.cluster.crashes = dict.fromkeys(range(self.cluster.ran + 1), "before")
        self.cancel()
        return path

    def cancel(self) -> None:
        """Cancel, with what that does to checkpoints."""
        self.wait_until_held()
        cancelling = self.client.cancel()
        self.until(lambda: self._waiting(CancelWanted))
        self.go_on()
        cancelling.result(PATIENCE)
        assert isinstance(self.outcome(), JobCancelled)

    def lose_driver(self) -> None:
        """Let the driver die where it is; nothing is tidied up."""
        self.wait_until_held()
        self.cluster.driver_dies = True
        self.go_on()
        assert self._handle._ended.wait(PATIENCE)

    # --- looking inside ---
    def waiting_requests(self) -> int:
        """How many savepoints were asked for and not begun yet."""
        driver = self._handle.job_driver
        return self._waiting(SavepointWanted) + len(driver._machine._requests)

    def _waiting(self, kind: type) -> int:
        """How many messages of a kind the driver has not passed on to its machine yet."""
        return sum(isinstance(message, kind) for message in list(self._handle.job_driver._messages))

    @staticmethod
    def until(happened: Callable[[], Any]) -> None:
        """Wait for something that another thread does."""
        until(happened, every=0.001)


class Stage:
    """Where the jobs of one test run: one clock, one folder for checkpoints and one for savepoints."""

    def __init__(
        self, folder: Path, clock: ManualClock, epoch_records: int, options: Mapping[str, Any] | None = None
    ) -> None:
        self.checkpoints = folder / "checkpoints"
        self.savepoints = folder / "savepoints"
        self.clock = clock
        self.epoch_records = epoch_records
        self._options = dict(options or {})

    def options(self, changed: Mapping[str, Any] | None = None) -> Configuration:
        configuration = Configuration()
        settings = {
            "execution.checkpointing.interval": "10 ms",
            "execution.checkpointing.dir": str(self.checkpoints),
            "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
            "restart-strategy.type": "fixed-delay",
            "restart-strategy.fixed-delay.attempts": "50",
            "restart-strategy.fixed-delay.delay": "1 ms",
            "pipeline.auto-watermark-interval": "1 ms",
            "execution.buffer-timeout": "5 ms",
            **self._options,
            **(changed or {}),
        }
        for name, value in settings.items():
            if value is not None:
                configuration.set_string(name, str(value))
        return configuration

    def environment(self, parallelism: int = 1, **options: Any) -> StreamExecutionEnvironment:
        """An environment; options have '_' for '.' and '__' for '-'."""
        changed = {name.replace("__", "-").replace("_", "."): value for name, value in options.items()}
        env = StreamExecutionEnvironment(self.options(changed))
        return env.set_parallelism(parallelism)

    def start(
        self,
        build: Build,
        parallelism: int = 1,
        *,
        hold_at: int | None = None,
        crashes: Mapping[int, str] | None = None,
        configure: Callable[[StreamExecutionEnvironment], Any] | None = None,
        **options: Any,
    ) -> Job:
        """Start a program. Options of `environment` may be given; those with None are left out."""
        with self.steered(SteeredCluster(hold_at, crashes)) as cluster:
            env = self.environment(parallelism, **options)
            if configure is not None:
                configure(env)
            build(env)
            return Job(env.execute_async("recovery"), cluster)

    def run(self, build: Build, parallelism: int = 1, **settings: Any) -> Job:
        """Run a program to its end."""
        job = self.start(build, parallelism, **settings)
        job.finish()
        return job

    @contextmanager
    def steered(self, cluster: SteeredCluster) -> Iterator[SteeredCluster]:
        """Jobs that are started within this block run on the given cluster."""

        def chosen(settings: EnvironmentSettings, deployment: Deployment) -> Cluster:
            return cluster

        with in_process(epoch_records=self.epoch_records, clock=self.clock), with_defaults(cluster=chosen):
            yield cluster

    def newest_checkpoint(self, job: Job) -> str | None:
        """The path of a job's newest complete checkpoint."""
        own = self.checkpoints / job.client.get_job_id().hex
        complete = sorted(own.glob("chk-*/_metadata"), key=lambda path: int(path.parent.name[4:]))
        return str(complete[-1].parent) if complete else None


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    """A stage whose clock goes on by 4 ms whenever it is asked, so that a checkpoint comes every few epochs."""
    return Stage(tmp_path, ManualClock(now=1_000_000, tick=4), epoch_records=24)
