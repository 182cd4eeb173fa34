"""Keys and values survive the way through JSON, and nothing that comes from outside is ever executed."""

import datetime
import json
import math
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum, IntEnum
from typing import NamedTuple
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.common.time import Instant
from penstock.common.types import Row, RowKind
from penstock.engine.queryable.plain_values import from_json, key_to_json, value_to_json
from penstock.engine.queryable.rest_form import key_of_json, readable
from penstock.errors import QueryError, UnsupportedKey

ATOMS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary()
    | st.decimals(allow_nan=False)
    | st.uuids()
    | st.datetimes(timezones=st.none() | st.just(datetime.UTC))
    | st.dates()
    | st.times()
    | st.timedeltas()
    | st.builds(Instant, st.integers(0, 2**40), st.integers(0, 999_999_999))
)
KEYS = st.recursive(
    ATOMS,
    lambda inner: (
        st.lists(inner, max_size=3).map(tuple)
        | st.frozensets(inner, max_size=3)
        | st.lists(inner, min_size=1, max_size=3).map(lambda parts: Row(*parts))
    ),
    max_leaves=5,
)
VALUES = st.recursive(
    ATOMS | KEYS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(KEYS, inner, max_size=3)
        | st.sets(ATOMS, max_size=3)
        | st.dictionaries(st.sampled_from("abc"), inner, min_size=1).map(lambda fields: Row(**fields))
    ),
    max_leaves=8,
)


class Colour(Enum):
    RED = 1


class Level(IntEnum):
    HIGH = 3


class Point(NamedTuple):
    x: int
    y: int


@dataclass(frozen=True)
class Reading:
    sensor: str
    points: list


def sent(value, encode=value_to_json):
    return from_json(json.loads(json.dumps(encode(value), allow_nan=False)))


def same(left, right):
    """Equal, and of the same types throughout: 1, 1.0 and True are not the same value."""
    return left == right and repr(left) == repr(right)


@given(VALUES)
def test_values_arrive_as_they_are(value):
    arrived = sent(value)
    assert arrived == value and type(arrived) is type(value)


@given(KEYS)
def test_keys_arrive_as_they_are(key):
    arrived = sent(key, key_to_json)
    assert arrived == key and type(arrived) is type(key) and hash(arrived) == hash(key)


@pytest.mark.parametrize("value", [1, 1.0, True, [1, (2,)], {1: {2}, (3,): None}, Row.of_kind(RowKind.DELETE, a=1)])
def test_types_are_kept(value):
    assert same(sent(value), value)


def test_numbers_that_json_has_no_form_for():
    assert math.isnan(sent(math.nan)) and sent(-math.inf) == -math.inf and sent(10**40) == 10**40
    assert sent(Decimal("1.10")) == Decimal("1.10") and str(sent(Decimal("1.10"))) == "1.10"


def test_what_only_the_program_knows_becomes_something_plain():
    assert sent(Colour.RED) == "RED" and sent(Level.HIGH) == "HIGH"
    assert sent(Point(1, 2)) == Row(x=1, y=2)
    assert sent(Reading("a", [Point(1, 2)])) == Row(sensor="a", points=[Row(x=1, y=2)])


@pytest.mark.parametrize("key", [Colour.RED, Level.HIGH, Point(1, 2), Reading("a", []), object(), (1, Point(1, 2))])
def test_a_key_that_would_arrive_as_another_is_refused(key):
    with pytest.raises(UnsupportedKey, match="cannot be sent as a key"):
        key_to_json(key)


@pytest.mark.parametrize("value", [object(), print, [lambda: 1], {1: object}])
def test_values_that_cannot_be_sent_are_refused(value):
    with pytest.raises(QueryError, match=r"type \w+ cannot be sent to a client.*keep one of these"):
        value_to_json(value)


@pytest.mark.parametrize(
    "strange",
    [
        {},
        {"t": "eval", "v": "1"},
        {"t": "tuple"},
        {"t": ["tuple"], "v": []},
        {"t": "tuple", "v": 3},
        {"t": "dict", "v": [[{"t": "dict", "v": []}, 1]]},
        {"t": "set", "v": [[1]]},
        {"t": "bytes", "v": "?"},
        {"t": "decimal", "v": "one"},
        {"t": "uuid", "v": 7},
        {"t": "datetime", "v": "tomorrow"},
        {"t": "timedelta", "v": [10**12, 0, 0]},
        {"t": "row", "v": [["a"], 0, []]},
        {"t": "row", "v": [None, 17, []]},
        {"t": "float", "v": "much"},
    ],
)
def test_what_no_encoder_makes_is_refused(strange):
    with pytest.raises(QueryError, match="not a value that a client or a server can send"):
        from_json(strange)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda i: st.lists(i) | st.dictionaries(st.sampled_from(["t", "v", "x"]), i),
    )
)
def test_any_json_gives_a_value_or_a_query_error(strange):
    with suppress(QueryError):
        from_json(strange)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, None),
        (Level.HIGH, "HIGH"),
        (Colour.RED, "Colour.RED"),
        (float("inf"), "inf"),
        (b"\x00", "AA=="),
        ((1, [2]), [1, [2]]),
        ({"a": (1,)}, {"a": [1]}),
        ({1: "a"}, [{"key": 1, "value": "a"}]),
        (Row(a=1), {"a": 1}),
        (Row(1, "b"), [1, "b"]),
        (Point(1, 2), {"x": 1, "y": 2}),
        (Reading("a", [1]), {"sensor": "a", "points": [1]}),
        (datetime.date(2026, 1, 2), "2026-01-02"),
        (Decimal("1.5"), "1.5"),
        (UUID(int=1), "00000000-0000-0000-0000-000000000001"),
    ],
)
def test_what_rest_shows(value, shown):
    assert readable(value) == shown
    json.dumps(readable(value), allow_nan=False)


def test_a_key_of_rest():
    assert key_of_json(["a", [1, None]]) == ("a", (1, None))
