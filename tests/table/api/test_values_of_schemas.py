"""Values that do not fit a schema, types for DataFrames of pandas, and times in the session's zone."""

import array
import datetime
from decimal import Decimal

import pandas as pd
import pytest

from penstock.common import Row
from penstock.errors import InvalidArgument, ValidationException
from penstock.table import DataTypes, EnvironmentSettings, TableEnvironment
from penstock.testing import in_process

FIELD, ROW, ARRAY, MAP = DataTypes.FIELD, DataTypes.ROW, DataTypes.ARRAY, DataTypes.MAP
TINYINT, INT, DOUBLE, STRING, BOOLEAN = (
    DataTypes.TINYINT(),
    DataTypes.INT(),
    DataTypes.DOUBLE(),
    DataTypes.STRING(),
    DataTypes.BOOLEAN(),
)


@pytest.fixture
def tables():
    with in_process():
        environment = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
        environment.get_config().set("parallelism.default", "1")
        yield environment


NESTED = ARRAY(ROW([FIELD("a", STRING), FIELD("b", BOOLEAN)]))
WRONG = [
    ([("pyflink", True), (True, "x")], NESTED, TypeError, "field a in element of the array in field c: STRING cannot"),
    ([("pyflink",)], NESTED, ValueError, "has 1 values, not 2"),
    ({"a": "b"}, MAP(STRING, INT), TypeError, "value of the map in field c: INT cannot hold 'b' .str."),
    ("x", INT, TypeError, "field c: INT cannot hold 'x' .str."),
    (1, STRING, TypeError, "STRING cannot hold 1 .int."),
    (True, INT, TypeError, "INT cannot hold True .bool."),
    (1, BOOLEAN, TypeError, "BOOLEAN cannot hold 1 .int."),
    (1.5, INT, TypeError, "INT cannot hold 1.5 .float."),
    ("1", DOUBLE, TypeError, "DOUBLE cannot hold '1' .str."),
    ("1", DataTypes.DECIMAL(5, 2), TypeError, "DECIMAL.5, 2. cannot hold '1' .str."),
    ("2020-01-01", DataTypes.DATE(), TypeError, "DATE cannot hold '2020-01-01' .str."),
    (datetime.date(2020, 1, 1), DataTypes.TIMESTAMP(3), TypeError, "TIMESTAMP.3. cannot hold datetime.date"),
    (300, TINYINT, ValueError, "300 is out of the range of TINYINT"),
    (2**31, INT, ValueError, "2147483648 is out of the range of INT"),
    ("abc", DataTypes.VARCHAR(2), ValueError, "'abc' is longer than VARCHAR.2. allows"),
    (None, DataTypes.INT(False), ValueError, "INT NOT NULL cannot hold None"),
]


@pytest.mark.parametrize(("value", "kind", "error", "message"), WRONG)
def test_a_value_that_does_not_fit_its_type(tables, value, kind, error, message):
    with pytest.raises(ValidationException, match=message) as caught:
        tables.from_elements([(value,)], ROW([FIELD("c", kind)]))
    assert isinstance(caught.value, error)


FITTING = [
    (1, DOUBLE, 1.0),
    (Decimal("1.50"), DataTypes.DECIMAL(5, 2), Decimal("1.50")),
    (bytearray(b"a"), DataTypes.BYTES(), b"a"),
    (None, INT, None),
    ([Row(a="x", b=True), {"a": "y", "b": None}], NESTED, [Row("x", True), Row("y", None)]),
    ({"a": 1}, MAP(STRING, INT), {"a": 1}),
]


@pytest.mark.parametrize(("value", "kind", "expected"), FITTING)
def test_values_that_fit(tables, value, kind, expected):
    with tables.from_elements([(value,)], ROW([FIELD("c", kind)])).execute().collect() as rows:
        assert [row[0] for row in rows] == [expected]


FRAME = pd.DataFrame({"a": [1, 2], "b": [1.5, 2.5], "c": ["x", "y"]})


def test_types_for_the_columns_of_a_data_frame(tables):
    table = tables.from_pandas(FRAME, [TINYINT, DataTypes.FLOAT(), STRING])
    named = tables.from_pandas(FRAME, ROW([FIELD("a", TINYINT), FIELD("b", DataTypes.FLOAT()), FIELD("c", STRING)]))
    for one in (table, named):
        assert str(one.get_schema()).splitlines()[1:4] == [" |-- a: TINYINT", " |-- b: FLOAT", " |-- c: STRING"]
    with table.execute().collect() as rows:
        assert sorted(map(tuple, rows)) == [(1, 1.5, "x"), (2, 2.5, "y")]


