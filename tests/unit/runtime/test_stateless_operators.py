"""map, filter, flat_map, split and project, one operator at a time."""

import pytest

from penstock.common import Row, Types
from penstock.datastream.functions import FilterFunction, FlatMapFunction, MapFunction, OutputSelector
from penstock.testing import OperatorHarness


class Doubled(MapFunction):
    def map(self, value):
        return value * 2


class Even(FilterFunction):
    def filter(self, value):
        return value % 2 == 0


class Words(FlatMapFunction):
    def flat_map(self, value):
        yield from value.split()


@pytest.mark.parametrize("function", [Doubled(), lambda v: v * 2])
def test_map_keeps_timestamps(function):
    with OperatorHarness(lambda s: s.map(function)) as harness:
        harness.push(1, timestamp=10)
        harness.push(2)
        assert harness.output() == [(2, 10), (4, None)]
        assert harness.output() == []


@pytest.mark.parametrize("function", [Even(), lambda v: v % 2 == 0])
def test_filter_keeps_records_with_their_timestamps(function):
    with OperatorHarness(lambda s: s.filter(function)) as harness:
        harness.push(1, timestamp=10)
        harness.push(2, timestamp=20)
        harness.push_all([3, 4, 5, 6])
        assert harness.output() == [(2, 20), (4, None), (6, None)]


@pytest.mark.parametrize("function", [Words(), str.split, lambda line: (w for w in line.split())])
def test_flat_map_gives_every_result_the_timestamp_of_its_record(function):
    with OperatorHarness(lambda s: s.flat_map(function)) as harness:
        harness.push("to be", timestamp=5)
        harness.push("", timestamp=6)
        harness.push_all(["or", "not to"])
        assert harness.output() == [("to", 5), ("be", 5), ("or", None), ("not", None), ("to", None)]


def test_flat_map_may_return_none():
    with OperatorHarness(lambda s: s.flat_map(lambda v: [v, v] if v > 1 else None)) as harness:
        harness.push(1, timestamp=1)
        harness.push(2, timestamp=2)
        harness.push_all([1, 3])
        assert harness.output() == [(2, 2), (2, 2), (3, None), (3, None)]


def test_watermarks_pass_between_the_records():
    with OperatorHarness(lambda s: s.map(str).filter(bool).flat_map(list)) as harness:
        harness.push(12, timestamp=1)
        harness.watermark(5)
        harness.push(3, timestamp=9)
        assert harness.elements() == [
            ("record", "1", 1),
            ("record", "2", 1),
            ("watermark", 5, None),
            ("record", "3", 9),
        ]


def test_a_declared_type_shapes_what_comes_out():
    with OperatorHarness(lambda s: s.map(lambda v: (v, v), Types.TUPLE([Types.DOUBLE(), Types.INT()]))) as harness:
        harness.push(3)
        (value,) = harness.values()
    assert repr(value) == "(3.0, 3)"


class Parity(OutputSelector):
    def select(self, value):
        return ["even" if value % 2 == 0 else "odd"] + (["big"] if value > 3 else [])


@pytest.mark.parametrize("selector", [Parity(), Parity().select])
def test_split_and_select(selector):
    chosen = {"even": [2, 4], "odd": [1, 3, 5], "big": [4, 5], "none": []}
    for name, expected in chosen.items():
        with OperatorHarness(lambda s, name=name: s.split(selector).select(name)) as harness:
            for value in (1, 2, 3, 4, 5):
                harness.push(value, timestamp=value * 10)
            assert harness.output() == [(v, v * 10) for v in expected]


def test_a_split_stream_is_also_the_whole_stream():
    with OperatorHarness(lambda s: s.split(Parity()).map(lambda v: v)) as harness:
        harness.push_all([1, 2])
        assert harness.values() == [1, 2]


def test_select_of_several_names_gives_a_record_once_and_in_order():
    with OperatorHarness(lambda s: s.split(Parity()).select("even", "big")) as harness:
        harness.push_all([4, 1, 5, 2])
        assert harness.values() == [4, 5, 2]


def test_an_output_that_is_named_twice_gives_a_record_once():
    with OperatorHarness(lambda s: s.split(lambda value: ["a", "a"]).select("a")) as harness:
        harness.push(1)
        assert harness.values() == [1]


def test_selections_whose_names_look_alike_stay_apart(run):
    def build(env):
        split = env.from_elements(1, 2).split(lambda value: ["a, b"] if value == 1 else ["b"])
        return split.select("a", "b").map(lambda v: ("two", v)).union(split.select("a, b").map(lambda v: ("one", v)))

    assert sorted(run(build)) == [("one", 1), ("two", 2)]


def test_project_picks_fields_in_order():
    with OperatorHarness(lambda s: s.project(2, 0)) as harness:
        harness.push(("a", 1, 2.0), timestamp=3)
        harness.push(Row(1, 2, 3))
        harness.push(["x", "y", "z"])
        assert harness.output() == [((2.0, "a"), 3), (Row(3, 1), None), (("z", "x"), None)]


def test_project_keeps_names_and_types(run):
    named = Types.ROW_NAMED(["a", "b", "c"], [Types.STRING(), Types.INT(), Types.DOUBLE()])

    def build(env):
        stream = env.from_collection([Row("x", 1, 2.0)], named).project(2, 0)
        assert stream.get_type() == Types.ROW_NAMED(["c", "a"], [Types.DOUBLE(), Types.STRING()])
        return stream

    (row,) = run(build)
    assert (row.c, row.a) == (2.0, "x")


def test_project_of_a_declared_tuple_checks_the_positions(env):
    stream = env.from_collection([(1, "a")], Types.TUPLE([Types.INT(), Types.STRING()]))
    assert stream.project(1).get_type() == Types.TUPLE([Types.STRING()])
    with pytest.raises(IndexError, match=r"no field 2; the type has 2 fields"):
        stream.project(2)
    with pytest.raises(ValueError, match=r"at least one field"):
        stream.project()
