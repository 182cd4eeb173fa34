"""Reading files: finding them on the driver, cutting large ones into pieces, and reading the pieces in the slots."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import timedelta
from enum import Enum
from typing import Any, Generic, Self

from penstock.base.arguments import check_arguments
from penstock.base.storage import is_of_storage
from penstock.base.type_variables import OUT, T
from penstock.common.time import Duration, Time, to_millis
from penstock.common.typeinfo import TypeInformation
from penstock.connectors.files.access import COMPRESSIONS, RETRIES, Files, is_damage, is_transient, translate_error
from penstock.connectors.source_api import (
    Boundedness,
    ReaderContext,
    Source,
    SourceReader,
    SplitEnumerator,
    SplitReader,
    SplitsInTurn,
)
from penstock.errors import NotFound, SchemaMismatch, UndecodableRecord
from penstock.formats.contracts import BulkFormat, FileFormat, FormatReader, StreamFormat
from penstock.persisted import persisted

SPLIT_BYTES = 32 << 20
_TO_THE_END = sys.maxsize
_DIGEST_BYTES = 12


@persisted
@dataclass(frozen=True)
class FileSplit:
    """A piece of a file, and the position from which to read it."""

    path: str
    start: int
    end: int
    position: Any = None
    version: str = ""
    """Time of the file's last change, if modified files are read again."""

    @property
    def split_id(self) -> str:
        """Path and start of the piece, and the time of the file's last change if modified files are read again."""
        return f"{self.path}@{self.start}{self.version and '@'}{self.version}"


class FileProcessingMode(Enum):
    """Tells whether `read_file` reads only existing files, or later ones too."""

    PROCESS_ONCE = "once"
    PROCESS_CONTINUOUSLY = "continuously"


@check_arguments
@dataclass(frozen=True)
class FileEnumeratorProvider:
    """Tells whether large files are read in pieces."""

    split_bytes: int | None = SPLIT_BYTES
    """Size of a piece in bytes; None to read every file as one piece."""

    @staticmethod
    def default_splittable_file_enumerator(split_bytes: int = SPLIT_BYTES) -> FileEnumeratorProvider:
        """Cut files into pieces of this size, if their format allows it and they are not compressed: the default."""
        if split_bytes < 1:
            raise ValueError(f"the pieces of a file have at least one byte, not {split_bytes}")
        return FileEnumeratorProvider(split_bytes)

    @staticmethod
    def default_non_splittable_file_enumerator() -> FileEnumeratorProvider:
        """Read every file as one piece."""
        return FileEnumeratorProvider(None)


@dataclass(frozen=True)
class FileSplitAssignerProvider:
    """The assignment of pieces to subtasks: each subtask in turn gets the next piece."""

    @staticmethod
    def locality_aware_split_assigner() -> FileSplitAssignerProvider:
        """Return the default, because slots have no files of their own."""
        return FileSplitAssignerProvider()


@check_arguments
@dataclass(frozen=True)
class FileSource(Source[OUT]):
    """The records of files, each once. Later files are read too if the paths are monitored."""

    format: FileFormat[OUT]
    paths: tuple[str, ...]
    discovery_interval: float | None = None
    """Seconds between two searches for new files; None to search only once."""
    rereads: bool = False
    """True if a file that is modified while it is monitored is read again as a whole."""
    enumeration: FileEnumeratorProvider = FileEnumeratorProvider()

    @staticmethod
    def for_record_stream_format(stream_format: StreamFormat[T], *paths: str) -> FileSourceBuilder[T]:
        """Start to build a source over files, folders and patterns, for a format that is read record by record."""
        return _builder(stream_format, "StreamFormat", paths)

    @staticmethod
    def for_bulk_file_format(bulk_format: BulkFormat[T], *paths: str) -> FileSourceBuilder[T]:
        """Start to build a source over files, folders and patterns, for a format that is read in batches."""
        return _builder(bulk_format, "BulkFormat", paths)

    def get_boundedness(self) -> Boundedness:
        return Boundedness.BOUNDED if self.discovery_interval is None else Boundedness.CONTINUOUS_UNBOUNDED

    def create_enumerator(self) -> SplitEnumerator:
        split_bytes = self.enumeration.split_bytes if self.format.splittable else None
        return FileEnumerator(self.paths, split_bytes, self.discovery_interval, self.rereads)

    def create_reader(self, context: ReaderContext) -> SourceReader:
        return SplitsInTurn(lambda split: FileSplitReader(split, self.format, context))

    def get_produced_type(self) -> TypeInformation[OUT] | None:
        return self.format.get_produced_type()


