"""The stable hash agrees with ==, in every process; key groups are dealt out whole."""

import base64
import datetime as dt
import enum
import os
import pickle
import subprocess
import sys
import uuid
from collections import namedtuple
from dataclasses import dataclass, field
from decimal import Decimal
from typing import NamedTuple
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

import penstock
from penstock.common import Row
from penstock.engine.state.key_groups import (
    default_max_parallelism,
    group_range,
    key_group,
    stable_hash,
    subtask_for_group,
)
from penstock.errors import UnsupportedKey


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Color(enum.StrEnum):
    RED = "red"


class Plain(enum.Enum):
    A = 1


class Point(NamedTuple):
    x: int
    y: int


@dataclass(frozen=True)
class Sensor:
    name: str
    number: int
    note: str = field(default="", compare=False)


Pair = namedtuple("Pair", "a b")

NUMBERS = st.one_of(
    st.integers(),
    st.booleans(),
    st.floats(allow_nan=False),
    st.decimals(allow_nan=False, allow_infinity=False),
)
OFFSETS = st.timezones() | st.builds(
    lambda minutes: dt.timezone(dt.timedelta(minutes=minutes)), st.integers(-1000, 1000)
)
ATOMS = st.one_of(
    NUMBERS,
    st.text(),
    st.binary(),
    st.none(),
    st.dates(),
    st.datetimes(),
    st.times(),
    st.timedeltas(),
    st.uuids(),
    st.sampled_from([*Level, *Color, *Plain]),
    st.builds(Sensor, st.text(), st.integers()),
)
KEYS = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(tuple),
        st.frozensets(inner, max_size=3),
        st.lists(inner, max_size=3).map(lambda fields: Row(*fields)),
        st.dictionaries(st.sampled_from("abc"), inner, min_size=1, max_size=3).map(lambda fields: Row(**fields)),
    ),
    max_leaves=5,
)


def twins_of_number(number):
    """Other numbers that Python holds for equal."""
    yield Decimal(number)
    if number == int(number):
        yield int(number)
    try:
        if float(number) == number:
            yield float(number)
    except OverflowError:
        pass
    if number in (0, 1):
        yield bool(number)
    if number in (1, 2):
        yield Level(number)


@given(st.one_of(st.integers(-3, 3), st.integers(), st.floats(allow_nan=False, allow_infinity=False)))
def test_equal_numbers_hash_alike_whatever_their_type(number):
    for twin in twins_of_number(number):
        assert twin == number
        assert stable_hash(twin) == stable_hash(number)
        assert stable_hash((twin, "x")) == stable_hash((number, "x"))
        assert stable_hash(Row(twin, 2)) == stable_hash(Row(number, 2))
        assert stable_hash(frozenset([twin])) == stable_hash(frozenset([number]))


@given(KEYS, KEYS)
def test_equal_keys_hash_alike(left, right):
    assert stable_hash(left) == stable_hash(pickle.loads(pickle.dumps(left)))
    assert 0 <= stable_hash(left) < 1 << 24
    if left == right and hash(left) == hash(right):
        assert stable_hash(left) == stable_hash(right)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (1, True),
        (0, False),
        (1, 1.0),
        (1, Decimal(1)),
        (Decimal("1.0"), Decimal("1.000")),
        (0.0, -0.0),
        (2**70, Decimal(2**70)),
        ((1, 2), (1.0, Decimal(2))),
        ((1, (True, "a")), (1.0, (1, "a"))),
        (Level.LOW, 1),
        (Color.RED, "red"),
        (Point(1, 2), (1, 2)),
        (Pair(1, 2), Point(1, 2)),
        (Row(a=1, b="x"), Row(b="x", a=1)),
        (Row(1, 2), Row(1.0, 2)),
        (Sensor("s", 1, "one note"), Sensor("s", 1, "another")),
        (frozenset([1, 2, 3]), frozenset([3, 2, 1])),
        (dt.timedelta(minutes=1), dt.timedelta(seconds=60)),
        (
            dt.datetime(2024, 5, 1, 12, tzinfo=dt.UTC),
            dt.datetime(2024, 5, 1, 14, tzinfo=dt.timezone(dt.timedelta(hours=2))),
        ),
        (dt.datetime(2024, 5, 1, 12, fold=0), dt.datetime(2024, 5, 1, 12, fold=1)),
    ],
)
def test_pairs_that_are_one_key(left, right):
    assert left == right
    assert stable_hash(left) == stable_hash(right)


