"""Rolling aggregates and map_with_state & co."""

from dataclasses import dataclass
from typing import NamedTuple

import pytest

from penstock.common import Row, RowKind
from penstock.datastream.functions import ReduceFunction
from penstock.errors import JobFailed, RecordError
from penstock.testing import OperatorHarness


@dataclass(frozen=True)
class Sale:
    shop: str
    amount: int
    note: str = ""


class Point(NamedTuple):
    key: str
    n: int


def rolled(build, values, key=0):
    with OperatorHarness(lambda s: build(s.key_by(key))) as h:
        for time, value in enumerate(values):
            h.push(value, timestamp=time)
        out = h.output()
        assert [t for _, t in out] == list(range(len(values)))
        return [value for value, _ in out]


PAIRS = [("a", 3, "x"), ("b", 5, "y"), ("a", 1, "z"), ("a", 2, "w"), ("b", 9, "v")]


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        ("sum", [("a", 3, "x"), ("b", 5, "y"), ("a", 4, "x"), ("a", 6, "x"), ("b", 14, "y")]),
        ("min", [("a", 3, "x"), ("b", 5, "y"), ("a", 1, "x"), ("a", 1, "x"), ("b", 5, "y")]),
        ("max", [("a", 3, "x"), ("b", 5, "y"), ("a", 3, "x"), ("a", 3, "x"), ("b", 9, "y")]),
        ("min_by", [("a", 3, "x"), ("b", 5, "y"), ("a", 1, "z"), ("a", 1, "z"), ("b", 5, "y")]),
        ("max_by", [("a", 3, "x"), ("b", 5, "y"), ("a", 3, "x"), ("a", 3, "x"), ("b", 9, "v")]),
    ],
)
def test_over_every_shape_of_record(method, expected):
    """sum, min and max change the field and keep the rest of the first record; the others keep whole records."""
    shapes = {
        "tuple": (1, lambda r: r, "0"),
        "list": (1, list, "0"),
        "row": (1, lambda r: Row(*r), "0"),
        "named row": ("n", lambda r: Row(k=r[0], n=r[1], s=r[2]), "k"),
        "dict": ("n", lambda r: {"k": r[0], "n": r[1], "s": r[2]}, "k"),
        "dataclass": ("amount", lambda r: Sale(*r), "shop"),
        "dataclass by position": (1, lambda r: Sale(*r), "shop"),
    }
    for position, shape, key in shapes.values():
        got = rolled(lambda s, p=position: getattr(s, method)(p), [shape(r) for r in PAIRS], key)
        assert got == [shape(r) for r in expected]


def test_named_tuples_by_name_and_position():
    points = [Point("a", 1), Point("a", 5)]
    for position in (1, "n"):
        (_, last) = rolled(lambda s, p=position: s.sum(p), points)
        assert last == Point("a", 6) and type(last) is Point


def test_plain_values_are_their_own_only_field():
    assert rolled(lambda s: s.sum(), [1, 2, 3], key=lambda v: "all") == [1, 3, 6]
    assert rolled(lambda s: s.max_by(), [1, 3, 2], key=lambda v: "all") == [1, 3, 3]


@pytest.mark.parametrize(("first", "kept"), [(True, "x"), (False, "z")])
def test_ties(first, kept):
    ties = [("a", 1, "x"), ("a", 1, "z")]
    assert rolled(lambda s: s.min_by(1, first), ties)[-1][2] == kept
    assert rolled(lambda s: s.max_by(1, first), ties)[-1][2] == kept


def test_a_row_keeps_its_kind_and_the_records_are_not_changed():
    row = Row.of_kind(RowKind.UPDATE_AFTER, "a", 1)
    first, second = rolled(lambda s: s.sum(1), [row, Row("a", 2)])
    assert second == Row.of_kind(RowKind.UPDATE_AFTER, "a", 3) and first == row


def test_a_field_that_is_not_there():
    with OperatorHarness(lambda s: s.key_by(0).sum("n").name("Totals")) as h:
        h.push(("a", 1))
        with pytest.raises(RecordError, match=r"Totals .*\('a', .*has no field 'n'"):
            h.push(("a", 2))


class Longest(ReduceFunction):
    def reduce(self, value1, value2):
        return max(value1, value2, key=len)


@pytest.mark.parametrize("function", [Longest(), lambda a, b: max(a, b, key=len)])
def test_reduce(function):
    got = rolled(lambda s: s.reduce(function), ["a", "b", "aaa", "aa"], key=lambda v: v[0])
    assert got == ["a", "b", "aaa", "aaa"]


def test_a_reduced_none_is_a_value():
    assert rolled(lambda s: s.reduce(lambda a, b: None if a else "back"), [1, 2, 3], key=lambda v: 0) == [
        1,
        None,
        "back",
    ]


def test_map_with_state():
    def numbered(value, state):
        count = (state or 0) + 1
        return f"{value}{count}", count if count < 2 else None

    with OperatorHarness(lambda s: s.key_by(lambda v: v).map_with_state(numbered)) as h:
        for time, value in enumerate(["a", "b", "a", "a"]):
            h.push(value, timestamp=time)
        assert h.output() == [("a1", 0), ("b1", 1), ("a2", 2), ("a1", 3)]
        assert h.state_entries() == 2


def test_filter_with_state_keeps_timestamps():
    def changed(value, last):
        return value[1] != last, value[1]

    with OperatorHarness(lambda s: s.key_by(0).filter_with_state(changed)) as h:
        for time, value in enumerate([("a", 1), ("a", 1), ("b", 1), ("a", 2)]):
            h.push(value, timestamp=time)
        h.push_all([("a", 2), ("a", 3)])
        assert h.output() == [(("a", 1), 0), (("b", 1), 2), (("a", 2), 3), (("a", 3), None)]


def test_flat_map_with_state_keeps_timestamps():
    def pairs(value, waiting):
        return ((), value) if waiting is None else ((x for x in (waiting, value)), None)

    with OperatorHarness(lambda s: s.key_by(lambda v: 0).flat_map_with_state(pairs)) as h:
        for value in (1, 2, 3, 4):
            h.push(value, timestamp=value)
        assert h.output() == [(1, 2), (2, 2), (3, 4), (4, 4)]
        assert h.state_entries() == 0


@pytest.mark.parametrize("returned", [None, 3, (1,), [1, 2]])
def test_with_state_wants_a_pair(returned):
    message = r"Map With State .*must return \(result, new state\)"
    harness = OperatorHarness(lambda s: s.key_by(lambda v: v).map_with_state(lambda v, state: returned))
    with harness as h, pytest.raises(JobFailed, match=message):
        h.push(1)
