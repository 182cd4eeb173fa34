"""Every kind of table against a plain dict: whatever happens, checkpoints give back exactly what was there."""

import copy
import datetime as dt
import enum
import uuid
from collections import namedtuple
from contextlib import closing
from dataclasses import dataclass, field
from decimal import Decimal
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)

from penstock.base import pickling
from penstock.common import Row
from penstock.datastream.functions import AggregateFunction
from penstock.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    ValueStateDescriptor,
)
from penstock.datastream.window import CountWindow, GlobalWindow, TimeWindow, Window
from penstock.engine.state.backend import KeyedStateBackend
from penstock.engine.state.key_bytes import key_bytes
from penstock.engine.state.rocksdb import RocksOptions, RocksTables
from penstock.engine.state.tables import HeapTables, Layout


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Color(enum.StrEnum):
    RED = "red"


class Plain(enum.Enum):
    A = 1
    B = "red"


class Point(NamedTuple):
    x: int
    y: int


Pair = namedtuple("Pair", "a b")


@dataclass(frozen=True)
class Sensor:
    name: str
    number: int
    note: str = field(default="", compare=False)


class Shift(Window):
    """A user's window, equal by value."""

    def __init__(self, day, name):
        self.day, self.name = day, name

    def max_timestamp(self):
        return self.day

    def __eq__(self, other):
        return isinstance(other, Shift) and (self.day, self.name) == (other.day, other.name)

    def __hash__(self):
        return hash((self.day, self.name))


PARIS = dt.timezone(dt.timedelta(hours=2))
SAME = [
    [1, 1.0, True, Decimal(1), Decimal("1.00"), Level.LOW],
    [0, False, -0.0, Decimal("-0")],
    [0.5, Decimal("0.5")],
    [2**70, float(2**70), Decimal(2**70)],
    [float("inf"), Decimal("Infinity")],
    [Decimal("0.1"), Decimal("0.10")],
    [Decimal("1E+400"), 10**400],
    ["red", Color.RED],
    [(1, 2), (1.0, Decimal(2)), Point(1, 2), Pair(True, 2), TimeWindow(1, 2)],
    [("k", TimeWindow(0, 10)), ("k", (0, 10))],
    [("k", Shift(3, "early")), ("k", Shift(3, "ear" + "ly"[:2]))],
    [Row(a=1, b="x"), Row(b="x", a=1.0)],
    [Row(1, 2), Row(1.0, 2)],
    [Sensor("s", 1), Sensor("s", 1.0, "another note")],
    [frozenset([1, "a", None]), frozenset([None, "a", True])],
    [("k", CountWindow(3)), ("k", CountWindow(3.0))],
    [dt.datetime(2024, 5, 1, 12, tzinfo=dt.UTC), dt.datetime(2024, 5, 1, 14, tzinfo=PARIS)],
    [dt.time(12, tzinfo=PARIS), dt.time(10, tzinfo=dt.UTC)],
]
OTHERS = [
    *("", "a", "\ud800", "\U00010000", "1", "s1", b"", b"a", b"1", None, (), (None,), ((),), ("a",), (("a",),), 2, -1),
    *(10**40, 1e300, 0.1, Decimal("0.3"), Decimal("1E+6000"), Decimal("1E-6000"), float("-inf"), 2**63, -(2**63)),
    *(Plain.A, Plain.B, ("enum", "A"), Row(), Row(1), Row(a=1), Row(b=1), Row("a", 1), frozenset(), frozenset([1])),
    *(("k", GlobalWindow.get()), ("k", CountWindow(0)), ("k", Shift(3, "late")), ("k", None), ("k", 0, 10)),
    *(dt.date(2024, 5, 1), dt.datetime(2024, 5, 1), dt.datetime(2024, 5, 1, 12), dt.time(12), dt.time(10)),
    *(
        dt.timedelta(1),
        dt.timedelta(seconds=1),
        uuid.UUID(int=7),
        ("uuid", uuid.UUID(int=7).bytes),
        ["a"] and ("a", "b"),
    ),
]
POOL = [address for equal in SAME for address in equal] + OTHERS


