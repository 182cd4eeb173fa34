"""Files that consist of blocks of records: row groups of Parquet, stripes of ORC, blocks of Avro."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from penstock.formats.contracts import FormatReader

Block = tuple[int, Iterator[Sequence[Any]]]
"""Number of a block, unique in its file, and the block's records in batches."""


class BlocksReader(FormatReader):
    """Reads blocks one after the other.

    A position is a pair: the number of a block, and the number of records of it that were read.
    """

    def __init__(self, blocks: Iterator[Block], position: tuple[int, int]) -> None:
        """Read `blocks`, starting at the position.

        `blocks` begins with the block of the position. Without any block, the reader is at its end.
        """
        self._blocks = blocks
        self._batches: Iterator[Sequence[Any]] = iter(())
        self._block, self._taken = position
        self._skip = self._taken
        self._records: Sequence[Any] = []
        self._next = 0
        self._fill()

    def read(self, most: int) -> Sequence[Any]:
        records = self._records[self._next : self._next + most]
        self._next += len(records)
        self._taken += len(records)
        self._fill()
        return records

    def position(self) -> tuple[int, int]:
        return self._block, self._taken

    def _fill(self) -> None:
        """Make sure that at least one record is available, or that reading is finished."""
        while self._next >= len(self._records) and not self.finished:
            batch = next(self._batches, None)
            if batch is None:
                self._begin_block()
            else:
                self._records, self._next = batch, min(self._skip, len(batch))
                self._skip -= self._next

    def _begin_block(self) -> None:
        block = next(self._blocks, None)
        if block is None:
            self._records, self._next, self.finished = [], 0, True
            return
        number, self._batches = block
        if number != self._block:
            self._block, self._taken, self._skip = number, 0, 0
