"""The connector 'filesystem': files of any format on any storage, written exactly once."""

from __future__ import annotations

from typing import Any

from penstock.common.time import Duration
from penstock.common.watermark_strategy import WatermarkStrategy
from penstock.connectors.base import BadRecords
from penstock.connectors.files.buckets import BucketAssigner
from penstock.connectors.files.sink import FileSink
from penstock.connectors.files.source import FileSource
from penstock.datastream.data_stream import DataStream
from penstock.datastream.stream_execution_environment import StreamExecutionEnvironment
from penstock.errors import ValidationException
from penstock.formats.contracts import StreamFormat
from penstock.table.connectors.contract import Connector, Declared
from penstock.table.connectors.formats import file_formats
from penstock.table.plan.nodes import Columns


class FileSystem(Connector):
    """A directory with files; a partitioned table has a directory for each value, `day=2024-01-01/`."""

    name = "filesystem"

    def source(self, env: StreamExecutionEnvironment, table: Declared) -> DataStream:
        options = table.options
        path, formats = options.required("path"), file_formats(options, self._stored(table))
        self._refuse_partitions(table, "read")
        interval = options.millis("source.monitor-interval")
        _writing_options(options)
        options.refuse_unknown()
        reading = formats.reading
        builder = (
            FileSource.for_record_stream_format(reading, path)
            if isinstance(reading, StreamFormat)
            else FileSource.for_bulk_file_format(reading, path)
        )
        if interval is not None:
            builder = builder.monitor_continuously(Duration.of_millis(interval))
        skipped = BadRecords.skip() if formats.ignores_errors else None
        return env.from_source(
            builder.build(), WatermarkStrategy.no_watermarks(), f"files {table.name}", bad_records=skipped
        )

    def sink(self, stream: DataStream, table: Declared, changelog: bool) -> None:
        options = table.options
        path, formats = options.required("path"), file_formats(options, self._stored(table))
        _writing_options(options)
        options.millis("source.monitor-interval")
        options.refuse_unknown()
        self._refuse_partitions(table, "written")
        sink = FileSink.for_bulk_format(path, formats.writing).with_bucket_assigner(
            BucketAssigner.base_path_bucket_assigner()
        )
        (stream if formats.prepared is None else stream.map(formats.prepared)).sink_to(sink.build()).name(
            f"files {table.name}"
        )

    @staticmethod
    def _stored(table: Declared) -> Columns:
        """The columns that are in the files: those of the partition are in the names of their directories."""
        return tuple(column for column in table.physical() if column.name not in table.partition_keys)

    @staticmethod
    def _refuse_partitions(table: Declared, verb: str) -> None:
        if table.partition_keys:
            raise ValidationException(f"table {table.name}: a partitioned table cannot be {verb} yet")


def _writing_options(options: Any) -> None:
    for name in (
        "sink.rolling-policy.file-size",
        "sink.rolling-policy.rollover-interval",
        "sink.rolling-policy.check-interval",
        "sink.rolling-policy.inactivity-interval",
        "auto-compaction",
        "compaction.file-size",
        "partition.default-name",
        "sink.parallelism",
        "sink.partition-commit.trigger",
        "sink.partition-commit.delay",
        "sink.partition-commit.policy.kind",
    ):
        options.text(name)