# --- addresses as bytes ---
ATOMS = st.one_of(
    st.integers(),
    st.integers(-2, 2),
    st.booleans(),
    st.floats(allow_nan=False),
    st.decimals(allow_nan=False),
    st.text(st.characters(), max_size=3),
    st.binary(max_size=3),
    st.dates(),
    st.datetimes(),
    st.datetimes(dt.datetime(2024, 10, 26), dt.datetime(2024, 10, 28), timezones=st.timezones()),
    st.times(),
    st.timedeltas(),
    st.uuids(),
    st.sampled_from(POOL),
    st.builds(Shift, st.integers(0, 3), st.sampled_from(["early", "late"])),
)
ADDRESSES = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(tuple),
        st.frozensets(inner, max_size=3),
        st.lists(inner, max_size=3).map(lambda fields: Row(*fields)),
        st.dictionaries(st.sampled_from("abc"), inner, min_size=1, max_size=3).map(lambda fields: Row(**fields)),
    ),
    max_leaves=5,
)


def test_bytes_agree_with_equality_in_the_pool():
    for left in POOL:
        for right in POOL:
            assert (key_bytes(left) == key_bytes(right)) == (left == right), (left, right)


@settings(max_examples=400)
@given(ADDRESSES, ADDRESSES)
def test_bytes_agree_with_equality(left, right):
    assert (key_bytes(left) == key_bytes(right)) == (left == right)
    assert key_bytes(left) == key_bytes(pickling.loads(pickling.dumps(left)))
    assert key_bytes((left, right)) != key_bytes(((left,), right))


# --- tables ---
def replayed(pages):
    """The state that pages stand for, as a restored job would see it."""
    state = {}
    for page in pages:
        addresses, values, gone = pickling.loads(page)
        state.update(zip(addresses, values, strict=True))
        for address in gone:
            state.pop(address, None)
    return state


VALUES = st.lists(st.integers(-3, 3), min_size=1, max_size=3) | st.just(["x" * 20_000])


