"""The event time of a source with several splits: the earliest event time of the splits that are not idle."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from penstock.api.latency_marker import LatencyMarker
from penstock.common.watermark_strategy import WatermarkStrategy
from penstock.engine.operators.operator import Alignment, OperatorContext
from penstock.engine.operators.watermarks import TimestampsAndWatermarksOperator, report_alignment
from penstock.engine.records.elements import MIN_TIMESTAMP, Chunk, Receiver

Progress = dict[str, Any]
"""The data with which the clock of one split continues."""


class SplitTimes:
    """Stamps the records of every split and advances the event time of the whole source."""

    def __init__(
        self,
        strategy: WatermarkStrategy,
        context: OperatorContext,
        output: Receiver,
        has_splits: Callable[[], bool],
    ) -> None:
        """Create the clock of a source.

        `has_splits` returns True while some split, begun or not, has not been read to its end.
        """
        self._strategy = strategy
        self._context = context
        self.output = output
        self._has_splits = has_splits
        self._splits: dict[str, _SplitTime] = {}
        self._watermark = MIN_TIMESTAMP
        self._idle = False
        self._deferred = False

    def add(self, split_id: str, progress: Progress | None = None) -> None:
        """Add a split that begins or continues."""
        if split_id in self._splits:
            return
        split = self._splits[split_id] = _SplitTime(self, self._strategy)
        split.clock.open(replace(self._context, output=split, alignment=Alignment(), restored=None))
        if progress is not None:
            split.clock.take_up(progress["clock"])
            split.reached, split.idle = progress["reached"], progress["idle"]
        self.advance()

    def remove(self, split_id: str) -> None:
        """Remove a split that has been read to its end. It no longer holds event time back."""
        if self._splits.pop(split_id, None) is not None:
            self.advance()

    def chunk(self, split_id: str, chunk: Chunk) -> None:
        """Stamp and emit records of a split."""
        self.add(split_id)
        self._splits[split_id].clock.chunk(chunk)

    def end_epoch(self) -> None:
        self._deferred = True
        for split in self._splits.values():
            split.clock.end_epoch()
        self._deferred = False
        self.advance()

    def next_due(self) -> int | None:
        """Return the next processing time at which the clock of some split is due, or None."""
        due = [when for split in self._splits.values() if (when := split.clock.next_due()) is not None]
        return min(due, default=None)

    def progress(self) -> dict[str, Progress]:
        """Return the progress of event time, by split."""
        return {
            name: {"clock": split.clock.progress(), "reached": split.reached, "idle": split.idle}
            for name, split in self._splits.items()
        }

    @property
    def watermark(self) -> int:
        """The watermark of the whole source."""
        return self._watermark

    def advance(self) -> None:
        """Pass on the watermark and idleness that the splits have reached together."""
        if self._deferred:
            return
        active = [split.reached for split in self._splits.values() if not split.idle]
        # Between the end of one split and the beginning of the next, event time stands still.
        self._become(idle=not active and (bool(self._splits) or not self._has_splits()))
        if active and min(active) > self._watermark:
            self._watermark = min(active)
            self.output.watermark(self._watermark)
        report_alignment(self._context, self._strategy, self._watermark, self._idle)

    def _become(self, idle: bool) -> None:
        if idle is not self._idle:
            self._idle = idle
            self.output.status(idle)

    def resume(self, progress: dict[str, Progress], known: tuple[int, bool] | None) -> None:
        """Continue where splits stopped. `known` is (watermark, idle) if downstream operators already know it."""
        self._deferred = True
        for split_id, before in progress.items():
            self.add(split_id, before)
        self._deferred = False
        if known is not None:
            self._watermark, self._idle = known

    def progress_downstream(self) -> tuple[int, bool]:
        """Return what downstream operators know: (watermark, idle)."""
        return self._watermark, self._idle


class _SplitTime:
    """One split: its clock, and the receiver of the clock's output."""

    def __init__(self, times: SplitTimes, strategy: WatermarkStrategy) -> None:
        self._times = times
        self.clock = TimestampsAndWatermarksOperator(strategy)
        self.chunk = times.output.chunk
        self.reached = MIN_TIMESTAMP
        self.idle = False

    def watermark(self, timestamp: int) -> None:
        held = self.reached <= self._times.watermark
        self.reached = timestamp
        if held:
            self._times.advance()

    def status(self, idle: bool) -> None:
        self.idle = idle
        self._times.advance()

    def marker(self, marker: LatencyMarker) -> None:
        """Ignore markers, which come from the source as a whole."""

    def end(self) -> None:
        """Do nothing: removing a split is its end."""
