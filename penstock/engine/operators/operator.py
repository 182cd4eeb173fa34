"""The operator contract. An operator is plain data until `open`; then it receives chunks and emits into its outputs."""

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
from penstock.engine.snapshots.restore import RestoredOperator
from penstock.engine.snapshots.snapshot_parts import SubtaskSnapshot
from penstock.engine.state.backend import KeyedStateBackend
from penstock.engine.state.tables import HeapTables, Tables
from penstock.errors import PenstockError
from penstock.metrics import MetricGroup
from penstock.persisted import persisted

if TYPE_CHECKING:
    from penstock.engine.operators.sources.source_operator import Budget


class Alignment:
    """Watermark alignment inside a slot: the watermark of each aligned stream, and the limit of each group."""

    def __init__(self) -> None:
        self.limits: dict[str, int] = {}
        self.reached: dict[tuple[str, str], int] = {}
        self.full: set[str] = set()
        """Loops with so many records on their way back that all other sources of the slot wait, by uid of the head."""

    def report(self, group: str, uid: str, watermark: int) -> None:
        """Record the watermark of a stream."""
        self.reached[group, uid] = watermark

    def withdraw(self, group: str, uid: str) -> None:
        """Forget a stream that is idle or has ended. It neither waits for the others nor makes them wait."""
        self.reached.pop((group, uid), None)

    def is_blocked(self, group: str, uid: str) -> bool:
        """Return True if a stream is so far ahead of its group that its source should pause."""
        limit = self.limits.get(group)
        return limit is not None and self.reached.get((group, uid), MIN_TIMESTAMP) > limit


@dataclass
class OperatorContext:
    """The identity of an operator in a slot, and the services that it uses there."""

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
    """Milliseconds between periodic watermarks. 0 turns them off; below 0 there is one at the end of every epoch."""
    tracks_changes: bool = False
    """True if the job takes checkpoints. The tables of the state then remember changes."""
    tables: Tables = field(default_factory=HeapTables)
    queryables: Queryables = field(default_factory=Queryables)
    """The registry of the states that clients can look up."""
    restored: RestoredOperator | None = None
    """The state of this operator in a checkpoint; None for a fresh start."""
    job_parameters: dict[str, str] = field(default_factory=dict)
    cached_files: dict[str, str] = field(default_factory=dict)
    """Paths on this machine of the files that the program registered, by name."""
    metrics: MetricGroup = field(default_factory=MetricGroup)
    latencies: Latencies | None = None
    """The histograms for latency markers; None if the operator records none."""
    markers: Markers | None = None
    """The schedule of latency markers that a source sends; None if it sends none."""
    alignment: Alignment = field(default_factory=Alignment)
    aligned: tuple[tuple[str, str], ...] = ()
    """The aligned streams that a source feeds, as (group, uid). The source pauses when one of them is too far ahead."""
    bell: Bell = field(default_factory=Bell)
    results: Callable[[Any, Any], None] | None = None
    """Function that sends (uid of the operator, payload) to the driver with the report of this epoch."""
    to_global_committer: Callable[[int, list[Any]], None] | None = None
    """Function of a sink with a global committer.

    It sends (checkpoint, items to commit) with the report of this epoch.
    """
    owner: Token | None = None
    """The right of this attempt to commit; None if no other driver can take it away."""
    sort_memory: int = 128 << 20
    """Number of bytes that an operator may hold in memory in BATCH mode. Further records go to disk."""
    spill_folder: str | None = None
    """The folder for records on disk; None for the folder that Python uses for temporary files."""


@dataclass
class Clock:
    """Processing time, in milliseconds, from the command of the epoch. Operators never read a clock of their own."""

    now: int = 0


