"""Rows: fields by position and name, equality, pickling, and their columns."""

import copy
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.common import Row, RowKind
from penstock.common.types import rows_from_columns, rows_to_columns


def test_fields_are_found_by_position_name_and_attribute():
    row = Row(name="x", n=None)
    assert (row[0], row["name"], row.name, row[-1], row["n"], row.n) == ("x", "x", "x", None, None, None)
    assert row[0:2] == ["x", None]
    assert "name" in row and "x" not in row
    assert "x" in Row("x")


def test_assignment_by_position_and_name_leaves_copies_alone():
    row = Row(name="x", n=1)
    other = copy.copy(row)
    row["n"] = 2
    row[0] = "y"
    assert list(row) == ["y", 2]
    assert list(other) == ["x", 1]
    with pytest.raises(ValueError):
        row[0:1] = [1, 2]
    with pytest.raises(AttributeError):
        row.n = 3


def test_unknown_names_say_what_there_is():
    with pytest.raises(KeyError, match="no field 'z'; this row has the fields name, n"):
        Row(name="x", n=1)["z"]
    with pytest.raises(KeyError, match="no names"):
        Row(1)["z"]
    with pytest.raises(AttributeError):
        _ = Row(1).z
    with pytest.raises(ValueError):
        Row(1, n=2)


def test_names_can_be_set_and_asked_for_in_another_order():
    row = Row("x", 1)
    assert row.get_fields_by_names(["b", "a"]) == ["x", 1]
    row.set_field_names(["a", "b"])
    assert row.get_fields_by_names(["b", "a"]) == [1, "x"]
    with pytest.raises(ValueError):
        row.set_field_names(["a"])


def test_as_dict_descends_when_asked():
    row = Row(k=1, v=Row(a=[Row(b=2)], d={"r": Row(c=3)}))
    assert row.as_dict()["v"] == row.v
    assert row.as_dict(True) == {"k": 1, "v": {"a": [{"b": 2}], "d": {"r": {"c": 3}}}}
    with pytest.raises(TypeError):
        Row(1).as_dict()


def test_equality_counts_kind_and_names_but_not_their_order():
    assert Row(1, 2) == Row(1, 2) != Row(2, 1)
    assert Row(a=1, b=2) == Row(b=2, a=1)
    assert hash(Row(a=1, b=2)) == hash(Row(b=2, a=1))
    assert Row(a=1) != Row(1)
    assert Row(a=1) != Row(b=1)
    assert Row(1) != Row.of_kind(RowKind.DELETE, 1)
    assert Row(1) != (1,)
    assert {Row("k", 1): "v"}[Row("k", 1)] == "v"


def test_representation():
    assert repr(Row("a", 1)) == str(Row("a", 1)) == "<Row('a', 1)>"
    assert repr(Row(name="x")) == "Row(name='x')"
    assert [str(kind) for kind in RowKind] == ["+I", "-U", "+U", "-D"]


def test_a_row_of_names_makes_rows():
    person = Row("name", "age")
    assert person("Ann", 31) == Row(name="Ann", age=31)
    with pytest.raises(ValueError):
        person(1, 2, 3)


@pytest.mark.parametrize(
    "row", [Row(), Row(1, None), Row(a=1, b=Row(2)), Row.of_kind(RowKind.UPDATE_BEFORE, 1), Row(*range(40))]
)
def test_rows_survive_pickling_and_copying(row):
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps(row, protocol)) == row
    assert copy.deepcopy(row) == row


values = st.none() | st.integers() | st.text(max_size=3)


@st.composite
def equal_shaped_rows(draw):
    width = draw(st.integers(1, 20))
    named = draw(st.booleans())
    rows = []
    for fields in draw(st.lists(st.lists(values, min_size=width, max_size=width), min_size=1, max_size=8)):
        row = Row.of_kind(draw(st.sampled_from(RowKind)), *fields)
        if named:
            row.set_field_names([f"c{i}" for i in range(width)])
        rows.append(row)
    return rows


@given(equal_shaped_rows())
def test_columns_round_trip(rows):
    packed = rows_to_columns(rows)
    assert packed is not None
    assert rows_from_columns(pickle.loads(pickle.dumps(packed))) == rows


def test_inserts_need_no_kinds():
    assert rows_to_columns([Row(a=1), Row(a=None)]) == (("a",), None, [(1, None)])
    assert rows_to_columns([Row(1), Row.of_kind(RowKind.DELETE, 2)]) == (None, b"\x00\x03", [(1, 2)])


@pytest.mark.parametrize(
    "rows", [[], [Row(), Row()], [Row(1), Row(1, 2)], [Row(a=1), Row(b=1)], [Row(a=1), Row(1)], [Row(1), (1,)]]
)
def test_rows_that_differ_in_shape_have_no_columns(rows):
    assert rows_to_columns(rows) is None