@given(st.datetimes(min_value=dt.datetime(1990, 1, 1), max_value=dt.datetime(2030, 1, 1)), OFFSETS, OFFSETS)
def test_one_instant_is_one_key_in_every_zone(naive, first, second):
    left = naive.replace(tzinfo=first)
    right = left.astimezone(second)
    if left == right and hash(left) == hash(right):
        assert stable_hash(left) == stable_hash(right)


def test_the_two_readings_of_a_repeated_hour_are_equal_and_so_one_key():
    first = dt.datetime(2024, 10, 27, 2, 30, tzinfo=ZoneInfo("Europe/Berlin"))
    second = first.replace(fold=1)
    assert first == second and hash(first) == hash(second)
    assert stable_hash(first) == stable_hash(second)


def test_one_time_of_day_is_one_key_in_every_zone():
    east = dt.time(12, tzinfo=dt.timezone(dt.timedelta(hours=1)))
    west = dt.time(11, tzinfo=dt.UTC)
    assert east == west
    assert stable_hash(east) == stable_hash(west)


class Half(float, enum.Enum):
    VALUE = 0.5


class Raw(bytes, enum.Enum):
    VALUE = b"x"


class Place(tuple, enum.Enum):
    VALUE = (1, 2)


@pytest.mark.parametrize(("member", "value"), [(Half.VALUE, 0.5), (Raw.VALUE, b"x"), (Place.VALUE, (1, 2))])
def test_an_enum_that_is_also_a_value_hashes_as_the_value(member, value):
    assert member == value
    assert stable_hash(member) == stable_hash(value)


@pytest.mark.parametrize(
    "key", [float("nan"), Decimal("NaN"), (1, float("nan")), 1j, object(), range(3), print, [1], {"a": 1}, {1}]
)
def test_what_has_no_stable_hash_is_refused(key):
    with pytest.raises(UnsupportedKey, match=r"cannot be a key"):
        stable_hash(key)


def test_a_dataclass_must_be_frozen():
    @dataclass
    class Loose:
        n: int

    with pytest.raises(UnsupportedKey, match=r"Loose is not hashable.*frozen=True"):
        stable_hash(Loose(1))


def test_a_dataclass_without_equality_is_refused():
    """Each of its objects would be a key of its own, also for copies of one record."""

    @dataclass(eq=False)
    class Identity:
        n: int

    with pytest.raises(UnsupportedKey):
        stable_hash(Identity(1))


PORTABLE = [
    *(0, 1, -1, 2**61, 2**61 - 1, -(2**63), 10**40, 1.5, -0.1, 1e300, float("inf"), Decimal("3.25"), True),
    *("", "a", "héllo", "日本", "\ud800", b"", b"a", None, (), (1, "a", (2.0, None))),
    *(dt.date(2024, 2, 29), dt.datetime(2024, 1, 1, 3, 4, 5, 6), dt.datetime(2024, 1, 1, tzinfo=dt.UTC)),
    *(dt.time(1, 2, 3), dt.timedelta(days=-1, microseconds=5), uuid.UUID(int=7)),
    *(Row(1, "a"), Row(b=1, a="x"), frozenset(["a", "b", "c", "d"])),
]


@pytest.mark.parametrize("seed", ["0", "4711"])
def test_every_process_hashes_alike(seed):
    script = (
        "import base64, pickle, sys\n"
        "from penstock.engine.state.key_groups import stable_hash\n"
        "keys = pickle.loads(base64.b64decode(sys.stdin.read()))\n"
        "print([stable_hash(key) for key in keys])\n"
    )
    root = os.path.dirname(os.path.dirname(penstock.__file__))
    answer = subprocess.run(
        [sys.executable, "-c", script],
        input=base64.b64encode(pickle.dumps(PORTABLE)).decode(),
        env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": root},
        capture_output=True,
        text=True,
        check=True,
    )
    assert answer.stdout.strip() == str([stable_hash(key) for key in PORTABLE])