class Contract(RuleBasedStateMachine):
    """A table and a dict that go through the same."""

    make = staticmethod(HeapTables)

    def __init__(self):
        super().__init__()
        self.tables = self.make()
        self.made = 0
        self.bystander = self.new_table()
        self.bystander.put("k", ["mine"])
        self.table = self.new_table()
        self.model = {}
        self.confirmed, self.last_confirmed = [], 0
        self.checkpoints, self.number = {}, 0
        self.being_read = []

    def new_table(self):
        self.made += 1
        return self.tables.table("operator", f"state-{self.made}", Layout.KEY)

    def teardown(self):
        for pages, before, expected in self.being_read:
            assert replayed([*before, *pages]) == expected
        assert dict(self.table.entries.items()) == self.model
        assert len(self.table.entries) == len(self.model)
        assert dict(self.bystander.entries.items()) == {"k": ["mine"]}
        self.tables.close()

    @initialize(addresses=st.lists(st.sampled_from(POOL), max_size=6))
    def begin(self, addresses):
        for address in addresses:
            self.put(address, [0])

    # --- what states and operators do ---
    @rule(address=st.sampled_from(POOL), value=VALUES)
    def put(self, address, value):
        self.table.put(address, list(value))
        self.model[address] = list(value)

    @rule(address=st.sampled_from(POOL))
    def remove(self, address):
        self.table.remove(address)
        self.model.pop(address, None)

    @rule(addresses=st.lists(st.sampled_from(POOL), max_size=4), value=VALUES)
    def put_many(self, addresses, value):
        self.table.entries.update((address, list(value)) for address in addresses)
        self.table.changed.update(addresses)
        self.model.update((address, list(value)) for address in addresses)

    @rule(addresses=st.lists(st.sampled_from(POOL), max_size=4))
    def remove_many(self, addresses):
        self.table.remove_all(addresses)
        for address in addresses:
            self.model.pop(address, None)

    @rule(address=st.sampled_from(POOL), element=st.integers(-3, 3))
    def append_in_place(self, address, element):
        held = self.table.entries.get(address)
        if held is None:
            self.table.entries[address] = [element]
        else:
            held.append(element)
        self.table.changed.add(address)
        self.model.setdefault(address, []).append(element)

    @rule(address=st.sampled_from(POOL), others=st.lists(st.sampled_from(POOL), max_size=5))
    def change_while_reading_others(self, address, others):
        held = self.table.entries.get(address, None) or []
        held.append(7)
        for other in others:
            self.table.entries.get(other)
            self.bystander.entries.get(other)
        self.table.put(address, held)
        self.model[address] = copy.copy(held)

    @rule(address=st.sampled_from(POOL))
    def read(self, address):
        assert self.table.entries.get(address, "nothing") == self.model.get(address, "nothing")
        assert (address in self.table.entries) == (address in self.model)
        if address in self.model:
            assert self.table.entries[address] == self.model[address]
        else:
            with pytest.raises(KeyError):
                self.table.entries[address]

    @rule(addresses=st.lists(st.sampled_from(POOL), max_size=6))
    def read_many(self, addresses):
        assert self.table.get_all(addresses) == [self.model.get(address) for address in addresses]

    @rule(address=st.sampled_from(POOL))
    def pop(self, address):
        assert self.table.entries.pop(address, None) == self.model.pop(address, None)
        self.table.changed.add(address)

    @rule()
    def list_addresses(self):
        assert set(self.table.addresses()) == set(self.table.entries) == set(self.model)
        assert bool(self.table.entries) == bool(self.model)

    @rule(most=st.integers(1, 50))
    def sweep(self, most):
        self.end_epoch()
        self.table.prune = lambda value: None if value[0] == 3 else value
        for _ in range(4 + 2 * len(POOL) // most):  # to the end of a round that began before, and once round
            self.table.sweep(most)
        self.table.prune = None
        self.model = {address: value for address, value in self.model.items() if value[0] != 3}

    # --- epochs and checkpoints ---
    @rule()
    def end_epoch(self):
        self.table.end_epoch(tracking=True)
        self.bystander.end_epoch(tracking=True)

    @rule(at_once=st.booleans())
    def checkpoint(self, at_once):
        self.number += 1
        self.table.mark(self.number)
        self.checkpoints[self.number] = None
        self.take(self.table.changes(), self.confirmed, at_once)

    def take(self, pages, before, at_once):
        expected = copy.deepcopy(self.model)
        if at_once:
            taken = [*before, *pages]
            assert replayed(taken) == expected
            if self.number in self.checkpoints:
                self.checkpoints[self.number] = (taken, expected)
        else:
            self.being_read.append((pages, before, expected))

    @precondition(lambda self: any(self.checkpoints.values()))
    @rule(data=st.data())
    def confirm(self, data):
        number = data.draw(st.sampled_from([number for number, taken in self.checkpoints.items() if taken]))
        self.table.confirm(number)
        self.confirmed = self.checkpoints[number][0]
        self.checkpoints = {later: taken for later, taken in self.checkpoints.items() if later > number}

    @rule(at_once=st.booleans())
    def whole_table(self, at_once):
        pages = self.table.everything()
        if at_once:
            assert replayed(pages) == self.model
        else:
            self.being_read.append((pages, [], copy.deepcopy(self.model)))

    @precondition(lambda self: self.being_read)
    @rule()
    def read_to_the_end(self):
        pages, before, expected = self.being_read.pop()
        assert replayed([*before, *pages]) == expected

    @rule()
    def everything_pruned(self):
        self.table.prune = lambda value: value[1:] or None
        assert replayed(self.table.everything(pruned=True)) == {a: v[1:] for a, v in self.model.items() if v[1:]}
        self.table.prune = None

    @precondition(lambda self: any(self.checkpoints.values()))
    @rule(data=st.data())
    def restore(self, data):
        number = data.draw(st.sampled_from([number for number, taken in self.checkpoints.items() if taken]))
        self.confirmed, expected = self.checkpoints[number]
        self.model = copy.deepcopy(expected)
        self.checkpoints.clear()
        self.table = self.new_table()
        for page in self.confirmed:
            self.table.load(page)
        assert not self.table.changed

    @rule(rest=st.integers(0, 2))
    def load_what_is_wanted(self, rest):
        other = self.new_table()
        for page in self.table.everything():
            other.load(page, lambda key: hash(key) % 3 == rest)
        assert dict(other.entries.items()) == {a: v for a, v in self.model.items() if hash(a) % 3 == rest}

    @rule()
    def convert(self):
        self.table.convert(lambda value: [*value, 1])
        self.model = {address: [*value, 1] for address, value in self.model.items()}


def rocks(memory):
    return lambda: RocksTables(RocksOptions(memory_bytes=memory), "contract")


@pytest.mark.parametrize(
    "make", [HeapTables, rocks(1), rocks(3000), rocks(None)], ids=["heap", "nothing-stays", "little-stays", "all-stays"]
)
def test_a_table_is_a_dict_that_survives(make):
    machine = type("Machine", (Contract,), {"make": staticmethod(make)})
    run_state_machine_as_test(machine, settings=settings(max_examples=40, stateful_step_count=40, deadline=None))


@pytest.mark.parametrize("make", [HeapTables, rocks(1)], ids=["heap", "rocksdb"])
def test_layouts_find_the_key_of_an_address(make):
    with closing(make()) as tables:
        panes = tables.table("o", "panes", Layout.PANE)
        panes.put(("a", TimeWindow(0, 10)), 1)
        panes.put(("b", TimeWindow(0, 10)), 2)
        (page,) = panes.everything()
        other = tables.table("o", "others", Layout.PANE)
        other.load(page, lambda key: key == "b")
        assert dict(other.entries.items()) == {("b", TimeWindow(0, 10)): 2}


# --- states over tables ---
class Total(AggregateFunction):
    """Keeps a list and changes it in place, as user functions do."""

    def create_accumulator(self):
        return [0]

    def add(self, value, accumulator):
        accumulator[0] += value
        return accumulator

    def get_result(self, accumulator):
        return accumulator[0]

    def merge(self, acc_a, acc_b):
        return [acc_a[0] + acc_b[0]]


DESCRIPTORS = [
    ValueStateDescriptor("value"),
    ListStateDescriptor("list"),
    MapStateDescriptor("map"),
    ReducingStateDescriptor("reducing", lambda a, b: a + b),
    AggregatingStateDescriptor("aggregating", Total()),
]
USES = {
    "value": {"update": st.lists(st.integers(), max_size=2) | st.none(), "value": None, "clear": None},
    "list": {"add": st.integers(), "update": st.lists(st.integers(), max_size=2), "get": None, "clear": None},
    "map": {"put": st.tuples(st.sampled_from("ab"), st.integers()), "remove": st.sampled_from("ab"), "items": None},
    "reducing": {"add": st.integers(), "get": None, "clear": None},
    "aggregating": {"add": st.integers(), "get": None, "clear": None},
}


@st.composite
def uses(draw):
    name = draw(st.sampled_from(sorted(USES)))
    method = draw(st.sampled_from(sorted(USES[name])))
    given = USES[name][method]
    argument = () if given is None else draw(given)
    return name, method, argument if method == "put" or given is None else (argument,)


STEPS = st.lists(st.tuples(st.sampled_from(["k", 1, True, ("k", 2)]), uses()) | st.just("epoch"), max_size=60)


@settings(max_examples=40)
@given(STEPS)
def test_states_are_the_same_over_every_table(steps):
    with closing(rocks(1)()) as tables:
        backends = [KeyedStateBackend(), KeyedStateBackend(tables=tables, owner="operator")]
        states = [{d.get_name(): backend.state(d) for d in DESCRIPTORS} for backend in backends]
        for step in steps:
            if step == "epoch":
                for backend in backends:
                    backend.end_epoch(tracking=True)
                continue
            key, (name, method, arguments) = step
            for backend in backends:
                backend.scope.key = key
            heap, rocksdb = [getattr(state[name], method)(*copy.deepcopy(arguments)) for state in states]
            assert heap == rocksdb
        heap, rocksdb = [{n: dict(t.entries.items()) for n, t in backend.tables.items()} for backend in backends]
        assert heap == rocksdb
