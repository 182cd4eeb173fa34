"""What the driver says to the slots, and what they answer."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from penstock.api.settings.state_backend import StateBackend
from penstock.base.logs.log_options import LogSettings
from penstock.base.main_classes import Addresses
from penstock.engine.messages.owner_token import Token
from penstock.engine.queryable.slot_states import QueryableState
from penstock.engine.records.failures import Failure
from penstock.engine.state.snapshot_file import Restore, SlotSnapshot
from penstock.graph.plan import Plan
from penstock.metrics.metric import Described


@dataclass(frozen=True)
class MeasuringSettings:
    """What slots measure beside what functions measure themselves."""

    enabled: bool = True
    """Whether operators are counted one by one, and processes watched."""
    latency_interval: int = 0
    """Milliseconds between the latency markers of a source subtask; 0 for none."""
    latency_granularity: str = "operator"
    """Which markers share a histogram: `single`, `operator` or `subtask`."""
    latency_history: int = 128
    """How many of the last markers count, at least."""
    rocksdb: tuple[str, ...] = ()
    """Which of RocksDB's own figures are reported."""


@dataclass
class Deployment:
    """Everything a slot needs to start. Operators and partitionings stay pickled until a slot opens them."""

    job_id: str
    plan: Plan
    operators: dict[int, bytes]
    partitionings: dict[int, bytes]
    main_classes: Addresses = field(default_factory=dict)
    """The classes of the program's main script that the operators need."""
    attempt: int = 0
    now: int = 0
    watermark_interval: int = 200
    job_parameters: dict[str, str] = field(default_factory=dict)
    search_path: list[str] = field(default_factory=list)
    """Folders in which the program's own modules may lie."""
    pyflink: bool = False
    """Whether `import pyflink` finds Penstock in the program's process, and so in its slots."""
    cached_files: dict[str, str] = field(default_factory=dict)
    """Files that the program registered, by name: paths on the driver's machine, and in a slot on its own."""
    archive: str | None = None
    """The zip or wheel that the program came in, if it did: a path on the driver's machine, and Spark's name for it
    in a slot, which unpacks it."""
    working_directory: str | None = None
    """The working directory of slots, if the program has archives."""
    checkpoints: CheckpointSettings | None = None
    """How checkpoints are taken; None if they are not."""
    state_backend: StateBackend | None = None
    """Where keyed state is kept; None for the slot's memory."""
    restore: Restore | None = None
    """What to restore before opening; None for a fresh start."""
    sort_memory: int = 128 << 20
    """In BATCH mode: bytes that a keyed operator may hold back in memory; the rest waits on disk."""
    spill_folder: str | None = None
    """Where, in a slot; None for the folder that Python uses for temporary files."""
    owner: Token | None = None
    """The right of this attempt to commit; None if no other driver can take it away."""
    measuring: MeasuringSettings = field(default_factory=MeasuringSettings)
    logs: LogSettings | None = None
    """What slots log, and how much of it; None leaves logging alone."""


@dataclass(frozen=True)
class CheckpointSettings:
    """What slots need to know about checkpoints."""

    incremental: bool = True
    compress: bool = False
    inline_below: int = 20 * 1024
    """Bytes; a slot's share that is smaller goes into the metadata instead of a file of its own."""
    largest_inline: int | None = None
    """Bytes; for a storage that is the driver's memory, more than this is an error."""
    asynchronous: bool = True
    local_copies: bool = False
    local_folders: tuple[str, ...] = ()
    """Folders for local copies, of which a slot uses one; without any, the system's temporary directory."""
    """Whether slots keep a copy on local disk, to recover from without the storage."""


@dataclass(frozen=True)
class CheckpointOrder:
    """Take a checkpoint at the end of this epoch."""

    number: int
    timestamp: int
    folder: str
    """URL of the folder for its files."""
    savepoint: bool = False
    """Complete and by itself: later checkpoints do not build on it."""
    full: bool = False


@dataclass(frozen=True)
class Notice:
    """The outcome of a checkpoint."""

    number: int
    complete: bool
    savepoint: bool = False


@dataclass
class Acknowledgement:
    """A slot's share of a checkpoint is durable, or has failed."""

    number: int
    slot: int
    snapshot: SlotSnapshot | None = None
    failure: Failure | None = None
    written: int = 0
    """Bytes that were new in this checkpoint."""
    sync_millis: float = 0.0
    async_millis: float = 0.0


@dataclass
class Command:
    """One epoch's orders, the same for all slots."""

    epoch: int
    attempt: int
    now: int
    """Processing time in milliseconds; frozen for the epoch."""
    max_records: int
    max_millis: int
    wait_millis: int = 0
    """How long a source that finds nothing may wait for a first record."""
    assignments: dict[int, list[Any]] = field(default_factory=dict)
    """By source node: a payload per subtask."""
    alignment: dict[str, int] = field(default_factory=dict)
    """By alignment group: how far event time may go."""
    checkpoint: CheckpointOrder | None = None
    notices: list[Notice] = field(default_factory=list)
    drain: bool = False
    """Sources end here, and event time with them."""
    paused: bool = False
    """Sources read nothing: the epoch only takes a checkpoint, or tells of one."""


@dataclass
class Report:
    """One slot's answer at the end of an epoch."""

    slot: int
    epoch: int
    process: int = 0
    """The process id that served every stage of the epoch."""
    place: str = ""
    """The name of the machine on which that process runs."""
    finished: bool = False
    backlog: bool = False
    """A source stopped at its budget, not for lack of input."""
    read: int = 0
    """How many records the busiest source of the slot has read."""
    news: bool = False
    """Something has come while the epoch ran, too late for it."""
    rings: bool = False
    """Whether the slot tells by itself when something comes, so that the driver need not look."""
    waits_for_input: bool = False
    next_due: int | None = None
    results: list[tuple[str, Any]] = field(default_factory=list)
    committables: list[tuple[str, int, list[Any]]] = field(default_factory=list)
    """For the driver's committers: sink uid, checkpoint, what to commit."""
    watermarks: dict[str, int] = field(default_factory=dict)
    alignment: dict[tuple[str, str], int] = field(default_factory=dict)
    metrics: dict[str, Any] = field(default_factory=dict)
    """Readings of users' metrics by full name: in a slot's report those that changed, in a driver's view all of them.
    That of a histogram is a HistogramState."""
    activity: dict[str, tuple[Any, ...]] = field(default_factory=dict)
    """By the uid of a chain's first operator: the values of Figures."""
    operators: dict[str, tuple[Any, ...]] = field(default_factory=dict)
    """By uid: the values of OperatorFigures; as with metrics, those that changed, or all."""
    usage: dict[str, float | int] = field(default_factory=dict)
    """Processor time and memory of the process; nothing if it did not look in this epoch."""
    described: dict[str, Described] = field(default_factory=dict)
    """What metrics are, by full name; empty if there are no new ones."""
    acknowledgements: list[Acknowledgement] = field(default_factory=list)
    uploading: bool = False
    """Whether a checkpoint is still being written."""
    queryable: list[QueryableState] = field(default_factory=list)
    """The states that became queryable in this slot since its last report."""
    failure: Failure | None = None
    lost: str = ""
    """Why this process cannot continue: it does not hold the slot's live state."""
    unreachable: int | None = None
    """The slot whose host acknowledges nothing, if that is why."""
