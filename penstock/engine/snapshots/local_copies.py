"""Copies of a slot's checkpoint files on local disk: a recovery on the same machine can do without the storage."""

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
    """The copies of one slot. They only save time: files that are missing or damaged here are read from the storage."""

    def __init__(self, job_id: str, slot: int, folders: Sequence[str] = ()) -> None:
        base = folders[slot % len(folders)] if folders else tempfile.gettempdir()
        self._folder = Path(base, f"penstock-copies-{job_id}")
        self._prefix = f"slot-{slot}-"

    def _path(self, url: str) -> Path:
        return self._folder / f"{self._prefix}{checksum(url.encode())}"

    def copying(self, url: str, pieces: Iterable[bytes]) -> Iterator[bytes]:
        """The same pieces, copied on their way to the storage. A full local disk is no reason to fail."""
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
        """The copy of a file, if there is one and every part of it is whole."""
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
        """The job has ended."""
        shutil.rmtree(self._folder, ignore_errors=True)
