"""The connector 'filesystem': files of any format on any storage, written exactly once."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from penstock.common.watermark_strategy import WatermarkStrategy
from penstock.connectors.files.access import Files
from penstock.connectors.files.buckets import BucketAssigner, DefaultRollingPolicy, OnCheckpointRollingPolicy
from penstock.connectors.files.file_writer import FileSettings
from penstock.connectors.source_api import BadRecords
from penstock.datastream.data_stream import DataStream
from penstock.datastream.stream_execution_environment import StreamExecutionEnvironment
from penstock.errors import ValidationException
from penstock.table.connectors.contract import Connector, Declared, Options
from penstock.table.connectors.file_partition_time import CommitRule, commit_rule
from penstock.table.connectors.file_partitions import DEFAULT_NAME, PartitionFolders, Partitions
from penstock.table.connectors.file_scan import METADATA, Chosen, TableFiles
from penstock.table.connectors.file_table_sink import StoredRows, TableFileSink
from penstock.table.connectors.table_formats import CHANGELOGS, FileFormats, file_formats
from penstock.table.functions.library.java_regex import compile_regex
from penstock.table.logical.nodes import Columns
from penstock.table.logical.rex import InputRef, Rex, rewritten

MINUTE = 60_000


class FileSystem(Connector):
    """A directory with files. A partitioned table has a directory for each value, `day=2024-01-01/`."""

    name = "filesystem"
    overwrites = True

    def changes(self, options: Mapping[str, str]) -> tuple[bool, bool]:
        return options.get("format") in CHANGELOGS, False

    def takes_changes(self, table: Declared) -> bool:
        return table.options.text("format") in CHANGELOGS

    def source(self, env: StreamExecutionEnvironment, table: Declared) -> DataStream:
        known = FileTable.of(table)
        interval = known.monitor_interval
        source = TableFiles(
            known.formats.reading,
            (known.path,),
            None if interval is None else interval / 1000,
            chosen=Chosen(known.pattern, known.partitions, _over_keys(table)),
            stored=tuple(column.name for column in known.stored),
            partitions=known.partitions,
            metadata=tuple((table.columns[index].name, key) for index, key in table.metadata),
        )
        skipped = BadRecords.skip() if known.formats.ignores_errors else None
        strategy = WatermarkStrategy.no_watermarks()
        return env.from_source(source, strategy, f"files {table.name}", bad_records=skipped)

    def sink(self, stream: DataStream, table: Declared, changelog: bool) -> None:
        known = FileTable.of(table)
        if table.overwrite and not table.batch:
            raise ValidationException(f"table {table.name}: INSERT OVERWRITE is for BATCH mode; a stream has no end")
        sink = TableFileSink(known.settings(table), known.rule, known.replacement(table))
        added = stream.sink_to(sink).name(f"files {table.name}")
        if known.parallelism is not None:
            added.set_parallelism(known.parallelism)


@dataclass(frozen=True)
class FileTable:
    """The options of a table in files. All of them are checked, whether the table is read or written."""

    path: str
    formats: FileFormats
    stored: Columns
    """Columns that are in the files."""
    partitions: Partitions | None
    rule: CommitRule | None
    pattern: str | None
    monitor_interval: int | None
    rolling: dict[str, Any]
    parallelism: int | None

    @staticmethod
    def of(table: Declared) -> FileTable:
        options, physical = table.options, table.physical()
        _check_keys(table, physical)
        stored = tuple(column for column in physical if column.name not in table.partition_keys)
        path, default_name = options.require("path"), options.text("partition.default-name", DEFAULT_NAME)
        by_name = {column.name: column for column in physical}
        keys = tuple(by_name[name] for name in table.partition_keys)
        made = FileTable(
            path,
            file_formats(options, stored),
            stored,
            Partitions(keys, default_name or DEFAULT_NAME) if keys else None,
            commit_rule(options, table.partition_keys),
            _pattern(options),
            _interval(options),
            _rolling(options),
            options.whole("sink.parallelism"),
        )
        _refuse_compaction(options)
        options.refuse_unknown()
        return made

    def settings(self, table: Declared) -> FileSettings:
        """Return the settings of the files that are written."""
        names = [column.name for column in table.columns]
        places = tuple(names.index(column.name) for column in self.stored)
        rows = StoredRows(self.formats.writing, None if self.partitions is None else places, self.formats.prepared)
        folders: BucketAssigner = BucketAssigner.base_path_bucket_assigner()
        if self.partitions is not None:
            folders = PartitionFolders(self.partitions, tuple(names.index(key.name) for key in self.partitions.keys))
        return FileSettings(Files(self.path).url(), writer_factory=rows, bucket_assigner=folders, **self.rolling)

    def replacement(self, table: Declared) -> tuple[str | None] | None:
        """Return the folder whose files INSERT OVERWRITE replaces, or None if it replaces nothing.

        The result is a tuple; None in the tuple stands for the partitions that get rows.
        """
        if not table.overwrite:
            return None
        return (Files(self.path).url() if self.partitions is None else None,)


def _check_keys(table: Declared, physical: Columns) -> None:
    names = [column.name for column in physical]
    missing = [key for key in table.partition_keys if key not in names]
    if missing:
        raise ValidationException(
            f"table {table.name}: Partition column '{missing[0]}' not defined in the table schema; there are: "
            f"{', '.join(names)}"
        )
    if len(names) == len(table.partition_keys):
        raise ValidationException(
            f"table {table.name}: all columns are in PARTITIONED BY; at least one column must not be"
        )
    for index, key in table.metadata:
        if key not in METADATA:
            raise ValidationException(
                f"Invalid metadata key '{key}' in column '{table.columns[index].name}' of table {table.name}: files "
                f"have {', '.join(METADATA)}"
            )


def _over_keys(table: Declared) -> Rex | None:
    """Return the condition in terms of the partition columns alone."""
    if table.pruning is None:
        return None
    names = [column.name for column in table.columns]
    places = {names.index(key): place for place, key in enumerate(table.partition_keys)}
    return rewritten(
        table.pruning, lambda one: InputRef(one.type, places[one.index]) if isinstance(one, InputRef) else None
    )


# --- options ---
def _pattern(options: Options) -> str | None:
    pattern = options.text("source.path.regex-pattern")
    if pattern:
        try:
            compile_regex(pattern)
        except re.error as error:
            raise ValidationException(
                f"table {options.table}: 'source.path.regex-pattern' is not a regular expression: {error}"
            ) from error
    return pattern or None


def _interval(options: Options) -> int | None:
    interval = options.millis("source.monitor-interval")
    if interval is not None and interval <= 0:
        raise ValidationException(f"table {options.table}: 'source.monitor-interval' must be longer than zero")
    return interval


def _rolling(options: Options) -> dict[str, Any]:
    """Return the policy that closes a file before its checkpoint: at a size or an age, if one is given."""
    size = options.size("sink.rolling-policy.file-size")
    age = options.millis("sink.rolling-policy.rollover-interval")
    idle = options.millis("sink.rolling-policy.inactivity-interval")
    check = options.millis("sink.rolling-policy.check-interval", MINUTE) or MINUTE
    if size is None and age is None and idle is None:
        return {"rolling_policy": OnCheckpointRollingPolicy()}
    policy = DefaultRollingPolicy(size or 128 << 20, age or 30 * MINUTE, idle or 30 * MINUTE)
    return {"rolling_policy": policy, "bucket_check_interval": check}


def _refuse_compaction(options: Options) -> None:
    options.size("compaction.file-size")
    options.whole("compaction.parallelism")
    if options.flag("auto-compaction"):
        raise ValidationException(
            f"table {options.table}: 'auto-compaction' is not offered for tables; a FileSink of a stream can compact"
        )
