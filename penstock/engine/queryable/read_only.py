"""The state of one key as a client sees it: an object of the state's own kind, which cannot be changed."""

from __future__ import annotations

from copy import deepcopy
from typing import Any, NoReturn

from penstock.api.state.descriptors import (
    AggregatingState,
    ListState,
    MapState,
    ReducingState,
    State,
    StateDescriptor,
    ValueState,
)
from penstock.engine.queryable.query_requests import Cut
from penstock.engine.state.key_groups import short_repr
from penstock.engine.state.state_schema import schema_of
from penstock.errors import QueryError, UnsupportedOperation


def _refuse(self: Any, *_: Any) -> NoReturn:
    raise UnsupportedOperation("what was looked up is a copy: the state can be changed by its own job only")


_REFUSE: Any = _refuse


class ReadOnly:
    """Base of the read-only states: a copy of the state's content, and the cut that it shows."""

    def __init__(self, held: Any, cut: Cut) -> None:
        self._held = held
        self.cut = cut

    def __repr__(self) -> str:
        return f"{type(self).__name__}({short_repr(self._held)}, {self.cut})"


class ReadOnlyValueState(ReadOnly, ValueState[Any]):
    """The value of a lookup."""

    def value(self) -> Any:
        return deepcopy(self._held)

    update = clear = _REFUSE


class ReadOnlyListState(ReadOnly, ListState[Any]):
    """The list of a lookup."""

    def get(self) -> list[Any]:
        return deepcopy(list(self._held))

    add = add_all = update = clear = _REFUSE


class ReadOnlyReducingState(ReadOnly, ReducingState[Any]):
    """The reduced value of a lookup."""

    def get(self) -> Any:
        return deepcopy(self._held)

    add = clear = _REFUSE


class ReadOnlyAggregatingState(ReadOnly, AggregatingState[Any, Any]):
    """`get` returns the result of the aggregate, which the job has computed."""

    def get(self) -> Any:
        return deepcopy(self._held)

    add = clear = _REFUSE


class ReadOnlyMapState(ReadOnly, MapState[Any, Any]):
    """The map of a lookup."""

    def get(self, key: Any) -> Any:
        return deepcopy(self._held.get(key))

    def contains(self, key: Any) -> bool:
        return key in self._held

    def items(self) -> list[tuple[Any, Any]]:
        return list(deepcopy(self._held).items())

    def keys(self) -> list[Any]:
        return list(self._held)

    def values(self) -> list[Any]:
        return list(deepcopy(self._held).values())

    def is_empty(self) -> bool:
        return not self._held

    put = put_all = remove = clear = __setitem__ = __delitem__ = _REFUSE


_KINDS: dict[str, type[ReadOnly]] = {
    "value": ReadOnlyValueState,
    "list": ReadOnlyListState,
    "map": ReadOnlyMapState,
    "reducing": ReadOnlyReducingState,
    "aggregating": ReadOnlyAggregatingState,
}


def read_only(kind: str, held: Any, cut: Cut) -> State:
    """Return the state object for the result of a lookup."""
    made = _KINDS[kind](held, cut)
    assert isinstance(made, State)
    return made


def check_kind(name: str, kind: str, expected: StateDescriptor | None) -> None:
    """Raise if a client expects another kind of state."""
    if expected is not None and schema_of(expected)["kind"] != kind:
        raise QueryError(
            f"queryable state '{name}' is a {kind} state, and was looked up with a {type(expected).__name__}"
        )
