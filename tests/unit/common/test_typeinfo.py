"""Types: what fits, what it becomes, how it is printed, and what is inferred."""

import datetime
import enum
import math
import pickle
import struct
from collections import namedtuple
from dataclasses import dataclass
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.common import Instant, Row, RowKind, Types
from penstock.common.typeinfo import infer_type
from penstock.errors import TypeMismatch


@dataclass(frozen=True)
class Point:
    x: int


class Colour(enum.Enum):
    RED = 1


PAIR = Types.TUPLE([Types.STRING(), Types.INT()])
NAMED = Types.ROW_NAMED(["name", "n"], [Types.STRING(), Types.INT()])


@pytest.mark.parametrize(
    ("declared", "values"),
    [
        (Types.STRING(), ["a", None, ""]),
        (Types.BYTE(), [-128, 127, None]),
        (Types.SHORT(), [-32768, 32767]),
        (Types.INT(), [-(2**31), 2**31 - 1, True]),
        (Types.LONG(), [-(2**63), 2**63 - 1]),
        (Types.BIG_INT(), [2**100]),
        (Types.BOOLEAN(), [True, None]),
        (Types.FLOAT(), [0.5, math.inf]),
        (Types.DOUBLE(), [0.1, None]),
        (Types.CHAR(), ["a", None]),
        (Types.BIG_DEC(), [Decimal("1.5")]),
        (Types.INSTANT(), [Instant.of_epoch_milli(5)]),
        (Types.SQL_DATE(), [datetime.date(2024, 1, 2)]),
        (Types.SQL_TIME(), [datetime.time(1, 2)]),
        (Types.SQL_TIMESTAMP(), [datetime.datetime(2024, 1, 2)]),
        (Types.PICKLED_BYTE_ARRAY(), [range(3), None, 1]),
        (Types.DATACLASS(Point), [Point(1)]),
        (Types.ENUM(Colour), [Colour.RED, None]),
        (PAIR, [("a", 1), (None, None), None]),
        (Types.TUPLE([]), []),
        (NAMED, [Row(name="x", n=1), Row(name=None, n=None), None]),
        (Types.ROW([Types.INT()]), [Row(a=1)]),
        (Types.LIST(PAIR), [[("a", 1)], [], None]),
        (Types.MAP(Types.STRING(), Types.LONG()), [{"a": 1}, {}, {"b": None}]),
        (Types.PRIMITIVE_ARRAY(Types.BYTE()), [b"ab"]),
        (Types.PRIMITIVE_ARRAY(Types.INT()), [[1, 2]]),
        (Types.BASIC_ARRAY(Types.STRING()), [["a", None]]),
        (Types.OBJECT_ARRAY(PAIR), [[("a", 1)]]),
    ],
    ids=repr,
)
def test_what_fits_already_comes_back_as_the_same_list(declared, values):
    assert declared.fit(values) is values
    assert declared.fit([]) == []
    assert pickle.loads(pickle.dumps(declared)) == declared
    assert hash(pickle.loads(pickle.dumps(declared))) == hash(declared)


@pytest.mark.parametrize(
    ("declared", "given_values", "expected"),
    [
        (Types.FLOAT(), [0.1, 1, None], [struct.unpack("f", struct.pack("f", 0.1))[0], 1.0, None]),
        (Types.DOUBLE(), [1, None, True, Decimal("0.5")], [1.0, None, 1.0, 0.5]),
        (Types.BIG_DEC(), [1, Decimal(2)], [Decimal(1), Decimal(2)]),
        (Types.SQL_DATE(), [datetime.datetime(2024, 1, 2, 3)], [datetime.date(2024, 1, 2)]),
        (PAIR, [["a", 1], Row("b", 2), None], [("a", 1), ("b", 2), None]),
        (Types.TUPLE([Types.DOUBLE(), Types.STRING()]), [(1, "a"), (None, "b")], [(1.0, "a"), (None, "b")]),
        (NAMED, [("x", 1), None, ["y", 2]], [Row(name="x", n=1), None, Row(name="y", n=2)]),
        (NAMED, [("x", 1)], [Row(name="x", n=1)]),
        (NAMED, [Row("x", 1)], [Row(name="x", n=1)]),
        (NAMED, [Row(n=1, name="x"), {"n": 2, "name": "y"}], [Row(name="x", n=1), Row(name="y", n=2)]),
        (Types.ROW([Types.INT()]), [(1,), Row(2)], [Row(f0=1), Row(f0=2)]),
        (Types.ROW([Types.DOUBLE()]), [Row(a=1), Row(b=2), (3,)], [Row(a=1.0), Row(b=2.0), Row(f0=3.0)]),
        (Types.LIST(Types.DOUBLE()), [(1, 2), [], [3.5]], [[1.0, 2.0], [], [3.5]]),
        (Types.MAP(Types.STRING(), Types.DOUBLE()), [{"a": 1}, {}], [{"a": 1.0}, {}]),
        (Types.PRIMITIVE_ARRAY(Types.BYTE()), [bytearray(b"ab")], [b"ab"]),
        (Types.LIST(NAMED), [[("x", 1)], None], [[Row(name="x", n=1)], None]),
    ],
    ids=repr,
)
def test_values_take_the_form_they_have_behind_a_serialiser(declared, given_values, expected):
    fitted = declared.fit(given_values)
    assert fitted == expected
    assert [type(v) for v in fitted] == [type(v) for v in expected]
    assert [repr(v) for v in fitted] == [repr(v) for v in expected]
    assert declared.fit(fitted) is fitted


