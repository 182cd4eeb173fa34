"""A thread that waits for records of a connector between epochs, so that epochs need not wait."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from penstock.connectors.source_api import Fetched, SourceReader

GLANCE_SECONDS = (0.01, 0.1)
"""Wait of the first call of `fetch`, and the longest wait, in seconds.

Each call without success makes the next wait longer. Arriving records end a wait. Only a checkpoint may have to wait
for the end of the call.
"""
MOST = 2_000


class Watch:
    """Calls a reader's `fetch` between epochs, keeps the records that arrive, and reports their arrival.

    Only one thread uses the reader at a time. If an epoch starts while `fetch` is waiting, the epoch does not read:
    there were no records a moment ago, and this object reports the next ones.
    """

    def __init__(self, reader: SourceReader, news: Callable[[], None], errands: Callable[[], None], name: str) -> None:
        """Start the thread. It calls `errands` before every look, to deliver pending notices to the reader."""
        self._reader = reader
        self._news = news
        self._errands = errands
        self._patience = GLANCE_SECONDS[0]
        self._mine = threading.Lock()
        self._changed = threading.Condition()
        self._watching = False
        self._closed = False
        self._found: list[Fetched] = []
        self._error: BaseException | None = None
        threading.Thread(target=self._run, name=f"watch {name}", daemon=True).start()

    # --- from the slot's thread ---
    def enter(self, patience: bool) -> bool:
        """Take the reader over. With `patience`, wait for it; otherwise return False if the watch is using it."""
        with self._changed:
            self._watching = False
        return self._mine.acquire(blocking=patience)

    def leave(self) -> None:
        """Give the reader back to the watching thread."""
        self._mine.release()

    def take_found(self) -> Sequence[Fetched]:
        """Take the records that have arrived between epochs. Call this only after `enter`."""
        if self._error is not None:
            raise self._error
        found, self._found = self._found, []
        return found

    def begin(self) -> None:
        """Watch again after an epoch, unless records are waiting already."""
        with self._changed:
            self._watching = not self.has_news()
            self._patience = GLANCE_SECONDS[0]
            self._changed.notify()

    def has_news(self) -> bool:
        return bool(self._found) or self._error is not None

    def close(self) -> None:
        """Stop watching, since the reader is about to be closed."""
        with self._changed:
            self._watching, self._closed = False, True
            self._changed.notify()
        self._mine.acquire()

    # --- in its own thread ---
    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._watching and not self._closed:
                    self._changed.wait()
                if self._closed:
                    return
            with self._mine:
                if self._watching:
                    self._glance()

    def _glance(self) -> None:
        try:
            self._errands()
            self._found.extend(self._reader.fetch(MOST, self._patience))
            self._patience = min(2 * self._patience, GLANCE_SECONDS[1])
        except BaseException as error:
            self._error = error
        if self.has_news():
            with self._changed:
                self._watching = False
            self._news()
