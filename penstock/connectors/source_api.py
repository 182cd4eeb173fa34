"""The interfaces that every connector implements.

A source is plain data with two halves. Its enumerator lives with the driver and finds splits: the partitions of a
topic, the pieces of a file. Its readers live in the slots and read the splits assigned to them; the position in each
split is part of every checkpoint.

A sink is plain data with a writer in every slot. The writer writes during an epoch and prepares at a checkpoint. Once
the checkpoint is complete, the committer makes the prepared records visible.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Generic

from penstock.api.output_tag import OutputTag
from penstock.base.arguments import check_arguments
from penstock.base.type_variables import IN, OUT
from penstock.common.typeinfo import TypeInformation
from penstock.common.watermark_strategy import WatermarkStrategy
from penstock.persisted import persisted_in

if TYPE_CHECKING:
    from penstock.api.functions.contexts import RuntimeContext
    from penstock.api.functions.source_functions import SinkFunction
    from penstock.datastream.data_stream import DataStream
    from penstock.formats.batch_of_rows import BatchOfRows

__all__ = [
    "BadRecord",
    "BadRecords",
    "Boundedness",
    "Committer",
    "DeliveryGuarantee",
    "Fetched",
    "GlobalCommitter",
    "ReaderContext",
    "Sink",
    "SinkWriter",
    "Source",
    "SourceReader",
    "SplitEnumerator",
    "SplitReader",
    "SplitsInTurn",
    "StaticSplits",
    "StreamTransformer",
    "SupportsPreprocessing",
    "WriterContext",
]


# --- sources ---
class Boundedness(Enum):
    """Tells whether a source ends."""

    BOUNDED = "bounded"
    CONTINUOUS_UNBOUNDED = "unbounded"


@dataclass
class Fetched:
    """Records of one split, in order."""

    split_id: str
    values: Sequence[Any]
    """A list, or a `BatchOfRows`, which makes rows only where they are needed."""
    timestamps: list[int] | None = None
    """Event times, if the outside system has any. A timestamp assigner gets them as an argument."""
    last: bool = False
    """True if the split has been read to its end."""


class SourceReader(ABC):
    """Reads the splits of one subtask, in its slot."""

    reads_in_turn = False
    """True if splits are read one after the other. A split then holds back event time only after its first record."""
    waits_in_a_thread = False
    """True if a separate thread may call `fetch` between two epochs, to wait for records.

    `fetch` is never called at the same time as another method. If this is False, the slot looks for records from time
    to time.
    """
    checkpoint_id: int | None = None
    """Id of the checkpoint that is being taken. It is set before `snapshot_state`."""

    @abstractmethod
    def add_splits(self, splits: Sequence[Any]) -> None:
        """Take over new splits, or splits of a checkpoint. Called between two calls of `fetch`."""

    @abstractmethod
    def fetch(self, most: int, wait: float) -> Sequence[Fetched]:
        """Return the records that can be read now, about `most` at most. Wait up to `wait` seconds if there are none.

        The result is empty if there are none after that. The returned records count as read.
        """

    @abstractmethod
    def snapshot_state(self) -> Sequence[Any]:
        """Return every split that is not read to its end, each at the position after the last fetched record."""

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:  # noqa: B027 - few tell the outside system
        """Learn that the state of this checkpoint is safe."""

    def waits(self) -> bool:
        """Return True if records may arrive without a notice, so that `fetch` must be called from time to time."""
        return True

    def close(self) -> None:  # noqa: B027 - many hold nothing
        """Stop reading."""


class SplitReader(ABC):
    """Reads one split."""

    finished = False
    """True once the last record has been read."""

    @abstractmethod
    def read(self, most: int) -> Sequence[Any]:
        """Return the next records, at most `most`; an empty sequence if there are none now."""

    @abstractmethod
    def position(self) -> Any:
        """Return the split, at the position after the last record read."""

    def close(self) -> None:  # noqa: B027 - many hold nothing
        """Stop reading."""


@check_arguments
class SplitsInTurn(SourceReader):
    """A reader that opens its splits one after the other, each after the previous one is read to its end."""

    reads_in_turn = True

    def __init__(self, open_split: Callable[[Any], SplitReader]) -> None:
        self._open_split = open_split
        self._waiting: list[Any] = []
        self._current: SplitReader | None = None

    def add_splits(self, splits: Sequence[Any]) -> None:
        self._waiting.extend(splits)

    def fetch(self, most: int, wait: float) -> Sequence[Fetched]:
        if self._current is None:
            if not self._waiting:
                return ()
            self._current = self._open_split(self._waiting[0])
        values = self._current.read(most)
        split_id, last = self._waiting[0].split_id, self._current.finished
        if last:
            self._current.close()
            self._current = None
            del self._waiting[0]
        return (Fetched(split_id, values, last=last),) if values or last else ()

    def snapshot_state(self) -> Sequence[Any]:
        if self._current is None:
            return list(self._waiting)
        return [self._current.position(), *self._waiting[1:]]

    def waits(self) -> bool:
        return bool(self._waiting)

    def close(self) -> None:
        if self._current is not None:
            self._current.close()


class SplitEnumerator(ABC):
    """Finds the splits of a source, on the driver."""

    discovery_interval: float | None = None
    """Seconds between two searches for splits; None to search only once."""
    news: Callable[[], None] = staticmethod(lambda: None)
    """Notice of new splits, set by the engine.

    An enumerator that learns of new splits before the interval is over may call it, from any thread.
    """

    @abstractmethod
    def discover(self) -> Sequence[Any]:
        """Return the splits that it has not returned before: objects that can be pickled and have a `split_id`."""

    def snapshot_state(self) -> Any:
        """Return the facts that keep a successor from returning a split again."""
        return None

    def restore_state(self, state: Any) -> None:  # noqa: B027
        """Take over the state from `snapshot_state`. Called before the first `discover`."""

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:  # noqa: B027
        """Learn that the state of this checkpoint is safe."""

    def close(self) -> None:  # noqa: B027
        """Release resources. Called when the job has ended or starts again."""


@check_arguments
class StaticSplits(SplitEnumerator):
    """An enumerator whose splits are known from the start."""

    def __init__(self, splits: Iterable[Any]) -> None:
        self._splits = list(splits)

    def discover(self) -> Sequence[Any]:
        return self._splits


class ReaderContext(ABC):
    """A reader's access to its subtask."""

    @property
    @abstractmethod
    def runtime(self) -> RuntimeContext:
        """The runtime context of the subtask: its name, index and metrics."""

    @property
    @abstractmethod
    def takes_checkpoints(self) -> bool:
        """True if the job takes checkpoints, so that `notify_checkpoint_complete` will be called."""

    @abstractmethod
    def decode(
        self, decode: Callable[[Any], Any], messages: list[Any], position: Callable[[int], str]
    ) -> tuple[list[Any], list[int] | None]:
        """Decode messages, and treat those that cannot be decoded as the source's `BadRecords` say.

        `position(i)` names the place of message i. Return the values and, if some messages have no value, the indices
        of those that have one. A message that is decoded to None has no value.
        """

    @abstractmethod
    def reject(self, message: Any, error: Exception, position: str) -> None:
        """Treat a record that cannot be decoded as the source's `BadRecords` say; by default, raise."""


