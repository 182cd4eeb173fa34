"""Functions of the user, under the name of PyFlink's module."""

from penstock.table.expression.function_declarations import (
    AggregateFunction,
    AsyncScalarFunction,
    FunctionContext,
    ImperativeAggregateFunction,
    ScalarFunction,
    TableAggregateFunction,
    TableFunction,
    UserDefinedFunction,
    udaf,
    udf,
    udtaf,
    udtf,
)

__all__ = [
    "AggregateFunction",
    "AsyncScalarFunction",
    "FunctionContext",
    "ImperativeAggregateFunction",
    "ScalarFunction",
    "TableAggregateFunction",
    "TableFunction",
    "UserDefinedFunction",
    "udaf",
    "udf",
    "udtaf",
    "udtf",
]
