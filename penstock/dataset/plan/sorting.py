"""Sort keys, and distributions by a partitioner of the program."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from penstock.dataset.functions import Partitioner
from penstock.dataset.plan.checks import check_function, check_type
from penstock.dataset.plan.enums import Order
from penstock.dataset.plan.keys import Key
from penstock.errors import ProgramError
from penstock.graph.partitioning import Custom


def custom(method: str, partitioner: Any, key: Key) -> Custom:
    """Return a distribution by a partitioner of the program."""
    check_function(method, partitioner, "partition")
    if len(key.kinds) != 1:
        raise ProgramError(f"{method}: a partitioner takes one key field, not {len(key.kinds)}")
    choose = partitioner.partition if isinstance(partitioner, Partitioner) else partitioner
    return Custom(choose, key.selector)


Sorts = tuple[tuple[Key, bool], ...]
"""Sort keys, and True for those that descend."""


def with_sort(sorts: Sorts, key: Key, order: Order, method: str) -> Sorts:
    """Return the sort keys followed by one more."""
    check_type(method, "order", order, Order)
    if order not in (Order.ASCENDING, Order.DESCENDING):
        raise ProgramError(f"{method} sorts ASCENDING or DESCENDING, not {order.name}")
    if any(before.is_selector != key.is_selector for before, _ in sorts):
        raise ProgramError(f"{method}: sort either by fields or by functions, not by both")
    return (*sorts, (key, order is Order.DESCENDING))


def sort_of(sorts: Sorts) -> tuple[Callable[[Any], tuple[Any, ...]], tuple[bool, ...]]:
    """Return a function that gives the sort keys of an element, and their directions."""
    return SortFields(tuple(key.selector for key, _ in sorts)), tuple(descends for _, descends in sorts)


class SortFields:
    """Returns the sort keys of an element."""

    def __init__(self, selectors: tuple[Callable[[Any], Any], ...]) -> None:
        self.selectors = selectors

    def __call__(self, element: Any) -> tuple[Any, ...]:
        return tuple([select(element) for select in self.selectors])
