"""The bell with which a slot asks for an epoch: for new input, an answer to a request, or a written checkpoint."""

from __future__ import annotations

from collections.abc import Callable


class Bell:
    """A slot's means to ask the driver for an epoch, at most once per epoch, from any thread.

    At the end of an epoch the slot arms the bell and then asks every source of news. It therefore misses no news that
    arrived during the epoch.
    """

    def __init__(self, ring: Callable[[], None] | None = None) -> None:
        self._ring = ring
        self._armed = False
        self.works = ring is not None
        """Whether the bell reaches the driver. If not, the driver asks for news from time to time."""

    def arm(self) -> None:
        """Let the bell ring for news, since an epoch has ended."""
        self._armed = True

    def disarm(self) -> None:
        """Keep the bell silent, since an epoch begins and will find all news."""
        self._armed = False

    def ring(self) -> None:
        """Ask the driver for an epoch, unless the bell has rung already or an epoch runs."""
        if self._armed and self._ring is not None:
            self._armed = False
            self._ring()