@persisted_in("penstock.datastream.connectors.base")
@dataclass(frozen=True)
class BadRecord:
    """A record that could not be decoded, in the form in which a side output gets it."""

    message: Any
    error: str
    position: str


@check_arguments
@dataclass(frozen=True)
class BadRecords:
    """The treatment of records that cannot be decoded: fail, skip and count them, or send them to a side output."""

    action: str = "fail"
    tag: OutputTag | None = None

    @staticmethod
    def fail() -> BadRecords:
        """Return the default: end the job with an error that names the record's position."""
        return BadRecords()

    @staticmethod
    def skip() -> BadRecords:
        """Return the choice to drop such records and count them in the metric `numBadRecords`."""
        return BadRecords("skip")

    @staticmethod
    def to_side_output(tag: OutputTag) -> BadRecords:
        """Return the choice to send a BadRecord to a side output of the source, and to count it."""
        if not isinstance(tag, OutputTag):
            raise TypeError(f"bad records can be sent to an OutputTag, not to {tag!r}")
        return BadRecords("side output", tag)


class Source(ABC, Generic[OUT]):
    """A source as plain data. It is pickled and sent to every slot, where it makes a reader."""

    watermarks_per_split = True
    """True if each split has its own event time; the earliest of them is the source's."""
    watermark_strategy: WatermarkStrategy | None = None
    """Watermark strategy that `add_source` uses. Sources of Flink 1.x bring their own."""

    def get_boundedness(self) -> Boundedness:
        """Return BOUNDED, the default, if the source ends, and CONTINUOUS_UNBOUNDED if it does not."""
        return Boundedness.BOUNDED

    @abstractmethod
    def create_enumerator(self) -> SplitEnumerator:
        """Return the half that finds the splits. Called on the driver."""

    @abstractmethod
    def create_reader(self, context: ReaderContext) -> SourceReader:
        """Return the half that reads them. Called in the slots."""

    def owner(self, split: Any, turn: int, parallelism: int) -> int:
        """Return the index of the subtask that reads a split. By default the subtasks take turns."""
        return turn % parallelism

    def get_produced_type(self) -> TypeInformation[OUT] | None:
        """Return the type of the records, if it is known."""
        return None


