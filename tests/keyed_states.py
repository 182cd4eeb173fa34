"""State of any kind of descriptor, for tests that are written once for all kinds."""

from typing import Any

METHODS = {
    "ValueStateDescriptor": "get_state",
    "ListStateDescriptor": "get_list_state",
    "MapStateDescriptor": "get_map_state",
    "ReducingStateDescriptor": "get_reducing_state",
    "AggregatingStateDescriptor": "get_aggregating_state",
}


def state_of(context: Any, descriptor: Any) -> Any:
    """The state of a descriptor, by the method for its kind."""
    return getattr(context, METHODS[type(descriptor).__name__])(descriptor)
