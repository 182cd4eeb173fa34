"""Bells. A slot rings its bell to ask the driver for an epoch.

It does so for new input, for an answer to a request, and for a checkpoint that has been written.
"""

from __future__ import annotations

from collections.abc import Callable


class Bell:
    """A slot's means to ask the driver for an epoch, at most once per epoch, from any thread.

    An armed bell rings once. At the end of an epoch the slot arms the bell, and then checks for input itself. It
    therefore misses nothing that arrived during the epoch.
    """

    def __init__(self, ring: Callable[[], None] | None = None) -> None:
        self._ring = ring
        self._armed = False
        self.works = ring is not None
        """Whether the bell reaches the driver. If not, the driver asks the slot from time to time."""

    def arm(self) -> None:
        """Let the next call of `ring` reach the driver. Called when an epoch has ended."""
        self._armed = True

    def disarm(self) -> None:
        """Ignore calls of `ring`. Called when an epoch begins, because the epoch reads all input that has come."""
        self._armed = False

    def ring(self) -> None:
        """Ask the driver for an epoch, unless this was done already or an epoch runs."""
        if self._armed and self._ring is not None:
            self._armed = False
            self._ring()
