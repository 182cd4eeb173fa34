"""The files of a table for writing, with partitions that are announced or replaced."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import IO, Any, ClassVar

from penstock.common.serialization import BulkWriter, BulkWriterFactory
from penstock.common.types import Row, make_row
from penstock.connectors.files.access import Files
from penstock.connectors.files.file_sink import FileSink
from penstock.connectors.files.file_writer import FileSettings, FileWriter
from penstock.connectors.files.parts import FileCommitter
from penstock.connectors.source_api import Committer, GlobalCommitter, SinkWriter, WriterContext
from penstock.formats.batch_of_rows import BatchOfRows
from penstock.persisted import persisted
from penstock.table.connectors.file_partition_time import CommitRule


# --- rows as they are stored ---
@dataclass(frozen=True)
class StoredRows(BulkWriterFactory):
    """Writes some of the columns of rows."""

    inner: BulkWriterFactory
    places: tuple[int, ...] | None
    """Positions of the columns that are written; None for all."""
    prepare: Callable[[Row], Row] | None = None

    def create(self, stream: IO[bytes]) -> BulkWriter:
        return _StoredWriter(self.inner.create(stream), self)

    def row_to_write(self, row: Row) -> Row:
        if self.places is not None:
            names, values = row.get_field_names() or [], list(row)
            chosen = tuple(names[place] for place in self.places)
            row = make_row(chosen, tuple(values[place] for place in self.places), row.get_row_kind())
        return row if self.prepare is None else self.prepare(row)


class _StoredWriter(BulkWriter):
    def __init__(self, inner: BulkWriter, rows: StoredRows) -> None:
        self._inner = inner
        self._rows = rows
        self._stored = rows.row_to_write

    def add_element(self, element: Any) -> None:
        self._inner.add_element(self._stored(element))

    def add_batch(self, batch: Any) -> bool:
        """Take a batch, unless its rows must be prepared one by one."""
        if self._rows.prepare is not None:
            return False
        return self._inner.add_batch(batch if self._rows.places is None else batch.select(list(self._rows.places)))

    def flush(self) -> None:
        self._inner.flush()

    def finish(self) -> None:
        self._inner.finish()


# --- what a checkpoint says about partitions ---
@persisted
@dataclass(frozen=True)
class PartitionWaiting:
    """A partition that has received rows and is not yet announced."""

    folder: str
    since: int
    """Processing time of the first row, in milliseconds."""
    hidden_files: ClassVar[tuple[str, ...]] = ()


@persisted
@dataclass(frozen=True)
class PartitionStanding:
    """A writer's report on its partitions at a checkpoint."""

    due: tuple[str, ...] = ()
    """URLs of folders that are complete as far as this writer knows."""
    waiting: tuple[str, ...] = ()
    hidden_files: ClassVar[tuple[str, ...]] = ()


@dataclass(frozen=True)
class Replacing:
    """A notice that earlier files are deleted: all below `folder`, or all beside the new files if it is None."""

    folder: str | None
    hidden_files: ClassVar[tuple[str, ...]] = ()


class TableFileSink(FileSink):
    """A FileSink that announces partitions. In BATCH mode it can replace the existing files."""

    def __init__(
        self, settings: FileSettings, rule: CommitRule | None = None, replaces: tuple[str | None] | None = None
    ) -> None:
        super().__init__(settings)
        self.rule = rule
        self.replaces = replaces
        self.commits_globally = rule is not None

    def create_writer(self, context: WriterContext, restored: list[Any]) -> SinkWriter:
        return TableFileWriter(self, context, restored)

    def create_committer(self) -> Committer:
        return TableFileCommitter()

    def create_global_committer(self) -> GlobalCommitter:
        assert self.rule is not None
        return PartitionCommitter(self.rule.file_name)


class TableFileWriter(FileWriter):
    """Remembers the partitions that received rows."""

    def __init__(self, sink: TableFileSink, context: WriterContext, restored: list[Any]) -> None:
        kept = [item for item in restored if isinstance(item, PartitionWaiting)]
        super().__init__(sink.settings, context, [item for item in restored if not isinstance(item, PartitionWaiting)])
        self._rule = sink.rule
        self._replaces = sink.replaces
        self._since = {item.folder: item.since for item in kept}
        self._watermark: Callable[[], int] | None = None

    def write(self, value: Any, context: Any) -> None:
        self._watermark = context.current_watermark
        super().write(value, context)

    def write_all(self, values: list[Any], timestamps: list[int | None] | None, context: Any) -> bool:
        self._watermark = context.current_watermark
        return super().write_all(values, timestamps, context)

    def write_batch(self, rows: BatchOfRows, context: Any) -> bool:
        self._watermark = context.current_watermark
        return super().write_batch(rows, context)

    def _write(self, bucket_id: str, values: Sequence[Any]) -> None:
        super()._write(bucket_id, values)
        if self._rule is not None:
            self._since.setdefault(bucket_id, self._context.now)

    def prepare_commit(self) -> list[Any]:
        prepared = super().prepare_commit()
        if self._replaces is not None and self._ended:
            prepared.append(Replacing(self._replaces[0]))
        # A savepoint is not committed. Partitions that are due then are reported at the next checkpoint.
        if self._rule is not None and self._since and (self._ended or not self.is_savepoint):
            prepared.append(self._standing(self._rule))
        return prepared

    def _standing(self, rule: CommitRule) -> PartitionStanding:
        watermark = self._watermark() if self._watermark is not None else None
        now = self._context.now
        due = {
            folder for folder, since in self._since.items() if self._ended or rule.is_due(folder, since, now, watermark)
        }
        waiting = [folder for folder in self._since if folder not in due]
        self._since = {folder: self._since[folder] for folder in waiting}
        return PartitionStanding(self._urls(due), self._urls(waiting))

    def _urls(self, folders: Iterable[str]) -> tuple[str, ...]:
        return tuple(sorted(map(self._files.url, folders)))

    def snapshot_state(self, checkpoint_id: int) -> list[Any]:
        kept = [PartitionWaiting(folder, since) for folder, since in self._since.items()]
        return [*super().snapshot_state(checkpoint_id), *kept]


class TableFileCommitter(FileCommitter):
    """Gives files their names, and then deletes the files that they replace."""

    def commit(self, committables: list[Any]) -> None:
        files = [item for item in committables if not isinstance(item, PartitionStanding | Replacing)]
        super().commit(files)
        kept = {item.final for item in files if item.final}
        for folder in {item.folder for item in committables if isinstance(item, Replacing)}:
            for one in {posixpath.dirname(url) for url in kept} if folder is None else {folder}:
                _delete_others(Files(one), kept)


def _delete_others(files: Files, kept: set[str]) -> None:
    for name in files.visible():
        if files.url(name) not in kept:
            files.delete(name)


class PartitionCommitter(GlobalCommitter):
    """Announces a partition with a file, once no writer waits for it any more and its files have their names."""

    def __init__(self, file_name: str) -> None:
        self._file_name = file_name

    def commit(self, committables: list[Any]) -> None:
        said = [item for item in committables if isinstance(item, PartitionStanding)]
        waiting = {folder for item in said for folder in item.waiting}
        for folder in sorted({folder for item in said for folder in item.due} - waiting):
            Files(folder).write(self._file_name, [b""])