def test_rows_keep_their_kind_and_the_given_rows_are_left_alone():
    row = Row.of_kind(RowKind.DELETE, "x", 1)
    (fitted,) = NAMED.fit([row])
    assert fitted == Row.of_kind(RowKind.DELETE, name="x", n=1)
    assert row.get_field_names() is None


def test_a_named_tuple_becomes_a_plain_one():
    assert [type(v) for v in PAIR.fit([namedtuple("P", "a b")("x", 1)])] == [tuple]


def test_rows_of_many_fields():
    names = [f"c{i}" for i in range(40)]
    declared = Types.ROW_NAMED(names, [Types.INT()] * 40)
    (row,) = declared.fit([(*range(39), None)])
    assert row.c38 == 38 and row.c39 is None


@pytest.mark.parametrize(
    ("declared", "value", "message"),
    [
        (Types.INT(), "abc", "'abc' (str) does not fit INT"),
        (Types.INT(), 2**31, "2147483648 (int) does not fit INT"),
        (Types.LONG(), 1.5, "1.5 (float) does not fit LONG"),
        (Types.BYTE(), -129, "-129 (int) does not fit BYTE"),
        (Types.STRING(), b"x", "b'x' (bytes) does not fit STRING"),
        (Types.BOOLEAN(), 1, "1 (int) does not fit BOOLEAN"),
        (Types.CHAR(), "ab", "'ab' (str) does not fit CHAR"),
        (Types.DOUBLE(), "1", "'1' (str) does not fit DOUBLE"),
        (Types.BIG_DEC(), 0.1, "0.1 (float) does not fit BIG_DEC"),
        (Types.DATACLASS(Point), 1, "1 (int) does not fit DATACLASS(Point)"),
        (Types.ENUM(Colour), "RED", "'RED' (str) does not fit ENUM(Colour)"),
        (PAIR, ("a",), "('a',) (tuple) does not fit TUPLE(STRING, INT)"),
        (PAIR, "ab", "'ab' (str) does not fit TUPLE(STRING, INT)"),
        (PAIR, ("a", "b"), "'b' (str) does not fit INT, in field 1 of TUPLE(STRING, INT)"),
        (NAMED, Row(a=1, n=2), "Row(a=1, n=2) (Row) does not fit ROW(name STRING, n INT)"),
        (NAMED, {"nom": "x"}, "{'nom': 'x'} (dict) does not fit ROW(name STRING, n INT)"),
        (NAMED, {"name": 1}, "1 (int) does not fit STRING, in field 0 of ROW(name STRING, n INT)"),
        (NAMED, 7, "7 (int) does not fit ROW(name STRING, n INT)"),
        (NAMED, Row("x"), "<Row('x')> (Row) does not fit ROW(name STRING, n INT)"),
        (Types.LIST(Types.INT()), "ab", "'ab' (str) does not fit LIST(INT)"),
        (Types.LIST(Types.INT()), ["x"], "'x' (str) does not fit INT"),
        (Types.MAP(Types.STRING(), Types.INT()), {1: 1}, "1 (int) does not fit STRING"),
        (Types.PRIMITIVE_ARRAY(Types.BYTE()), [1], "[1] (list) does not fit PRIMITIVE_ARRAY(BYTE)"),
    ],
    ids=repr,
)
def test_a_misfit_is_shown_with_its_type_and_the_declared_one(declared, value, message):
    for chunk in ([value], [None, value]):
        with pytest.raises(TypeMismatch) as caught:
            declared.fit(chunk)
        assert str(caught.value) == message


