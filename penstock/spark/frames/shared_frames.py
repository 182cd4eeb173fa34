"""DataFrames that several others are made of: Spark keeps their rows until the last of those has been computed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class SharedFrames:
    """Holds DataFrames in the memory and on the disks of the executors. What is lost with one is computed again."""

    def __init__(self, frames: Sequence[DataFrame], users: int) -> None:
        """`frames`: those that others among them are made of come first. `users`: how many others need them."""
        self._frames = list(frames)
        self._users = users
        self._waiting = 0

    @contextmanager
    def held(self) -> Iterator[None]:
        """While this lasts they are computed at most once."""
        self._hold()
        try:
            yield
        finally:
            self.drop()

    @contextmanager
    def used(self) -> Iterator[None]:
        """While one of the others is computed. When all of them have been, nothing is held any more."""
        self._hold()
        yield
        self._waiting -= 1
        if not self._waiting:
            self._let_go()

    def drop(self) -> None:
        """Nobody needs them, whether all have been computed or not."""
        if self._waiting:
            self._waiting = 0
            self._let_go()

    def _hold(self) -> None:
        if not self._waiting:
            self._waiting = self._users
            for frame in self._frames:
                frame.persist()

    def _let_go(self) -> None:
        for frame in reversed(self._frames):  # one may be made of another before it
            frame.unpersist()