class Operator:
    """Base of all operators. A subclass defines how records are processed; everything else has a sensible default.

    An operator is built as plain data, pickled, and opened in every slot. Each epoch calls `advance_processing_time`,
    passes records and watermarks, and calls `end_epoch`. When every input has ended, `finish` follows, and finally
    `close`.
    """

    context: OperatorContext
    output: Receiver
    emit_chunk: Callable[[Chunk], None]
    """Function that passes a chunk to the output."""
    wants_declared_form = False
    """True if records arrive in the form of their declared type even from an operator of the same chain."""
    commits = False
    """True if the operator prepares items at a checkpoint and commits them when the checkpoint is complete."""
    gives_event_time = False
    """True if records get their event time here. The age of records can then be measured."""
    is_source = False
    """True for a source, which has no inputs. The attributes below and the methods for reading are for sources only."""
    finished = True
    """True if the source has read everything."""
    backlog = False
    """True if the source used up its budget in this epoch and has more to read."""
    read = 0
    """Number of records that the source has read in this epoch."""

    def __init__(self, output_type: TypeInformation | None = None) -> None:
        self.output_type = output_type
        """The declared type of the output. `Fitting` converts records to it where they leave the chain."""

    # --- life ---
    def open(self, context: OperatorContext) -> None:
        """Bind to a slot. A subclass extends this method to open its functions."""
        self.context = context
        self.output = context.output
        self.current_watermark = MIN_TIMESTAMP
        self.emit_chunk = context.output.chunk

    def close(self) -> None:
        """Release everything that `open` acquired. The slot calls this once, also after a failure."""

    # --- input ---
    def inputs(self) -> Sequence[Callable[[Chunk], None]]:
        """Return one function per input. Each takes the chunks of its input."""
        return (self.chunk,)

    def chunk(self, chunk: Chunk) -> None:
        """Process a chunk of the only input.

        An operator that works on columns overrides this method, others `records`.
        """
        self.records(chunk.values, chunk.timestamps)

    def records(self, values: Values, timestamps: Timestamps) -> None:
        """Process the values of a chunk of the only input."""
        raise TypeError(f"{type(self).__name__} has no single input")

    def watermark(self, timestamp: int) -> None:
        """Advance event time, combined over all inputs, to `timestamp`."""
        self.current_watermark = timestamp
        self.output.watermark(timestamp)

    def status(self, idle: bool) -> None:
        """Note that all inputs have become idle, or that one is active again."""
        self.output.status(idle)

    def process_latency_marker(self, marker: LatencyMarker) -> None:
        """Record a latency marker and pass it on, in its place between the records."""
        if self.context.latencies is not None:
            self.context.latencies.record(marker)
        self.output.marker(marker)

    def finish(self) -> Iterator[None] | None:
        """Emit everything that is still held back, since every input has ended.

        Return None if that is done, or an iterator that emits the rest step by step.
        """
        return None

    # --- reading, which only sources do ---
    def run(self, budget: Budget) -> None:
        """Read as much as the budget of an epoch allows."""

    def settle(self) -> None:
        """Read nothing in this epoch, but emit the records that were read ahead: a checkpoint follows."""

    def drain(self) -> None:
        """End the stream here, as if there were nothing more to read."""

    def watch(self) -> None:
        """Wait for input between two epochs, and ring the bell when it comes."""

    def waits_for_input(self) -> bool:
        """Return True if only another epoch can tell whether input has arrived."""
        return False

    # --- BATCH ---
    def batch_keys(self) -> Sequence[Callable[[Any], Any] | None]:
        """Return the key selector of each input, by which BATCH mode sorts its records.

        None stands for an input that is not held back. The result is empty if the operator takes records as they
        arrive.
        """
        return ()

    def finish_key(self, key: Any) -> None:
        """Finish a key after its last record. Only BATCH mode calls this, and only if there are `batch_keys`."""

    def begun(self) -> list[Any] | None:
        """Return the items to undo if this subtask is lost in BATCH mode.

        The result is None for an operator that commits nothing.
        """
        return None

    # --- time ---
    def advance_processing_time(self, now: int) -> None:
        """Begin an epoch at this processing time."""

    def end_epoch(self) -> None:
        """End an epoch whose input has all been processed."""

    # --- checkpoints ---
    def backends(self) -> dict[str, KeyedStateBackend]:
        """Return the backends of keyed state, by scope."""
        return {}

    def snapshot(self, into: SubtaskSnapshot) -> None:
        """Add everything that a successor must know."""

    def resume_at(self, watermark: int) -> None:
        """Set event time to its value at the checkpoint. The slot calls this after `open`."""
        self.current_watermark = watermark

    def checkpoint_complete(self, checkpoint: int) -> None:
        """React to a checkpoint that was published."""

    def checkpoint_aborted(self, checkpoint: int) -> None:
        """React to a checkpoint that was given up."""

    def abandon(self, checkpoint: int) -> None:
        """Discard the items prepared for a checkpoint that nobody will publish, since the job has another owner."""

    def next_due(self) -> int | None:
        """Return the processing time at which this operator wants an epoch even without input, or None."""
        return None

    def has_news(self) -> bool:
        """Return True if data from outside has arrived, so that another epoch is needed."""
        return False

    # --- helpers ---
    def emit(self, values: Values, timestamps: Timestamps) -> None:
        """Pass a chunk of values to the output."""
        self.emit_chunk(Chunk(values, timestamps))

    def failure(self, error: BaseException, values: Values, feed: Iterator[Any] | None = None) -> OperatorFailed:
        """Return a failure that names this operator and a record.

        The record is the last one that `feed`, an iterator over `values`, gave out.
        """
        if isinstance(error, OperatorFailed):
            return error
        context = self.context
        if feed is None:
            return OperatorFailed(failure_of(error, context.name, context.uid, context.subtask))
        position = len(values) - length_hint(feed) - 1
        return OperatorFailed(failure_of(error, context.name, context.uid, context.subtask, values[position]))


