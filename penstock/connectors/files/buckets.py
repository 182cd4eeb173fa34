"""The folders and names of a FileSink's files, and the policies that close them."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import cache
from typing import Any, Protocol
from zoneinfo import ZoneInfo

from penstock.api.functions.source_functions import SinkFunction
from penstock.base.arguments import check_arguments


# --- folders ---
class BucketAssigner(ABC):
    """Determines the folder below the base path into which a record goes."""

    Context = SinkFunction.Context

    @abstractmethod
    def get_bucket_id(self, element: Any, context: SinkFunction.Context) -> str:
        """Return the path of the folder below the base path; an empty one for the base path itself."""

    def bucket_of_all(self, context: SinkFunction.Context) -> str | None:
        """Return the folder of all records that are written at this moment, or None if the folder depends on the
        record.
        """
        return None

    @staticmethod
    def base_path_bucket_assigner() -> BucketAssigner:
        """Put all files directly into the base path."""
        return BasePathBucketAssigner()

    @staticmethod
    @check_arguments
    def date_time_bucket_assigner(format_str: str = "yyyy-MM-dd--HH", timezone_id: str | None = None) -> BucketAssigner:
        """Use a folder for every hour of processing time, or for another span that the pattern distinguishes.

        This is the default.

        These letters of Java's patterns are understood: y (or u), M, d, H, m, s, S, and text in single quotes. The
        default time zone is that of the machine.
        """
        return DateTimeBucketAssigner(format_str, timezone_id)


@dataclass(frozen=True)
class BasePathBucketAssigner(BucketAssigner):
    """Puts all files directly into the base path."""

    def get_bucket_id(self, element: Any, context: SinkFunction.Context) -> str:
        return ""

    def bucket_of_all(self, context: SinkFunction.Context) -> str:
        return ""


@dataclass(frozen=True)
class DateTimeBucketAssigner(BucketAssigner):
    """Puts records into folders by processing time."""

    format_str: str = "yyyy-MM-dd--HH"
    timezone_id: str | None = None

    def __post_init__(self) -> None:
        date_pattern(self.format_str)
        time_zone(self.timezone_id)

    def get_bucket_id(self, element: Any, context: SinkFunction.Context) -> str:
        return self.bucket_of_all(context)

    def bucket_of_all(self, context: SinkFunction.Context) -> str:
        seconds, millis = divmod(context.current_processing_time(), 1000)
        moment = datetime.fromtimestamp(seconds, time_zone(self.timezone_id)).replace(microsecond=millis * 1000)
        return "".join(part.text(moment) for part in date_pattern(self.format_str))


@dataclass(frozen=True)
class _Literal:
    literal: str

    def text(self, moment: datetime) -> str:
        return self.literal


@dataclass(frozen=True)
class _Field:
    letter: str
    width: int

    def text(self, moment: datetime) -> str:
        if self.letter == "S":
            return f"{moment.microsecond * 1000:09d}"[: self.width]
        value = getattr(moment, _FIELDS[self.letter])
        return f"{value % 100 if self.letter in 'yu' and self.width == 2 else value:0{self.width}d}"


_FIELDS = {
    "y": "year",
    "u": "year",
    "M": "month",
    "d": "day",
    "H": "hour",
    "m": "minute",
    "s": "second",
    "S": "microsecond",
}
_WIDEST = {"y": 4, "u": 4, "S": 9}
_PATTERN = re.compile(r"''|'((?:[^']|'')*)'|([A-Za-z])\2*|([^A-Za-z'\[\]{}#])")


@cache
def date_pattern(pattern: str) -> tuple[_Literal | _Field, ...]:
    """Parse a date pattern in Java's notation into its parts."""
    parts: list[_Literal | _Field] = []
    at = 0
    while at < len(pattern):
        match = _PATTERN.match(pattern, at)
        if match is None:
            raise _bad_pattern(pattern, pattern[at:])
        quoted, letter, plain = match.groups()
        text = match[0]
        at = match.end()
        if letter is None:
            parts.append(_Literal("'" if text == "''" else plain or quoted.replace("''", "'")))
        elif letter in _FIELDS and len(text) <= _WIDEST.get(letter, 2):
            parts.append(_Field(letter, len(text)))
        else:
            raise _bad_pattern(pattern, text)
    return tuple(parts)


def _bad_pattern(pattern: str, part: str) -> ValueError:
    return ValueError(
        f"the date pattern '{pattern}' has '{part}'; allowed are yyyy, yy, MM, M, dd, d, HH, H, mm, m, ss, s, S to "
        "SSSSSSSSS, and text in single quotes"
    )


_OFFSET = re.compile(r"(?:GMT|UTC|UT)?([+-])(\d{1,2})(?::?(\d{2}))?")


