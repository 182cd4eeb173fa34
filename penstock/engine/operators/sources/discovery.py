"""The search for new splits, in a thread on the driver. The job needs no epochs for it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.connectors.source_api import SplitEnumerator


@dataclass(frozen=True)
class Find:
    """New splits, the state of the enumerator after finding them, and whether more may follow."""

    splits: Sequence[Any]
    state: Any
    more: bool


def look(enumerator: SplitEnumerator) -> Find:
    """Look for splits once, in the calling thread."""
    splits = enumerator.discover()
    return Find(splits, enumerator.snapshot_state(), enumerator.discovery_interval is not None)


class Discovery:
    """Searches for new splits at the enumerator's interval or on request, and reports them.

    It does not search again until the splits have been taken, so the enumerator's state is never ahead of them.
    """

    def __init__(self, enumerator: SplitEnumerator, news: Callable[[], None]) -> None:
        self._enumerator = enumerator
        self._news = news
        self._changed = threading.Condition()
        self._find: Find | None = None
        self._error: BaseException | None = None
        self._told = False
        self._closed = False
        self._started = False

    def start(self) -> None:
        """Start the search, unless it has started already."""
        if not self._started:
            self._started = True
            threading.Thread(target=self._run, name="discovery", daemon=True).start()

    def look_now(self) -> None:
        """Look as soon as possible. Any thread may call this."""
        with self._changed:
            self._told = True
            self._changed.notify_all()

    def take(self) -> Find | None:
        """Return the splits found since the last call.

        The driver's loop calls this. Raise the error of a failed search.
        """
        with self._changed:
            if self._error is not None:
                raise self._error
            find, self._find = self._find, None
            self._changed.notify_all()
        return find

    def due_in(self) -> float | None:
        """Return None: the function `news` tells when to call `take`."""
        return None

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    # --- in its own thread ---
    def _run(self) -> None:
        while self._wait_for_turn():
            try:
                find = look(self._enumerator)
            except BaseException as error:
                self._error = error
                self._news()
                return
            if find.splits or not find.more:
                with self._changed:
                    self._find = find
                self._news()
                if not find.more:
                    return

    def _wait_for_turn(self) -> bool:
        """Wait until the next search is due. Return False at the end."""
        interval = self._enumerator.discovery_interval
        with self._changed:
            self._changed.wait_for(lambda: self._closed or self._find is None)
            self._changed.wait_for(lambda: self._closed or self._told, interval)
            self._told = False
            return not self._closed


class TimedDiscovery:
    """Discovery for a job in virtual time. It has no thread; when asked, it searches if a search is due."""

    def __init__(self, enumerator: SplitEnumerator, news: Callable[[], None], now: Callable[[], int]) -> None:
        """Create the discovery. `now` returns the processing time of the job in milliseconds."""
        self._enumerator = enumerator
        self._news = news
        self._now = now
        self._due: int | None = None
        """The processing time of the next look; None before the start and after the end."""

    def start(self) -> None:
        """Start the search, unless it has started already."""
        if self._due is None:
            self._rest()

    def look_now(self) -> None:
        """Look as soon as possible. Any thread may call this."""
        if self._due is not None:
            self._due = 0
        self._news()

    def take(self) -> Find | None:
        """Look, if it is time for that, and return the new splits, if there are any."""
        if self._due is None or self._now() < self._due:
            return None
        find = look(self._enumerator)
        self._rest()
        return find if find.splits or not find.more else None

    def due_in(self) -> float | None:
        return None if self._due is None else max(0, self._due - self._now()) / 1000

    def close(self) -> None:
        self._due = None

    def _rest(self) -> None:
        interval = self._enumerator.discovery_interval
        self._due = None if interval is None else self._now() + max(1, round(1000 * interval))
