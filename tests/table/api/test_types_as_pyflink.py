"""What programs ask of types beside their names: fields, plain forms of values, and types of one's own."""

import datetime
import pickle
from array import array
from collections import namedtuple
from decimal import Decimal

import pytest

from penstock.common import Row, RowKind
from penstock.errors import InvalidArgument, ValidationException
from penstock.table import DataTypes, EnvironmentSettings, TableEnvironment, types
from penstock.table.expression.function_declarations import udaf, udf, udtaf, udtf
from penstock.table.types.data_types import LONGEST, RowField, RowType, UserDefinedType, ZonedTimestampType
from penstock.testing import in_process

Pair = namedtuple("Pair", "left right")
PAIR = DataTypes.ROW([DataTypes.FIELD("a", DataTypes.INT()), DataTypes.FIELD("b", DataTypes.STRING())])
NOON = datetime.datetime(2024, 1, 2, 12, 30, tzinfo=datetime.timezone(datetime.timedelta(hours=1)))


def test_the_fields_of_a_row():
    assert PAIR.names == PAIR.field_names() == ["a", "b"]
    assert PAIR["a"] is PAIR[0] is PAIR.fields[0] and PAIR[-1].name == "b"
    assert PAIR[0:1] == DataTypes.ROW([PAIR[0]])
    assert len(PAIR) == 2 and [field.name for field in PAIR] == ["a", "b"]
    assert RowType().add("a", DataTypes.INT()).add(RowField("b", DataTypes.STRING())) == PAIR
    assert pickle.loads(pickle.dumps(PAIR)) == PAIR


@pytest.mark.parametrize(
    ("wrong", "error", "words"),
    [
        (lambda: PAIR["z"], KeyError, "no field z; it has: a, b"),
        (lambda: PAIR[2], IndexError, "2 fields has no field 2"),
        (lambda: PAIR[1.5], TypeError, "its name, its position or a slice"),
        (lambda: PAIR[True], TypeError, "its name, its position or a slice"),
        (lambda: RowType().add("name"), ValueError, "needs a type"),
        (lambda: RowField(1, DataTypes.INT()), TypeError, "must be a string, not 1"),
    ],
)
def test_fields_that_are_not_there(wrong, error, words):
    with pytest.raises(error, match=words):
        wrong()


def test_texts_of_types():
    assert [str(field) for field in PAIR.fields] == ["RowField(a, INT)", "RowField(b, VARCHAR)"]
    assert repr(PAIR) == f"RowType(RowField(a, IntType(true), ...),RowField(b, VarCharType({LONGEST}, true), ...))"


@pytest.mark.parametrize(
    ("declared", "value", "stored"),
    [
        (DataTypes.DATE(), datetime.date(1970, 1, 11), 10),
        (DataTypes.TIME(), datetime.time(0, 1, 0, 5), 60_000_005),
        (DataTypes.INTERVAL(DataTypes.DAY(), DataTypes.SECOND()), datetime.timedelta(days=1, seconds=10), 86410000000),
        (ZonedTimestampType(), NOON, (1704198600000000, 3600)),
        (DataTypes.ARRAY(DataTypes.DATE()), [datetime.date(1970, 1, 2), None], [1, None]),
        (DataTypes.MAP(DataTypes.STRING(), DataTypes.DATE()), {"x": datetime.date(1970, 1, 3)}, {"x": 2}),
        (DataTypes.INT(), 5, 5),
        (DataTypes.DATE(), None, None),
    ],
)
def test_plain_forms_of_values_and_back(declared, value, stored):
    assert declared.to_sql_type(value) == stored
    assert declared.from_sql_type(stored) == value
    assert declared.need_conversion() is not isinstance(value, int)


@pytest.mark.parametrize("declared", [DataTypes.TIMESTAMP(), DataTypes.TIMESTAMP_LTZ()])
def test_moments_without_a_zone_are_of_this_machines_zone(declared):
    local = datetime.datetime(2024, 1, 2, 3, 4, 5, 6)
    assert declared.to_sql_type(local) == int(local.replace(microsecond=0).timestamp()) * 1_000_000 + 6
    assert declared.from_sql_type(declared.to_sql_type(local)) == local


@pytest.mark.parametrize("value", [Row(a=1, b="x"), Row(1, "x"), (1, "x"), [1, "x"], {"a": 1, "b": "x"}])
def test_plain_forms_of_rows_begin_with_their_kind(value):
    assert PAIR.to_sql_type(value) == (RowKind.INSERT.value, 1, "x")
    assert PAIR.from_sql_type((1, "x")) == Row(a=1, b="x")


class Point:
    def __init__(self, x, y):
        self.x, self.y = x, y

    def __eq__(self, other):
        return vars(self) == vars(other)