def _builder(file_format: Any, kind: str, paths: Sequence[str]) -> FileSourceBuilder[Any]:
    if not isinstance(file_format, FileFormat):
        raise TypeError(f"a FileSource reads a {kind}, not {file_format!r}")
    if not paths:
        raise ValueError("a FileSource needs at least one path")
    return FileSourceBuilder(FileSource(file_format, tuple(map(str, paths))))


@check_arguments
class FileSourceBuilder(Generic[OUT]):
    """Builds a FileSource."""

    def __init__(self, source: FileSource[OUT]) -> None:
        self._source = source

    def process_static_file_set(self) -> Self:
        """Read the files that exist at the start, then end: the default."""
        return self._with(discovery_interval=None)

    def monitor_continuously(self, discovery_interval: Duration | Time | timedelta | int) -> Self:
        """Search for new files again and again, with this time between. A plain number is milliseconds."""
        millis = to_millis(discovery_interval)
        if millis <= 0:
            raise ValueError(
                f"the interval between two searches for new files must be longer than zero, not {discovery_interval!r}"
            )
        return self._with(discovery_interval=millis / 1000)

    def reread_modified_files(self) -> Self:
        """Read a file again, from its beginning, if it is modified while it is monitored."""
        return self._with(rereads=True)

    def set_file_enumerator(self, file_enumerator: FileEnumeratorProvider) -> Self:
        """Choose whether files are read in pieces, and the size of the pieces."""
        if not isinstance(file_enumerator, FileEnumeratorProvider):
            raise TypeError(f"files are found by a FileEnumeratorProvider, not by {file_enumerator!r}")
        return self._with(enumeration=file_enumerator)

    def set_split_assigner(self, split_assigner: FileSplitAssignerProvider) -> Self:
        """Accept the one way to assign pieces, for programs that name it."""
        if not isinstance(split_assigner, FileSplitAssignerProvider):
            raise TypeError(f"pieces are handed out by a FileSplitAssignerProvider, not by {split_assigner!r}")
        return self

    def build(self) -> FileSource[OUT]:
        """Return the FileSource."""
        return self._source

    def _with(self, **changes: Any) -> Self:
        self._source = replace(self._source, **changes)
        return self