# --- sinks ---
class DeliveryGuarantee(Enum):
    """The number of times that a record may arrive outside when the job recovers."""

    EXACTLY_ONCE = "exactly-once"
    AT_LEAST_ONCE = "at-least-once"
    NONE = "none"


class WriterContext(ABC):
    """A writer's access to its subtask."""

    @property
    @abstractmethod
    def runtime(self) -> RuntimeContext:
        """The runtime context of the subtask: its job, name, index and metrics."""

    @property
    @abstractmethod
    def uid(self) -> str:
        """The sink's uid."""

    @property
    @abstractmethod
    def input_type(self) -> TypeInformation | None:
        """The type of the records; None if it is unknown."""

    @property
    @abstractmethod
    def now(self) -> int:
        """The processing time, in milliseconds."""

    @property
    def owner(self) -> int:
        """A number that grows with every attempt of every driver of the job; 0 if attempts cannot be told apart.

        Data that was left in the external system under a lower number no longer belongs to any writer.
        """
        return 0

    @property
    @abstractmethod
    def is_restored(self) -> bool:
        """True if the job continues from a checkpoint."""

    @property
    @abstractmethod
    def all_restored(self) -> list[Any]:
        """The state items of the former writers of all subtasks."""

    @property
    @abstractmethod
    def all_committables(self) -> list[Any]:
        """The items in the checkpoint, of all subtasks, that may not have been committed."""

    has_rivals: bool = False
    """True if other writers of the same subtask may exist, and their work may count instead of this writer's.

    In BATCH mode Spark may run a task more than once. A writer with rivals must not tidy up after others.
    """


