"""The writer of a FileSink: one open file for each folder that gets records."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

from penstock.api.functions.source_functions import SinkFunction
from penstock.common.serialization import BulkWriterFactory, Encoder
from penstock.common.typeinfo import TypeInformation
from penstock.connectors.files.access import Files, naming
from penstock.connectors.files.buckets import (
    BucketAssigner,
    DateTimeBucketAssigner,
    DefaultRollingPolicy,
    OutputFileConfig,
    RollingPolicy,
)
from penstock.connectors.files.compaction import FileCompactor, FileCompactStrategy, open_parts
from penstock.connectors.files.parts import (
    MARK,
    Closed,
    Content,
    Discarded,
    InProgress,
    Names,
    NewContent,
    PartFile,
    Pending,
    Written,
    delete_leftovers,
)
from penstock.connectors.source_api import SinkWriter, WriterContext
from penstock.errors import NotFound
from penstock.formats.batch_of_rows import BatchOfRows

COMPACTED = "compacted-"
"""Beginning of the names of compacted files."""


@dataclass(frozen=True)
class FileSettings:
    """The settings of a FileSink."""

    base_path: str
    encoder: Encoder | None = None
    writer_factory: BulkWriterFactory | None = None
    bucket_assigner: BucketAssigner = field(default_factory=DateTimeBucketAssigner)
    rolling_policy: RollingPolicy = field(default_factory=DefaultRollingPolicy)
    bucket_check_interval: int = 60_000
    output_file_config: OutputFileConfig = field(default_factory=OutputFileConfig)
    strategy: FileCompactStrategy | None = None
    compactor: FileCompactor | None = None

    def new_content(self, input_type: TypeInformation | None) -> NewContent:
        """Return the function that makes the content of a new file from a stream."""
        if self.writer_factory is not None:
            factory = self.writer_factory
            return lambda stream: BulkContent(stream, factory)
        assert self.encoder is not None
        encoder = self.encoder
        return lambda stream: RowContent(stream, encoder, input_type)


class FileWriter(SinkWriter):
    """Writes the records of one subtask into hidden files, and reports at a checkpoint which of them are whole.

    At a savepoint it closes all of them. Another job may start from the savepoint much later, so its files are marked
    and not deleted.
    """

    is_savepoint = False
    """True if a savepoint is being prepared. It is set before `prepare_commit`."""

    def __init__(self, settings: FileSettings, context: WriterContext, restored: list[Any]) -> None:
        config = settings.output_file_config
        self._settings = settings
        self._context = context
        self._files = Files(settings.base_path)
        self._names = Names(context, config.part_prefix, config.part_suffix)
        self._new_content = settings.new_content(context.input_type)
        self._continues = settings.encoder is not None and self._files.shows_flushed
        """True if a file may stay open over a checkpoint."""
        self._open: dict[str, PartFile] = {}
        self._closed: list[Closed] = []
        self._replaced: list[str] = []
        self._ended = False
        self._next_check: int | None = None
        if (context.is_restored or context.runtime.get_attempt_number() > 0) and not context.has_rivals:
            delete_leftovers(self._files, self._names, [*context.all_restored, *context.all_committables])
        for item in restored:
            self._take_up(item)

    def _take_up(self, item: InProgress | Closed) -> None:
        """Continue the file of an earlier writer.

        A file of another job is copied, because that job may still need it. The valid part of an open file is copied
        even if it belongs to this job, because more data may have been written after that part.
        """
        if isinstance(item, Closed):
            waited = item.checkpoints
            self._closed.append(item if self._names.owns(item.hidden) else self._copy(item).finish(waited))
        elif _is_there(item):
            part = self._copy(item, item.creation_time)
            if self._names.owns(item.hidden):
                self._replaced.append(item.hidden)
            if self._continues and item.bucket_id not in self._open:
                self._open[item.bucket_id] = part
            else:
                self._closed.append(part.finish())

    def _copy(self, item: InProgress | Closed, creation_time: int | None = None) -> PartFile:
        part = self._begin(item.bucket_id, self._names.next())
        part.creation_time = part.creation_time if creation_time is None else creation_time
        part.copy(item.hidden, item.length)
        return part

    # --- writing ---
    def write(self, value: Any, context: SinkFunction.Context) -> None:
        self._write(self._settings.bucket_assigner.get_bucket_id(value, context), [value])

    def write_all(self, values: list[Any], timestamps: list[int | None] | None, context: SinkFunction.Context) -> bool:
        bucket_id = self._settings.bucket_assigner.bucket_of_all(context)
        if bucket_id is not None:
            self._write(bucket_id, values)
            return True
        for bucket, part in self._by_bucket(values, timestamps, context).items():
            self._write(bucket, part)
        return True

    def write_batch(self, rows: BatchOfRows, context: SinkFunction.Context) -> bool:
        """Write a batch. This needs a bucket that does not depend on the records, which are not looked at."""
        bucket_id = self._settings.bucket_assigner.bucket_of_all(context)
        if bucket_id is None or self._settings.writer_factory is None:
            return False
        self._write(bucket_id, rows)
        return True

    def _by_bucket(
        self, values: list[Any], timestamps: list[int | None] | None, context: SinkFunction.Context
    ) -> dict[str, list[Any]]:
        record, bucket_of = RecordContext(context), self._settings.bucket_assigner.get_bucket_id
        by_bucket: dict[str, list[Any]] = {}
        for index, value in enumerate(values):
            record.record_timestamp = timestamps[index] if timestamps is not None else None
            by_bucket.setdefault(bucket_of(value, record), []).append(value)
        return by_bucket

    def _write(self, bucket_id: str, values: Sequence[Any]) -> None:
        now = self._context.now
        part = self._open.get(bucket_id)
        if part is None:
            part = self._open[bucket_id] = self._begin(_check_bucket_id(bucket_id), self._names.next())
        part.write(values, self._new_content, now)
        if self._settings.rolling_policy.should_roll_on_event(part):
            self._close(bucket_id)

    def _begin(self, bucket_id: str, name: str) -> PartFile:
        return PartFile(self._files, bucket_id, self._names, name, self._context.now)

    def _close(self, bucket_id: str) -> None:
        self._closed.append(self._open.pop(bucket_id).finish())

    # --- time ---
    def end_epoch(self, now: int) -> None:
        if self._next_check is not None and now >= self._next_check:
            self._next_check = None
            policy = self._settings.rolling_policy
            for bucket_id, part in list(self._open.items()):
                if policy.should_roll_on_processing_time(part, now):
                    self._close(bucket_id)
        if self._next_check is None and self._open:
            self._next_check = now + self._settings.bucket_check_interval

    def next_due(self) -> int | None:
        return self._next_check if self._open else None

    # --- checkpoints ---
    def begun(self) -> list[Written]:
        return [Written(self._settings.base_path, self._names.writer)]

    def flush(self, end_of_input: bool) -> None:
        self._ended = self._ended or end_of_input

    def prepare_commit(self) -> list[Any]:
        policy, all_of_them = self._settings.rolling_policy, self._ended or not self._continues or self.is_savepoint
        for bucket_id, part in list(self._open.items()):
            if all_of_them or policy.should_roll_on_checkpoint(part):
                self._close(bucket_id)
        pending = self._compact_due() if self._settings.strategy is not None else self._all_closed()
        if self.is_savepoint:
            return [self._mark(item) for item in pending]
        replaced, self._replaced = self._replaced, []
        return [*pending, Discarded(tuple(replaced))] if replaced else list(pending)

    def _mark(self, pending: Pending) -> Pending:
        """Mark a file so that it is kept for the savepoint, and not deleted as a leftover of the job."""
        with self._files.open_new(self._files.name(pending.hidden) + MARK):
            self._replaced.extend(pending.replaces)
        return replace(pending, replaces=(), is_marked=True)

    def _all_closed(self) -> list[Pending]:
        closed, self._closed = self._closed, []
        return [Pending(part.hidden, part.final, part.length) for part in closed]

    def snapshot_state(self, checkpoint_id: int) -> list[Any]:
        return [*(part.snapshot() for part in self._open.values()), *self._closed]

    def close(self) -> None:
        for part in self._open.values():
            part.abandon()

    # --- compaction ---
    def _compact_due(self) -> list[Pending]:
        """Combine the closed files of each bucket that is due. The other files wait."""
        strategy = self._settings.strategy
        assert strategy is not None
        buckets: dict[str, list[Closed]] = {}
        for part in self._closed:
            buckets.setdefault(part.bucket_id, []).append(replace(part, checkpoints=part.checkpoints + 1))
        all_of_them = self._ended or self.is_savepoint
        due = [buckets.pop(bucket) for bucket in list(buckets) if all_of_them or strategy.is_due(buckets[bucket])]
        self._closed = [part for parts in buckets.values() for part in parts]
        if strategy.num_compact_threads == 1 or len(due) < 2:
            return [pending for parts in due for pending in self._compact(parts)]
        with ThreadPoolExecutor(strategy.num_compact_threads) as threads:
            return [pending for done in threads.map(self._compact, due) for pending in done]

    def _compact(self, parts: list[Closed]) -> list[Pending]:
        compactor = self._settings.compactor
        assert compactor is not None
        if len(parts) == 1 or not compactor.merges:
            return [Pending(part.hidden, _name_of_compacted(part.final), part.length) for part in parts]
        merged = self._begin(parts[0].bucket_id, COMPACTED + self._names.next())
        with naming(merged.hidden):
            merged.fill(lambda stream, write: compactor.compact(open_parts(parts), stream, write), self._new_content)
        whole = merged.finish()
        replaced = tuple(part.hidden for part in parts if self._names.owns(part.hidden))
        return [Pending(whole.hidden, whole.final, whole.length, replaced)]


def _is_there(item: InProgress) -> bool:
    """Return True if an open file of a checkpoint still exists. A job that was set back finds it finished instead."""
    hidden, final = Files(item.hidden), Files(item.final)
    if hidden.size("") is not None:
        return True
    if (final.size("") or 0) >= item.length:
        return False
    raise NotFound(
        f"{item.hidden} is missing. It held {item.length} bytes of results that were not yet visible to readers"
    )


def _name_of_compacted(url: str) -> str:
    folder, name = posixpath.split(url)
    return posixpath.join(folder, name if name.startswith(COMPACTED) else COMPACTED + name)


def _check_bucket_id(bucket_id: Any) -> str:
    if not isinstance(bucket_id, str):
        raise TypeError(f"a bucket id is text, the path of a folder, not {bucket_id!r}")
    if bucket_id.startswith("/") or ".." in bucket_id.split("/"):
        raise ValueError(f"a bucket id is the path of a folder below the base path, not {bucket_id!r}")
    return bucket_id


class RecordContext(SinkFunction.Context):
    """The times of one record of a chunk."""

    def __init__(self, chunk: SinkFunction.Context) -> None:
        self._chunk = chunk
        self.record_timestamp: int | None = None

    def current_processing_time(self) -> int:
        return self._chunk.current_processing_time()

    def current_watermark(self) -> int:
        return self._chunk.current_watermark()

    def timestamp(self) -> int | None:
        return self.record_timestamp


# --- the content of files ---
class RowContent(Content):
    """The encoded records, one after the other."""

    def __init__(self, stream: Any, encoder: Encoder, input_type: TypeInformation | None) -> None:
        self._stream = stream
        self._encode = encoder.encode_all
        self._type = input_type

    def write(self, values: Sequence[Any]) -> None:
        self._stream.write(self._encode(values if isinstance(values, list) else list(values), self._type))


class BulkContent(Content):
    """Records in the form that the format's writer gives them."""

    def __init__(self, stream: Any, factory: BulkWriterFactory) -> None:
        self._writer = factory.create(stream)

    def write(self, values: Sequence[Any]) -> None:
        if isinstance(values, BatchOfRows) and self._writer.add_batch(values.batch):
            return
        add = self._writer.add_element
        for value in values:
            add(value)

    def finish(self) -> None:
        self._writer.finish()
