"""Slots that ring: input wakes the driver, nothing is read twice or lost, and nothing rings for nothing."""

import asyncio
import threading
import time
from dataclasses import dataclass, replace

import cloudpickle
import pytest

from penstock.common import Configuration, Time, WatermarkStrategy
from penstock.datastream import AsyncDataStream, StreamExecutionEnvironment
from penstock.datastream.connectors.base import Boundedness, Fetched, Source, SourceReader, StaticSplits
from penstock.datastream.functions import AsyncFunction, SourceFunction
from penstock.engine.messages.epoch_requests import Bell
from penstock.engine.slot.slot import Slot
from penstock.service.launch.submission import with_defaults
from penstock.testing import InProcessCluster, in_process
from tests.waiting import until


class RingingCluster(InProcessCluster):
    """Slots in this process that ring as those on Spark do."""

    def deploy(self, deployment):
        for slot in self.slots:
            slot.close()
        blob = cloudpickle.dumps(deployment)
        self.slots = [
            Slot(index, cloudpickle.loads(blob), Bell(lambda: self.on_wake(False)))
            for index in range(deployment.plan.slots)
        ]
        return [self._open(slot) for slot in self.slots]


@pytest.fixture
def environment():
    """Makes environments whose jobs run on ringing slots, on a real clock, with epochs as soon as something comes."""
    with in_process(), with_defaults(cluster=lambda settings, deployment: RingingCluster()):

        def make(**options):
            return StreamExecutionEnvironment(Configuration.from_dict(options)).set_parallelism(2).set_buffer_timeout(0)

        yield make


class Log:
    """The outside world: what has been written so far, by partition."""

    def __init__(self):
        self.changed = threading.Condition()
        self.partitions = [[], []]
        self.calls = 0

    def write(self, number):
        with self.changed:
            self.partitions[number % 2].append(number)
            self.changed.notify_all()


LOG = Log()


@dataclass(frozen=True)
class Partition:
    index: int
    position: int = 0

    @property
    def split_id(self):
        return str(self.index)


class LogSource(Source):
    def get_boundedness(self):
        return Boundedness.CONTINUOUS_UNBOUNDED

    def create_enumerator(self):
        return StaticSplits([Partition(0), Partition(1)])

    def create_reader(self, context):
        return LogReader()


class LogReader(SourceReader):
    """Waits for records as a consumer does. Two threads in it at once would be seen."""

    waits_in_a_thread = True

    def __init__(self):
        self.splits = []
        self.busy = threading.Lock()

    def alone(self):
        assert self.busy.acquire(blocking=False), "two threads use the reader"
        return self.busy

    def add_splits(self, splits):
        with _released(self.alone()):
            self.splits.extend(splits)

    def fetch(self, most, wait):
        with _released(self.alone()), LOG.changed:
            LOG.calls += 1
            if not self._there() and wait:
                LOG.changed.wait_for(self._there, wait)
            found = []
            for number, split in enumerate(self.splits):
                values = LOG.partitions[split.index][split.position :][:most]
                if values:
                    self.splits[number] = replace(split, position=split.position + len(values))
                    found.append(Fetched(split.split_id, values))
            return found

    def _there(self):
        return any(len(LOG.partitions[split.index]) > split.position for split in self.splits)

    def snapshot_state(self):
        with _released(self.alone()):
            return list(self.splits)


class _released:
    """Gives a lock back that is held already."""

    def __init__(self, lock):
        self.lock = lock

    def __enter__(self):
        return self.lock

    def __exit__(self, *_):
        self.lock.release()


@pytest.fixture(autouse=True)
def _empty_log():
    global LOG
    LOG = Log()


def numbers(env):
    return env.from_source(LogSource(), WatermarkStrategy.no_watermarks(), "log")


def test_records_come_as_they_are_written_and_nothing_runs_in_between(environment):
    results = numbers(environment()).key_by(lambda n: n % 3).map(lambda n: n).execute_and_collect()
    loop = results._job.job_driver
    for number in range(20):
        LOG.write(number)
        assert next(results) == number
    until(lambda: stands_still(loop))
    assert loop.view.epoch < 100
    results.close()


def stands_still(loop):
    """Whether no epoch runs for a while."""
    epochs = loop.view.epoch
    time.sleep(0.5)
    return loop.view.epoch == epochs


def test_what_was_read_ahead_is_before_the_savepoint(environment, tmp_path):
    """Whatever moment savepoints are taken at, all jobs together read every record once."""
    total, seen, path = 300, [], None
    writer = threading.Thread(target=lambda: [(LOG.write(n), time.sleep(0.002)) for n in range(total)])
    writer.start()
    while len(seen) < total:
        options = {} if path is None else {"execution.state-recovery.path": path}
        env = environment(**options)
        results = numbers(env).uid("numbers").execute_and_collect()
        time.sleep(0.1)
        path = results._job.trigger_savepoint(str(tmp_path), stop=True, drain=False)
        seen.extend(results)
    writer.join()
    assert sorted(seen) == list(range(total))


def test_a_drained_job_has_handed_on_all_that_it_read(environment, tmp_path):
    for number in range(100):
        LOG.write(number)
    results = numbers(environment()).uid("numbers").execute_and_collect()
    writer = threading.Thread(target=lambda: [(LOG.write(n), time.sleep(0.001)) for n in range(100, 200)])
    writer.start()
    time.sleep(0.05)
    path = results._job.trigger_savepoint(str(tmp_path), stop=True, drain=True)
    seen = list(results)
    writer.join()
    going_on = numbers(environment(**{"execution.state-recovery.path": path})).uid("numbers").execute_and_collect()
    while len(seen) < 200:
        seen.append(next(going_on))
    going_on.close()
    assert sorted(seen) == list(range(200))


class Few(SourceFunction):
    def __init__(self, number):
        self.number = number

    def run(self, ctx):
        for n in range(self.number):
            time.sleep(0.02)
            ctx.collect(n)

    def cancel(self):
        self.number = 0


class Later(AsyncFunction):
    async def async_invoke(self, value):
        await asyncio.sleep(0.05)
        return [value]


def test_a_source_function_and_requests_ring(environment):
    env = environment()
    asked = AsyncDataStream.unordered_wait(env.add_source(Few(10)), Later(), Time.seconds(5))
    results = asked.execute_and_collect()
    loop = results._job.job_driver
    assert sorted(results) == list(range(10))
    assert loop.view.epoch < 60


def test_a_bell_rings_once_until_the_next_epoch_has_ended():
    rung = []
    bell = Bell(lambda: rung.append(1))
    bell.ring()
    assert rung == []
    bell.arm()
    bell.ring()
    bell.ring()
    assert rung == [1]
    bell.arm()
    bell.disarm()
    bell.ring()
    assert rung == [1] and bell.works and not Bell().works
