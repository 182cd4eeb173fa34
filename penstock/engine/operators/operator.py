"""The operator contract: plain data until `open`, then a receiver of chunks that emits into its outputs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from operator import length_hint
from typing import TYPE_CHECKING, Any, NamedTuple

from penstock.api.latency_marker import LatencyMarker
from penstock.common.typeinfo import TypeInformation
from penstock.engine.messages.epoch_requests import Bell
from penstock.engine.messages.owner_token import Token
from penstock.engine.queryable.slot_states import Queryables
from penstock.engine.records.elements import MAX_TIMESTAMP, MIN_TIMESTAMP, Chunk, Receiver, Timestamps, Values
from penstock.engine.records.failures import OperatorFailed, failure_of
from penstock.engine.records.latency import Latencies, Markers
from penstock.engine.snapshots.gathering import SubtaskSnapshot
from penstock.engine.snapshots.restore import RestoredOperator
from penstock.engine.state.backend import KeyedStateBackend
from penstock.engine.state.tables import HeapTables, Tables
from penstock.errors import PenstockError
from penstock.metrics import MetricGroup
from penstock.persisted import persisted

if TYPE_CHECKING:
    from penstock.engine.operators.sources.source_operator import Budget


@dataclass
class OperatorContext:
    """What an operator gets when it is opened in a slot: its identity, and where its output goes."""

    name: str
    uid: str
    subtask: int
    parallelism: int
    max_parallelism: int
    output: Receiver
    side_outputs: dict[str, Receiver]
    clock: Clock
    job_id: str = ""
    job_name: str = ""
    attempt: int = 0
    batch: bool = False
    watermark_interval: int = 200
    """Milliseconds between periodic watermarks; 0 for none, below 0 for one at the end of every epoch."""
    tracks_changes: bool = False
    """Whether checkpoints are taken, so that the state's tables will be asked what changed."""
    tables: Tables = field(default_factory=HeapTables)
    queryables: Queryables = field(default_factory=Queryables)
    """Where states that clients can look up are made known."""
    restored: RestoredOperator | None = None
    """What a checkpoint holds for this operator; None for a fresh start."""
    job_parameters: dict[str, str] = field(default_factory=dict)
    cached_files: dict[str, str] = field(default_factory=dict)
    """Paths on this machine of the files that the program registered, by name."""
    metrics: MetricGroup = field(default_factory=MetricGroup)
    latencies: Latencies | None = None
    """Where latency markers are noted; None if there are none."""
    markers: Markers | None = None
    """For a source: when it sends latency markers."""
    alignment: Alignment | None = None
    aligned: tuple[tuple[str, str], ...] = ()
    """For a source: the aligned streams that it feeds, as (group, uid); it pauses when one is too far ahead."""
    bell: Bell = field(default_factory=Bell)
    results: Callable[[Any, Any], None] | None = None
    """Hands something to the driver with this epoch's report: (operator's uid, payload)."""
    to_global_committer: Callable[[int, list[Any]], None] | None = None
    """For a sink that is committed on the driver: hands over (checkpoint, what to commit) with this epoch's report."""
    owner: Token | None = None
    """The right of this attempt to commit; None if no other driver can take it away."""
    sort_memory: int = 128 << 20
    """In BATCH mode: bytes that an operator may hold back in memory; the rest waits on disk."""
    spill_folder: str | None = None
    """Where; None for the folder that Python uses for temporary files."""


@dataclass
class Clock:
    """Processing time as the epoch's command gave it. Operators never read a clock of their own."""

    now: int = 0


