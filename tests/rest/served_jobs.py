"""Jobs in one process, in every state that a client may ask about, served over HTTP."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from penstock.api.functions.source_functions import SourceFunction
from penstock.common import Time, Types, WatermarkStrategy
from penstock.common.restart_strategy import RestartStrategies
from penstock.common.watermark_strategy import TimestampAssigner
from penstock.datastream import StreamExecutionEnvironment
from penstock.datastream.window import TumblingEventTimeWindows
from penstock.engine.job.job_handle import JobHandle
from penstock.service.launch.submission import start, with_defaults
from penstock.service.options.rest_options import RestSettings
from penstock.service.rest.embedded import serve_in_thread
from penstock.service.rest.local_jobs import LocalJobs
from penstock.testing import in_process
from tests.waiting import until

ANY_PORT = RestSettings(ports=(0,))


class Seconds(SourceFunction):
    """Numbers, a second apart in event time, slowly enough that nothing piles up; without a limit they never end."""

    def __init__(self, limit: int | None = None) -> None:
        self._limit = limit

    def run(self, context):
        self.going, number = True, 0
        while self.going and number != self._limit:
            context.collect(number)
            number += 1
            time.sleep(0.002)

    def cancel(self):
        self.going = False


class FromItself(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value * 1000


def environment(folder: Path) -> StreamExecutionEnvironment:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(2)
    env.enable_checkpointing(300)
    env.get_checkpoint_config().set_checkpoint_storage_dir(f"file://{folder}/checkpoints")
    env.configure(_configuration(folder))
    return env


def _configuration(folder: Path):
    from penstock.common import Configuration

    configuration = Configuration()
    configuration.set_string("execution.checkpointing.savepoint-dir", f"file://{folder}/savepoints")
    configuration.set_string("s3.secret-key", "hunter2")
    return configuration


def windows(folder: Path, name: str, limit: int | None = None) -> JobHandle:
    """Three vertices: a source, windows by key, a sink of its own."""
    env = environment(folder)
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(FromItself())
    (
        env.add_source(Seconds(limit), "numbers", Types.INT())
        .assign_timestamps_and_watermarks(strategy)
        .map(lambda n: (n % 3, n), Types.TUPLE([Types.INT(), Types.INT()]))
        .key_by(lambda pair: pair[0])
        .window(TumblingEventTimeWindows.of(Time.seconds(10)))
        .reduce(lambda a, b: (a[0], a[1] + b[1]))
        .rebalance()
        .filter(lambda pair: False)
        .print()
    )
    return start(env, name)


def broken(folder: Path) -> JobHandle:
    env = environment(folder)
    env.set_restart_strategy(RestartStrategies.fixed_delay_restart(1, 10))
    env.from_collection([1, 2, 0]).map(lambda n: 1 // n).name("divide").print()
    return start(env, "broken")


@dataclass(frozen=True)
class Served:
    """Where jobs are served, and what they are."""

    url: str
    jobs: LocalJobs
    running: JobHandle
    ended: tuple[JobHandle, ...]
    folder: Path

    def another(self, name: str) -> JobHandle:
        """One more job that runs."""
        handle = windows(self.folder, name)
        _has_checkpoint(handle)
        return handle


def _has_checkpoint(handle: JobHandle) -> None:
    until(lambda: handle.view.checkpoints.completed, progress=lambda: handle.view.epoch)


def _has_ended(handle: JobHandle) -> None:
    until(lambda: handle.status().is_terminal_state(), progress=lambda: handle.view.epoch)


@contextmanager
def served_jobs(folder: Path, settings: RestSettings = ANY_PORT) -> Iterator[Served]:
    """One job that runs, and one each that has finished, failed and been cancelled."""
    jobs = LocalJobs({"s3.secret-key": "hunter2"})
    started: list[JobHandle] = []

    def watch(handle: JobHandle) -> None:
        started.append(handle)
        jobs.add(handle)

    with in_process(), with_defaults(on_start=watch), serve_in_thread(jobs, replace(settings, ports=(0,))) as url:
        running = windows(folder, "running")
        cancelled = windows(folder, "cancelled")
        ended = (windows(folder, "finished", 20), broken(folder), cancelled)
        try:
            _has_checkpoint(running)
            cancelled.cancel()
            for handle in ended:
                _has_ended(handle)
            yield Served(url, jobs, running, ended, folder)
        finally:
            for handle in started:
                handle.cancel()
