"""QueryableStateStream: the end of a keyed stream whose last values clients outside the job can look up."""

from __future__ import annotations

from copy import copy
from typing import Any

from penstock.api.state.descriptors import MapStateDescriptor, StateDescriptor, ValueStateDescriptor
from penstock.base.arguments import check_arguments
from penstock.common.typeinfo import TypeInformation
from penstock.datastream.builders.operator_settings import Settings
from penstock.errors import UnsupportedOperation
from penstock.graph.transformations import Transformation


@check_arguments
class QueryableStateStream(Settings):
    """The result of `as_queryable_state`, with the name and the descriptor of the state."""

    def __init__(self, node: Transformation, descriptor: StateDescriptor, key_type: TypeInformation | None) -> None:
        self._node = node
        self._descriptor = descriptor
        self._key_type = key_type

    def get_queryable_state_name(self) -> str:
        """Return the name that clients use."""
        return str(self._descriptor.get_queryable_state_name())

    def get_state_descriptor(self) -> StateDescriptor:
        """Return the descriptor of the state."""
        return self._descriptor

    def get_key_type(self) -> TypeInformation | None:
        """Return the declared type of the key; None if no type was declared."""
        return self._key_type


def queryable_descriptor(name: str, given: Any, record_type: TypeInformation | None) -> StateDescriptor:
    """Return the checked descriptor of the state behind `as_queryable_state`. A given one stays unchanged."""
    if given is None:
        given = ValueStateDescriptor(name if isinstance(name, str) and name else "queryable", record_type)
    if not isinstance(given, StateDescriptor):
        raise TypeError(f"as_queryable_state takes a name and a state descriptor, not {given!r}")
    if isinstance(given, MapStateDescriptor):
        raise UnsupportedOperation(
            f"as_queryable_state('{name}') cannot fill a map state: a record alone does not say which entry it is. Use "
            "a value, list, reducing or aggregating state, or a process function whose map state is set_queryable"
        )
    descriptor = copy(given)
    descriptor.set_queryable(name)
    return descriptor


__all__ = ["QueryableStateStream"]
