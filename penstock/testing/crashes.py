"""The crash simulator: a whole job in this process, in virtual time, in which every part may die at any step.

One seed drives everything: how epochs are cut, when checkpoints are taken and how long their upload takes, and at which
steps a slot or the driver dies. Steps are the durable ones (a file opened, written, moved, deleted; a commit in an
outside system) and every call of a user function that says so with `crash_point`. A dead slot is replaced by the
driver; a dead driver is followed by another one that recovers the job from what it finds in the storage.

    outcome = simulate(build, seed=17)            # build(environment) defines the program
    assert outcome.store.visible("numbers") == expected

A program writes into `outcome.store`, an outside system with transactions, through `StoreSink`.
"""

from __future__ import annotations

import io
import random
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

import fsspec
from fsspec.implementations.memory import MemoryFileSystem

from penstock.api.functions.source_functions import SinkFunction
from penstock.base import storage
from penstock.common.configuration import Configuration
from penstock.connectors.source_api import Committer, Sink, SinkWriter, WriterContext
from penstock.datastream.stream_execution_environment import StreamExecutionEnvironment
from penstock.engine.messages.commands_and_reports import Command, Deployment, Report
from penstock.engine.queryable.slot_states import Findings, Lookup
from penstock.engine.snapshots import writing as checkpoints
from penstock.errors import PenstockError, SlotLost
from penstock.service.launch.execution_settings import EnvironmentSettings
from penstock.service.launch.submission import with_defaults
from penstock.testing.cluster import InProcessCluster, ManualClock
from penstock.testing.faults import Faults, JumpingClock

T = TypeVar("T")
MOST_DRIVERS = 60
MARKERS_REMEMBERED = 2
JOB_ID = "c0ffee" + "0" * 26


class Crash(BaseException):
    """A process is gone. It is not an Exception, so that no `except Exception` can handle it."""


class Schedule:
    """The decisions of a seed, and the progress of the simulation."""

    def __init__(self, seed: int, crashes: dict[str, set[int]] | None = None) -> None:
        self.random = random.Random(seed)
        self.steps = {"durable": 0, "callback": 0}
        self.crashes = crashes or {"durable": set(), "callback": set()}
        self.faults: Faults | None = None
        """Faults of the storage, or None if it works properly."""
        self.store = Store()
        self.log: list[str] = []
        """Deaths so far, each with its step."""
        self.between: Callable[[str], None] = lambda what: None
        """Function that is called before every step with a description of it. It may stop a driver for a while."""

    def step(self, kind: str, what: str) -> None:
        """Count a step, and crash if the schedule says so."""
        self.between(what)
        self.steps[kind] += 1
        if self.steps[kind] in self.crashes[kind]:
            self.log.append(f"{kind} step {self.steps[kind]}: {what}")
            raise Crash(what)


class _Current:
    schedule: Schedule | None = None


def _faults() -> Faults | None:
    return _Current.schedule.faults if _Current.schedule is not None else None


def _faulty(what: str, call: Callable[[], T]) -> T:
    """Make a call of the storage, which the faults of the simulation may spoil."""
    faults = _faults()
    return call() if faults is None else faults.around(what, call)


def crash_point(what: str) -> None:
    """Mark a place in a user function where the process may die. Outside a simulation this does nothing."""
    if _Current.schedule is not None:
        _Current.schedule.step("callback", what)


def _durable(what: str) -> None:
    if _Current.schedule is not None:
        _Current.schedule.step("durable", what)


# --- the outside world ---
class Store:
    """An outside system with transactions. It survives every crash."""

    def __init__(self) -> None:
        self.prepared: dict[str, list[Any]] = {}
        self.committed: dict[str, list[Any]] = {}
        self.markers: dict[str, list[str]] = {}

    def prepare(self, transaction: str, records: list[Any]) -> None:
        """Prepare the records of a transaction."""
        _durable(f"before preparing {transaction}")
        self.prepared[transaction] = records
        _durable(f"after preparing {transaction}")

    def commit(self, transaction: str) -> None:
        """Commit prepared records. A second commit changes nothing."""
        _durable(f"before committing {transaction}")
        self.committed.setdefault(transaction, self.prepared[transaction])
        _durable(f"after committing {transaction}")

    def abort(self, transaction: str) -> None:
        """Drop prepared records. Committed records stay."""
        _durable(f"before aborting {transaction}")
        self.prepared.pop(transaction, None)

    def commit_prepared(self, transaction: str) -> None:
        """Commit prepared records. A transaction that is not prepared was committed or aborted before."""
        _durable(f"before committing {transaction}")
        if transaction in self.prepared:
            self.committed[transaction] = self.prepared.pop(transaction)
        _durable(f"after committing {transaction}")

    def commit_marked(self, origin: str, transaction: str, records: list[Any], check: Callable[[], None]) -> None:
        """Commit records with a marker.

        Only a few markers are remembered. `check` may refuse while nobody else can commit.
        """
        _durable(f"before writing {transaction}")
        known = self.markers.setdefault(origin, [])
        if transaction not in known:
            check()
            self.markers[origin] = [*known, transaction][-MARKERS_REMEMBERED:]
            self.committed[f"{transaction}, time {len(self.committed)}"] = records
        _durable(f"after writing {transaction}")

    def visible(self, name: str) -> list[Any]:
        """Return all records committed under a sink's name, in the order of commits."""
        chosen = [records for transaction, records in self.committed.items() if transaction.startswith(f"{name}/")]
        return [record for records in chosen for record in records]


