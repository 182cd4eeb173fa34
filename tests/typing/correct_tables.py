"""Correct programs with tables, in which no type checker finds an error."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, TypedDict, assert_type

from penstock.common import Row
from penstock.table import DataTypes, EnvironmentSettings, Table, TableEnvironment
from penstock.table.expression.expression import Expression
from penstock.table.expressions import col, lit
from penstock.table.table_result import CloseableIterator
from penstock.table.udf import AggregateFunction, ScalarFunction, udaf, udf, udtf

tables = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
words = tables.from_elements([("to", 1), ("be", 2)], ["word", "number"])


@dataclass(frozen=True)
class Order:
    customer: str
    amount: int | None


class Pair(NamedTuple):
    word: str
    number: int


class Sale(TypedDict):
    word: str
    number: int


@udf(result_type=DataTypes.STRING())
def label(item: str, length: int = 3) -> str:
    return item[:length]


@udtf(result_types=[DataTypes.STRING()])
def letters(word: str) -> Iterator[str]:
    yield from word


@udaf(result_type=DataTypes.DOUBLE(), func_type="pandas")
def mean(numbers: list[float]) -> float:
    return sum(numbers) / len(numbers)


class Half(ScalarFunction):
    def eval(self, number: int) -> float:
        return number / 2


class Last(AggregateFunction[Any, list[Any]]):
    def create_accumulator(self) -> list[Any]:
        return []

    def accumulate(self, acc: list[Any], value: int) -> None:
        acc[:] = [value]

    def get_value(self, accumulator: list[Any]) -> Any:
        return accumulator[0]


half = udf(Half(), result_type=DataTypes.DOUBLE())
half_too = udf(Half, result_type="DOUBLE")
last = udaf(Last(), result_type="BIGINT", accumulator_type="ARRAY<BIGINT>")
twice = udf(lambda number: 2 * number, result_type=DataTypes.BIGINT())


def functions() -> None:
    assert_type(label(col("word")), Expression)
    assert_type(label(col("word"), 2).upper_case, Expression)
    assert_type(label.callable()("word", length=2), str)
    assert_type(letters.callable()("word"), Iterator[str])
    assert_type(mean.callable()([1.0]), float)
    assert_type(words.select(label(words.word), half(col("number")), twice(col("number"))), Table)
    words.join_lateral(letters(col("word")).alias("letter")).group_by(col("word")).select(last(col("number")))
    words.select(half_too(col("number")).alias("half")).execute().print()


def expressions() -> None:
    number = col("number")
    for result in (
        number + 1,
        1 + number,
        number - number,
        2 * number / 3,
        -number,
        number % 2,
        number**2,
        number == 1,
        number != lit(1),
        (number > 1) & (number <= 3) | ~(number >= 2),
        number.sum,
        number.cast(DataTypes.STRING()),
        number.is_not_null,
        col("word").like("a%").alias("b"),
    ):
        assert_type(result, Expression)
    assert_type(words.filter(number > 1).group_by(col("word")).select(col("word"), number.sum.alias("n")), Table)


def results() -> None:
    result = tables.execute_sql("SELECT 'ann' AS customer, 1 AS amount")
    assert_type(result.collect(), CloseableIterator[Row])
    with result.collect() as rows:
        print([row[0] for row in rows])
    with result.collect(as_=Order) as orders:
        assert_type(orders, CloseableIterator[Order])
        print([order.customer.upper() for order in orders])
    assert_type(result.collect(as_=Pair).next(), Pair)
    assert_type(next(result.collect(as_=Sale)), Sale)
