"""Copies of a slot's checkpoint files on local disk.

A recovery on the same machine then needs no reads from the storage.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from penstock.engine.state.snapshot_file import FileRef, SnapshotFile, checksum
from penstock.errors import CorruptSnapshot


class LocalCopies:
    """The copies of one slot. They only save time: missing or damaged files are read from the storage."""

    def __init__(self, job_id: str, slot: int, folders: Sequence[str] = ()) -> None:
        base = folders[slot % len(folders)] if folders else tempfile.gettempdir()
        self._folder = Path(base, f"penstock-copies-{job_id}")
        self._prefix = f"slot-{slot}-"

    def _path(self, url: str) -> Path:
        return self._folder / f"{self._prefix}{checksum(url.encode())}"

    def copying(self, url: str, pieces: Iterable[bytes]) -> Iterator[bytes]:
        """Yield the same pieces and write a copy of them. A full local disk is no error."""
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            copy = self._path(url).open("wb")
        except OSError:
            yield from pieces
            return
        with copy:
            for piece in pieces:
                with suppress(OSError):
                    copy.write(piece)
                yield piece

    def open(self, ref: FileRef) -> SnapshotFile | None:
        """Return the copy of a file; None if there is none, or if a part of it is damaged."""
        path = self._path(ref.url)
        if ref.inline is not None or not path.exists():
            return None
        try:
            file = SnapshotFile(replace(ref, url=path.as_uri()))
            for name in file.sections:
                for _ in file.pages(name):
                    pass
        except (CorruptSnapshot, OSError):
            return None
        return file

    def keep(self, files: Iterable[FileRef]) -> None:
        """Delete this slot's copies of all other files."""
        kept = {self._path(file.url) for file in files}
        for path in self._folder.glob(f"{self._prefix}*"):
            if path not in kept:
                path.unlink(missing_ok=True)

    def delete(self) -> None:
        """Delete all copies of the job on this machine when it has ended."""
        shutil.rmtree(self._folder, ignore_errors=True)