@pytest.mark.parametrize(
    ("frame", "schema", "message"),
    [
        (FRAME, [TINYINT], "1 types do not fit the 3 columns"),
        (FRAME, ROW([FIELD("a", INT)]), "1 fields do not fit the 3 columns"),
        (FRAME, ["a"], "1 names do not fit the 3 columns"),
        (FRAME, [INT, INT, STRING], "column b does not fit INT"),
        (pd.DataFrame({"a": [300]}), [TINYINT], "column a does not fit TINYINT"),
        (pd.DataFrame({"a": ["x", None]}), [STRING.not_null()], "column a has NULLs"),
    ],
)
def test_types_that_do_not_fit_a_data_frame(tables, frame, schema, message):
    with pytest.raises(ValidationException, match=message):
        tables.from_pandas(frame, schema)


def test_names_and_types_together_are_no_schema(tables):
    with pytest.raises(InvalidArgument, match="schema must be a ROW type, or a list of names or of types"):
        tables.from_pandas(FRAME, ["a", DOUBLE, "c"])


def test_times_with_a_zone_are_shown_in_that_of_the_session(tables, capsys):
    tables.get_config().set("table.local-time-zone", "Asia/Shanghai")
    tables.execute_sql("SELECT TO_TIMESTAMP_LTZ(1, 0), CAST(TO_TIMESTAMP_LTZ(1, 0) AS STRING)").print()
    (row,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("| +I")]
    assert row.count("1970-01-01 08:00:01.000") == 2


class Place:
    """A class of a program: its public attributes are the fields of a row."""

    def __init__(self, **values):
        vars(self).update(values)


PLACE = ROW([FIELD("name", STRING), FIELD("size", INT)])


@pytest.mark.parametrize(
    ("elements", "schema", "names", "expected"),
    [
        ([Place(size=1, name="a", _own=0), Place(name="b", size=2)], None, ["name", "size"], [("a", 1), ("b", 2)]),
        ([Place(size=1)], PLACE, ["name", "size"], [(None, 1)]),
        ([(1, Place(size=2, name="a"))], None, ["_1", "_2"], [(1, Row("a", 2))]),
        ([([Place(size=2)],)], ROW([FIELD("p", ARRAY(PLACE))]), ["p"], [([Row(None, 2)],)]),
        ([{"z": 1, "a": "x"}], None, ["a", "z"], [("x", 1)]),
        ([{"a": 1}, {"a": 2, "b": "x"}], None, ["a", "b"], [(1, None), (2, "x")]),
        ([Row(b=1, a="x"), Row(a="y", b=2)], None, ["b", "a"], [(1, "x"), (2, "y")]),
    ],
)
def test_objects_dicts_and_rows_with_names(tables, elements, schema, names, expected):
    table = tables.from_elements(elements, schema)
    assert table.get_schema().get_field_names() == names
    with table.execute().collect() as found:
        assert sorted(map(tuple, found)) == expected


@pytest.mark.parametrize(
    ("elements", "message"),
    [
        ([(1,), ("x",)], "values of BIGINT and of STRING cannot be in one column"),
        ([(array.array("L"),)], r"array\('L'\) of array has no SQL type"),
        ([Place()], "of Place has no SQL type"),
    ],
)
def test_types_that_cannot_be_found_out(tables, elements, message):
    with pytest.raises(ValidationException, match=message) as caught:
        tables.from_elements(elements)
    assert isinstance(caught.value, TypeError)


@pytest.mark.parametrize(("digits", "unit"), [(0, "s"), (3, "ms"), (6, "us"), (9, "us")])
def test_moments_in_a_data_frame_have_the_unit_of_their_precision(tables, digits, unit):
    frame = tables.sql_query(f"SELECT CAST(TIMESTAMP '2020-01-01 00:00:01' AS TIMESTAMP({digits})) AS t").to_pandas()
    assert list(frame["t"]) == [pd.Timestamp("2020-01-01 00:00:01")]
    assert str(frame["t"].dtype) == f"datetime64[{unit}]"