class FileEnumerator(SplitEnumerator):
    """Finds files and cuts them into pieces.

    It remembers a digest of every known file: of the file's URL and, if modified files are read again, of the time of
    its last change.
    """

    choose: Callable[[list[str]], list[str]] = staticmethod(lambda urls: urls)
    """Selects the files to read from those that exist."""

    def __init__(
        self,
        paths: Sequence[str],
        split_bytes: int | None,
        discovery_interval: float | None,
        rereads: bool = False,
    ) -> None:
        self.discovery_interval = discovery_interval
        self._rereads = rereads
        self.takes_empty_folders = False
        """True if a folder without files has no records; False if it is an error."""
        self._places = [Files(path) for path in paths]
        self._split_bytes = split_bytes
        self._restored = False
        self._remember(b"")

    def _remember(self, digests: bytes) -> None:
        self._log = bytearray(digests)
        self._seen = {digests[i : i + _DIGEST_BYTES] for i in range(0, len(digests), _DIGEST_BYTES)}

    def discover(self) -> Sequence[FileSplit]:
        if self.discovery_interval is None and self._restored:
            return ()
        looks = [(place, place.visible()) for place in self._places]
        return [split for place, found in looks for split in self._new_splits(place, found)]

    def _new_splits(self, place: Files, found: dict[str, int | None]) -> Iterator[FileSplit]:
        if not found and self.discovery_interval is None and not (self.takes_empty_folders and place.is_folder()):
            raise NotFound(f"there is no file at {place.url()}")
        names = {place.url(name): name for name in sorted(found)}
        for url in self.choose(list(names)):
            size = found[names[url]]
            # A new file may be empty at first. It has no records yet, and is checked again later.
            version = place.version(names[url]) if self._rereads and size != 0 else ""
            if size != 0 and version is not None and self._is_new(url, version):
                yield from self._pieces(url, size, version)

    def _is_new(self, url: str, version: str) -> bool:
        digest = _digest(url + version)
        if digest in self._seen:
            return False
        if self._rereads and (unversioned := _digest(url)) in self._seen:
            # Older savepoints have no times. As far as is known, the file was read in its present form.
            self._seen.remove(unversioned)
            self._seen.add(digest)
            self._log = bytearray(b"".join(self._seen))
            return False
        self._seen.add(digest)
        self._log += digest
        return True

    def _pieces(self, url: str, size: int | None, version: str) -> Iterator[FileSplit]:
        if size is None or url.endswith(tuple(COMPRESSIONS)):
            yield FileSplit(url, 0, _TO_THE_END, version=version)
            return
        step = self._split_bytes or size
        for start in range(0, size, step):
            yield FileSplit(url, start, min(start + step, size), version=version)

    def snapshot_state(self) -> bytes:
        return bytes(self._log)

    def restore_state(self, state: bytes) -> None:
        self._restored = True
        self._remember(state or b"")


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode(), digest_size=_DIGEST_BYTES).digest()


class FileSplitReader(SplitReader):
    """Reads one piece of a file. After a temporary failure, it opens the file again at the last position."""

    def __init__(self, split: FileSplit, file_format: FileFormat, context: ReaderContext) -> None:
        self._split = split
        self._format = file_format
        self._context = context
        self._files = Files(split.path)
        self._closing = ExitStack()
        self._reader: FormatReader | None = None
        self._rejected: list[tuple[Any, Exception, str]] = []

    def read(self, most: int) -> Sequence[Any]:
        url = self._split.path
        try:
            values = RETRIES.call(lambda: self._read(most), f"reading {url}", is_transient, between=self.close)
        except (UndecodableRecord, SchemaMismatch) as error:
            raise type(error)(f"{url}: {error}") from error
        except Exception as error:
            if is_damage(error) and url.endswith(tuple(COMPRESSIONS)):
                raise UndecodableRecord(f"{url} cannot be decompressed, because it is damaged: {error}") from error
            if is_of_storage(error):
                raise translate_error(error, url) from error
            raise
        # Rejections wait until here, because a read that failed halfway has met the same records as its successor.
        for message, problem, where in self._rejected:
            self._context.reject(message, problem, f"{url} {where}")
        return values

    def _read(self, most: int) -> Sequence[Any]:
        self._rejected = []
        reader = self._reader or self._open()
        values = reader.read(most)
        self._split = replace(self._split, position=reader.position())
        self.finished = reader.finished
        return values

    def _open(self) -> FormatReader:
        split = self._split
        file = self._files.open_to_read(self._closing)
        self._reader = self._format.open(file, split.start, split.end, split.position, self._reject)
        self._closing.callback(self._reader.close)
        return self._reader

    def _reject(self, message: Any, error: Exception, where: str) -> None:
        self._rejected.append((message, error, where))

    def position(self) -> FileSplit:
        return self._split

    def close(self) -> None:
        self._reader = None
        self._closing.close()
