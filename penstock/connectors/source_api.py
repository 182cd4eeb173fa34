"""What every connector is made of.

A source is plain data with two halves. Its enumerator lives with the driver and finds splits: the partitions of a
topic, the pieces of a file. Its readers live in the slots and read the splits assigned to them; the position in each
split is part of every checkpoint.

A sink is plain data with a writer in every slot. The writer writes during an epoch and prepares at a checkpoint; the
committer makes visible what was prepared once the checkpoint is complete.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

from penstock.api.output_tag import OutputTag
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
    """Whether a source comes to an end by itself."""

    BOUNDED = "bounded"
    CONTINUOUS_UNBOUNDED = "unbounded"


@dataclass
class Fetched:
    """Records of one split, in order."""

    split_id: str
    values: Sequence[Any]
    """A list, or a `BatchOfRows`, whose rows are made only where they are needed."""
    timestamps: list[int] | None = None
    """Event times, if the outside system has any; a timestamp assigner is asked with them."""
    last: bool = False
    """Whether the split has been read to its end."""


class SourceReader(ABC):
    """Reads the splits of one subtask, in its slot."""

    reads_in_turn = False
    """Whether splits wait for each other, so that one holds back event time only once its first record was read."""
    waits_in_a_thread = False
    """Whether `fetch` may be called by a thread of its own between two epochs, to wait for records.

    It is never called at the same time as another method. Without it the slot looks for records from time to time.
    """
    checkpoint_id: int | None = None
    """The checkpoint that is being taken; set before `snapshot_state`."""

    @abstractmethod
    def add_splits(self, splits: Sequence[Any]) -> None:
        """Take over splits, new ones or those of a checkpoint; called between two calls of `fetch`."""

    @abstractmethod
    def fetch(self, most: int, wait: float) -> Sequence[Fetched]:
        """Return what can be read now, at most about `most` records; nothing, if there is nothing.

        If there is nothing, wait at most `wait` seconds for it. What is returned counts as read.
        """

    @abstractmethod
    def snapshot_state(self) -> Sequence[Any]:
        """Return every split that is not read to its end, each at the position after the last fetched record."""

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:  # noqa: B027 - few tell the outside system
        """The state of that checkpoint is safe."""

    def waits(self) -> bool:
        """Whether more may come without anybody telling, so that `fetch` should be called from time to time."""
        return True

    def close(self) -> None:  # noqa: B027 - many hold nothing
        """Stop reading."""


class SplitReader(ABC):
    """Reads one split."""

    finished = False
    """Becomes true with the last record."""

    @abstractmethod
    def read(self, most: int) -> Sequence[Any]:
        """Return the next records, at most `most` of them; none if there are none now."""

    @abstractmethod
    def position(self) -> Any:
        """Return the split, at the position after the last record read."""

    def close(self) -> None:  # noqa: B027 - many hold nothing
        """Stop reading."""


class SplitsInTurn(SourceReader):
    """A reader that opens its splits one after the other, each when the one before is read to its end."""

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
    """Seconds after which to look again; None to look only once."""
    news: Callable[[], None] = staticmethod(lambda: None)
    """Set by the engine. An enumerator that learns of new splits before the interval is over may call it, from any
    thread."""

    @abstractmethod
    def discover(self) -> Sequence[Any]:
        """Return the splits that were not returned before: objects that can be pickled and have a `split_id`."""

    def snapshot_state(self) -> Any:
        """Return what a successor must know so as not to return a split again."""
        return None

    def restore_state(self, state: Any) -> None:  # noqa: B027
        """Take over what `snapshot_state` returned; called before the first `discover`."""

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:  # noqa: B027
        """The state of that checkpoint is safe."""

    def close(self) -> None:  # noqa: B027
        """The job has ended, or starts again."""


class StaticSplits(SplitEnumerator):
    """An enumerator whose splits are known from the start."""

    def __init__(self, splits: Iterable[Any]) -> None:
        self._splits = list(splits)

    def discover(self) -> Sequence[Any]:
        return self._splits


class ReaderContext(ABC):
    """What a reader knows about the subtask it works for."""

    @property
    @abstractmethod
    def runtime(self) -> RuntimeContext:
        """This subtask: its name, index and metrics."""

    @property
    @abstractmethod
    def takes_checkpoints(self) -> bool:
        """Whether the job takes checkpoints, so that `notify_checkpoint_complete` will be called."""

    @abstractmethod
    def decode(
        self, decode: Callable[[Any], Any], messages: list[Any], position: Callable[[int], str]
    ) -> tuple[list[Any], list[int] | None]:
        """Decode messages, and deal with those that cannot be as the source was told to.

        `position(i)` says where message i was found. Returns the values and, if some messages have none, the indices of
        those that have. A message that is decoded to None has no value.
        """

    @abstractmethod
    def reject(self, message: Any, error: Exception, position: str) -> None:
        """Deal with a record that cannot be decoded as the source was told to; by default, raise."""


@persisted_in("penstock.datastream.connectors.base")
@dataclass(frozen=True)
class BadRecord:
    """A record that could not be decoded, as a side output gets it."""

    message: Any
    error: str
    position: str


@dataclass(frozen=True)
class BadRecords:
    """What a source does with records that cannot be decoded: fail, skip and count them, or put them aside."""

    action: str = "fail"
    tag: OutputTag | None = None

    @staticmethod
    def fail() -> BadRecords:
        """End the job with the record's position: the default."""
        return BadRecords()

    @staticmethod
    def skip() -> BadRecords:
        """Drop the record and count it in the metric `numBadRecords`."""
        return BadRecords("skip")

    @staticmethod
    def to_side_output(tag: OutputTag) -> BadRecords:
        """Send a BadRecord to a side output of the source, and count it."""
        if not isinstance(tag, OutputTag):
            raise TypeError(f"bad records are sent to an OutputTag, not to {tag!r}")
        return BadRecords("side output", tag)


