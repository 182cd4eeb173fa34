"""Reading of a state's value from outside the job, without changing the table.

State objects do not suit this purpose: they belong to the current key, and reading one may renew its value or remove
expired values.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

from penstock.api.state.descriptors import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    StateDescriptor,
)
from penstock.common.time import to_millis
from penstock.engine.state.live_entries import ABSENT
from penstock.engine.state.ttl import ttl_of

Peek = Callable[[Any, int], Any]
"""Function of a table's entry and a processing time. It returns the readable value, or ABSENT if none is left."""


def peek_of(descriptor: StateDescriptor) -> Peek:
    """Return a function that shows entries as the state's own `value`, `get` or `items` would, without expired parts.

    The result may be, or contain, live objects of the job. The caller must copy it before anything else happens.
    """
    config = ttl_of(descriptor)
    shown = _reader_of(descriptor)
    left = None if config is None else _left(descriptor, to_millis(config.get_ttl()))

    def peek(held: Any, now: int) -> Any:
        if held is not ABSENT and left is not None:
            held = left(held, now)
        return held if held is ABSENT else shown(held)

    return peek


def _reader_of(descriptor: StateDescriptor) -> Callable[[Any], Any]:
    """Return the function that reads an entry.

    A user's aggregate function gets a copy, as it might change its accumulator.
    """
    if isinstance(descriptor, AggregatingStateDescriptor):
        result = descriptor.get_agg_function().get_result
        return lambda held: result(deepcopy(held))
    return lambda held: held


def _left(descriptor: StateDescriptor, ttl: int) -> Peek:
    """Return a function that removes times and expired parts.

    It hides expired values even if the job may still read them.
    """

    def of_value(held: Any, now: int) -> Any:
        return held[0] if now - held[1] < ttl else ABSENT

    def of_list(held: Any, now: int) -> Any:
        return [value for value, time in held if now - time < ttl] or ABSENT

    def of_map(held: Any, now: int) -> Any:
        return {key: value for key, (value, time) in held.items() if now - time < ttl} or ABSENT

    if isinstance(descriptor, ListStateDescriptor):
        return of_list
    return of_map if isinstance(descriptor, MapStateDescriptor) else of_value
