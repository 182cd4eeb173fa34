"""Changes that stay on disk until a complete checkpoint holds them, so that they need no memory."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from itertools import count
from typing import Any, BinaryIO

from penstock.base import pickling
from penstock.engine.state.tables import Page, pack_page

_FRAME = 8


class Spill:
    """The changes of one table as ordered pages, in a file for each checkpoint that is not known to be complete.

    An entry that changes in every epoch is stored once for every epoch. When the changes are larger than the table
    itself, `thin` drops the entries and keeps only the deletions. The next checkpoint must then hold the whole
    table.
    """

    def __init__(self, stem: str) -> None:
        self._stem = stem
        self._numbers = count()
        self._file: BinaryIO | None = None
        self._sealed: dict[int, list[str]] = {}
        self._sizes: dict[str, int] = {}
        self._thinning = False
        self._thinned_until: int | None = None

    def __bool__(self) -> bool:
        return self._file is not None or bool(self._sealed)

    @property
    def size(self) -> int:
        """Size of all pages with entries, in bytes."""
        return sum(self._sizes.values())

    @property
    def is_thinned(self) -> bool:
        """True if `thin` has dropped entries, so that the pages do not hold all changes."""
        return self._thinning or self._thinned_until is not None

    def append(self, entries: Sequence[tuple[Any, ...]], gone: list[Any]) -> None:
        """Add changes to those of the next checkpoint."""
        if self._thinning:
            entries = []
        if not (entries or gone):
            return
        if self._file is None:
            self._file = open(f"{self._stem}-{next(self._numbers)}.changes", "wb")  # noqa: SIM115 - closed by seal
        made = pack_page(entries, gone)
        _write(self._file, made)
        if entries:
            self._sizes[self._file.name] = self._sizes.get(self._file.name, 0) + len(made)

    def seal(self, checkpoint: int) -> None:
        """Assign the changes added so far to this checkpoint."""
        if self._thinning:
            self._thinning, self._thinned_until = False, checkpoint
        if self._file is not None:
            self._file.close()
            self._sealed.setdefault(checkpoint, []).append(self._file.name)
            self._file = None

    def confirm(self, checkpoint: int) -> None:
        """Forget this checkpoint and those before it, because they are complete."""
        for number in [number for number in self._sealed if number <= checkpoint]:
            for path in self._sealed.pop(number):
                self._remove(path)
        if self._thinned_until is not None and self._thinned_until <= checkpoint:
            self._thinned_until = None

    def reset(self) -> None:
        """Forget the changes added for the next checkpoint."""
        self._thinning = False
        if self._file is not None:
            self._file.close()
            self._remove(self._file.name)
            self._file = None

    def pages(self) -> Iterator[Page]:
        """Return an iterator over the pages of all remembered checkpoints. Later changes do not affect the iterator."""
        files = [open(path, "rb") for paths in self._sealed.values() for path in paths]  # noqa: SIM115
        return (made for file in files for made in _read(file))

    def thin(self) -> None:
        """Drop all entries, and keep only the addresses of deleted ones."""
        self._thinning = True
        if self._file is not None:
            self._file.close()
            _keep_gone(self._file.name)
            self._file = open(self._file.name, "ab")  # noqa: SIM115
        for paths in self._sealed.values():
            for path in paths:
                _keep_gone(path)
        self._sizes.clear()

    def _remove(self, path: str) -> None:
        self._sizes.pop(path, None)
        os.unlink(path)


def _write(file: BinaryIO, made: Page) -> None:
    file.write(len(made).to_bytes(_FRAME, "big"))
    file.write(made)


def _read(file: BinaryIO) -> Iterator[Page]:
    with file:
        while size := file.read(_FRAME):
            yield file.read(int.from_bytes(size, "big"))


def _keep_gone(path: str) -> None:
    """Replace the file by one with deletions only. Readers that have the old file open continue with it."""
    thinner = f"{path}.thinner"
    with open(path, "rb") as old, open(thinner, "wb") as new:
        for made in _read(old):
            gone = pickling.loads(made)[2]
            if gone:
                _write(new, pack_page([], gone))
    os.replace(thinner, path)