class Source(ABC):
    """A source as plain data: pickled to every slot, where it makes a reader."""

    watermarks_per_split = True
    """Whether each split has an event time of its own; the source's is the earliest of them."""
    watermark_strategy: WatermarkStrategy | None = None
    """The event time that `add_source` uses: sources of Flink 1.x bring theirs along."""

    def get_boundedness(self) -> Boundedness:
        return Boundedness.BOUNDED

    @abstractmethod
    def create_enumerator(self) -> SplitEnumerator:
        """Return the half that finds the splits; called on the driver."""

    @abstractmethod
    def create_reader(self, context: ReaderContext) -> SourceReader:
        """Return the half that reads; called in the slots."""

    def owner(self, split: Any, turn: int, parallelism: int) -> int:
        """Return which of the given number of subtasks reads a split; by default they take turns."""
        return turn % parallelism

    def get_produced_type(self) -> TypeInformation | None:
        """Return the type of the records, if it is known."""
        return None


# --- sinks ---
class DeliveryGuarantee(Enum):
    """How often a record may arrive outside when the job has to recover."""

    EXACTLY_ONCE = "exactly-once"
    AT_LEAST_ONCE = "at-least-once"
    NONE = "none"


class WriterContext(ABC):
    """What a writer knows about the subtask it works for."""

    @property
    @abstractmethod
    def runtime(self) -> RuntimeContext:
        """This subtask: its job, name, index and metrics."""

    @property
    @abstractmethod
    def uid(self) -> str:
        """The sink's uid."""

    @property
    @abstractmethod
    def input_type(self) -> TypeInformation | None:
        """The type of the records, if it is known."""

    @property
    @abstractmethod
    def now(self) -> int:
        """Processing time, in milliseconds."""

    @property
    def owner(self) -> int:
        """A number that grows with every attempt of every driver of the job; 0 if its attempts cannot be told apart.

        What was left in the external system under a lower number no longer belongs to any writer.
        """
        return 0

    @property
    @abstractmethod
    def is_restored(self) -> bool:
        """Whether the job continues from a checkpoint."""

    @property
    @abstractmethod
    def all_restored(self) -> list[Any]:
        """The items of the former writers of all subtasks."""

    @property
    @abstractmethod
    def all_committables(self) -> list[Any]:
        """What the checkpoint holds that may not have been committed, of all subtasks."""

    has_rivals: bool = False
    """Whether the subtask may have other writers, now or before, whose work counts and this one's does not: in BATCH
    mode Spark may run a task more than once. A writer with rivals must not tidy up after others."""