PINNED = [
    *((0, 0), (1, 10368889), (-1, 10368889), (2**31, 8388608), (2**61 - 1, 0), (2**70, 7271266), (-(2**70), 13679592)),
    *((True, 10368889), (1.5, 11417465), (-0.0, 0), (float("inf"), 15758002)),
    *((Decimal("1.5"), 11417465), (Decimal("0.1"), 13631488), (None, 0)),
    *(("", 0), ("a", 16407863), ("größe", 8579320), ("\ud800", 11705880), (b"", 10368889), (b"a", 153710)),
    *(((), 5473363), ((1, "a"), 8687381), (("a", 1), 14003732), (((1, 2), 3), 14927076)),
    *((Row(1, "a"), 4034139), (Row(b=1, a="x"), 14581984), (frozenset({1, 2, 3}), 5262259)),
    (dt.datetime(2024, 2, 29, 12, 30, 1, 5), 13447472),
    (dt.datetime(2024, 2, 29, 12, 30, tzinfo=dt.timezone(dt.timedelta(hours=2))), 2623615),
    (dt.date(2024, 2, 29), 3110274),
    (dt.time(12, 30, 1, 5), 7083986),
    (dt.time(12, 30, tzinfo=dt.timezone(dt.timedelta(hours=2))), 12483943),
    (dt.timedelta(days=-1, seconds=5, microseconds=7), 4510071),
    (uuid.UUID(int=5), 13961076),
    *((Level.HIGH, 3960563), (Color.RED, 15546024), (Plain.A, 14001752)),
    *((Point(1, 2), 1246004), (Pair("a", "b"), 7445743), (Sensor("a", 1, "note"), 2370627)),
]


@pytest.mark.parametrize(("key", "pinned"), PINNED, ids=[repr(key) for key, _ in PINNED])
def test_hashes_stay_what_they_are_in_savepoints(key, pinned):
    """State in savepoints is filed by these hashes: another hash would look for it in another slot."""
    assert stable_hash(key) == pinned


@given(st.integers(1, 200), st.integers(1, 1000))
def test_key_group_ranges_partition_all_groups(parallelism, maximum):
    parallelism = min(parallelism, maximum)
    ranges = [group_range(subtask, maximum, parallelism) for subtask in range(parallelism)]
    assert [group for owned in ranges for group in owned] == list(range(maximum))
    assert all(owned for owned in ranges)
    assert max(map(len, ranges)) - min(map(len, ranges)) <= 1
    for subtask, owned in enumerate(ranges):
        assert {subtask_for_group(group, maximum, parallelism) for group in owned} == {subtask}


@given(KEYS, st.integers(1, 1 << 15))
def test_a_key_has_one_group(key, maximum):
    assert 0 <= key_group(key, maximum) < maximum


@pytest.mark.parametrize("keys", [range(10_000), [f"user-{n}" for n in range(10_000)], [(n, "x") for n in range(5000)]])
def test_keys_spread_over_the_groups(keys):
    counts = [0] * 16
    for key in keys:
        counts[key_group(key, 128) * 16 // 128] += 1
    assert max(counts) < 1.5 * min(counts)


@pytest.mark.parametrize(
    ("parallelism", "maximum"), [(1, 128), (85, 128), (86, 256), (128, 256), (172, 512), (30_000, 1 << 15)]
)
def test_flinks_default_max_parallelism(parallelism, maximum):
    assert default_max_parallelism(parallelism) == maximum


@pytest.mark.parametrize("fold", [0, 1])
def test_a_time_that_comes_twice_is_the_first_of_both(fold):
    twice = dt.datetime(2024, 10, 27, 2, 30, tzinfo=ZoneInfo("Europe/Berlin"), fold=fold)
    assert stable_hash(twice) == stable_hash(dt.datetime(2024, 10, 27, 0, 30, tzinfo=dt.UTC))
    assert hash(twice) == hash(twice.replace(fold=0)), "as Python sees it"