def test_a_long_misfit_is_shortened():
    with pytest.raises(TypeMismatch) as caught:
        Types.INT().fit(["x" * 10_000])
    assert len(str(caught.value)) < 120


longs = st.integers(-(2**31) - 2, 2**31 + 2) | st.booleans() | st.none()
fields = st.one_of(longs, st.text(max_size=2), st.floats(allow_nan=False))


def fits(value, kind):
    """The oracle: one value against one type, by its definition. Gives the coerced value in a list, or nothing."""
    if value is None:
        return [None]
    if kind == Types.INT():
        return [value] if isinstance(value, int) and -(2**31) <= value < 2**31 else []
    if kind == Types.STRING():
        return [value] if isinstance(value, str) else []
    return [float(value)] if isinstance(value, (int, float)) else []


@given(
    st.lists(st.none() | st.tuples(fields, fields) | st.lists(fields, min_size=1, max_size=3), max_size=6),
    st.tuples(*[st.sampled_from([Types.INT(), Types.STRING(), Types.DOUBLE()])] * 2),
)
def test_tuples_fit_as_their_values_do_one_by_one(values, types):
    expected = []
    for value in values:
        parts = [] if value is None else [fits(v, t) for v, t in zip(value, types)]
        good = value is None or (len(value) == 2 and all(parts))
        expected.append((value if value is None else tuple(p[0] for p in parts)) if good else TypeMismatch)
    declared = Types.TUPLE(types)
    if TypeMismatch in expected:
        with pytest.raises(TypeMismatch):
            declared.fit(values)
    else:
        fitted = declared.fit(values)
        assert repr(fitted) == repr(expected)
        assert declared.fit(fitted) is fitted


any_type = st.recursive(
    st.sampled_from([Types.LONG(), Types.STRING(), Types.DOUBLE(), Types.FLOAT(), Types.BOOLEAN()]),
    lambda inner: st.one_of(
        st.builds(Types.LIST, inner),
        st.builds(Types.MAP, st.just(Types.STRING()), inner),
        st.builds(Types.TUPLE, st.lists(inner, min_size=1, max_size=3)),
        st.builds(lambda ts: Types.ROW_NAMED([f"c{i}" for i in range(len(ts))], ts), st.lists(inner, min_size=1)),
    ),
    max_leaves=6,
)


def loose_values(declared):
    """Values that fit a type, though not all of them in its final form."""
    if hasattr(declared, "field_types"):
        parts = st.tuples(*map(loose_values, declared.field_types))
        return st.none() | parts | parts.map(list) | parts.map(lambda values: Row(*values))
    if hasattr(declared, "elem_type"):
        return st.none() | st.lists(loose_values(declared.elem_type), max_size=3)
    if hasattr(declared, "value_type"):
        return st.none() | st.dictionaries(st.text(max_size=2), loose_values(declared.value_type), max_size=3)
    numbers = st.integers(-(2**53), 2**53) | st.floats(allow_nan=False)
    basic = {
        "LONG": st.integers(-(2**63), 2**63 - 1),
        "STRING": st.text(max_size=3),
        "BOOLEAN": st.booleans(),
    }
    return st.none() | basic.get(declared.notation, numbers)


@given(st.data(), any_type)
def test_fit_is_idempotent(data, declared):
    fitted = declared.fit(data.draw(st.lists(loose_values(declared), max_size=6)))
    assert declared.fit(fitted) is fitted