class PointType(UserDefinedType):
    @classmethod
    def sql_type(cls):
        return DataTypes.ARRAY(DataTypes.DOUBLE(False))

    def serialize(self, obj):
        return [obj.x, obj.y]

    def deserialize(self, datum):
        return Point(*datum)


Point.__UDT__ = PointType()


def test_objects_of_ones_own():
    declared = PointType()
    assert declared.to_sql_type(Point(1.0, 2.0)) == [1.0, 2.0]
    assert declared.from_sql_type([1.0, 2.0]) == Point(1.0, 2.0)
    assert declared == PointType() and hash(declared) == hash(PointType()) and declared.type_name() == "pointtype"
    with in_process():
        t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
        for schema in (["p"], DataTypes.ROW([DataTypes.FIELD("p", PointType())])):
            table = t_env.from_elements([(Point(1.0, 2.0),), (None,)], schema)
            with table.execute().collect() as found:
                assert [tuple(row) for row in found] == [(Point(1.0, 2.0),), (None,)]


def test_surplus_digits_are_rounded_and_a_number_that_is_too_large_is_null():
    declared = DataTypes.ROW([DataTypes.FIELD("a", DataTypes.DECIMAL(4, 1)), DataTypes.FIELD("b", PAIRS)])
    rows = [(Decimal("1.25"), [Decimal("1.05")]), (Decimal("1234.5"), [Decimal("-1.05")]), (Decimal("-1.35"), None)]
    with in_process():
        t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
        with t_env.from_elements(rows, declared).execute().collect() as found:
            texts = [str(row) for row in found]
    assert texts == [
        "<Row(Decimal('1.3'), [Decimal('1.1')])>",
        "<Row(None, [Decimal('-1.1')])>",
        "<Row(Decimal('-1.4'), None)>",
    ]


NO_POINTS = [
    ([1.0, 2.0], r"\[1.0, 2.0\] .list. is not an object of PointType"),
    (Point(1, "x"), "stored value of field p: DOUBLE cannot hold 'x'"),
]


@pytest.mark.parametrize(("value", "words"), NO_POINTS)
def test_what_is_no_object_of_ones_own_type(value, words):
    t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    with pytest.raises(ValidationException, match=words):
        t_env.from_elements([(value,)], DataTypes.ROW([DataTypes.FIELD("p", PointType())]))


@pytest.mark.parametrize(
    ("make", "wrong", "words"),
    [
        (udf, {"result_type": 5}, "udf: the argument result_type must be a DataType, a string or None, not 5"),
        (udtf, {"result_types": [5]}, "udtf: the argument result_types must be a DataType"),
        (udaf, {"accumulator_type": int}, "udaf: the argument accumulator_type must be a DataType"),
        (udtaf, {"deterministic": "no"}, "udtaf: the argument deterministic must be True or False or None, not 'no'"),
    ],
)
def test_functions_refuse_what_is_no_type(make, wrong, words):
    with pytest.raises(InvalidArgument, match=words):
        make(lambda n: n, **wrong)


def test_names_that_libraries_import():
    """Libraries for PyFlink, such as its ML package, import these from its module."""
    assert types._infer_type(Point(1.0, 2.0)) == PointType()
    assert types._infer_schema_from_data([[1, "x"]], ["a"]).names == ["a", "_2"]
    assert types._merge_type(DataTypes.NULL(), DataTypes.INT()) == DataTypes.INT()
    types._create_type_verifier(DataTypes.INT())(1)
    with pytest.raises(TypeError, match="n: INT cannot hold 'x'"):
        types._create_type_verifier(DataTypes.INT(), "n")("x")
    add = udf(lambda n: n + 1, result_type=DataTypes.INT(), deterministic=False, name="add")
    assert add._name == "add" and add._deterministic is False


PAIRS = DataTypes.ARRAY(DataTypes.DECIMAL(3, 1))


@pytest.mark.parametrize(
    ("rows", "types"),
    [
        ([([], {}), ([1], {"x": [None]})], "ROW<`_1` ARRAY<BIGINT>, `_2` MAP<STRING NOT NULL, ARRAY<STRING>>>"),
        ([(array("h", [1]), array("B", [255]))], "ROW<`_1` ARRAY<SMALLINT NOT NULL>, `_2` ARRAY<SMALLINT NOT NULL>>"),
        ([(array("d", [1.0]), array("b", [1]))], "ROW<`_1` ARRAY<DOUBLE NOT NULL>, `_2` ARRAY<TINYINT NOT NULL>>"),
        ([(Pair(1, 2.0),)], "ROW<`_1` ROW<`left` BIGINT, `right` DOUBLE>>"),
    ],
)
def test_types_that_are_found_out(rows, types):
    with in_process():
        t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
        schema = t_env.from_elements(rows).get_schema()
        assert schema.to_row_data_type().nullable().as_sql() == types
        with t_env.from_elements(rows).execute().collect() as found:
            assert len(list(found)) == len(rows)
