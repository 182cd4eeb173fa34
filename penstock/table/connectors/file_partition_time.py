"""The completion of partitions of files: some time after the first row, or when event time has passed the partition."""

from __future__ import annotations

import datetime
import re
from dataclasses import dataclass
from urllib.parse import unquote

from penstock.connectors.files.buckets import time_zone
from penstock.errors import SchemaMismatch, ValidationException
from penstock.table.connectors.contract import Options

_VARIABLE = re.compile(r"\$(\w+)")


@dataclass(frozen=True)
class CommitRule:
    """The options `sink.partition-commit.*`."""

    file_name: str = "_SUCCESS"
    by_partition_time: bool = False
    delay: int = 0
    """Delay in milliseconds."""
    pattern: str | None = None
    """Pattern that makes a moment from the values of a partition, `$day $hour:00:00`; None for the first value."""
    zone: str = "UTC"

    def is_due(self, folder: str, since: int, now: int, watermark: int | None) -> bool:
        """Return True if a partition is complete. Its first row came at `since`."""
        if not self.by_partition_time:
            return now >= since + self.delay
        return watermark is not None and watermark >= self.moment(folder) + self.delay

    def moment(self, folder: str) -> int:
        """Return the moment that the values of a partition express, in milliseconds."""
        values = {unquote(key): unquote(text) for key, _, text in (part.partition("=") for part in folder.split("/"))}
        text = next(iter(values.values()))
        if self.pattern is not None:
            text = _VARIABLE.sub(lambda found: values.get(found[1], found[0]), self.pattern)
        try:
            moment = datetime.datetime.fromisoformat(text.strip())
        except ValueError:
            raise SchemaMismatch(
                f"the partition {folder} says {text!r}, which is not a timestamp such as 2024-01-31 or 2024-01-31 "
                "10:00:00; "
                "set 'partition.time-extractor.timestamp-pattern'"
            ) from None
        return int(moment.replace(tzinfo=time_zone(self.zone)).timestamp() * 1000)


def commit_rule(options: Options, keys: tuple[str, ...]) -> CommitRule | None:
    """Return the rule that the options of a table express; None if partitions are not announced."""
    trigger = options.choice("sink.partition-commit.trigger", ("process-time", "partition-time"), "process-time")
    delay = options.millis("sink.partition-commit.delay", 0) or 0
    name = options.text("sink.partition-commit.success-file.name", "_SUCCESS") or "_SUCCESS"
    zone = options.text("sink.partition-commit.watermark-time-zone", "UTC") or "UTC"
    options.choice("partition.time-extractor.kind", ("default",), "default")
    pattern = options.text("partition.time-extractor.timestamp-pattern")
    kind = options.text("sink.partition-commit.policy.kind")
    if kind is None:
        return None
    if kind != "success-file":
        raise ValidationException(
            f"table {options.table}: 'sink.partition-commit.policy.kind' is success-file, not '{kind}'"
        )
    if not keys:
        raise ValidationException(f"table {options.table}: 'sink.partition-commit.policy.kind' is for PARTITIONED BY")
    if not name.startswith(("_", ".")):
        raise ValidationException(
            f"table {options.table}: the success file {name} would be read as a file of the "
            "table: choose a name that begins with . or _"
        )
    _check_pattern(options, pattern, keys)
    return CommitRule(name, trigger == "partition-time", delay, pattern, _check_zone(options, zone))


def _check_pattern(options: Options, pattern: str | None, keys: tuple[str, ...]) -> None:
    unknown = [name for name in _VARIABLE.findall(pattern or "") if name not in keys]
    if unknown:
        raise ValidationException(
            f"table {options.table}: 'partition.time-extractor.timestamp-pattern' has ${unknown[0]}, and the table is "
            f"partitioned by {', '.join(keys)}"
        )


def _check_zone(options: Options, zone: str) -> str:
    try:
        time_zone(zone)
    except ValueError as error:
        raise ValidationException(
            f"table {options.table}: 'sink.partition-commit.watermark-time-zone': {error}"
        ) from error
    return zone
