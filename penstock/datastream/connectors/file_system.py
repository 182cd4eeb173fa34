"""Files as sources, under PyFlink's names. Text lines of a fixed set of files can be read; the other names say so."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NoReturn

from penstock.errors import UnsupportedOperation


@dataclass(frozen=True)
class StreamFormat:
    """How a file's bytes become records."""

    name: str
    charset: str = "UTF-8"

    @staticmethod
    def text_line_format(charset_name: str = "UTF-8") -> StreamFormat:
        """One record a line, without its line end."""
        return StreamFormat("text", charset_name)


@dataclass(frozen=True)
class FileSource:
    """A bounded source over the files at some paths."""

    format: StreamFormat
    paths: tuple[str, ...]

    @staticmethod
    def for_record_stream_format(stream_format: StreamFormat, *paths: str) -> FileSourceBuilder:
        """Start building a source that reads whole files as a stream of records."""
        if not paths:
            raise ValueError("a FileSource needs at least one path")
        return FileSourceBuilder(FileSource(stream_format, paths))


@dataclass(frozen=True)
class FileSourceBuilder:
    """Builds a FileSource."""

    source: FileSource

    def process_static_file_set(self) -> FileSourceBuilder:
        """Read what is there at the start, then end: the default."""
        return replace(self)

    def monitor_continuously(self, discovery_interval: Any) -> NoReturn:
        """Watching a directory for new files is not available yet."""
        raise UnsupportedOperation("monitor_continuously() is not available in this version; the file set is read once")

    def build(self) -> FileSource:
        return self.source


class FileSink:
    """A sink into files; not available yet."""

    @staticmethod
    def for_row_format(base_path: str, encoder: Any) -> NoReturn:
        raise UnsupportedOperation("FileSink is not available in this version; use add_sink(SinkFunction) or print()")


class OutputFileConfig:
    """Names of a FileSink's files."""

    @staticmethod
    def builder() -> NoReturn:
        raise UnsupportedOperation("FileSink is not available in this version")


class RollingPolicy:
    """When a FileSink starts a new file."""

    @staticmethod
    def default_rolling_policy(*args: Any, **kwargs: Any) -> NoReturn:
        raise UnsupportedOperation("FileSink is not available in this version")