class Alignment:
    """Watermark alignment inside a slot: how far each aligned stream has come, and how far its group may go."""

    def __init__(self) -> None:
        self.limits: dict[str, int] = {}
        self.reached: dict[tuple[str, str], int] = {}

    def report(self, group: str, uid: str, watermark: int) -> None:
        self.reached[group, uid] = watermark

    def withdraw(self, group: str, uid: str) -> None:
        """A stream that is idle or over neither waits nor is waited for."""
        self.reached.pop((group, uid), None)

    def is_blocked(self, group: str, uid: str) -> bool:
        """Whether a stream is so far ahead of its group that its source should pause."""
        limit = self.limits.get(group)
        return limit is not None and self.reached.get((group, uid), MIN_TIMESTAMP) > limit


class Operator:
    """Base of all operators. A subclass defines what happens to records; everything else has sensible defaults.

    Life: built as plain data, pickled to every slot, `open`, then for each epoch `advance_processing_time`, records and
    watermarks, `end_epoch`; when every input has ended, `finish`, and finally `close`.
    """

    context: OperatorContext
    output: Receiver
    emit_chunk: Callable[[Chunk], None]
    """Hands a chunk to the output."""
    wants_declared_form = False
    """Whether records reach it in the form of their declared type even if they come from its own chain."""
    commits = False
    """Whether it prepares something at a checkpoint that is committed when the checkpoint is complete."""
    gives_event_time = False
    """Whether records get their event time here, so that their age can be told."""
    is_source = False
    """Whether it reads, and has no inputs; the attributes below and the methods for reading are of use only then."""
    finished = True
    """Whether everything has been read."""
    backlog = False
    """Whether it stopped at its budget in this epoch, and has more to read."""
    read = 0
    """How many records it has read in this epoch."""

    def __init__(self, output_type: TypeInformation | None = None) -> None:
        self.output_type = output_type
        """What is declared of its output. Records get its form where they leave the chain; see `Fitting`."""

    # --- life ---
    def open(self, context: OperatorContext) -> None:
        """Bind to a slot. Subclasses extend it to open their functions."""
        self.context = context
        self.output = context.output
        self.current_watermark = MIN_TIMESTAMP
        self.emit_chunk = context.output.chunk

    def close(self) -> None:
        """Release what `open` acquired; called once, also after a failure."""

    # --- input ---
    def inputs(self) -> Sequence[Callable[[Chunk], None]]:
        """One function per input that takes its chunks."""
        return (self.chunk,)

    def chunk(self, chunk: Chunk) -> None:
        """A chunk on the only input. An operator that works on columns overrides this method, others `records`."""
        self.records(chunk.values, chunk.timestamps)

    def records(self, values: Values, timestamps: Timestamps) -> None:
        """The values of a chunk on the only input."""
        raise TypeError(f"{type(self).__name__} has no single input")

    def watermark(self, timestamp: int) -> None:
        """Event time, combined over all inputs, reached `timestamp`."""
        self.current_watermark = timestamp
        self.output.watermark(timestamp)

    def status(self, idle: bool) -> None:
        """All inputs became idle, or one is active again."""
        self.output.status(idle)

    def process_latency_marker(self, marker: LatencyMarker) -> None:
        """A marker has come, in its place between the records; it goes on to those behind."""
        if self.context.latencies is not None:
            self.context.latencies.record(marker)
        self.output.marker(marker)

    def finish(self) -> Iterator[None] | None:
        """Every input has ended; emit what is still held back, at once or, where that may be much, in steps."""
        return None

    # --- reading, which only sources do ---
    def run(self, budget: Budget) -> None:
        """Read what an epoch's budget allows."""

    def settle(self) -> None:
        """Read nothing in this epoch; emit what was read ahead, since a checkpoint follows."""

    def drain(self) -> None:
        """End the stream here, as if there were nothing more to read."""

    def watch(self) -> None:
        """The epoch is over: look out for input, and ring the bell when it comes."""

    def waits_for_input(self) -> bool:
        """Whether only another epoch can tell if input has arrived."""
        return False

    # --- BATCH ---
    def batch_keys(self) -> Sequence[Callable[[Any], Any] | None]:
        """By input: the key that BATCH mode sorts its records by, None for an input that is not held back.

        Empty if the operator takes its records as they come.
        """
        return ()

    def finish_key(self, key: Any) -> None:
        """All records of a key have come; only in BATCH mode, and only if there are `batch_keys`."""

    def begun(self) -> list[Any] | None:
        """What is to be undone if this subtask is lost in BATCH mode; None for an operator that commits nothing."""
        return None

    # --- time ---
    def advance_processing_time(self, now: int) -> None:
        """An epoch begins at this processing time."""

    def end_epoch(self) -> None:
        """All input of this epoch has been processed."""

    # --- checkpoints ---
    def backends(self) -> dict[str, KeyedStateBackend]:
        """Where this operator's keyed state lives, by scope."""
        return {}

    def snapshot(self, into: SubtaskSnapshot) -> None:
        """Add everything that a successor must know."""

    def resume_at(self, watermark: int) -> None:
        """Start with event time where it was at the checkpoint; called after `open`."""
        self.current_watermark = watermark

    def checkpoint_complete(self, checkpoint: int) -> None:
        """A checkpoint was published."""

    def checkpoint_aborted(self, checkpoint: int) -> None:
        """A checkpoint was given up."""

    def abandon(self, checkpoint: int) -> None:
        """Throw away what was prepared for a checkpoint that will never become known: the job has another owner."""

    def next_due(self) -> int | None:
        """The processing time at which this operator wants an epoch even without input."""
        return None

    def has_news(self) -> bool:
        """Whether another epoch would find something that came from outside."""
        return False

    # --- helpers ---
    def emit(self, values: Values, timestamps: Timestamps) -> None:
        """Hand a chunk of values to the output."""
        self.emit_chunk(Chunk(values, timestamps))

    def failed(self, error: BaseException, values: Values, feed: Iterator[Any] | None = None) -> OperatorFailed:
        """Name this operator and the record that `feed`, an iterator over `values`, gave out last."""
        if isinstance(error, OperatorFailed):
            return error
        context = self.context
        if feed is None:
            return OperatorFailed(failure_of(error, context.name, context.uid, context.subtask))
        position = len(values) - length_hint(feed) - 1
        return OperatorFailed(failure_of(error, context.name, context.uid, context.subtask, values[position]))


