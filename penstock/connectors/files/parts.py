"""The states of a part file: in progress, waiting, finished.

A file in progress has a hidden name, which names its owner. A closed file waits, still hidden, for the checkpoint that
knows it. Once that is complete, the file is renamed and becomes visible to readers. A checkpoint describes a file as
plain data, so a job that recovers can carry out the next step, or find that it is done.
"""

from __future__ import annotations

import hashlib
import posixpath
import re
import secrets
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import count
from typing import Any

from penstock.connectors.files.access import Files, naming
from penstock.connectors.source_api import Committer, WriterContext
from penstock.errors import ConnectorError, NotFound
from penstock.persisted import persisted

WRITER_DIGITS = 16
"""Number of random digits at the start of the numbers of a writer's files. They make all names unique."""

MARK = ".savepoint"
"""End of the name of an empty file beside a hidden one.

It keeps the hidden file from being deleted, because a savepoint needs it.
"""


# --- what a checkpoint knows ---
@persisted
@dataclass(frozen=True)
class InProgress:
    """An open file, of which the first `length` bytes are valid."""

    bucket_id: str
    hidden: str
    final: str
    length: int
    creation_time: int

    @property
    def hidden_files(self) -> tuple[str, ...]:
        return (self.hidden,)


@persisted
@dataclass(frozen=True)
class Closed:
    """A whole file that waits to be compacted with others."""

    bucket_id: str
    hidden: str
    final: str
    length: int
    checkpoints: int = 0
    """Number of checkpoints for which the file has waited."""

    @property
    def hidden_files(self) -> tuple[str, ...]:
        return (self.hidden,)


@persisted
@dataclass(frozen=True)
class Pending:
    """A whole file that gets its name with the checkpoint. The files that it replaces are deleted then."""

    hidden: str
    final: str
    length: int
    replaces: tuple[str, ...] = ()
    is_marked: bool = False
    """True if the file is part of a savepoint."""

    @property
    def hidden_files(self) -> tuple[str, ...]:
        return (self.hidden, *self.replaces)

    def commit(self, files: Files) -> None:
        """Rename the file, or find it renamed. A repeated call changes nothing."""
        hidden, final = files.name(self.hidden), files.name(self.final)
        there, wanted = files.size(hidden), files.size(final)
        if there is None and wanted is None:
            raise NotFound(
                f"neither {self.hidden} nor {self.final} exists; one of them must hold {self.length} bytes of results"
            )
        if there is not None and self.length not in (there, wanted):
            raise ConnectorError(
                f"{self.hidden} has {there} bytes instead of the {self.length} bytes that were written"
            )
        if there is None and wanted != self.length:
            raise ConnectorError(
                f"{self.final} has {wanted} bytes instead of the {self.length} bytes that were written"
            )
        if wanted != self.length:
            if wanted is not None:  # a copy that was torn, where renaming is copying
                files.delete(final)
            files.rename(hidden, final)
        elif there is not None:
            files.delete(hidden)
        if self.is_marked:
            files.delete(hidden + MARK)
        _delete_unmarked(files, self.replaces)


@persisted
@dataclass(frozen=True)
class Discarded:
    """Hidden files that a later file has replaced."""

    hidden_files: tuple[str, ...]
    final: str = ""

    def commit(self, files: Files) -> None:
        _delete_unmarked(files, self.hidden_files)


@dataclass(frozen=True)
class Written:
    """The hidden files of a writer below the base path, which stay if the writer is lost."""

    base_path: str
    writer: str
    """Common part of the names of its files."""


def _delete_unmarked(files: Files, urls: Iterable[str]) -> None:
    for name in map(files.name, urls):
        if files.size(name + MARK) is None:
            files.delete(name)


class FileCommitter(Committer):
    """Gives files their names. The files of a checkpoint are renamed in the order in which they were closed."""

    def commit(self, committables: list[Any]) -> None:
        places: dict[str, Files] = {}
        for item in committables:
            url = item.final or item.hidden_files[0]
            folder = posixpath.dirname(url)
            files = places.get(folder)
            if files is None:
                files = places[folder] = Files(folder)
            item.commit(files)
        for files in places.values():
            files.sync_folder()

    def abort(self, begun: list[Written]) -> None:
        """Delete the files of these writers that are still hidden."""
        for base_path in {written.base_path for written in begun}:
            files = Files(base_path)
            writers = {written.writer for written in begun if written.base_path == base_path}
            for name in files.names():
                match = _HIDDEN_NAME.fullmatch(posixpath.basename(name))
                if match is not None and any(writer in match["name"] for writer in writers):
                    files.delete(name)


# --- names ---
_HIDDEN_NAME = re.compile(
    r"\.(?P<name>.*)\.(?P<sink>[0-9a-f]{12})-(?P<subtask>\d+)-(?:(?P<owner>\d+)-)?[0-9a-f]{32}\.inprogress"
)


