"""The operator of sinks that commit.

A checkpoint holds the items that the sink has prepared. The sink commits them once the checkpoint is complete.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from itertools import repeat
from typing import Any

from penstock.api.functions.contexts import RuntimeContext
from penstock.common.typeinfo import TypeInformation
from penstock.connectors.source_api import Committer, Sink, SinkWriter, WriterContext
from penstock.engine.operators.functions.slot_contexts import SlotRuntimeContext
from penstock.engine.operators.operator import Operator, OperatorContext
from penstock.engine.operators.sinks.sink_metrics import SinkMetrics
from penstock.engine.operators.sinks.sink_operators import SinkContext
from penstock.engine.records.columns import Columns
from penstock.engine.records.elements import Chunk, Timestamps, Values
from penstock.engine.records.failures import USER_ERRORS
from penstock.engine.snapshots.restore import RestoredOperator, split_evenly
from penstock.engine.snapshots.snapshot_parts import Extent, SubtaskSnapshot
from penstock.formats.batch_of_rows import BatchOfRows

log = logging.getLogger("penstock.checkpoint")
Pending = dict[int, list[Any]]
"""Prepared items by checkpoint, for checkpoints that are not yet known to be complete."""
Begun = tuple[str, list[Any]]
"""The uid of a sink, and the items that must be undone if one of its writers is lost."""

_NO_STATE = "in a sink that commits behind checkpoints, which has no keys: keep it in a function before the sink"
AT_THE_END = 1 << 62
"""Stands for the checkpoint at the end of a job that takes none."""


class CommittingSink(Operator):
    """Runs a Sink: its writer, and its committer if it has one."""

    wants_declared_form = True
    commits = True

    def __init__(self, sink: Sink, input_type: TypeInformation | None = None) -> None:
        super().__init__()
        self.sink = sink
        self.input_type = input_type

    def open(self, context: OperatorContext) -> None:
        super().open(context)
        self._pending: Pending = {}
        self._sink_context = SinkContext(self)
        self._measured = SinkMetrics(context.metrics, lambda: sum(map(len, self._pending.values())))
        self._writer: SinkWriter | None = None
        self._committer = None
        before = context.restored.all_own() if context.restored is not None else []
        try:
            self._committer = _fence(self.sink.create_committer(), context)
            items = self._recommit(context.restored, before) if context.restored is not None else []
            writing = _SlotWriterContext(context, self.input_type, before, has_rivals=context.batch)
            self._writer = self.sink.create_writer(writing, items)
        except USER_ERRORS as error:
            raise self.failure(error, []) from error

    def _recommit(self, restored: RestoredOperator, before: list[dict[str, Any]]) -> list[Any]:
        """Commit the items in the checkpoint again, and return the items of the writer.

        Nobody knows whether they were committed before.
        """
        own = restored.own()
        mine = [own] if own is not None else before[restored.subtask :: restored.parallelism]
        for part in mine:
            self._commit(part.get("pending", {}))
        return split_evenly([part.get("writer", []) for part in before], restored.parallelism)[restored.subtask]

    def _commit(self, pending: Pending) -> None:
        for number in sorted(pending):
            if not pending[number]:
                continue
            if self._committer is not None and not self.context.batch:
                with self._measured.committing(len(pending[number])):
                    self._committer.commit(pending[number])
            if self.sink.commits_globally or self.context.batch:
                assert self.context.to_global_committer is not None
                self.context.to_global_committer(number, pending[number])

    def chunk(self, chunk: Chunk) -> None:
        if chunk.columns is None:
            self.records(chunk.values, chunk.timestamps)
            return
        with self._measured.sending(len(chunk)):
            if not self._takes_columns(chunk, chunk.columns):
                self._write(chunk.values, chunk.timestamps)

    def records(self, values: Values, timestamps: Timestamps) -> None:
        with self._measured.sending(len(values)):
            self._write(values, timestamps)

    def _takes_columns(self, chunk: Chunk, columns: Columns) -> bool:
        """Let the writer write columns as they are. Return False if it does not."""
        assert self._writer is not None
        if type(self._writer).write_batch is SinkWriter.write_batch:
            return False
        try:
            rows = BatchOfRows(columns.batch, lambda: chunk.values)
            rows.timestamps = columns.timestamps()
            return self._writer.write_batch(rows, self._sink_context)
        except USER_ERRORS as error:
            raise self.failure(error, []) from error

    def _write(self, values: Values, timestamps: Timestamps) -> None:
        assert self._writer is not None
        feed, write, context = iter(values), self._writer.write, self._sink_context
        try:
            if self._writer.write_all(values, timestamps, context):
                return
        except USER_ERRORS as error:
            raise self.failure(error, values) from error
        try:
            for value, timestamp in zip(feed, timestamps or repeat(None), strict=False):
                context.record_timestamp = timestamp
                write(value, context)
        except USER_ERRORS as error:
            raise self.failure(error, values, feed) from error

    def end_epoch(self) -> None:
        assert self._writer is not None
        try:
            self._writer.end_epoch(self.context.clock.now)
        except USER_ERRORS as error:
            raise self.failure(error, []) from error

    def next_due(self) -> int | None:
        return self._writer.next_due() if self._writer is not None else None

    def finish(self) -> None:
        """Flush the writer after the last record.

        Without checkpoints, items are committed only now. In BATCH mode the driver commits them.
        """
        assert self._writer is not None
        try:
            self._writer.checkpoint_id = self._writer.checkpoint_timestamp = None
            self._writer.flush(True)
            if not self.context.tracks_changes:
                if self.context.owner is not None:
                    self.context.owner.check()
                self._commit({**self._pending, AT_THE_END: self._writer.prepare_commit()})
                self._pending.clear()
        except USER_ERRORS as error:
            raise self.failure(error, []) from error

    def begun(self) -> list[Any] | None:
        """Return the items to undo if this subtask is lost in BATCH mode.

        The result is None for a sink that commits nothing.
        """
        assert self._writer is not None
        if self._committer is None:
            return None
        try:
            return self._writer.begun()
        except USER_ERRORS as error:
            raise self.failure(error, []) from error

    # --- checkpoints ---
    def snapshot(self, into: SubtaskSnapshot) -> None:
        assert self._writer is not None
        self._writer.checkpoint_id, self._writer.checkpoint_timestamp = into.checkpoint, into.timestamp
        self._writer.is_savepoint = into.extent is Extent.SEPARATE
        self._writer.flush(False)
        self._pending[into.checkpoint] = self._writer.prepare_commit()
        into.own("pending", dict(self._pending))
        into.own("writer", self._writer.snapshot_state(into.checkpoint))

    def checkpoint_complete(self, checkpoint: int) -> None:
        """Commit the items of this checkpoint and of all before it, including those that failed in between."""
        covered = {number: self._pending[number] for number in self._pending if number <= checkpoint}
        self._commit(covered)
        for number in covered:
            del self._pending[number]

    def abandon(self, checkpoint: int) -> None:
        prepared = self._pending.pop(checkpoint, [])
        if self._committer is not None and prepared:
            try:
                self._committer.discard(prepared)
            except USER_ERRORS as error:
                log.warning("%s: the prepared items could not be discarded: %s", self.context.name, error)

    def close(self) -> None:
        for part in (getattr(self, "_writer", None), getattr(self, "_committer", None)):
            if part is not None:
                part.close()


def commit_at_the_end(sink: CommittingSink, context: OperatorContext, items: list[Any], begun: list[Any]) -> None:
    """Commit, on the driver, the items of all subtasks of a BATCH job, when every one of them has ended.

    `begun` are the items that all writers have begun, if some writers were lost. Those of them that are not committed
    are undone.
    """
    committer = _fence(sink.sink.create_committer(), context)
    if committer is None:
        return
    with _beside_a_writer(committer, sink, context, items):
        committer.commit(items)
        if lost := [item for item in begun if item not in items]:
            committer.abort(lost)


def abort_at_the_end(sink: CommittingSink, context: OperatorContext, begun: list[Any]) -> None:
    """Undo, on the driver, the items that the writers of a BATCH job have begun and that will not be committed."""
    committer = sink.sink.create_committer()
    if committer is None:
        return
    with _beside_a_writer(committer, sink, context, []):
        committer.abort(begun)


@contextmanager
def _beside_a_writer(
    committer: Committer, sink: CommittingSink, context: OperatorContext, items: list[Any]
) -> Iterator[None]:
    """Open a writer for a committer that did not see the writing, as after a restore.

    Some committers need an open writer.
    """
    before = [{"pending": {AT_THE_END: items}}]
    with closing(committer):
        writing = _SlotWriterContext(context, sink.input_type, before, has_rivals=False)
        with closing(sink.sink.create_writer(writing, [])) as writer:
            writer.flush(True)
            yield


def _fence(committer: Committer | None, context: OperatorContext) -> Committer | None:
    """Let a committer check that the job still has the right to commit."""
    if committer is not None and context.owner is not None:
        committer.check_owner = context.owner.check  # type: ignore[method-assign]
    return committer


class _SlotWriterContext(WriterContext):
    """The WriterContext of one subtask."""

    def __init__(
        self,
        context: OperatorContext,
        input_type: TypeInformation | None,
        before: Iterable[dict[str, Any]],
        *,
        has_rivals: bool,
    ) -> None:
        self.has_rivals = has_rivals
        self._context = context
        self._input_type = input_type
        self._before = list(before)

    @property
    def runtime(self) -> RuntimeContext:
        return SlotRuntimeContext(self._context, None, _NO_STATE)

    @property
    def uid(self) -> str:
        return self._context.uid

    @property
    def input_type(self) -> TypeInformation | None:
        return self._input_type

    @property
    def now(self) -> int:
        return self._context.clock.now

    @property
    def owner(self) -> int:
        return self._context.owner.number if self._context.owner is not None else 0

    @property
    def is_restored(self) -> bool:
        return self._context.restored is not None

    @property
    def all_restored(self) -> list[Any]:
        return [item for part in self._before for item in part.get("writer", [])]

    @property
    def all_committables(self) -> list[Any]:
        pending = [part.get("pending", {}) for part in self._before]
        return [item for prepared in pending for number in sorted(prepared) for item in prepared[number]]