class Fitting:
    """Sits where records leave their chain, and converts them to the type that is declared for them."""

    def __init__(self, operator: Operator, receiver: Receiver) -> None:
        self._operator = operator
        self._send = receiver.chunk
        self.watermark = receiver.watermark
        self.status = receiver.status
        self.end = receiver.end
        self.marker = receiver.marker

    def chunk(self, chunk: Chunk) -> None:
        self._send(self._fit(chunk))

    def _fit(self, chunk: Chunk) -> Chunk:
        declared = self._operator.output_type
        assert declared is not None
        columns = None if chunk.columns is None else chunk.columns.in_form_of(declared)
        if columns is not None:
            return Chunk.of(columns)
        try:
            return Chunk(declared.fit(chunk.values), chunk.timestamps)
        except PenstockError as error:
            raise self._operator.failed(error, chunk.values) from error


@persisted
class GateState(NamedTuple):
    """A gate in a checkpoint."""

    watermark: int
    idle: bool
    finished: bool
    channels: list[tuple[int, bool, bool]]
    """By channel: watermark reached, idle, ended."""


_OVER = object()


class Gate:
    """Sits in front of an operator that has several channels: combines their watermarks, idleness and ends.

    A channel's watermark never goes back; event time is the minimum over the channels that are not idle. A channel that
    has ended no longer counts while others are still open, since even an idle one may bring records.
    """

    def __init__(self, operator: Operator) -> None:
        self._operator = operator
        self._channels: list[Channel] = []
        self.watermark = MIN_TIMESTAMP
        self.holding = 0
        """How many active channels are exactly at this event time: while there are any, it cannot advance."""
        self._idle = False
        self.finished = False
        self._steps: Iterator[None] | None = None
        """What the operator has left to do before its output ends."""

    def marker(self, marker: LatencyMarker) -> None:
        """Markers of all channels go on as they come."""
        self._operator.process_latency_marker(marker)

    def channel(self, input_index: int) -> Channel:
        """A new channel into one input of the operator."""
        channel = Channel(self, self._operator.inputs()[input_index])
        self._channels.append(channel)
        self.holding += 1
        return channel

    def advance(self) -> None:
        """Pass on what the channels together have reached."""
        open_channels = [c for c in self._channels if c.reached < MAX_TIMESTAMP] or self._channels
        active = [c.reached for c in open_channels if not c.idle]
        if active and self._idle:
            self._idle = False
            self._operator.status(False)
        self._reach(active or [max(c.reached for c in open_channels)])
        if not active and not self._idle:
            self._idle = True
            self._operator.status(True)
        self._count_holding()

    def _count_holding(self) -> None:
        self.holding = sum(1 for c in self._channels if c.reached == self.watermark and not c.idle)

    def _reach(self, watermarks: list[int]) -> None:
        """A channel that woke up behind the others counts again when it has caught up with them."""
        caught_up = [w for w in watermarks if w >= self.watermark]
        if caught_up and min(caught_up) > self.watermark:
            self.watermark = min(caught_up)
            self._operator.watermark(self.watermark)

    def snapshot(self) -> GateState:
        """Where event time stands, on the whole and in every channel."""
        return GateState(
            self.watermark, self._idle, self.finished, [(c.reached, c.idle, c.ended) for c in self._channels]
        )

    def restore(self, state: GateState) -> None:
        """Continue exactly where the same gate stopped."""
        self.watermark, self._idle, self.finished = state.watermark, state.idle, state.finished
        for channel, before in zip(self._channels, state.channels, strict=True):
            channel.reached, channel.idle, channel.ended = before
        self._count_holding()
        self._operator.resume_at(self.watermark)

    def resume_at(self, watermark: int) -> None:
        """Continue from a point in event time that every channel is known to have reached."""
        self.watermark = watermark
        for channel in self._channels:
            channel.reached = watermark
        self._count_holding()
        self._operator.resume_at(watermark)

    def channel_ended(self) -> None:
        """When the last channel has ended, the operator finishes, and so does its output."""
        if not self.finished and all(c.ended for c in self._channels):
            self.finished = True
            self._steps = self._operator.finish()
            if self._steps is None:
                self._operator.output.end()

    def step(self) -> bool:
        """Let an operator that finishes in steps do one; whether there was one to do."""
        if self._steps is None:
            return False
        if next(self._steps, _OVER) is _OVER:
            self._steps = None
            self._operator.output.end()
        return True


class Channel:
    """One upstream subtask's stream into a gate."""

    __slots__ = ("_gate", "chunk", "ended", "idle", "reached")

    def __init__(self, gate: Gate, chunk: Callable[[Chunk], None]) -> None:
        self._gate = gate
        self.chunk = chunk
        self.reached = MIN_TIMESTAMP
        self.idle = False
        self.ended = False

    def watermark(self, timestamp: int) -> None:
        before, gate = self.reached, self._gate
        if timestamp <= before:
            return
        self.reached = timestamp
        if self.idle or before > gate.watermark:
            return
        # If many channels are at the current event time, it advances only when the last of them does.
        if before == gate.watermark:
            gate.holding -= 1
            if gate.holding > 0:
                return
        gate.advance()

    def status(self, idle: bool) -> None:
        if idle is not self.idle:
            self.idle = idle
            self._gate.advance()

    def marker(self, marker: LatencyMarker) -> None:
        self._gate.marker(marker)

    def end(self) -> None:
        self.ended = True
        self.idle = False
        self.reached = MAX_TIMESTAMP
        self._gate.advance()
        self._gate.channel_ended()
