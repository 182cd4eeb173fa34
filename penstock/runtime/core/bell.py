"""How a slot lets the driver know that an epoch is wanted: for input, for answers, for a written checkpoint."""

from __future__ import annotations

from collections.abc import Callable


class Bell:
    """Rings at the driver, once until the next epoch has ended; called from any thread.

    What happens while an epoch runs is seen at its end: whoever has news is asked then, after the bell was armed.
    """

    def __init__(self, ring: Callable[[], None] | None = None) -> None:
        self._ring = ring
        self._armed = False
        self.works = ring is not None
        """Whether there is someone who hears it; if not, the driver looks for news from time to time."""

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