class Fitting:
    """A receiver that converts records to their declared type where they leave their chain."""

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
            raise self._operator.failure(error, chunk.values) from error


@persisted
class GateState(NamedTuple):
    """A gate in a checkpoint."""

    watermark: int
    idle: bool
    finished: bool
    channels: list[tuple[int, bool, bool]]
    """(watermark, idle, ended) of each channel."""


_OVER = object()


class Gate:
    """Combines the watermarks, idleness and ends of the channels in front of an operator.

    The watermark of a channel never goes back. Event time is the minimum over the channels that are not idle. A channel
    that has ended no longer counts while others are still open, since even an idle one may bring records.
    """

    def __init__(self, operator: Operator) -> None:
        self._operator = operator
        self._channels: list[Channel] = []
        self.watermark = MIN_TIMESTAMP
        self.holding = 0
        """Number of active channels exactly at this event time. While there are any, event time cannot advance."""
        self._idle = False
        self.finished = False
        self._steps: Iterator[None] | None = None
        """The remaining steps of the operator before its output ends; None if there are none."""

    def marker(self, marker: LatencyMarker) -> None:
        """Pass on a marker from any channel as it comes."""
        self._operator.process_latency_marker(marker)

    def channel(self, input_index: int) -> Channel:
        """Create a channel into one input of the operator."""
        channel = Channel(self, self._operator.inputs()[input_index])
        self._channels.append(channel)
        self.holding += 1
        return channel

    def advance(self) -> None:
        """Pass on the watermark and idleness that the channels have reached together."""
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
        """Advance to the lowest of these watermarks.

        A channel that is active again but behind event time counts again after it has caught up.
        """
        caught_up = [w for w in watermarks if w >= self.watermark]
        if caught_up and min(caught_up) > self.watermark:
            self.watermark = min(caught_up)
            self._operator.watermark(self.watermark)

    def snapshot(self) -> GateState:
        """Return the state of event time, for the gate and for every channel."""
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
        """Continue from a point in event time that every channel has reached."""
        self.watermark = watermark
        for channel in self._channels:
            channel.reached = watermark
        self._count_holding()
        self._operator.resume_at(watermark)

    def channel_ended(self) -> None:
        """Finish the operator, and end its output, if the last channel has ended."""
        if not self.finished and all(c.ended for c in self._channels):
            self.finished = True
            self._steps = self._operator.finish()
            if self._steps is None:
                self._operator.output.end()

    def step(self) -> bool:
        """Run one step of an operator that finishes in steps. Return True if there was a step to run."""
        if self._steps is None:
            return False
        if next(self._steps, _OVER) is _OVER:
            self._steps = None
            self._operator.output.end()
        return True


class Channel:
    """The stream of one upstream subtask into a gate."""

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
