"""Operators that assign timestamps and generate watermarks, as a WatermarkStrategy defines."""

from __future__ import annotations

from dataclasses import dataclass
from operator import length_hint
from typing import Any

from penstock.base.arguments import invalid_argument
from penstock.common.watermark_strategy import (
    BoundedOutOfOrdernessWatermarks,
    FieldTimestamps,
    NoWatermarksGenerator,
    Watermark,
    WatermarkGenerator,
    WatermarkOutput,
    WatermarkStrategy,
)
from penstock.engine.operators.operator import Operator, OperatorContext
from penstock.engine.records.columns import Columns
from penstock.engine.records.elements import MAX_TIMESTAMP, MIN_TIMESTAMP, Chunk, Timestamps, Values, whole_millis
from penstock.engine.records.failures import USER_ERRORS
from penstock.engine.snapshots.restore import RestoredOperator
from penstock.engine.snapshots.snapshot_parts import SubtaskSnapshot
from penstock.metrics import MetricGroup


@dataclass(frozen=True)
class GeneratorContext:
    """The context for the supplier of a generator."""

    metrics: MetricGroup

    def get_metric_group(self) -> MetricGroup:
        return self.metrics


class _Emitted(WatermarkOutput):
    """Remembers the output of a generator; the operator acts on it after each call."""

    def __init__(self) -> None:
        self.timestamp: int | None = None
        self.idle: bool | None = None

    def emit_watermark(self, watermark: Watermark) -> None:
        if not isinstance(watermark, Watermark):
            raise invalid_argument("WatermarkOutput.emit_watermark", "watermark", watermark, "a Watermark")
        self.timestamp = watermark.timestamp if self.timestamp is None else max(self.timestamp, watermark.timestamp)
        self.idle = False

    def mark_idle(self) -> None:
        self.idle = True

    def mark_active(self) -> None:
        self.idle = False


