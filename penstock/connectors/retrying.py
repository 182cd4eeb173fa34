"""Retries with growing pauses while an external system does not answer."""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from penstock.errors import ConnectorError

T = TypeVar("T")
log = logging.getLogger("penstock.connectors")


@dataclass(frozen=True)
class Retries:
    """The number of attempts at a call, and the pauses between them."""

    attempts: int = 6
    delay: float = 0.2
    """Pause before the second attempt, in seconds. Each later pause is twice as long."""
    longest: float = 5.0

    def call(
        self,
        action: Callable[[], T],
        what: str,
        is_transient: Callable[[Exception], bool],
        between: Callable[[], None] | None = None,
    ) -> T:
        """Call `action` until it succeeds or `attempts` are used up.

        `what` names the action in errors. `between` is called before each new attempt, to reconnect.
        """
        delay = self.delay
        for attempt in range(1, self.attempts + 1):
            try:
                if attempt > 1 and between is not None:
                    between()
                return action()
            except Exception as error:
                if isinstance(error, ConnectorError) or not is_transient(error):
                    raise
                if attempt == self.attempts:
                    raise ConnectorError(f"{what} failed {attempt} times. The last error was: {error}") from error
                log.warning("%s failed; trying again in %.1f s: %s", what, delay, error)
            time.sleep(delay * random.uniform(0.8, 1.2))
            delay = min(delay * 2, self.longest)
        raise AssertionError("unreachable")