class SinkWriter(ABC):
    """Writes the records of one subtask."""

    checkpoint_id: int | None = None
    """Id of the checkpoint that is being prepared; None without checkpoints.

    It is set before `flush` and `prepare_commit`.
    """
    checkpoint_timestamp: int | None = None
    is_savepoint = False
    """True for a savepoint, from which other jobs may start later. Set before `prepare_commit` is called."""

    @abstractmethod
    def write(self, value: Any, context: SinkFunction.Context) -> None:
        """Write one record to a place where it is not visible yet, or where it may become visible more than once."""

    def write_all(self, values: list[Any], timestamps: list[int | None] | None, context: SinkFunction.Context) -> bool:
        """Write a chunk at once. Return False if there is no faster way than record by record."""
        return False

    def write_batch(self, rows: BatchOfRows, context: SinkFunction.Context) -> bool:
        """Write rows that are still a record batch. Return False if the writer has no use for columns."""
        return False

    def begun(self) -> list[Any]:
        """Return, as plain data, everything that must be undone if this writer is lost.

        Called at the start in BATCH mode, where no checkpoint tells a successor. The driver keeps the data and hands it
        to `Committer.abort`.
        """
        return []

    def flush(self, end_of_input: bool) -> None:  # noqa: B027 - many write at once
        """Write out everything that is buffered. A checkpoint or the end follows."""

    def prepare_commit(self) -> list[Any]:
        """Return the items that the committer needs to make the records visible. They become part of the checkpoint."""
        return []

    def snapshot_state(self, checkpoint_id: int) -> list[Any]:
        """Return the facts that a successor needs besides the prepared items.

        They are items that can be split between subtasks.
        """
        return []

    def end_epoch(self, now: int) -> None:  # noqa: B027 - few have a clock
        """Act at the end of an epoch with this processing time, on work that must not wait for the next record."""

    def next_due(self) -> int | None:
        """Return the processing time at which `end_epoch` is due even without a record, or None if there is no such
        time.
        """
        return None

    def close(self) -> None:  # noqa: B027
        """Release the writer's resources."""


class Committer(ABC):
    """Makes prepared records visible."""

    @abstractmethod
    def commit(self, committables: list[Any]) -> None:
        """Commit the items of a complete checkpoint. A second call after a failure must change nothing."""

    def abort(self, begun: list[Any]) -> None:  # noqa: B027 - many leave nothing behind
        """Undo the work of writers that will not be committed. Items that equal a committed one are left out.

        Called on the driver in BATCH mode: after the commit if tasks were run more than once, and after a failure. Some
        of the work may no longer be there.
        """

    def discard(self, committables: list[Any]) -> None:  # noqa: B027 - most leave it to whoever recovers
        """Discard the items that the writer has just prepared for a checkpoint that will never exist.

        This happens if another driver took over the job before the items were prepared, and so does not know them. The
        new driver may need the items of earlier checkpoints.
        """

    def check_owner(self) -> None:  # noqa: B027
        """Raise JobDisplaced if another driver has taken over the job. The engine sets this function.

        A slot calls it before `commit`. A committer that remembers only its last commits calls it again within
        `commit`, at a moment when no other committer can commit: while it holds the lock of a row, or an id that fences
        others.
        """

    def close(self) -> None:  # noqa: B027
        """Release the committer's resources."""


class GlobalCommitter(Committer):
    """Commits on the driver, for all subtasks together, once for each checkpoint."""


class Sink(ABC, Generic[IN]):
    """A sink as plain data. It is sent to every subtask, where it makes a writer and, for exactly once, a committer."""

    @abstractmethod
    def create_writer(self, context: WriterContext, restored: list[Any]) -> SinkWriter:
        """Return the writer of one subtask.

        `restored` holds the items of former writers that this subtask takes over.
        """

    def create_committer(self) -> Committer | None:
        """Return the committer of one subtask; None if the sink makes records visible as it writes."""
        return None

    commits_globally = False
    """True if there is a committer on the driver too."""

    def create_global_committer(self) -> GlobalCommitter:
        """Return the committer on the driver, for a sink that `commits_globally`."""
        raise TypeError(
            f"{type(self).__name__} commits globally (commits_globally), but create_global_committer returned None"
        )


class StreamTransformer(ABC):
    """Changes a stream on its way into a sink."""

    @abstractmethod
    def apply(self, ds: DataStream) -> DataStream:
        """Return the stream that the sink gets instead."""


class SupportsPreprocessing(ABC):
    """A sink that needs its stream changed first."""

    @abstractmethod
    def get_transformer(self) -> StreamTransformer | None:
        """Return the change of the stream, or None if the sink takes the stream unchanged."""