class TimestampsAndWatermarksOperator(Operator):
    """Stamps records and emits watermarks: after any record (punctuated), or at the end of an epoch (periodic).

    Periodic means once per auto-watermark interval of processing time, so that results do not depend on the ends of
    epochs. The operator drops watermarks from upstream, except the last one, which ends the stream. The epoch in which
    the stream ends emits no periodic watermark before it.
    """

    wants_declared_form = True

    gives_event_time = True

    def __init__(self, strategy: WatermarkStrategy) -> None:
        super().__init__()
        self.strategy = strategy

    def open(self, context: OperatorContext) -> None:
        super().open(context)
        self.generator: WatermarkGenerator = self.strategy.generator_supplier(GeneratorContext(context.metrics))
        assigner = self.strategy.timestamp_assigner
        self._extract = assigner.extract_timestamp if assigner is not None else None
        self._emitted = _Emitted()
        self._idle = False
        self._ended = False
        self._active_at = context.clock.now
        self._asked_at = context.clock.now
        self._unasked = False
        if context.restored is not None:
            self._restore(context.restored)
        # A generator can take a chunk at once only if it never emits between periodic calls.
        self._bulk = type(self.generator) in _BULK

    def _restore(self, restored: RestoredOperator) -> None:
        """Continue with restored event time.

        The program creates the generators, which start from scratch as in Flink.
        """
        if restored.drained:
            return
        own = restored.own()
        if not own:
            reached = [before["watermark"] for before in restored.all_own() if before]
            self.current_watermark = min(reached, default=self.current_watermark)
        elif restored.continued:
            self.take_up(own)
        else:
            self.current_watermark = own["watermark"]

    def take_up(self, progress: dict[str, Any]) -> None:
        """Continue exactly where another operator stopped.

        A generator that follows the highest timestamp gets its value.
        """
        self.current_watermark = progress["watermark"]
        if isinstance(self.generator, BoundedOutOfOrdernessWatermarks) and progress["highest"] is not None:
            self.generator.max_timestamp = progress["highest"]
        self._idle, self._ended, self._active_at, self._asked_at, self._unasked = progress["progress"]

    def progress(self) -> dict[str, Any]:
        """Return the data with which a successor continues exactly here."""
        return {
            "highest": getattr(self.generator, "max_timestamp", None) if self._bulk else None,
            "watermark": self.current_watermark,
            "progress": (self._idle, self._ended, self._active_at, self._asked_at, self._unasked),
        }

    def snapshot(self, into: SubtaskSnapshot) -> None:
        for part, value in self.progress().items():
            into.own(part, value)

    def resume_at(self, watermark: int) -> None:
        """Do nothing: this operator has its own event time, which does not follow its input."""

    def chunk(self, chunk: Chunk) -> None:
        """Stamp a chunk.

        Columns stay columns if their timestamps are known and the generator needs only the latest of them.
        """
        stamped = None if chunk.columns is None or not self._bulk else self._stamp_columns(chunk.columns)
        if stamped is None:
            super().chunk(chunk)
            return
        self._be_active()
        if self._follows():
            latest = stamped.latest()
            assert latest is not None
            self._reach(latest)
        self.emit_chunk(chunk if stamped is chunk.columns else Chunk.of(stamped))

    def _stamp_columns(self, columns: Columns) -> Columns | None:
        """Return columns with the new timestamps of their rows, or None if each row must be looked at."""
        assigner = self.strategy.timestamp_assigner
        if isinstance(assigner, FieldTimestamps):
            return columns.stamp_from(assigner.field)
        needs_times = self._follows() and not columns.is_timed()
        return None if assigner is not None or needs_times else columns

    def _follows(self) -> bool:
        return isinstance(self.generator, BoundedOutOfOrdernessWatermarks)

    def records(self, values: Values, timestamps: Timestamps) -> None:
        self._be_active()
        stamps = self._stamp(values, timestamps)
        if not self._bulk:
            self._one_by_one(values, stamps)
            return
        if self._follows():
            self._reach(max(stamps))
        self.emit(values, stamps)  # type: ignore[arg-type]

    def _be_active(self) -> None:
        self._active_at = self.context.clock.now
        self._unasked = True
        if self._idle:
            self._become(idle=False)

    def _reach(self, latest: int) -> None:
        """Give a generator that takes a chunk at once the latest timestamp in the chunk."""
        self.generator.on_event(None, latest, self._emitted)

    def _stamp(self, values: Values, timestamps: Timestamps) -> list[int]:
        if self._extract is None:
            return self._as_they_came(values, timestamps)
        extract, feed = self._extract, iter(values)
        try:
            if timestamps is None:
                stamps = [extract(value, MIN_TIMESTAMP) for value in feed]
            else:
                stamps = [
                    extract(value, MIN_TIMESTAMP if before is None else before)
                    for value, before in zip(feed, timestamps, strict=True)
                ]
        except USER_ERRORS as error:
            raise self.failure(error, values, feed) from error
        return stamps if set(map(type, stamps)) <= {int} else self._whole(values, stamps)

    def _as_they_came(self, values: Values, timestamps: Timestamps) -> list[int]:
        """Return the timestamps of records without an assigner.

        Records keep their timestamps; those without one get the lowest, as in Flink.
        """
        if type(self.generator) is NoWatermarksGenerator:
            return timestamps  # type: ignore[return-value]
        if timestamps is None:
            return [MIN_TIMESTAMP] * len(values)
        return [MIN_TIMESTAMP if t is None else t for t in timestamps] if None in timestamps else timestamps  # type: ignore[return-value]

    def _whole(self, values: Values, stamps: list[Any]) -> list[int]:
        """Convert timestamps that are not plain ints.

        Other numbers lose their fraction; anything else is an error that names the record.
        """
        feed = iter(values)
        try:
            return [whole_millis(stamp) for _, stamp in zip(feed, stamps, strict=True)]
        except (TypeError, ValueError, OverflowError):
            position = len(values) - length_hint(feed) - 1
            error = TypeError(f"the timestamp assigner returned {stamps[position]!r}, not milliseconds")
            raise self.failure(error, values, feed) from None

    def _one_by_one(self, values: Values, stamps: list[int]) -> None:
        """Pass values to the generator one by one, and cut the chunk wherever it emits something."""
        on_event, emitted, start = self.generator.on_event, self._emitted, 0
        feed = iter(values)
        for position, value in enumerate(feed):
            try:
                on_event(value, stamps[position], emitted)
            except USER_ERRORS as error:
                raise self.failure(error, values, feed) from error
            if emitted.timestamp is not None or emitted.idle is not None:
                self.emit(values[start : position + 1], stamps[start : position + 1])  # type: ignore[arg-type]
                start = position + 1
                self._relay()
        if start < len(values):
            self.emit(values[start:], stamps[start:])  # type: ignore[arg-type]

    def _relay(self) -> None:
        """Act on the output of the generator."""
        timestamp, idle = self._emitted.timestamp, self._emitted.idle
        self._emitted.timestamp = self._emitted.idle = None
        if timestamp is not None and timestamp > self.current_watermark:
            if self._idle:
                self._become(idle=False)
            self.current_watermark = timestamp
            self._report_alignment()
            self.output.watermark(timestamp)
        if idle and not self._idle:
            self._become(idle=True)

    def _become(self, idle: bool) -> None:
        self._idle = idle
        self._report_alignment()
        self.output.status(idle)

    def _report_alignment(self) -> None:
        report_alignment(self.context, self.strategy, self.current_watermark, self._idle)

    def watermark(self, timestamp: int) -> None:
        if timestamp == MAX_TIMESTAMP:
            self.current_watermark = timestamp
            self._report_alignment()
            self.output.watermark(timestamp)

    def status(self, idle: bool) -> None:
        """Become idle if the source says so. Records make the stream active again."""
        if idle and not self._idle and not self.context.batch:
            self._become(idle=True)

    def finish(self) -> None:
        self._ended = True

    def end_epoch(self) -> None:
        if self._ended:
            return
        if self._is_timed_out():
            self._become(idle=True)
        elif self._is_periodic() and not self._idle and self.context.clock.now >= self._ask_at():
            self._ask()

    def _is_periodic(self) -> bool:
        return self.context.watermark_interval != 0 and not self.context.batch

    def _ask_at(self) -> int:
        return self._asked_at + self.context.watermark_interval

    def _ask(self) -> None:
        """Ask the generator for a periodic watermark."""
        self._asked_at = self.context.clock.now
        self._unasked = False
        try:
            self.generator.on_periodic_emit(self._emitted)
        except USER_ERRORS as error:
            raise self.failure(error, []) from error
        self._relay()

    def _is_timed_out(self) -> bool:
        timeout = None if self.context.batch else self.strategy.idle_timeout
        return timeout is not None and not self._idle and self.context.clock.now - self._active_at >= timeout

    def next_due(self) -> int | None:
        if self._idle or self._ended or self.context.batch:
            return None
        timeout = self.strategy.idle_timeout
        due = [] if timeout is None else [self._active_at + timeout]
        if self._unasked and self._is_periodic():
            due.append(self._ask_at())
        return min(due, default=None)


def report_alignment(context: OperatorContext, strategy: WatermarkStrategy, watermark: int, idle: bool) -> None:
    """Report the watermark of a stream to its alignment group, if it has one."""
    alignment, wanted = context.alignment, strategy.alignment
    if wanted is None:
        return
    if idle or watermark == MAX_TIMESTAMP:
        alignment.withdraw(wanted.group, context.uid)
    else:
        alignment.report(wanted.group, context.uid, watermark)


class IngestionTimeOperator(Operator):
    """Ingestion time: every record gets the processing time of its epoch, which then becomes the watermark."""

    def records(self, values: Values, timestamps: Timestamps) -> None:
        self.emit(values, [self.context.clock.now] * len(values))

    def watermark(self, timestamp: int) -> None:
        if timestamp == MAX_TIMESTAMP:
            super().watermark(timestamp)

    def end_epoch(self) -> None:
        if self.context.clock.now - 1 > self.current_watermark and not self.context.batch:
            super().watermark(self.context.clock.now - 1)


def _bulk_generators() -> set[Any]:
    return {BoundedOutOfOrdernessWatermarks, NoWatermarksGenerator, *BoundedOutOfOrdernessWatermarks.__subclasses__()}


_BULK = _bulk_generators()
