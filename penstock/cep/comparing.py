"""The order of events with the same timestamp, as defined by a comparator."""

from __future__ import annotations

from collections.abc import Callable
from functools import cmp_to_key
from itertools import combinations, pairwise
from typing import Any

from penstock.cep.pattern_functions import EventComparator
from penstock.engine.state.key_groups import short_repr
from penstock.errors import RecordError

_ALL_PAIRS = 10
"""Number of events up to which every pair is compared. This also finds circular orders."""


def sort_key(comparator: Any) -> Callable[[Any], Any] | None:
    """Return a comparator, which is an object or a function, as a key for `sorted`, or None without a comparator."""
    if comparator is None:
        return None
    compare = comparator.compare if isinstance(comparator, EventComparator) else comparator

    def check_and_compare(first: Any, second: Any) -> int:
        order = compare(first, second)
        if isinstance(order, bool) or not isinstance(order, int | float):
            raise RecordError(
                f"the comparator returned {order!r} for {short_repr(first)} and {short_repr(second)}: it must return a "
                "number, negative, 0 or positive"
            )
        return order  # type: ignore[return-value]

    return cmp_to_key(check_and_compare)


def in_order(events: list[Any], key: Callable[[Any], Any]) -> list[Any]:
    """Return the events sorted, with ties in order of arrival. Raise an error if the comparator contradicts itself."""
    if len(events) < 2:
        return events
    ordered = sorted(events, key=key)
    pairs = combinations(ordered, 2) if len(ordered) <= _ALL_PAIRS else pairwise(ordered)
    for first, second in pairs:
        if key(second) < key(first):
            raise RecordError(
                f"the comparator contradicts itself: it puts {short_repr(first)} before {short_repr(second)}, and the "
                "other way round"
            )
    return ordered
