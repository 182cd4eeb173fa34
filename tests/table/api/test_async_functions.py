"""Asynchronous functions: repeated calls, time limits, capacity. The numbers of calls are those of PyFlink 2.3."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from penstock.errors import ExecutionException
from penstock.table import AsyncScalarFunction, DataTypes, EnvironmentSettings, FunctionContext, TableEnvironment
from penstock.table.expression.function_declarations import udf
from penstock.testing import in_process

OPTION = "table.exec.async-scalar"


class Failing(AsyncScalarFunction):
    """Fails for the first calls of each row."""

    def __init__(self, failures: int) -> None:
        self.failures = failures

    def open(self, function_context: FunctionContext) -> None:
        self.calls: dict[str, int] = {}
        self.at_once = 0

    async def eval(self, value: str) -> str:
        self.calls[value] = self.calls.get(value, 0) + 1
        if self.calls[value] <= self.failures:
            raise ValueError(f"call {self.calls[value]}")
        return f"{value} {self.calls[value]}"


class Crowd(Failing):
    """Gives the number of calls that wait together."""

    async def eval(self, value: str) -> str:
        self.at_once += 1
        for _ in range(20):
            await asyncio.sleep(0)
        found, self.at_once = self.at_once, self.at_once - 1
        return str(found)


@pytest.fixture(params=["streaming", "batch"])
def t_env(request: pytest.FixtureRequest) -> Iterator[TableEnvironment]:
    with in_process():
        yield TableEnvironment.create(getattr(EnvironmentSettings, f"in_{request.param}_mode")())


def results(t_env: TableEnvironment, function: AsyncScalarFunction, rows: int = 1, **options: Any) -> list[str]:
    for name, value in options.items():
        t_env.get_config().set(f"{OPTION}.{name.replace('_', '-')}", str(value))
    f = udf(function, input_types=[DataTypes.STRING()], result_type=DataTypes.STRING())
    table = t_env.from_elements([(f"x{index}",) for index in range(rows)], ["a"])
    with table.select(f(table.a)).execute().collect() as found:
        return [row[0] for row in found]


def test_a_call_that_fails_is_repeated(t_env: TableEnvironment) -> None:
    assert results(t_env, Failing(2), retry_delay="1 ms") == ["x0 3"]


def test_repeated_calls_for_a_row_are_counted(t_env: TableEnvironment) -> None:
    assert results(t_env, Failing(1), 3, max_attempts=2, retry_delay="0 s") == ["x0 2", "x1 2", "x2 2"]
    with pytest.raises(ExecutionException, match=r"failed for \('x0'\): ValueError: call 3"):
        results(t_env, Failing(3))


def test_a_call_is_repeated_three_times_by_default(t_env: TableEnvironment) -> None:
    assert results(t_env, Failing(3)) == ["x0 4"]
    with pytest.raises(ExecutionException, match=r"ValueError: call 4"):
        results(t_env, Failing(4))


def test_calls_need_not_be_repeated(t_env: TableEnvironment) -> None:
    with pytest.raises(ExecutionException, match="ValueError: call 1"):
        results(t_env, Failing(1), retry_strategy="no_retry")


def test_all_calls_for_a_row_have_a_time_limit(t_env: TableEnvironment) -> None:
    with pytest.raises(ExecutionException, match=r"no result within 0\.05 s, '.*async-scalar\.timeout'"):
        results(t_env, Failing(1), timeout="50 ms", retry_delay="1 h")


@pytest.mark.parametrize("option", ["max_concurrent_operations", "buffer_capacity"])
def test_so_many_rows_wait_together(t_env: TableEnvironment, option: str) -> None:
    assert max(map(int, results(t_env, Crowd(0), 30, **{option: 4}))) == 4


def test_ten_rows_wait_together_by_default(t_env: TableEnvironment) -> None:
    assert max(map(int, results(t_env, Crowd(0), 30))) == 10


@pytest.mark.parametrize("func_type", ["pandas", "arrow"])
def test_an_asynchronous_function_takes_no_columns(func_type: str) -> None:
    async def later(value: Any) -> Any:
        return value

    with pytest.raises(ValueError, match=f"later has func_type='{func_type}'.*func_type='general'"):
        udf(later, result_type=DataTypes.STRING(), func_type=func_type)
