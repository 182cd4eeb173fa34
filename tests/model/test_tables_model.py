"""States over a table, against plain dicts, for random operations on a few keys."""

import pickle
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.datastream.functions import AggregateFunction
from penstock.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    ValueStateDescriptor,
)
from penstock.engine.state.backend import BroadcastStateBackend, KeyedStateBackend

KEYS = st.sampled_from(["a", "b", 1, (1, "x")])
NUMBERS = st.integers(-3, 3)
SMALL = st.sampled_from(["p", "q", "r"])


class Mean(AggregateFunction):
    def create_accumulator(self):
        return 0, 0

    def add(self, value, accumulator):
        return accumulator[0] + value, accumulator[1] + 1

    def get_result(self, accumulator):
        return accumulator[0] / accumulator[1]

    def merge(self, acc_a, acc_b):
        return acc_a[0] + acc_b[0], acc_a[1] + acc_b[1]


def mean(values: list[int]) -> float:
    return sum(values) / len(values)


@dataclass
class Kind:
    """A kind of state: its operations on the real thing and on an oracle, and how each is read."""

    descriptor: Any
    operations: dict[str, tuple[st.SearchStrategy, Callable[[Any, Any], Any]]]
    read: Callable[[Any], Any]
    expect: Callable[[Any], Any]


def value_update(model, argument):
    return argument


def list_add(model, argument):
    return [*(model or []), argument]


def list_add_all(model, argument):
    return [*(model or []), *argument] or None


def list_update(model, argument):
    return list(argument) or None


def map_put(model, argument):
    return {**(model or {}), argument[0]: argument[1]}


def map_put_all(model, argument):
    return {**(model or {}), **argument} or None


def map_remove(model, argument):
    return {k: v for k, v in (model or {}).items() if k != argument} or None


def cleared(model, argument):
    return None


CLEAR = {"clear": (st.none(), cleared)}

KINDS = {
    "value": Kind(
        ValueStateDescriptor("s", default_value=7),
        {"update": (st.none() | NUMBERS, value_update), **CLEAR},
        lambda state: state.value(),
        lambda model: 7 if model is None else model,
    ),
    "list": Kind(
        ListStateDescriptor("s"),
        {
            "add": (NUMBERS, list_add),
            "add_all": (st.lists(NUMBERS, max_size=3), list_add_all),
            "update": (st.lists(NUMBERS, max_size=3), list_update),
            **CLEAR,
        },
        lambda state: (list(state.get()), list(state)),
        lambda model: (model or [], model or []),
    ),
    "map": Kind(
        MapStateDescriptor("s"),
        {
            "put": (st.tuples(SMALL, NUMBERS), map_put),
            "put_all": (st.dictionaries(SMALL, NUMBERS, max_size=3), map_put_all),
            "remove": (SMALL, map_remove),
            **CLEAR,
        },
        lambda state: (
            dict(state.items()),
            list(state.keys()),
            list(state.values()),
            state.is_empty(),
            {key: (state.contains(key), key in state, state.get(key), state[key]) for key in "pqr"},
        ),
        lambda model: (
            model or {},
            list(model or {}),
            list((model or {}).values()),
            not model,
            {key: (key in (model or {}),) * 2 + ((model or {}).get(key),) * 2 for key in "pqr"},
        ),
    ),
    "reducing": Kind(
        ReducingStateDescriptor("s", lambda a, b: a * 10 + b),
        {"add": (NUMBERS, lambda model, argument: argument if model is None else model * 10 + argument), **CLEAR},
        lambda state: state.get(),
        lambda model: model,
    ),
    "aggregating": Kind(
        AggregatingStateDescriptor("s", Mean()),
        {"add": (NUMBERS, list_add), **CLEAR},
        lambda state: state.get(),
        lambda model: None if model is None else mean(model),
    ),
}


def steps(kind: Kind) -> st.SearchStrategy:
    """A list of (key, operation, argument); 'take' asks for the changes."""
    one = [st.tuples(KEYS, st.just(name), argument) for name, (argument, _) in kind.operations.items()]
    return st.lists(st.one_of(*one, st.tuples(st.none(), st.just("take"), st.none())), max_size=40)


def call(state: Any, name: str, argument: Any) -> None:
    if name == "clear":
        state.clear()
    elif name == "put":
        state.put(*argument)
    else:
        getattr(state, name)(argument)