def current_store() -> Store:
    """Return the store of the running simulation."""
    assert _Current.schedule is not None, "there is a store inside a simulation only"
    return _Current.schedule.store


def new_name(prefix: str) -> str:
    """Return a name that is unique in the running simulation."""
    assert _Current.schedule is not None, "names are given inside a simulation only"
    return f"{prefix}-{_Current.schedule.random.getrandbits(64):016x}"


@dataclass
class StoreSink(Sink):
    """Writes into the simulation's store, exactly once."""

    name: str

    def create_writer(self, context: WriterContext, restored: list[Any]) -> SinkWriter:
        return _StoreWriter(new_name(f"{self.name}/{context.runtime.get_index_of_this_subtask()}"))

    def create_committer(self) -> Committer:
        return _StoreCommitter()


class _StoreWriter(SinkWriter):
    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._written = 0
        self._records: list[Any] = []

    def write(self, value: Any, context: SinkFunction.Context) -> None:
        crash_point("writing to the store")
        self._records.append(value)

    def prepare_commit(self) -> list[Any]:
        if not self._records:
            return []
        self._written += 1
        transaction = f"{self._prefix}-{self._written}"
        records, self._records = self._records, []
        current_store().prepare(transaction, records)
        return [transaction]


class _StoreCommitter(Committer):
    def commit(self, committables: list[Any]) -> None:
        for transaction in committables:
            current_store().commit(transaction)


class CrashFileSystem(MemoryFileSystem):
    """A file system in memory that outlives drivers. A process may die before or after each change."""

    protocol = "crash"
    store: dict[str, Any] = {}
    pseudo_dirs = [""]
    cachable = False

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return "/" + path.removeprefix("crash://").strip("/")

    def unstrip_protocol(self, name: str) -> str:
        """Return the full URL of a path."""
        return "crash://" + name.removeprefix("crash://").strip("/")

    def _open(self, path: str, mode: str = "rb", **settings: Any) -> Any:
        if mode == "rb":
            return _faulty(f"read {path}", lambda: self._open_faulty(path, settings))
        _durable(f"before writing {path}")
        return _faulty(
            f"write {path}", lambda: _Written(super(CrashFileSystem, self)._open(path, mode, **settings), path)
        )

    def _open_faulty(self, path: str, settings: dict[str, Any]) -> Any:
        opened, faults = super()._open(path, "rb", **settings), _faults()
        return opened if faults is None else io.BytesIO(faults.read(opened.getvalue()))

    def cat_file(self, path: str, start: int | None = None, end: int | None = None, **settings: Any) -> bytes:
        """Return the bytes of a file or of a range of it. Faults of the simulation may refuse or change them."""
        found = _faulty(f"read {path}", lambda: super(CrashFileSystem, self).cat_file(path, start, end, **settings))
        faults = _faults()
        return found if faults is None else faults.read(found)

    def find(self, path: str, maxdepth: int | None = None, **settings: Any) -> Any:
        """List files. A new file may be missing for a moment, as in a slightly inconsistent object store."""
        found, faults = super().find(path, maxdepth, **settings), _faults()
        if faults is None:
            return found
        shown = [one for one in found if faults.lists(one)]
        return {one: found[one] for one in shown} if isinstance(found, dict) else shown

    def mv(self, path1: str, path2: str, **settings: Any) -> None:
        """Move a file without overwriting another, even one created meanwhile by another process, as in HDFS."""
        _durable(f"before moving {path1}")
        _faulty(f"move {path1}", lambda: self._move(path1, path2, settings))
        _durable(f"after moving {path1}")

    def _move(self, path1: str, path2: str, settings: dict[str, Any]) -> None:
        if self.exists(path2):
            raise FileExistsError(path2)
        super().mv(path1, path2, **settings)
        if (faults := _faults()) is not None:
            faults.hide(self._strip_protocol(path2))

    def rm_file(self, path: str) -> None:
        """Delete a file. The process may die just before or just after the deletion."""
        _durable(f"before deleting {path}")
        _faulty(f"delete {path}", lambda: super(CrashFileSystem, self).rm_file(path))
        _durable(f"after deleting {path}")


