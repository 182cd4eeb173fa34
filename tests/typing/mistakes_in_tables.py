"""Mistakes in programs with tables. Above each stands what mypy and pyright say about it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from penstock.table import DataTypes, EnvironmentSettings, TableEnvironment
from penstock.table.expressions import col
from penstock.table.udf import udaf, udf, udtf

tables = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
words = tables.from_elements([("to", 1), ("be", 2)], ["word", "number"])


@dataclass(frozen=True)
class Order:
    customer: str
    amount: int | None


@udf(result_type=DataTypes.STRING())
def label(item: str) -> str:
    return item.capitalize()


@udtf(result_types=[DataTypes.STRING()])
def letters(word: str) -> Iterator[str]:
    yield from word


@udaf(result_type=DataTypes.DOUBLE(), func_type="pandas")
def mean(numbers: list[float]) -> float:
    return sum(numbers) / len(numbers)


result = tables.execute_sql("SELECT 'ann' AS customer, 1 AS amount")

for order in result.collect(as_=Order):
    # by mypy: "Order" has no attribute "price"
    # by pyright: Cannot access attribute "price" for class "Order"
    print(order.price)

    # by mypy: Unsupported operand types for + ("None" and "int")
    # by pyright: Operator "+" not supported for "None"
    print(order.amount + 1)

# by mypy: No overload variant of "collect" of "TableResult" matches argument type "str"
# by pyright: "Literal['Order']" is not assignable to type "type[T@collect]"
result.collect(as_="Order")

# by mypy: has no attribute "fetch_all"
# by pyright: Cannot access attribute "fetch_all" for class "CloseableIterator[Order]"
result.collect(as_=Order).fetch_all()

# by mypy: Argument 1 has incompatible type "int"; expected "str"
# by pyright: "Literal[3]" is not assignable to "str"
label.callable()(3)

# by mypy: "str" has no attribute "amount"
# by pyright: Cannot access attribute "amount" for class "str"
label.callable()("pen").amount

# by mypy: Too few arguments
# by pyright: Argument missing for parameter "word"
letters.callable()()

# by mypy: "float" has no attribute "upper"
# by pyright: Cannot access attribute "upper" for class "float"
mean.callable()([1.0]).upper()

# by mypy: "Expression" not callable
# by pyright: Object of type "Expression" is not callable
label(col("word")).upper_case()

# by mypy: Missing positional argument "places" in call to "round" of "Expression"
# by pyright: Argument missing for parameter "places"
(col("number") + 1).round()

# by mypy: Too many arguments for "array_distinct"
# by pyright: Expected 0 positional arguments
(2 * col("numbers")).array_distinct(3)

# by mypy: Argument 1 to "cast" of "Expression" has incompatible type "str"; expected "DataType"
# by pyright: "Literal['STRING']" is not assignable to "DataType"
(col("number") == 1).cast("STRING")

# by mypy: "GroupedTable" has no attribute "filter"
# by pyright: Cannot access attribute "filter" for class "GroupedTable"
words.group_by(col("word")).filter(col("number") > 1)

# by mypy: No overload variant of "udf" matches
# by pyright: No overloads for "udf" match
udf(3, result_type=DataTypes.STRING())