class SinkWriter(ABC):
    """Writes the records of one subtask."""

    checkpoint_id: int | None = None
    """The checkpoint that is being prepared; set before `flush` and `prepare_commit`. None in a job without."""
    checkpoint_timestamp: int | None = None
    is_savepoint = False
    """Whether a savepoint is being prepared, which others may start from later; set before `prepare_commit`."""

    @abstractmethod
    def write(self, value: Any, context: SinkFunction.Context) -> None:
        """Write one record where it cannot be seen yet, or where it may be seen more than once."""

    def write_all(self, values: list[Any], timestamps: list[int | None] | None, context: SinkFunction.Context) -> bool:
        """Write a chunk at once, if there is a faster way than one by one; False if there is none."""
        return False

    def write_batch(self, rows: BatchOfRows, context: SinkFunction.Context) -> bool:
        """Write rows that are still a record batch, if their columns are of use; False if they are not."""
        return False

    def begun(self) -> list[Any]:
        """Return what has to be undone if this writer is lost, as plain data; called at the start in BATCH mode.

        There no checkpoint tells a successor. The driver keeps it, and hands it to `Committer.abort`.
        """
        return []

    def flush(self, end_of_input: bool) -> None:  # noqa: B027 - many write at once
        """Push out what is buffered: a checkpoint follows, or the end."""

    def prepare_commit(self) -> list[Any]:
        """Return what the committer needs to make visible what was written; it becomes part of the checkpoint."""
        return []

    def snapshot_state(self, checkpoint_id: int) -> list[Any]:
        """Return what a successor must know beside what was prepared, as items that can be split between subtasks."""
        return []

    def end_epoch(self, now: int) -> None:  # noqa: B027 - few have a clock
        """An epoch ends; `now` is its processing time. The moment for what must not wait for the next record."""

    def next_due(self) -> int | None:
        """Return the processing time at which `end_epoch` should be called even if no record comes."""
        return None

    def close(self) -> None:  # noqa: B027
        """Release what the writer holds."""


class Committer(ABC):
    """Makes prepared records visible."""

    @abstractmethod
    def commit(self, committables: list[Any]) -> None:
        """Commit what a complete checkpoint holds. It may come again after a failure, and then must change nothing."""

    def abort(self, begun: list[Any]) -> None:  # noqa: B027 - many leave nothing behind
        """Undo what writers have begun and what will not be committed; what equals something committed is left out.

        Called on the driver in BATCH mode: after the commit if tasks were run more than once, and after a failure. Some
        of it may not be there.
        """

    def discard(self, committables: list[Any]) -> None:  # noqa: B027 - most leave it to whoever recovers
        """Throw away what the writer has just prepared for a checkpoint that will never become known.

        It happens when another driver has taken over the job before it was prepared, and so does not know of it. What
        earlier checkpoints hold, the new driver may need.
        """

    def check_owner(self) -> None:  # noqa: B027
        """Raise JobDisplaced if another driver has taken over the job; a slot has done so before it calls `commit`.

        To be called within `commit` by those that cannot tell for all times what they have committed, once nobody else
        can commit beside them: with the lock of a row, or with an id that fences others. Set by the engine.
        """

    def close(self) -> None:  # noqa: B027
        """Release what the committer holds."""


class GlobalCommitter(Committer):
    """Commits for all subtasks together, on the driver: one call a checkpoint, with what every subtask prepared."""


class Sink(ABC):
    """A sink as plain data: sent to every subtask, where it makes a writer and, for exactly once, a committer."""

    @abstractmethod
    def create_writer(self, context: WriterContext, restored: list[Any]) -> SinkWriter:
        """Return the writer of one subtask; `restored` are the items of former writers that fell to it."""

    def create_committer(self) -> Committer | None:
        """Return the committer of one subtask; None for a sink that makes records visible as it writes."""
        return None

    commits_globally = False
    """Whether there is a committer on the driver, too."""

    def create_global_committer(self) -> GlobalCommitter:
        """Return the committer on the driver, for a sink that `commits_globally`."""
        raise TypeError(f"{type(self).__name__} says that it commits globally, and has no global committer")


class StreamTransformer(ABC):
    """Changes a stream on its way into a sink."""

    @abstractmethod
    def apply(self, ds: DataStream) -> DataStream: ...


class SupportsPreprocessing(ABC):
    """A sink that wants its stream changed first."""

    @abstractmethod
    def get_transformer(self) -> StreamTransformer | None: ...
