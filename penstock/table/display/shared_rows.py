"""The rows of a result that a display reads first, and a program perhaps later."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Protocol

from penstock.common.types import Row
from penstock.errors import TableException

KEPT = 10_000
"""Greatest number of rows that a display keeps for a later reader."""


class Rows(Protocol):
    """Rows that come one after the other."""

    def __iter__(self) -> Iterator[Row]: ...

    def close(self) -> None:
        """End the query that gives the rows."""


class SharedRows:
    """Reads rows in a thread of its own and hands each to a display, until somebody else wants them.

    The other reader gets all rows from the first one on, if they are not more than are kept.
    """

    def __init__(self, rows: Rows, see: Callable[[Row], None]) -> None:
        self._source = rows
        self._rest = iter(rows)
        self._see = see
        self._kept: list[Row] | None = []
        """The rows that were read; None if there were too many."""
        self._changed = threading.Condition()
        self._is_wanted = False
        self.is_over = False
        """True if the thread reads no more rows."""
        self.error: BaseException | None = None
        """The error with which the query failed."""
        threading.Thread(target=self._read, name="penstock live table", daemon=True).start()

    def _read(self) -> None:
        try:
            for row in self._rest:
                self._see(row)
                with self._changed:
                    self._keep(row)
                    if self._is_wanted:
                        return
        except BaseException as error:  # it belongs to the reader
            self.error = error
        finally:
            with self._changed:
                self.is_over = True
                self._changed.notify_all()

    def _keep(self, row: Row) -> None:
        if self._kept is not None:
            self._kept.append(row)
            self._changed.notify_all()
            if len(self._kept) > KEPT and not self._is_wanted:
                self._kept = None

    def take_over(self) -> SharedRows:
        """Make the display stop, and return all rows."""
        with self._changed:
            if self._kept is None:
                raise TableException(
                    f"a notebook has shown this result and read more than {KEPT:,} rows, so its rows were not "
                    "kept; execute "
                    "the query again"
                )
            self._is_wanted = True
        return self

    def __iter__(self) -> Iterator[Row]:
        assert self._kept is not None
        number = 0
        while True:
            with self._changed:
                while number >= len(self._kept) and not self.is_over:
                    self._changed.wait(0.5)  # so that Ctrl-C interrupts the program
                if number >= len(self._kept):
                    break
                row, number = self._kept[number], number + 1
            yield row
        self._kept.clear()
        if self.error is not None:
            raise self.error
        yield from self._rest

    def close(self) -> None:
        """End the query."""
        self._source.close()
