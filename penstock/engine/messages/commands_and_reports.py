"""The messages between driver and slots: deployments, commands and reports."""

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
    """The settings of measurements that slots make in addition to functions' own metrics."""

    enabled: bool = True
    """Whether slots measure each operator and their processes."""
    latency_interval: int = 0
    """Milliseconds between the latency markers of a source subtask; 0 for no markers."""
    latency_granularity: str = "operator"
    """Scope of markers that share a histogram: `single`, `operator` or `subtask`."""
    latency_history: int = 128
    """Least number of the last markers that a histogram covers."""
    rocksdb: tuple[str, ...] = ()
    """Names of RocksDB's own figures to report."""


@dataclass
class Deployment:
    """Everything a slot needs to start. Operators and partitionings stay pickled until a slot opens them."""

    job_id: str
    plan: Plan
    operators: dict[int, bytes]
    partitionings: dict[int, bytes]
    main_classes: Addresses = field(default_factory=dict)
    """The classes of the program's main script that the operators need."""
    class_definitions: bytes = b""
    """These classes, pickled by value."""
    attempt: int = 0
    now: int = 0
    watermark_interval: int = 200
    job_parameters: dict[str, str] = field(default_factory=dict)
    search_path: list[str] = field(default_factory=list)
    """Folders that may contain the program's own modules."""
    pyflink: bool = False
    """Whether `import pyflink` finds Penstock in the program's process, and therefore in its slots."""
    cached_files: dict[str, str] = field(default_factory=dict)
    """Files that the program registered, by name: paths on the driver's machine, and in a slot on its own machine."""
    archive: str | None = None
    """The program's zip or wheel, if there is one: a path on the driver's machine, and Spark's name in a slot.
    The slot unpacks it."""
    working_directory: str | None = None
    """The working directory of slots, if the program has archives."""
    checkpoints: CheckpointSettings | None = None
    """Settings of checkpoints; None if the job takes none."""
    state_backend: StateBackend | None = None
    """Backend of keyed state; None for the slot's memory."""
    restore: Restore | None = None
    """Snapshot to restore before opening; None for a fresh start."""
    sort_memory: int = 128 << 20
    """Bytes that a keyed operator of a BATCH job may hold back in memory. Further input waits on disk."""
    spill_folder: str | None = None
    """Folder of a slot's machine for that input; None for Python's folder of temporary files."""
    owner: Token | None = None
    """The right of this attempt to commit; None if no other driver can take it away."""
    measuring: MeasuringSettings = field(default_factory=MeasuringSettings)
    logs: LogSettings | None = None
    """Log settings of slots, or None to keep the current settings."""


@dataclass(frozen=True)
class CheckpointSettings:
    """The settings of checkpoints for slots."""

    incremental: bool = True
    compress: bool = False
    inline_below: int = 20 * 1024
    """Limit, in bytes, below which a slot's share goes into the metadata instead of a file."""
    largest_inline: int | None = None
    """Largest share of a slot, in bytes, if checkpoints are in the driver's memory. A larger share is an error."""
    asynchronous: bool = True
    local_copies: bool = False
    """Whether slots keep a copy on local disk, from which they can recover without the storage."""
    local_folders: tuple[str, ...] = ()
    """Folders for local copies, of which a slot uses one. Without any, it uses the system's temporary directory."""


@dataclass(frozen=True)
class CheckpointOrder:
    """Take a checkpoint at the end of this epoch."""

    number: int
    timestamp: int
    folder: str
    """URL of the folder for its files."""
    savepoint: bool = False
    """Whether it is a savepoint: complete, and never the base of a later checkpoint."""
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
    """Number of bytes that were new in this checkpoint."""
    sync_millis: float = 0.0
    async_millis: float = 0.0


@dataclass
class Command:
    """The orders for one epoch, the same for all slots."""

    epoch: int
    attempt: int
    now: int
    """Processing time in milliseconds; frozen for the epoch."""
    max_records: int
    max_millis: int
    wait_millis: int = 0
    """Milliseconds that a source without input may wait for a first record."""
    assignments: dict[int, list[Any]] = field(default_factory=dict)
    """Payloads for subtasks by source node, one for each subtask."""
    alignment: dict[str, int] = field(default_factory=dict)
    """Limits of watermarks by alignment group."""
    checkpoint: CheckpointOrder | None = None
    notices: list[Notice] = field(default_factory=list)
    drain: bool = False
    """Whether sources, and event time with them, end in this epoch."""
    paused: bool = False
    """Whether sources read nothing, since the epoch only takes a checkpoint or carries notices."""


@dataclass
class Report:
    """One slot's answer at the end of an epoch."""

    slot: int
    epoch: int
    process: int = 0
    """Id of the process that served every stage of the epoch."""
    place: str = ""
    """Name of the machine on which that process runs."""
    finished: bool = False
    backlog: bool = False
    """Whether a source stopped at its budget, and not for lack of input."""
    read: int = 0
    """Number of records that the busiest source of the slot has read."""
    news: bool = False
    """Whether input has arrived during the epoch, but too late for it."""
    rings: bool = False
    """Whether the slot rings its bell when something arrives, so that the driver need not ask."""
    waits_for_input: bool = False
    next_due: int | None = None
    results: list[tuple[str, Any]] = field(default_factory=list)
    committables: list[tuple[str, int, list[Any]]] = field(default_factory=list)
    """Items for the driver's committers: uid of the sink, checkpoint, and the items to commit."""
    watermarks: dict[str, int] = field(default_factory=dict)
    alignment: dict[tuple[str, str], int] = field(default_factory=dict)
    metrics: dict[str, Any] = field(default_factory=dict)
    """Readings of users' metrics by full name: in a slot's report the changed ones, in a driver's view all of them.
    The reading of a histogram is a HistogramState."""
    activity: dict[str, tuple[Any, ...]] = field(default_factory=dict)
    """Values of Figures by the uid of a chain's first operator."""
    operators: dict[str, tuple[Any, ...]] = field(default_factory=dict)
    """Values of OperatorFigures by operator uid: the changed ones, or all, as with metrics."""
    usage: dict[str, float | int] = field(default_factory=dict)
    """Processor time and memory of the process; empty if it did not measure them in this epoch."""
    described: dict[str, Described] = field(default_factory=dict)
    """Descriptions of new metrics by full name."""
    acknowledgements: list[Acknowledgement] = field(default_factory=list)
    uploading: bool = False
    """Whether a checkpoint is still being written."""
    queryable: list[QueryableState] = field(default_factory=list)
    """The states that became queryable in this slot since its last report."""
    failure: Failure | None = None
    lost: str = ""
    """Reason why this process cannot continue, since it does not hold the slot's live state; empty if it can."""
    unreachable: int | None = None
    """The slot whose host acknowledges nothing, if this caused the failure."""