def check_changes(table: Any, before: dict, touched: set) -> dict:
    """Changes replayed on the last snapshot give the table; they name what differs and nothing untouched."""
    table.mark(1)
    after, addresses = dict(before), []
    for page in table.changes():
        present, values, gone = pickle.loads(page)
        after.update(zip(present, values, strict=True))
        for address in gone:
            after.pop(address, None)
        addresses += [*present, *gone]
    assert after == table.entries
    assert len(set(addresses)) == len(addresses)
    differing = {k for k in before.keys() | after.keys() if before.get(k, ...) != after.get(k, ...)}
    assert differing <= set(addresses) <= touched
    table.confirm(1)
    assert list(table.changes()) == []
    return after


@pytest.mark.parametrize("name", KINDS)
@given(data=st.data())
def test_states_are_maps_from_keys(name, data):
    kind = KINDS[name]
    backend = KeyedStateBackend()
    state, table = backend.state(kind.descriptor), backend.table(kind.descriptor)
    model: dict[Any, Any] = {}
    snapshot: dict[Any, Any] = {}
    touched: set[Any] = set()
    for key, operation, argument in data.draw(steps(kind)):
        if operation == "take":
            snapshot, touched = check_changes(table, snapshot, touched), set()
            continue
        backend.scope.key = key
        call(state, operation, argument)
        touched.add(key)
        model[key] = kind.operations[operation][1](model.get(key), argument)
        assert set(table.entries) == {k for k, v in model.items() if v is not None}
        for other in ("a", "b", 1, (1, "x"), "never"):
            backend.scope.key = other
            assert kind.read(state) == kind.expect(model.get(other))
    check_changes(table, snapshot, touched)


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("put"), SMALL, NUMBERS),
            st.tuples(st.just("remove"), SMALL, st.none()),
            st.tuples(st.just("clear"), st.none(), st.none()),
            st.tuples(st.just("put_all"), st.dictionaries(SMALL, NUMBERS), st.none()),
        ),
        max_size=25,
    )
)
def test_broadcast_state_is_one_map(operations):
    backend, descriptor = BroadcastStateBackend(), MapStateDescriptor("rules")
    writable, read_only = backend.writable(descriptor), backend.read_only(descriptor)
    model: dict[str, int] = {}
    for name, first, second in operations:
        if name == "put":
            writable.put(first, second)
            model[first] = second
        elif name == "put_all":
            writable.put_all(first)
            model.update(first)
        elif name == "remove":
            writable.remove(first)
            model.pop(first, None)
        else:
            writable.clear()
            model.clear()
        for view in (writable, read_only):
            assert dict(view.items()) == model
            assert (list(view), list(view.values()), view.is_empty()) == (list(model), list(model.values()), not model)
            assert {key: (view.get(key), key in view) for key in "pqr"} == {
                key: (model.get(key), key in model) for key in "pqr"
            }


def test_what_a_list_or_map_hands_out_is_no_door_into_the_state():
    backend = KeyedStateBackend()
    backend.scope.key = "k"
    numbers, names = backend.state(ListStateDescriptor("l")), backend.state(MapStateDescriptor("m"))
    numbers.update([1, 2])
    names.put("a", 1)
    numbers.get().append(3)
    names.items().clear()
    names.keys().clear()
    assert (numbers.get(), names.items()) == ([1, 2], [("a", 1)])


def test_a_map_may_lose_entries_while_it_is_read():
    backend = KeyedStateBackend()
    backend.scope.key = "k"
    state = backend.state(MapStateDescriptor("m"))
    state.put_all({1: 1, 2: 2, 3: 3})
    for key in state:
        state.remove(key)
    assert state.is_empty() and not backend.tables["m"].entries


def test_one_name_is_one_kind_of_state():
    backend = KeyedStateBackend()
    backend.scope.key = "k"
    backend.state(ValueStateDescriptor("s")).update(1)
    assert backend.state(ValueStateDescriptor("s")).value() == 1
    with pytest.raises(ValueError, match=r"'s' is registered as ValueStateDescriptor .* another name"):
        backend.state(ListStateDescriptor("s"))


def test_lists_refuse_none():
    backend = KeyedStateBackend()
    backend.scope.key = "k"
    state = backend.state(ListStateDescriptor("numbers"))
    for attempt in (lambda: state.add(None), lambda: state.update([1, None]), lambda: state.add_all([None])):
        with pytest.raises(ValueError, match=r"'numbers' cannot hold None"):
            attempt()
    assert state.get() == []
