"""Whole jobs in this process, with checkpoints, and a file system that fails where a test says so."""

import threading
from contextlib import contextmanager

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from penstock.base import storage
from penstock.common import Configuration
from penstock.datastream import StreamExecutionEnvironment
from penstock.engine.snapshots import writing as checkpoints
from penstock.service.launch.submission import with_defaults
from penstock.testing import InProcessCluster, ManualClock, in_process
from tests import waiting

CHECKPOINTED = {"execution.checkpointing.interval": "100 ms", "restart-strategy.type": "none"}
"""A checkpoint an epoch, if epochs are cut by pause(): a rest takes 100 ms of the manual clock."""


def configuration(options):
    made = Configuration()
    for name, value in {**CHECKPOINTED, **options}.items():
        if value is not None:
            made.set_string(name, str(value))
    return made


class RecordingClock(ManualClock):
    """Remembers how long it was asked to rest."""

    def __init__(self, now=0, tick=0):
        super().__init__(now, tick)
        self.rests = []

    def rest(self, millis, woken):
        self.rests.append(millis)
        super().rest(millis, woken)


class Outcome:
    """What a job gave, and its insides."""

    def __init__(self, results, loop):
        self.results = results
        self.loop = loop
        self.coordinator = getattr(loop, "coordinator", None)


@pytest.fixture
def run(monkeypatch):
    """Runs the stream that a function builds, with checkpoints and without restarts unless the options say more.

    What the job raises is raised. Jobs run on a clock that needs no waiting, and every checkpoint is written within
    its epoch, however slow the machine is.
    """
    monkeypatch.setattr(checkpoints, "PATIENCE", 60.0)

    def run(build, options=None, *, parallelism=1, clock=None, epoch_records=None, cluster=InProcessCluster):
        chosen = with_defaults(cluster=lambda settings, deployment: cluster())
        with in_process(epoch_records=epoch_records, clock=clock or RecordingClock()), chosen:
            environment = StreamExecutionEnvironment(configuration(options or {})).set_parallelism(parallelism)
            with build(environment).execute_and_collect() as results:
                return Outcome(list(results), results._job.job_driver)

    return run


@pytest.fixture
def start():
    """Starts the program that a function builds, on the real clock; gives its client. The job is cancelled at last."""
    clients = []

    def start(build, options=None, *, parallelism=1, clock=None):
        with in_process(clock=clock):
            environment = StreamExecutionEnvironment(configuration(options or {})).set_parallelism(parallelism)
            environment.set_buffer_timeout(5)
            build(environment)
            clients.append(environment.execute_async())
            return clients[-1]

    yield start
    for client in clients:
        client.cancel().result(60)


def fixed_delay(attempts, delay="1 s"):
    """Options for a number of restarts."""
    return {
        "restart-strategy.type": "fixed-delay",
        "restart-strategy.fixed-delay.attempts": attempts,
        "restart-strategy.fixed-delay.delay": delay,
    }


@pytest.fixture
def restarts():
    return fixed_delay


@pytest.fixture
def recording_clock():
    return RecordingClock


@pytest.fixture
def until():
    """Waits for something that another thread does."""
    return waiting.until


# --- a file system that fails ---
class Hooked(MemoryFileSystem):
    """A file system in memory; a hook sees every call before it takes effect, and may raise or wait."""

    protocol = "hooked"
    store: dict = {}
    pseudo_dirs: list = [""]
    calls: list = []
    hook = staticmethod(lambda call, path: None)

    @classmethod
    def _called(cls, call, path):
        cls.calls.append((call, path))
        cls.hook(call, path)

    def _open(self, path, mode="rb", **options):
        self._called("read" if mode == "rb" else "write", path)
        return super()._open(path, mode, **options)

    def makedirs(self, path, exist_ok=False):
        self._called("makedirs", path)
        super().makedirs(path, exist_ok=True)

    def cat_file(self, path, start=None, end=None, **options):
        self._called("read", path)
        return super().cat_file(path, start, end, **options)

    def find(self, path, *args, **options):
        self._called("find", path)
        return super().find(path, *args, **options)

    def rm_file(self, path):
        self._called("delete", path)
        super().rm_file(path)

    def mv(self, path1, path2, **options):
        self._called("move", path2)
        self.store[path2] = self.store.pop(path1)

    @classmethod
    def _strip_protocol(cls, path):
        return MemoryFileSystem._strip_protocol(str(path).removeprefix("hooked://"))


class HookedPlace:
    """The file system in the hands of a test."""

    url = "hooked://ckpt"
    fs = Hooked

    def names(self):
        return sorted(Hooked.store)

    @contextmanager
    def failing(self, hook):
        Hooked.hook = staticmethod(hook)
        try:
            yield
        finally:
            Hooked.hook = staticmethod(lambda call, path: None)

    def on(self, hook):
        Hooked.hook = staticmethod(hook)


@pytest.fixture
def hooked(monkeypatch):
    """An empty file system with a hook; retries come at once."""
    fsspec.register_implementation("hooked", Hooked, clobber=True)
    monkeypatch.setattr(storage, "_WAITS", (0.0,) * storage.ATTEMPTS)
    Hooked.store.clear()
    Hooked.pseudo_dirs[:] = [""]
    Hooked.calls.clear()
    place = HookedPlace()
    place.on(lambda call, path: None)
    yield place
    place.on(lambda call, path: None)
    Hooked.store.clear()


@pytest.fixture
def gate():
    """A gate that is opened at the end of the test at the latest, so that no thread waits for ever."""
    opened = threading.Event()
    yield opened
    opened.set()
