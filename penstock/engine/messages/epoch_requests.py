"""How a slot asks the driver for an epoch: because of new input, an answer to a request, or a written checkpoint."""

from __future__ import annotations

from collections.abc import Callable


class Bell:
    """Rings at the driver, at most once until the next epoch has ended; may be called from any thread.

    News that arrives during an epoch is noticed at its end: every source of news is asked then, after the bell was
    armed.
    """

    def __init__(self, ring: Callable[[], None] | None = None) -> None:
        self._ring = ring
        self._armed = False
        self.works = ring is not None
        """Whether the driver can hear it; if not, the driver looks for news from time to time."""

    def arm(self) -> None:
        """An epoch has ended: from now on news must be told."""
        self._armed = True

    def disarm(self) -> None:
        """An epoch begins, and will find what there is."""
        self._armed = False

    def ring(self) -> None:
        """Ask the driver for an epoch, since there is something to do."""
        if self._armed and self._ring is not None:
            self._armed = False
            self._ring()
