"""DataFrames that several others use. Spark keeps their rows until the last of the others has been computed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class SharedFrames:
    """Keeps DataFrames in the memory and on the disks of the executors. Spark recomputes rows of a lost executor."""

    def __init__(self, frames: Sequence[DataFrame], users: int) -> None:
        """Set the shared frames, inner ones first, and the number of other frames that use them."""
        self._frames = list(frames)
        self._users = users
        self._waiting = 0

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Compute the shared frames at most once within this block."""
        self._hold()
        try:
            yield
        finally:
            self.drop()

    @contextmanager
    def used(self) -> Iterator[None]:
        """Compute one of the other frames within this block. After the last one, release the shared frames."""
        self._hold()
        yield
        self._waiting -= 1
        if not self._waiting:
            self._let_go()

    def drop(self) -> None:
        """Release the shared frames, even if not all of the other frames have been computed."""
        if self._waiting:
            self._waiting = 0
            self._let_go()

    def _hold(self) -> None:
        if not self._waiting:
            self._waiting = self._users
            for frame in self._frames:
                frame.persist()

    def _let_go(self) -> None:
        for frame in reversed(self._frames):  # a frame may use an earlier one
            frame.unpersist()