class _Written:
    """A file that a crash may cut off: the part written before the crash stays."""

    def __init__(self, file: Any, path: str) -> None:
        self._file = file
        self._path = path

    def write(self, data: bytes) -> int:
        half = len(data) // 2
        self._file.write(data[:half])
        self._file.commit()
        _durable(f"in the middle of writing {self._path}")
        self._file.write(data[half:])
        self._file.commit()
        return len(data)

    def flush(self) -> None:
        self._file.flush()

    def __enter__(self) -> _Written:
        return self

    def __exit__(self, kind: Any, *_: Any) -> None:
        self._file.close()
        if kind is None:
            _durable(f"after writing {self._path}")


# --- the job ---
class CrashingCluster(InProcessCluster):
    """Slots that may die in the middle of any call. Sometimes the driver dies with them."""

    def deploy(self, deployment: Deployment) -> list[Report]:
        return self._survive(lambda: super(CrashingCluster, self).deploy(deployment))

    def run(self, command: Command) -> list[Report]:
        return self._survive(lambda: super(CrashingCluster, self).run(command))

    def look(self, lookups: Mapping[int, Lookup]) -> list[Findings]:
        def answer() -> list[Findings]:
            crash_point("answering queries")
            return super(CrashingCluster, self).look(lookups)

        return self._survive(answer)

    def _answer_asides(self) -> None:
        if self.asides.due_in() is not None:
            crash_point("answering queries within an epoch")
        super()._answer_asides()

    def _survive(self, action: Callable[[], list[T]]) -> list[T]:
        schedule = _Current.schedule
        try:
            return action()
        except Crash as crash:
            self.lose()
            if schedule is None or schedule.random.random() < 0.3:
                raise
            raise SlotLost(f"a slot died: {crash}") from None


class _LateWriter(Executor):
    """Writes checkpoints after random delays, in the order in which they were taken."""

    def __init__(self) -> None:
        self._waiting: list[tuple[Future[Any], Callable[[], Any]]] = []

    def submit(self, function: Callable[..., Any], /, *args: Any, **settings: Any) -> Future[Any]:
        future: _LateFuture = _LateFuture(self)
        self._waiting.append((future, lambda: function(*args, **settings)))
        return future

    def work(self) -> None:
        """Perform a random part of the waiting writes. Called when the slot asks whether writing is done."""
        assert _Current.schedule is not None
        while self._waiting and _Current.schedule.random.random() < 0.5:
            future, action = self._waiting.pop(0)
            future.set_result(action())

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        self._waiting.clear()


class _LateFuture(Future[Any]):
    def __init__(self, writer: _LateWriter) -> None:
        super().__init__()
        self._writer = writer

    def done(self) -> bool:
        if not super().done():
            self._writer.work()
        return super().done()


@dataclass
class Outcome:
    """The outcome of a simulation."""

    seed: int
    store: Store
    drivers: int
    """Number of drivers that the job needed to finish."""
    crashes: list[str]
    steps: dict[str, int]
    settings: dict[str, str] = field(default_factory=dict)
    faults: dict[str, int] = field(default_factory=dict)
    """Number of faults of each kind."""


Build = Callable[[StreamExecutionEnvironment], None]