@pytest.mark.parametrize(
    ("declared", "value", "text"),
    [
        (Types.STRING(), "a b", "a b"),
        (Types.STRING(), None, "null"),
        (Types.BOOLEAN(), True, "true"),
        (Types.INT(), True, "1"),
        (Types.DOUBLE(), 1.0, "1.0"),
        (Types.DOUBLE(), 0.1, "0.1"),
        (Types.DOUBLE(), -0.0, "-0.0"),
        (Types.DOUBLE(), 1234567.5, "1234567.5"),
        (Types.DOUBLE(), 1e7, "1.0E7"),
        (Types.DOUBLE(), -1.25e-5, "-1.25E-5"),
        (Types.DOUBLE(), 0.001, "0.001"),
        (Types.DOUBLE(), 1e300, "1.0E300"),
        (Types.DOUBLE(), math.nan, "NaN"),
        (Types.DOUBLE(), -math.inf, "-Infinity"),
        (Types.FLOAT(), struct.unpack("f", struct.pack("f", 0.1))[0], "0.1"),
        (Types.SQL_DATE(), datetime.date(2024, 1, 2), "2024-01-02"),
        (Types.SQL_TIME(), datetime.time(1, 2, 3, 4), "01:02:03"),
        (Types.SQL_TIMESTAMP(), datetime.datetime(2024, 1, 2, 3, 4, 5, 120000), "2024-01-02 03:04:05.12"),
        (Types.SQL_TIMESTAMP(), datetime.datetime(2024, 1, 2), "2024-01-02 00:00:00.0"),
        (Types.INSTANT(), Instant.of_epoch_milli(5), "1970-01-01T00:00:00.005Z"),
        (Types.ENUM(Colour), Colour.RED, "RED"),
        (PAIR, ("a", None), "(a,null)"),
        (NAMED, Row(name="a", n=1), "+I[a, 1]"),
        (NAMED, Row.of_kind(RowKind.UPDATE_AFTER, "a", None), "+U[a, null]"),
        (Types.LIST(PAIR), [("a", 1), None], "[(a,1), null]"),
        (Types.MAP(Types.STRING(), Types.BOOLEAN()), {"a": True, "b": None}, "{a=true, b=null}"),
        (Types.PRIMITIVE_ARRAY(Types.BYTE()), b"\x01\xff", "[1, -1]"),
        (Types.PICKLED_BYTE_ARRAY(), ("a", 1), "('a', 1)"),
        (Types.PICKLED_BYTE_ARRAY(), None, "None"),
    ],
    ids=repr,
)
def test_values_are_printed_as_flink_prints_them(declared, value, text):
    assert declared.text(value) == text


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_printed_doubles_read_back(number):
    assert float(Types.DOUBLE().text(number)) == number


@given(st.floats(allow_nan=False, allow_infinity=False, width=32))
def test_printed_floats_read_back(number):
    assert struct.pack("f", float(Types.FLOAT().text(number))) == struct.pack("f", number)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("a", Types.STRING()),
        (True, Types.BOOLEAN()),
        (1, Types.LONG()),
        (2**63, Types.BIG_INT()),
        (1.5, Types.DOUBLE()),
        (b"a", Types.PRIMITIVE_ARRAY(Types.BYTE())),
        (Decimal(1), Types.BIG_DEC()),
        (datetime.datetime(2024, 1, 1), Types.SQL_TIMESTAMP()),
        (("a", 1), Types.TUPLE([Types.STRING(), Types.LONG()])),
        (Row("a"), Types.ROW([Types.STRING()])),
        (Row(n=1), Types.ROW_NAMED(["n"], [Types.LONG()])),
        ([1, None], Types.LIST(Types.LONG())),
        ({"a": 1.0}, Types.MAP(Types.STRING(), Types.DOUBLE())),
        (Point(1), Types.DATACLASS(Point)),
        (Colour.RED, Types.ENUM(Colour)),
    ],
    ids=repr,
)
def test_inferred_types(value, expected):
    assert infer_type(value) == expected
    assert expected.fit([value])


@pytest.mark.parametrize("value", [None, [], {}, [1, "a"], object(), {1}, namedtuple("P", "a")(1), Point])
def test_what_has_no_closer_type_is_pickled(value):
    assert infer_type(value) == Types.PICKLED_BYTE_ARRAY()


def test_types_are_equal_by_their_parts():
    assert Types.TUPLE((Types.STRING(), Types.INT())) == PAIR
    assert Types.TUPLE([Types.STRING(), Types.LONG()]) != PAIR
    assert Types.ROW([Types.STRING(), Types.INT()]) != NAMED
    assert Types.LIST(Types.INT()) != Types.BASIC_ARRAY(Types.INT())
    assert len({Types.INT(), Types.INT(), Types.LONG()}) == 2


def test_row_types_describe_their_fields():
    assert NAMED.get_field_names() == ["name", "n"]
    assert NAMED.get_field_types() == [Types.STRING(), Types.INT()]
    assert NAMED.get_field_index("n") == 1
    assert Types.ROW([Types.INT(), Types.INT()]).get_field_names() == ["f0", "f1"]
    with pytest.raises(ValueError, match="no field 'z'"):
        NAMED.get_field_index("z")


