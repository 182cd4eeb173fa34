"""Warnings about keys whose partial matches keep growing because nothing ends them."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence
from typing import Any

from penstock.cep.partial_matches import PartialMatches
from penstock.engine.state.key_groups import short_repr

_log = logging.getLogger(__name__)


class Growth:
    """Watches the number of matches and events of each key. Each warning raises the next threshold tenfold."""

    def __init__(self, operator: str, elements: Sequence[str], many: int) -> None:
        self._operator = operator
        self._elements = elements
        """Names of the elements by the numbers of the states."""
        self._step = self._many = many

    def may_be_much(self, matches: PartialMatches) -> bool:
        """Return True if a detailed check is necessary. This runs for each event, so it only compares known numbers."""
        return len(matches.partials) >= self._many or matches.last_number % self._step == 0

    def warn(self, matches: PartialMatches, key: Any) -> None:
        """Log a warning if there are many partial matches, or if many events are in them."""
        partials, events = len(matches.partials), sum(1 for _ in matches.nodes())
        size = max(partials, events)
        if not partials or size < self._many:
            return
        [(state, _)] = Counter(partial[0] for partial in matches.partials).most_common(1)
        oldest = min(matches.partials, key=lambda partial: partial[2])[1]
        while oldest[3] is not None:
            oldest = oldest[3]
        _log.warning(
            "%s holds %d partial matches of key %s with %d events; most of them wait at the element '%s', the oldest "
            "since the event %s. Limit them with within(...), until(...) or a skip strategy",
            self._operator,
            partials,
            short_repr(key),
            events,
            self._elements[state],
            short_repr(oldest[2]),
        )
        while size >= self._many:
            self._many *= 10
