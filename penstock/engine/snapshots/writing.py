"""Writing a slot's checkpoints: it serialises them at the end of an epoch, and writes them in the background.

The slot acknowledges a checkpoint with a later report. The files of a checkpoint form a series: a full one, and then
files with later changes. Changes are counted from the last checkpoint that is known to be complete, so that a failed
checkpoint loses only its files.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from uuid import uuid4

from penstock.engine.messages.commands_and_reports import (
    Acknowledgement,
    CheckpointOrder,
    CheckpointSettings,
    Deployment,
)
from penstock.engine.messages.epoch_requests import Bell
from penstock.engine.records.failures import USER_ERRORS, OperatorFailed, failure_of
from penstock.engine.snapshots.local_copies import LocalCopies
from penstock.engine.snapshots.snapshot_parts import Extent
from penstock.engine.state.snapshot_file import FileRef, SlotSnapshot, State, write_file
from penstock.errors import PenstockError, StorageError

LONGEST_CHAIN = 50
SAVEPOINT_INLINE = 20 * 1024
PATIENCE = 0.05
"""Time, in seconds, to wait for a small checkpoint, so that the report of its own epoch acknowledges it."""
RINGING_PATIENCE = 0.003
"""The same time if the slot rings its bell when a checkpoint is written, in seconds."""


def new_writer() -> Executor:
    """Return an executor that writes a slot's checkpoints one after the other."""
    return ThreadPoolExecutor(1, "penstock checkpoint")


@dataclass
class _Series:
    """Files that together hold a slot's state, oldest first."""

    files: list[FileRef] = field(default_factory=list)

    def extent(self, settings: CheckpointSettings, order: CheckpointOrder) -> Extent:
        """Return the extent of the next checkpoint. A new series begins when the tail has outgrown the head."""
        if order.savepoint:
            return Extent.SEPARATE
        tail = sum(file.size for file in self.files[1:])
        too_long = len(self.files) >= LONGEST_CHAIN or (len(self.files) > 1 and tail > self.files[0].size)
        if not self.files or too_long or order.full or not settings.incremental:
            return Extent.FULL
        return Extent.CHANGES


class SlotCheckpoints:
    """The checkpoints of one slot."""

    def __init__(
        self, slot: int, deployment: Deployment, copies: LocalCopies | None = None, bell: Bell | None = None
    ) -> None:
        self._slot = slot
        self._bell = bell or Bell()
        self._copies = copies
        self._settings = deployment.checkpoints or CheckpointSettings()
        owner = f"{deployment.owner.number}-" if deployment.owner is not None else ""
        self._token = f"{owner}{uuid4().hex[:8]}"
        """Part of every file name, so that an abandoned process cannot overwrite a file of its successor."""
        restore = deployment.restore
        continued = restore is not None and restore.continued and slot < len(restore.slots)
        self._series = _Series(list(restore.slots[slot].files)) if restore is not None and continued else _Series()
        self._taken: dict[int, _Series] = {}
        self._writer: Executor | None = None
        self._running: list[Future[Acknowledgement]] = []
        self._answers: list[Acknowledgement] = []

    # --- taking ---
    def take(self, order: CheckpointOrder, snapshots: Callable[[Extent], list[State]]) -> None:
        """Take a checkpoint: serialise the state now, and write it in the background."""
        began = time.monotonic()
        series = self._series
        extent = series.extent(self._settings, order)
        try:
            states = snapshots(extent)
        except OperatorFailed as failed:
            self._answers.append(Acknowledgement(order.number, self._slot, failure=failed.failure))
            return
        base = series.files if extent is Extent.CHANGES else []
        sync = (time.monotonic() - began) * 1000
        if self._settings.asynchronous:
            self._writer = self._writer or new_writer()
            writing = self._writer.submit(self._write, order, states, list(base), sync)
            self._running.append(writing)
            if self._bell.works:
                writing.add_done_callback(lambda _: self._bell.ring())
            wait(self._running, RINGING_PATIENCE if self._bell.works else PATIENCE)
        else:
            self._answers.append(self._write(order, states, list(base), sync))

    def _write(self, order: CheckpointOrder, states: list[State], base: list[FileRef], sync: float) -> Acknowledgement:
        began = time.monotonic()
        answer = Acknowledgement(order.number, self._slot, sync_millis=sync)
        try:
            name = f"{order.folder}/slot-{self._slot}-{self._token}"
            file = write_file(
                name,
                states,
                compress=self._settings.compress,
                inline_below=self._inline_below(order),
                copying=self._copies.copying if self._copies is not None and not order.savepoint else None,
            )
            if not order.savepoint:
                self._check_size(file)
            schemas = {state.name: state.schema for state in states if state.schema is not None}
            answer.snapshot = SlotSnapshot([*base, file], schemas)
            answer.written = file.size
        except USER_ERRORS as error:
            name = "the checkpoint's storage" if isinstance(error, PenstockError) else "writing the checkpoint"
            answer.failure = failure_of(error, name, "-", self._slot)
        answer.async_millis = (time.monotonic() - began) * 1000
        return answer

    def _inline_below(self, order: CheckpointOrder) -> int:
        """Return the limit of inline shares. A savepoint has files even if checkpoints are in the driver's memory."""
        below = self._settings.inline_below
        return min(below, SAVEPOINT_INLINE) if order.savepoint else below

    def _check_size(self, file: FileRef) -> None:
        largest = self._settings.largest_inline
        if largest is not None and file.size > largest:
            raise StorageError(
                f"the state of slot {self._slot} has {file.size} bytes, and checkpoints in the driver's memory may "
                f"have {largest}: set a checkpoint directory (execution.checkpointing.dir)"
            )

    # --- answers and their outcome ---
    def answers(self) -> list[Acknowledgement]:
        """Remove and return the acknowledgements since the last call."""
        # A future may be done at any moment, so each is asked once.
        asked = [(future, future.done()) for future in self._running]
        self._running = [future for future, is_done in asked if not is_done]
        done = [future for future, is_done in asked if is_done]
        answers, self._answers = [*self._answers, *(future.result() for future in done)], []
        for answer in answers:
            if answer.snapshot is not None:
                self._taken[answer.number] = _Series(answer.snapshot.files)
        return answers

    def has_answers(self) -> bool:
        """Return True if there are new acknowledgements since the last call of `answers`."""
        return bool(self._answers) or any(future.done() for future in self._running)

    def uploading(self) -> bool:
        """Return True if a checkpoint is being written."""
        return bool(self._running)

    def complete(self, number: int) -> None:
        """Let the next checkpoint build on this one, which was published."""
        self._series = self._taken.pop(number, _Series())
        self._taken = {later: series for later, series in self._taken.items() if later > number}
        if self._copies is not None:
            self._copies.keep([file for series in (self._series, *self._taken.values()) for file in series.files])

    def close(self) -> None:
        """Stop to write checkpoints."""
        if self._writer is not None:
            self._writer.shutdown(wait=False, cancel_futures=True)