def simulate(
    build: Build, seed: int, crashes: int | None = None, steps: dict[str, int] | None = None, faults: float = 0.0
) -> Outcome:
    """Run a program to its end through the crashes that a seed decides.

    `steps` has the number of steps of each kind in an uninterrupted run, which its outcome contains. Without it, or
    with no crashes, nothing dies. `faults` is the likelihood of a fault for each call of the storage. If it is
    above 0, the clock jumps too, and a driver that ends with an error is followed by another driver.
    """
    schedule = Schedule(seed)
    if faults:
        schedule.faults = Faults(random.Random(f"faults {seed}"), faults)
    settings = chosen_settings(schedule.random)
    if steps is not None:
        count = schedule.random.randint(1, 4) if crashes is None else crashes
        schedule.crashes = chosen_crashes(schedule.random, count, steps)
    drivers = 0
    with simulate_world(schedule, settings):
        while True:
            drivers += 1
            if drivers > MOST_DRIVERS:
                raise AssertionError(f"seed {seed}: the job does not end: {schedule.log}")
            try:
                environment = StreamExecutionEnvironment.get_execution_environment()
                build(environment)
                environment.execute("simulated job")
                break
            except Crash:
                continue
            except PenstockError as error:
                if not faults:
                    raise
                schedule.log.append(f"driver {drivers} ended with {type(error).__name__}: {error}")
    struck = {} if schedule.faults is None else dict(schedule.faults.counts)
    return Outcome(seed, schedule.store, drivers, schedule.log, dict(schedule.steps), settings, struck)


def chosen_crashes(chance: random.Random, count: int, steps: dict[str, int]) -> dict[str, set[int]]:
    """Choose the steps at which something dies, of the kinds that the run has."""
    chosen: dict[str, set[int]] = {kind: set() for kind in steps}
    kinds = sorted(kind for kind, number in steps.items() if number)
    for _ in range(count if kinds else 0):
        kind = chance.choice(kinds)
        chosen[kind].add(chance.randint(1, int(steps[kind] * 1.5)))
    return chosen


def chosen_settings(chance: random.Random) -> dict[str, str]:
    """Choose settings that must not influence the result."""
    return {
        "execution.checkpointing.interval": f"{chance.choice([10, 15, 40])} ms",
        "execution.checkpointing.min-pause": f"{chance.choice([0, 0, 20])} ms",
        "execution.checkpointing.max-concurrent-checkpoints": str(chance.choice([1, 1, 2])),
        "execution.checkpointing.num-retained": str(chance.choice([1, 1, 3])),
        "execution.checkpointing.incremental": chance.choice(["true", "true", "false"]),
        "execution.checkpointing.snapshot-compression": chance.choice(["true", "false"]),
        "execution.checkpointing.data-inline-threshold": chance.choice(["0 b", "1 kb", "20 kb"]),
        "state.backend.type": chance.choice(["hashmap"] * 14 + ["rocksdb"]),
        "execution.checkpointing.dir": "crash://checkpoints",
        "execution.recover": "latest",
        "pipeline.job-id": JOB_ID,
        "restart-strategy.type": "fixed-delay",
        "restart-strategy.fixed-delay.attempts": "1000",
        "restart-strategy.fixed-delay.delay": "1 ms",
        "penstock.epoch.max-records": str(chance.randint(1, 9)),
        "execution.buffer-timeout": "5 ms",
        "heartbeat.interval": "1 h",
        "heartbeat.timeout": "1 h",
        "pipeline.auto-watermark-interval": f"{chance.choice([1, 10])} ms",
    }


@contextmanager
def simulate_world(schedule: Schedule, settings: dict[str, str]) -> Iterator[None]:
    """Run jobs within this block in the world of a schedule."""
    configuration = Configuration()
    for name, value in settings.items():
        configuration.set_string(name, value)
    tick, faults = schedule.random.randint(1, 3), schedule.faults
    clock = ManualClock(1_000_000, tick) if faults is None else JumpingClock(faults, 1_000_000, tick)
    before = checkpoints.new_writer, checkpoints.PATIENCE, storage.pause
    CrashFileSystem.store = {}
    CrashFileSystem.pseudo_dirs = [""]
    fsspec.register_implementation("crash", CrashFileSystem, clobber=True)
    late = schedule.random.random() < 0.5
    checkpoints.new_writer = _LateWriter if late else ImmediateWriter
    checkpoints.PATIENCE = 0.0
    storage.pause = lambda attempt: None
    _Current.schedule = schedule
    try:
        with with_defaults(cluster=_crashing_cluster, clock=lambda: clock, configuration=configuration):
            yield
    finally:
        _Current.schedule = None
        checkpoints.new_writer, checkpoints.PATIENCE, storage.pause = before


class ImmediateWriter(Executor):
    """Writes checkpoints at once."""

    def submit(self, function: Callable[..., Any], /, *args: Any, **settings: Any) -> Future[Any]:
        """Call the function in the calling thread, and return a future that has its result."""
        future: Future[Any] = Future()
        future.set_result(function(*args, **settings))
        return future


def _crashing_cluster(settings: EnvironmentSettings, deployment: Deployment) -> CrashingCluster:
    return CrashingCluster()