def test_python_types_with_one_meaning_are_types():
    assert Types.TUPLE([int, str, float]) == Types.TUPLE([Types.LONG(), Types.STRING(), Types.DOUBLE()])
    assert Types.LIST(bool) == Types.LIST(Types.BOOLEAN())
    assert Types.MAP(str, list[bytes]) == Types.MAP(Types.STRING(), Types.LIST(Types.PRIMITIVE_ARRAY(Types.BYTE())))
    assert Types.ROW_NAMED(("a", "b"), (datetime.date, Decimal | None)) == Types.ROW_NAMED(
        ["a", "b"], [Types.SQL_DATE(), Types.BIG_DEC()]
    )
    assert Types.LIST(tuple[datetime.time, datetime.datetime]) == Types.LIST(
        Types.TUPLE([Types.SQL_TIME(), Types.SQL_TIMESTAMP()])
    )
    assert Types.LIST(dict[str, object]) == Types.LIST(Types.MAP(Types.STRING(), Types.PICKLED_BYTE_ARRAY()))


def test_parts_must_be_types():
    for build in (
        lambda: Types.TUPLE([Types.INT]),
        lambda: Types.LIST(list),
        lambda: Types.MAP(Types.INT(), "str"),
        lambda: Types.PRIMITIVE_ARRAY(PAIR),
        lambda: Types.DATACLASS(int),
        lambda: Types.ENUM(int),
    ):
        with pytest.raises(TypeError):
            build()
    for names in (["a"], ["a", "a"]):
        with pytest.raises(ValueError):
            Types.ROW_NAMED(names, [Types.INT(), Types.INT()])


class Sensor:
    def __init__(self, **attributes):
        vars(self).update(attributes)


@dataclass(slots=True)
class Slotted:
    name: str
    n: int
    other: float = 0.0


@pytest.mark.parametrize(
    ("value", "row"),
    [
        (Sensor(n=1, name="a"), Row(name="a", n=1)),
        (Sensor(n=1, name="a", place="here"), Row(name="a", n=1)),
        (Sensor(n=1), Row(name=None, n=1)),
        (Slotted("a", 1), Row(name="a", n=1)),
        ({"n": 1, "name": "a", "place": "here"}, Row(name="a", n=1)),
        ({"name": "a"}, Row(name="a", n=None)),
    ],
)
def test_objects_and_dicts_fit_a_named_row_as_pyflink_lets_them(value, row):
    assert NAMED.fit([value]) == [row]
    assert NAMED.fit([None, value, ("b", 2)]) == [None, row, Row(name="b", n=2)]


@pytest.mark.parametrize(
    ("declared", "text"),
    [
        (Types.ROW_NAMED(["a", "b"], [Types.STRING(), Types.INT()]), "RowTypeInfo(a: String, b: Integer)"),
        (Types.ROW([Types.BYTE(), Types.SHORT()]), "RowTypeInfo(Byte, Short)"),
        (Types.TUPLE([Types.LONG(), Types.BIG_DEC()]), "TupleTypeInfo(Long, BigDecimal)"),
        (Types.LIST(Types.DOUBLE()), "ListTypeInfo<Double>"),
        (Types.MAP(Types.CHAR(), Types.BIG_INT()), "MapTypeInfo<Char, BigInteger>"),
        (Types.PRIMITIVE_ARRAY(Types.FLOAT()), "PrimitiveArrayTypeInfo<Float>"),
        (Types.PRIMITIVE_ARRAY(Types.BYTE()), "PrimitiveArrayTypeInfo<Byte>"),
        (Types.BASIC_ARRAY(Types.BOOLEAN()), "BasicArrayTypeInfo<Boolean>"),
        (Types.OBJECT_ARRAY(Types.INSTANT()), "ObjectArrayTypeInfo<Instant>"),
        (Types.PICKLED_BYTE_ARRAY(), "PickledByteArrayTypeInfo"),
        (Types.TUPLE([Types.SQL_DATE(), Types.SQL_TIME()]), "TupleTypeInfo(DateTypeInfo, TimeTypeInfo)"),
        (Types.SQL_TIMESTAMP(), "TimestampTypeInfo"),
    ],
)
def test_types_print_as_in_pyflink(declared, text):
    assert str(declared) == repr(declared) == text
