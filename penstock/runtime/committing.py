"""A sink that commits behind checkpoints: what it prepared is part of the checkpoint, and is committed when that is."""

from __future__ import annotations

from itertools import repeat
from typing import Any

from penstock.datastream.connectors.base import Sink
from penstock.runtime.context import SlotRuntimeContext
from penstock.runtime.elements import Timestamps, Values
from penstock.runtime.failures import USER_ERRORS
from penstock.runtime.operator import Operator, OperatorContext
from penstock.runtime.restore import RestoredOperator, split_evenly
from penstock.runtime.sinks import SinkContext
from penstock.runtime.snapshots import SubtaskSnapshot

Pending = dict[int, list[Any]]
"""By checkpoint: what it prepared and nobody has heard to be complete."""


_LAST = 1 << 62
"""Stands for the checkpoint at the end of a job that takes none."""


class CommittingSink(Operator):
    """Runs a Sink: writer, and committer if it has one."""

    def __init__(self, sink: Sink) -> None:
        super().__init__()
        self.sink = sink

    def open(self, context: OperatorContext) -> None:
        super().open(context)
        self._pending: Pending = {}
        self._sink_context = SinkContext(self)
        self._writer = self._committer = None
        try:
            self._committer = self.sink.create_committer()
            items = self._recommit(context.restored) if context.restored is not None else []
            self._writer = self.sink.create_writer(SlotRuntimeContext(context, None), items)
        except USER_ERRORS as error:
            raise self.failed(error, []) from error

    def _recommit(self, restored: RestoredOperator) -> list[Any]:
        """Commit again what the checkpoint holds, since nobody knows whether it was, and return the writer's items."""
        before = restored.all_own()
        own = restored.own()
        mine = [own] if own is not None else before[restored.subtask :: restored.parallelism]
        for part in mine:
            self._commit(part.get("pending", {}))
        return split_evenly([part.get("writer", []) for part in before], restored.parallelism)[restored.subtask]

    def _commit(self, pending: Pending) -> None:
        for number in sorted(pending):
            if pending[number] and self._committer is not None:
                self._committer.commit(pending[number])

    def records(self, values: Values, timestamps: Timestamps) -> None:
        assert self._writer is not None
        feed, write, context = iter(values), self._writer.write, self._sink_context
        try:
            for value, timestamp in zip(feed, timestamps or repeat(None), strict=False):
                context.record_timestamp = timestamp
                write(value, context)
        except USER_ERRORS as error:
            raise self.failed(error, values, feed) from error

    def finish(self) -> None:
        """Nothing follows. Without checkpoints this is the only moment to commit."""
        assert self._writer is not None
        try:
            self._writer.flush(True)
            if not self.context.tracks_changes:
                self._commit({**self._pending, _LAST: self._writer.prepare_commit()})
                self._pending.clear()
        except USER_ERRORS as error:
            raise self.failed(error, []) from error

    # --- checkpoints ---
    def snapshot(self, into: SubtaskSnapshot) -> None:
        assert self._writer is not None
        self._writer.flush(False)
        self._pending[into.checkpoint] = self._writer.prepare_commit()
        into.own("pending", dict(self._pending))
        into.own("writer", self._writer.snapshot_state(into.checkpoint))

    def checkpoint_complete(self, checkpoint: int) -> None:
        """Commit what this checkpoint and those before it prepared; what failed in between is part of it, too."""
        covered = {number: self._pending[number] for number in self._pending if number <= checkpoint}
        self._commit(covered)
        for number in covered:
            del self._pending[number]

    def close(self) -> None:
        for part in (self._writer, self._committer):
            if part is not None:
                part.close()
