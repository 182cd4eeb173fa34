"""State that expires, of every kind, with a clock that the test sets."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.common import Time
from penstock.datastream.functions import AggregateFunction
from penstock.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)
from penstock.engine.state.backend import KeyedStateBackend
from penstock.engine.state.ttl import RECORDS_PER_EPOCH, Expiry, pruner

TTL = 100


class Total(AggregateFunction):
    def create_accumulator(self):
        return 0

    def add(self, value, accumulator):
        return accumulator + value

    def get_result(self, accumulator):
        return accumulator

    def merge(self, acc_a, acc_b):
        return acc_a + acc_b


class Clock:
    now = 0

    def __call__(self):
        return self.now


def expiring(descriptor, configure=lambda builder: builder):
    descriptor.enable_time_to_live(configure(StateTtlConfig.new_builder(Time.milliseconds(TTL))).build())
    clock = Clock()
    backend = KeyedStateBackend(clock)
    backend.scope.key = "k"
    return clock, backend, backend.state(descriptor)


def entries(backend):
    return sum(len(table.entries) for table in backend.tables.values())


def test_a_value_expires_and_leaves_nothing_behind():
    clock, backend, state = expiring(ValueStateDescriptor("s", default_value="none"))
    state.update("first")
    clock.now = TTL - 1
    assert state.value() == "first"
    clock.now = TTL
    assert state.value() == "none"
    assert entries(backend) == 0


def test_writing_makes_young_and_reading_does_so_only_if_asked():
    clock, _, written = expiring(ValueStateDescriptor("s"))
    also, _, read = expiring(ValueStateDescriptor("s"), lambda b: b.update_ttl_on_read_and_write())
    for state in (written, read):
        state.update(1)
    clock.now = also.now = 90
    assert (written.value(), read.value()) == (1, 1)
    clock.now = also.now = 120
    assert (written.value(), read.value()) == (None, 1)


def test_an_expired_value_may_be_shown_once_before_it_is_removed():
    clock, backend, state = expiring(ValueStateDescriptor("s"), lambda b: b.return_expired_if_not_cleaned_up())
    state.update(1)
    clock.now = 500
    assert state.value() == 1
    assert entries(backend) == 0
    assert state.value() is None


def test_elements_of_a_list_expire_one_by_one():
    clock, backend, state = expiring(ListStateDescriptor("s"))
    state.add(1)
    clock.now = 60
    state.add_all([2, 3])
    clock.now = 110
    assert state.get() == [2, 3]
    clock.now = 160
    assert state.get() == []
    assert entries(backend) == 0


def test_entries_of_a_map_expire_one_by_one():
    clock, backend, state = expiring(MapStateDescriptor("s"))
    state.put("a", 1)
    clock.now = 60
    state.put_all({"b": 2})
    clock.now = 110
    assert (state.get("a"), state.contains("b"), state.items(), state.is_empty()) == (None, True, [("b", 2)], False)
    clock.now = 160
    assert state.is_empty()
    assert entries(backend) == 0


def test_a_map_gives_values_as_they_were_put():
    _, backend, state = expiring(MapStateDescriptor("s"))
    state.put("a", 1)
    state.put_all({"b": None, "c": 0})
    assert [state.get(key) for key in "abcd"] == [1, None, 0, None]
    assert [state.contains(key) for key in "abcd"] == [True, True, True, False]
    assert (state.keys(), state.values()) == (["a", "b", "c"], [1, None, 0])
    state.remove("a")
    assert state.keys() == ["b", "c"]
    state.clear()
    assert state.is_empty()
    assert entries(backend) == 0


@pytest.mark.parametrize(
    ("descriptor", "fill"),
    [
        (ValueStateDescriptor("s"), lambda state: state.update(1)),
        (ListStateDescriptor("s"), lambda state: state.add_all([1, 2])),
        (MapStateDescriptor("s"), lambda state: state.put("a", 1)),
        (ReducingStateDescriptor("s", lambda a, b: a + b), lambda state: state.add(1)),
        (AggregatingStateDescriptor("s", Total()), lambda state: state.add(1)),
    ],
)
def test_clearing_leaves_nothing_behind_and_touches_one_key(descriptor, fill):
    _, backend, state = expiring(descriptor)
    fill(state)
    backend.scope.key = "other"
    fill(state)
    both = entries(backend)
    state.clear()
    assert 0 < entries(backend) < both
    backend.scope.key = "k"
    state.clear()
    assert entries(backend) == 0


@pytest.mark.parametrize(
    "descriptor", [ReducingStateDescriptor("s", lambda a, b: a + b), AggregatingStateDescriptor("s", Total())]
)
def test_folded_values_expire_as_a_whole(descriptor):
    clock, _, state = expiring(descriptor)
    state.add(1)
    clock.now = 50
    state.add(2)
    assert state.get() == 3
    clock.now = 150
    assert state.get() is None
    state.add(5)
    assert state.get() == 5


def test_a_state_is_asked_for_with_or_without_a_time_to_live_but_not_both():
    _, backend, _ = expiring(ValueStateDescriptor("s"))
    with pytest.raises(ValueError, match="both with and without a time to live"):
        backend.state(ValueStateDescriptor("s"))


@given(st.lists(st.tuples(st.sampled_from(["read", "write", "clear"]), st.integers(0, 60)), max_size=40), st.booleans())
def test_a_value_against_an_oracle(steps, reading_renews):
    configure = (lambda b: b.update_ttl_on_read_and_write()) if reading_renews else (lambda b: b)
    clock, _, state = expiring(ValueStateDescriptor("s"), configure)
    held, used = None, 0
    for number, (step, later) in enumerate(steps):
        clock.now += later
        if held is not None and clock.now - used >= TTL:
            held = None
        if step == "write":
            state.update(number)
            held, used = number, clock.now
        elif step == "clear":
            state.clear()
            held = None
        else:
            assert state.value() == held
            used = clock.now if reading_renews else used


def test_a_default_belongs_to_the_key_that_changes_it():
    _, backend, state = expiring(ValueStateDescriptor("s", default_value=[]))
    for key, name in ((1, "a"), (2, "b")):
        backend.scope.key = key
        seen = state.value()
        seen.append(name)
        state.update(seen)
        assert state.value() == [name]


def test_what_is_left_of_a_value_of_which_a_part_has_expired():
    config = StateTtlConfig.new_builder(Time.milliseconds(TTL)).build()
    expiry = Expiry(config, lambda: 2 * TTL)
    old, young = ("old", TTL), ("young", TTL + 1)
    of_list, of_map = pruner(ListStateDescriptor("s"), expiry), pruner(MapStateDescriptor("s"), expiry)
    of_value = pruner(ValueStateDescriptor("s"), expiry)
    assert (of_list([old, young]), of_map({"a": old, "b": young})) == ([young], {"b": young})
    assert (of_list([old]), of_map({"a": old}), of_value(old)) == (None, None, None)
    for prune, whole in ((of_list, [young]), (of_map, {"b": young}), (of_value, young)):
        assert prune(whole) is whole, "what has not changed is not written again"


@pytest.mark.parametrize(
    ("configure", "unused", "used_twice"),
    [
        (lambda builder: builder, 5, 10),
        (lambda builder: builder.cleanup_incrementally(10, False), 10, 20),
        (lambda builder: builder.cleanup_incrementally(3, True), 3 * RECORDS_PER_EPOCH, 3 * RECORDS_PER_EPOCH),
        (lambda builder: builder.disable_cleanup_in_background().cleanup_in_rocksdb_compact_filter(9), 1, 2),
        (lambda builder: builder.disable_cleanup_in_background(), 0, 0),
    ],
)
def test_how_many_entries_an_epoch_checks_for_expiry(configure, unused, used_twice):
    expiry = Expiry(configure(StateTtlConfig.new_builder(Time.milliseconds(TTL))).build(), lambda: 0)
    assert expiry.take_sweep() == unused
    expiry.visible(expiry.stamp("value"))
    assert expiry.take_sweep() == used_twice
    assert expiry.take_sweep() == unused