class Names:
    """Names for the files of one writer. No other writer has used them or will use them."""

    def __init__(self, context: WriterContext, prefix: str, suffix: str) -> None:
        whose = f"{context.runtime.get_job_id()}/{context.uid}"
        self._sink = hashlib.blake2b(whose.encode(), digest_size=6).hexdigest()
        self._owner = context.owner
        self._subtask = context.runtime.get_index_of_this_subtask()
        self._subtasks = context.runtime.get_number_of_parallel_subtasks()
        self._prefix, self._suffix = prefix, suffix
        first = secrets.randbelow(9 * 10 ** (WRITER_DIGITS - 1)) + 10 ** (WRITER_DIGITS - 1)
        self.writer = f"-{self._subtask}-{first}"
        self._numbers = count()

    def next(self) -> str:
        """Return the next name of a finished file.

        It has the subtask, and a number that begins with the writer's digits.
        """
        return f"{self._prefix}{self.writer}{next(self._numbers):03d}{self._suffix}"

    def hidden(self, name: str) -> str:
        """Return the hidden name of a file that will get this name."""
        return f".{name}.{self._sink}-{self._subtask}-{self._owner}-{uuid.uuid4().hex}.inprogress"

    def owns(self, url: str) -> bool:
        """Return True if this job's sink wrote a hidden file, in any attempt and subtask."""
        match = _HIDDEN_NAME.fullmatch(posixpath.basename(url))
        return match is not None and match["sink"] == self._sink

    def may_delete(self, url: str) -> bool:
        """Return True if this subtask should delete an unneeded hidden file: its own, or one without an owner.

        A later owner of the job may be at work already, if this one has not yet noticed that it was displaced.
        """
        match = _HIDDEN_NAME.fullmatch(posixpath.basename(url))
        if match is None or match["sink"] != self._sink or 0 < self._owner < int(match["owner"] or 0):
            return False
        subtask = int(match["subtask"])
        return subtask == self._subtask or (self._subtask == 0 and subtask >= self._subtasks)


def delete_leftovers(files: Files, names: Names, needed: Iterable[Any]) -> None:
    """Delete files that former attempts of this subtask left behind and that no checkpoint item refers to."""
    kept = {posixpath.basename(url) for item in needed for url in item.hidden_files}
    listed = files.names()
    marked = {name.removesuffix(MARK) for name in listed if name.endswith(MARK)}
    for name in listed:
        if names.may_delete(name) and posixpath.basename(name) not in kept and name not in marked:
            files.delete(name)


# --- open files ---
class Counted:
    """A file that counts the bytes written into it, for formats that want a stream. Only its owner closes it."""

    closed = False

    def __init__(self, file: Any) -> None:
        self._file = file
        self.size = 0

    def write(self, data: Any) -> int:
        self._file.write(data)
        count = data.nbytes if isinstance(data, memoryview) else len(data)
        self.size += count
        return count

    def tell(self) -> int:
        return self.size

    def flush(self) -> None:
        self._file.flush()

    def writable(self) -> bool:
        return True

    def readable(self) -> bool:
        return False

    def seekable(self) -> bool:
        return False

    def close(self) -> None:
        """Do nothing when a format says that it has finished."""


class Content(ABC):
    """Writes values into one open file."""

    @abstractmethod
    def write(self, values: Sequence[Any]) -> None: ...

    def finish(self) -> None:  # noqa: B027 - rows are whole as they are
        """Write the rest of the content."""


NewContent = Callable[[Any], Content]


class PartFile:
    """A file in progress."""

    def __init__(self, files: Files, bucket_id: str, names: Names, name: str, now: int) -> None:
        self._files = files
        self.bucket_id = bucket_id
        self.creation_time = self.last_update_time = now
        hidden = posixpath.join(bucket_id, names.hidden(name))
        self.hidden = files.url(hidden)
        self.final = files.url(posixpath.join(bucket_id, name))
        self._closing = ExitStack()
        self._file = self._closing.enter_context(files.open_new(hidden))
        self._stream = Counted(self._file)
        self._content: Content | None = None
        self._named = False

    @property
    def size(self) -> int:
        return self._stream.size

    def copy(self, source: str, length: int) -> None:
        """Begin with the first bytes of another file."""
        for piece in Files(source).head(length):
            self._stream.write(piece)

    def write(self, values: Sequence[Any], new_content: NewContent, now: int) -> None:
        with naming(self.hidden):
            if self._content is None:
                self._content = new_content(self._stream)
            self._content.write(values)
        self.last_update_time = now

    def fill(self, by: Callable[[Any, Callable[[Sequence[Any]], None]], None], new_content: NewContent) -> None:
        """Give access to the file, for writing bytes or values in the sink's format."""
        by(self._stream, lambda values: self.write(values, new_content, self.last_update_time))

    def snapshot(self) -> InProgress:
        """Make the written bytes durable, and return their number as part of the file's description."""
        with naming(self.hidden):
            self._sync()
        return InProgress(self.bucket_id, self.hidden, self.final, self.size, self.creation_time)

    def finish(self, checkpoints: int = 0) -> Closed:
        """Close the file as a whole one."""
        with naming(self.hidden):
            if self._content is not None:
                self._content.finish()
            self._sync()
            self._closing.close()
        return Closed(self.bucket_id, self.hidden, self.final, self.size, checkpoints)

    def _sync(self) -> None:
        self._files.sync(self._file)
        if not self._named:
            self._files.sync_folder(self.bucket_id)
            self._named = True

    def abandon(self) -> None:
        """Close the file without finishing it. A recovery knows the length of its valid part."""
        self._closing.close()
