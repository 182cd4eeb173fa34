"""`collect(as_=Order)`: rows as records of a class, which is checked against the columns before a row is read."""

from __future__ import annotations

import datetime
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, NamedTuple, NotRequired, TypedDict

import pytest

from penstock.common import Configuration, Row
from penstock.datastream import StreamExecutionEnvironment
from penstock.errors import InvalidArgument, TableException, ValidationException
from penstock.table import StreamTableEnvironment
from penstock.testing import in_process


@dataclass(frozen=True)
class Place:
    city: str
    code: int | None


@dataclass
class Order:
    customer: str
    amount: float
    place: Place
    tags: list[str]
    stock: dict[str, int | None]
    day: datetime.date
    price: Decimal | None = None
    notes: list[str] = field(default_factory=list)


class Pair(NamedTuple):
    word: str
    number: int = 7


class Sale(TypedDict):
    word: str
    number: NotRequired[int]


ORDERS = """
    SELECT 'ann' AS customer, 3 AS amount, CAST(ROW('Rome', NULL) AS ROW<city STRING, code INT>) AS place,
        ARRAY['a', 'b'] AS tags, MAP['pen', 1] AS stock, DATE '2020-01-31' AS `day`
"""


@pytest.fixture
def tables():
    with in_process():
        env = StreamExecutionEnvironment.get_execution_environment()
        env.configure(Configuration().set_string("table.exec.batch.engine", "penstock"))
        yield StreamTableEnvironment.create(env.set_parallelism(1))


def test_rows_become_records_of_dataclasses_also_within_records(tables):
    with tables.sql_query(ORDERS).execute().collect(as_=Order) as orders:
        day = datetime.date(2020, 1, 31)
        assert list(orders) == [Order("ann", 3.0, Place("Rome", None), ["a", "b"], {"pen": 1}, day, None, [])]


def test_an_int_becomes_the_float_that_a_field_wants(tables):
    order = tables.execute_sql(ORDERS).collect(as_=Order).next()
    assert type(order.amount) is float


@pytest.mark.parametrize(
    ("record", "query", "expected"),
    [
        (Pair, "SELECT 1 AS number, 'a' AS word", Pair("a", 1)),
        (Pair, "SELECT 'a' AS word", Pair("a", 7)),
        (Sale, "SELECT 1 AS number, 'a' AS word", {"word": "a", "number": 1}),
        (Sale, "SELECT 'a' AS word", {"word": "a"}),
    ],
)
def test_named_tuples_and_typed_dicts(tables, record, query, expected):
    assert list(tables.execute_sql(query).collect(as_=record)) == [expected]


@dataclass
class Anything:
    a: Any
    b: int | str
    c: Row | None


def test_any_unions_and_rows(tables):
    query = "SELECT TIME '10:00:00' AS a, 'x' AS b, CAST(ROW(1) AS ROW<f INT>) AS c"
    assert list(tables.execute_sql(query).collect(as_=Anything)) == [Anything(datetime.time(10), "x", Row(f=1))]


@dataclass
class One:
    a: int


@dataclass
class Text:
    a: str


@dataclass
class Nested:
    a: Place


@dataclass
class Many:
    a: list[int]


@dataclass
class Table:
    a: dict[str, str]


@dataclass
class Exact:
    a: Decimal


@pytest.mark.parametrize(
    ("record", "query", "message"),
    [
        (One, "SELECT 1 AS b", "One has fields without a column: a. The columns are: b INT NOT NULL"),
        (One, "SELECT 1 AS a, 2 AS b, 3 AS c", "One has no field for these columns: b, c"),
        (One, "SELECT 'x' AS a", r"a is CHAR\(1\) NOT NULL, whose values are str, not int"),
        (One, "SELECT 1.5 AS a", r"a is DECIMAL\(2, 1\) NOT NULL, whose values are Decimal, not int"),
        (Text, "SELECT 1 AS a", "a is INT NOT NULL, whose values are int, not str"),
        (Exact, "SELECT 1 AS a", "a is INT NOT NULL, whose values are int, not Decimal"),
        (One, "SELECT ROW(1) AS a", "whose values are a dataclass, a NamedTuple or a TypedDict, or a Row, not int"),
        (Nested, "SELECT CAST(ROW('x') AS ROW<city STRING>) AS a", r"Place has fields without a column: a\.code"),
        (Nested, "SELECT CAST(ROW(1, 2) AS ROW<city INT, code INT>) AS a", r"a\.city is INT, whose values are int"),
        (Many, "SELECT ARRAY['x'] AS a", r"a\[\] is CHAR\(1\) NOT NULL, whose values are str, not int"),
        (Many, "SELECT 1 AS a", r"a is INT NOT NULL, whose values are int, not list\[int\]"),
        (Table, "SELECT MAP['x', 1] AS a", r"a\{\} is INT NOT NULL, whose values are int, not str"),
    ],
)
def test_a_class_that_does_not_fit_is_refused_before_a_row_is_read(tables, record, query, message):
    result = tables.execute_sql(query)
    with pytest.raises(ValidationException, match=rf"^collect\(as_={record.__name__}\): .*({message})"):
        result.collect(as_=record)
    assert len(list(result.collect())) == 1


@pytest.mark.parametrize("record", [int, str, tuple, dict, Row, StreamTableEnvironment])
def test_a_class_that_is_no_record_is_refused(tables, record):
    with pytest.raises(InvalidArgument, match="as_ must be a dataclass, a NamedTuple or a TypedDict, not <class"):
        tables.execute_sql("SELECT 1 AS a").collect(as_=record)


@pytest.mark.parametrize("record", [One(1), "One", 3])
def test_what_is_no_class_is_refused(tables, record):
    with pytest.raises(InvalidArgument, match="as_"):
        tables.execute_sql("SELECT 1 AS a").collect(as_=record)


def test_null_in_a_field_that_does_not_allow_none(tables):
    rows = tables.execute_sql("SELECT * FROM (VALUES (1), (CAST(NULL AS INT))) AS t(a)").collect(as_=One)
    assert next(rows) == One(1)
    with pytest.raises(TableException, match=r"collect\(as_=One\): a is NULL, and its field is annotated int"):
        next(rows)


def test_a_change_of_an_earlier_row_is_refused(tables):
    changes = tables.execute_sql("SELECT SUM(x) AS a FROM (VALUES (1), (2)) AS t(x)").collect(as_=One)
    assert next(changes) == One(1)
    with pytest.raises(TableException, match=r"of kind -U is a change of an earlier row.*BATCH mode"):
        next(changes)


def test_names_of_local_classes_are_an_error_that_says_what_to_do(tables):
    @dataclass
    class Inner:
        city: str

    @dataclass
    class Outer:
        a: Inner

    with pytest.raises(ValidationException, match=r"'Inner' is not defined. Define the classes that they"):
        tables.execute_sql("SELECT CAST(ROW('x') AS ROW<city STRING>) AS a").collect(as_=Outer)
