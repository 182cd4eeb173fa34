"""A sink into files, exactly once: readers see only whole files, which belong to a complete checkpoint."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any, Generic, TypeVar

from penstock.api.settings.values import check_kind
from penstock.base.arguments import check_arguments
from penstock.common.serialization import BulkWriterFactory, Encoder
from penstock.common.time import Duration, Time, to_millis
from penstock.connectors.files.access import Files
from penstock.connectors.files.buckets import (
    BucketAssigner,
    OnCheckpointRollingPolicy,
    OutputFileConfig,
    RollingPolicy,
)
from penstock.connectors.files.compaction import ConcatFileCompactor, FileCompactor, FileCompactStrategy
from penstock.connectors.files.file_writer import FileSettings, FileWriter
from penstock.connectors.files.parts import FileCommitter
from penstock.connectors.source_api import (
    Committer,
    Sink,
    SinkWriter,
    StreamTransformer,
    SupportsPreprocessing,
    WriterContext,
)

B = TypeVar("B", bound="Builder")
C = TypeVar("C", bound="CompactingBuilder")
RB = TypeVar("RB", bound="Builder")
BB = TypeVar("BB", bound="Builder")


# --- builders ---
class Builder:
    """The settings that all builders of file sinks share."""

    def __init__(self, settings: FileSettings) -> None:
        self._settings = settings

    def with_bucket_assigner(self: B, bucket_assigner: BucketAssigner) -> B:
        """Set the folder of each record: by default, a folder for every hour of processing time."""
        return self._with(bucket_assigner=check_kind(BucketAssigner, bucket_assigner))

    def with_rolling_policy(self: B, rolling_policy: RollingPolicy) -> B:
        """Set the policy that closes files. Files of bulk formats are closed at checkpoints in any case."""
        return self._with(rolling_policy=check_kind(RollingPolicy, rolling_policy))

    def with_bucket_check_interval(self: B, interval: Duration | Time | timedelta | int) -> B:
        """Set the time between two checks of the rolling policy.

        A plain number is milliseconds; the default is 60,000.
        """
        millis = to_millis(interval)
        if millis <= 0:
            raise ValueError(f"the interval between two checks of files must be longer than zero, not {interval!r}")
        return self._with(bucket_check_interval=millis)

    def with_output_file_config(self: B, output_file_config: OutputFileConfig) -> B:
        """Set the beginning and the end of the names of files."""
        return self._with(output_file_config=check_kind(OutputFileConfig, output_file_config))

    def _with(self: B, **changes: Any) -> B:
        self._settings = replace(self._settings, **changes)
        return self


class CompactingBuilder(Builder):
    """Builds a FileSink with optional compaction."""

    def enable_compact(self: C, strategy: FileCompactStrategy, compactor: FileCompactor) -> C:
        """Combine small files before readers see them."""
        check_kind(FileCompactStrategy, strategy)
        check_kind(FileCompactor, compactor)
        if self._settings.writer_factory is not None and isinstance(compactor, ConcatFileCompactor):
            raise ValueError(
                "files of a bulk format cannot be concatenated byte by byte: use "
                "FileCompactor.record_wise_file_compactor(format)"
            )
        return self._with(strategy=strategy, compactor=compactor)

    def disable_compact(self: C) -> C:
        """Publish each file unchanged, which is the default.

        Files that already wait for compaction are published unchanged.
        """
        return self._with(strategy=None, compactor=None)

    def build(self) -> FileSink:
        """Return the FileSink."""
        return FileSink(self._settings)


class RowBuilder(CompactingBuilder):
    """Builds a FileSink for a row format."""


class BulkBuilder(CompactingBuilder):
    """Builds a FileSink for a bulk format."""


class StreamingBuilder(Builder):
    """Builds a StreamingFileSink."""

    def with_rolling_policy(self: B, policy: RollingPolicy) -> B:
        """Set the policy that closes files. Files of bulk formats are closed at checkpoints in any case."""
        return self._with(rolling_policy=check_kind(RollingPolicy, policy))

    def build(self) -> StreamingFileSink:
        """Return the StreamingFileSink."""
        return StreamingFileSink(self._settings)


class StreamingRowBuilder(StreamingBuilder):
    """Builds a StreamingFileSink for a row format."""


class StreamingBulkBuilder(StreamingBuilder):
    """Builds a StreamingFileSink for a bulk format."""


def _usable(base_path: str) -> str:
    """Return the whole URL of a base path, because slots run in other folders than the program."""
    return Files(str(base_path)).url()


# --- sinks ---
@check_arguments
class IntoFiles(Sink, SupportsPreprocessing, Generic[RB, BB]):
    """Writes records into files below a base path. With checkpoints, readers see each record exactly once."""

    _builders: tuple[type[RB], type[BB]]
    """Builder classes for row formats and for bulk formats."""

    @classmethod
    def for_row_format(cls, base_path: str, encoder: Encoder) -> RB:
        """Start to build a sink whose files contain the encoded records one after the other."""
        return cls._builders[0](FileSettings(_usable(base_path), encoder=check_kind(Encoder, encoder)))

    @classmethod
    def for_bulk_format(cls, base_path: str, writer_factory: BulkWriterFactory) -> BB:
        """Start to build a sink for a format such as Parquet.

        Its files are closed at the next checkpoint at the latest.
        """
        factory, policy = check_kind(BulkWriterFactory, writer_factory), OnCheckpointRollingPolicy()
        return cls._builders[1](FileSettings(_usable(base_path), writer_factory=factory, rolling_policy=policy))

    def __init__(self, settings: FileSettings) -> None:
        self.settings = settings

    def create_writer(self, context: WriterContext, restored: list[Any]) -> SinkWriter:
        return FileWriter(self.settings, context, restored)

    def create_committer(self) -> Committer:
        return FileCommitter()

    def get_transformer(self) -> StreamTransformer | None:
        """Return None: files take records as they come."""
        return None


class FileSink(IntoFiles[RowBuilder, BulkBuilder]):
    """Writes records into files below a base path. With checkpoints, readers see each record exactly once."""

    BaseBuilder = CompactingBuilder
    RowFormatBuilder = RowBuilder
    BulkFormatBuilder = BulkBuilder
    _builders = RowBuilder, BulkBuilder


class StreamingFileSink(IntoFiles[StreamingRowBuilder, StreamingBulkBuilder]):
    """The older name of FileSink, without compaction."""

    BaseBuilder = StreamingBuilder
    DefaultRowFormatBuilder = StreamingRowBuilder
    DefaultBulkFormatBuilder = StreamingBulkBuilder
    _builders = StreamingRowBuilder, StreamingBulkBuilder