@cache
def time_zone(name: str | None) -> tzinfo | None:
    """Return a time zone by its name or its offset from UTC. None means the zone of the machine, and returns None."""
    if name is None:
        return None
    if name == "Z":
        return UTC
    try:
        if (offset := _OFFSET.fullmatch(name)) is not None:
            distance = timedelta(hours=int(offset[2]), minutes=int(offset[3] or 0))
            return timezone(-distance if offset[1] == "-" else distance)
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise ValueError(
            f"unknown time zone '{name}'; allowed are names such as 'Europe/Oslo', and offsets such as 'GMT-08:00'"
        ) from None


# --- names ---
@check_arguments
@dataclass(frozen=True)
class OutputFileConfig:
    """The beginnings and ends of the names of finished files."""

    part_prefix: str = "part"
    part_suffix: str = ""

    def __post_init__(self) -> None:
        for what, text in (("prefix", self.part_prefix), ("suffix", self.part_suffix)):
            if not isinstance(text, str) or "/" in text:
                raise ValueError(f"the {what} of a file's name is text without '/', not {text!r}")
        if self.part_prefix.startswith((".", "_")):
            raise ValueError(f"files named {self.part_prefix}-… would be hidden: begin with another character")

    @staticmethod
    def builder() -> OutputFileConfig.OutputFileConfigBuilder:
        """Return a builder with the prefix `part` and no suffix."""
        return OutputFileConfig.OutputFileConfigBuilder()

    def get_part_prefix(self) -> str:
        """Return the beginning of the files' names."""
        return self.part_prefix

    def get_part_suffix(self) -> str:
        """Return the end of the files' names."""
        return self.part_suffix

    @check_arguments
    class OutputFileConfigBuilder:
        """Builds an OutputFileConfig."""

        def __init__(self) -> None:
            self._prefix, self._suffix = "part", ""

        def with_part_prefix(self, prefix: str) -> OutputFileConfig.OutputFileConfigBuilder:
            """Set the beginning of the files' names: `part` by default."""
            self._prefix = prefix
            return self

        def with_part_suffix(self, suffix: str) -> OutputFileConfig.OutputFileConfigBuilder:
            """Set the end of the files' names: empty by default."""
            self._suffix = suffix
            return self

        def build(self) -> OutputFileConfig:
            """Return the OutputFileConfig; raise ValueError if a name would be hidden or hold a `/`."""
            return OutputFileConfig(self._prefix, self._suffix)


# --- when a file is full ---
class PartFileInfo(Protocol):
    """A rolling policy's view of an open file. Times are processing time in milliseconds."""

    @property
    def bucket_id(self) -> str:
        """Path of the file's folder below the base path."""

    @property
    def size(self) -> int:
        """Size of the file, in bytes."""

    @property
    def creation_time(self) -> int:
        """Time at which the file was opened."""

    @property
    def last_update_time(self) -> int:
        """Time of the last write into the file."""


class RollingPolicy:
    """Decides when an open file is closed, so that the next record begins a new one."""

    def should_roll_on_checkpoint(self, part: PartFileInfo) -> bool:
        """Return True to close the file. Called for every open file at a checkpoint."""
        return False

    def should_roll_on_event(self, part: PartFileInfo) -> bool:
        """Return True to close the file. Called after records were written into it."""
        return False

    def should_roll_on_processing_time(self, part: PartFileInfo, now: int) -> bool:
        """Return True to close the file. Called as often as the sink's bucket check interval says."""
        return False

    @staticmethod
    @check_arguments
    def default_rolling_policy(
        part_size: int = 128 << 20, rollover_interval: int = 60_000, inactivity_interval: int = 60_000
    ) -> DefaultRollingPolicy:
        """Close a file of this size in bytes, of this age, or without a write for this long.

        Times are in milliseconds.
        """
        return DefaultRollingPolicy(part_size, rollover_interval, inactivity_interval)

    @staticmethod
    def on_checkpoint_rolling_policy() -> OnCheckpointRollingPolicy:
        """Close every file at every checkpoint."""
        return OnCheckpointRollingPolicy()


@check_arguments
@dataclass(frozen=True)
class DefaultRollingPolicy(RollingPolicy):
    """Closes files by size, age and time without a write."""

    part_size: int = 128 << 20
    rollover_interval: int = 60_000
    inactivity_interval: int = 60_000

    def __post_init__(self) -> None:
        if min(self.part_size, self.rollover_interval, self.inactivity_interval) <= 0:
            raise ValueError(f"sizes and intervals of a rolling policy are above zero: {self}")

    def should_roll_on_checkpoint(self, part: PartFileInfo) -> bool:
        return part.size >= self.part_size

    def should_roll_on_event(self, part: PartFileInfo) -> bool:
        return part.size >= self.part_size

    def should_roll_on_processing_time(self, part: PartFileInfo, now: int) -> bool:
        old = now - part.creation_time >= self.rollover_interval
        return old or now - part.last_update_time >= self.inactivity_interval


@dataclass(frozen=True)
class OnCheckpointRollingPolicy(RollingPolicy):
    """Closes every file at every checkpoint."""

    def should_roll_on_checkpoint(self, part: PartFileInfo) -> bool:
        return True
