"""Temporal table functions: the version of each key that was valid at a time, called in LATERAL TABLE."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from penstock.common import Row, Types
from penstock.errors import ExecutionException, TableException, ValidationException
from penstock.table import EnvironmentSettings, Schema, StreamTableEnvironment
from penstock.table.expression.expression_functions import col
from penstock.testing import in_process

ORDERS = [("eur", 2, 42), ("usd", 1, 43), ("yen", 50, 44), ("eur", 3, 45), ("gbp", 9, 46), ("eur", 7, 48)]
RATES = [("usd", 102, 41), ("eur", 114, 41), ("yen", 1, 41), ("eur", 116, 45), ("eur", 119, 47)]
CALL = "FROM orders AS o, LATERAL TABLE (rates(o.ts)) AS r"


@pytest.fixture(params=[1, None])
def t_env(request: pytest.FixtureRequest) -> Iterator[StreamTableEnvironment]:
    with in_process(epoch_records=request.param):
        t_env = StreamTableEnvironment.create(environment_settings=EnvironmentSettings.in_streaming_mode())
        t_env.get_config().set("parallelism.default", "1")
        declare(t_env, "orders", "amount", ORDERS)
        yield t_env


def declare(t_env: Any, name: str, value: str, rows: list[tuple[Any, ...]], key: bool = False) -> None:
    """A table of (currency, value, s) whose time is its seconds."""
    kinds = Types.ROW_NAMED(["currency", value, "s"], [Types.STRING(), Types.INT(), Types.INT()])
    stream = t_env._env.from_collection([Row(*row) for row in rows], kinds)
    schema = Schema.new_builder().column("currency", "STRING NOT NULL").column(value, "INT").column("s", "INT")
    schema = schema.column_by_expression("ts", "TO_TIMESTAMP_LTZ(s, 0)").watermark("ts", "ts")
    schema = schema.column_by_expression("now", "PROCTIME()")
    built = (schema.primary_key("currency") if key else schema).build()
    t_env.create_temporary_view(name, t_env.from_data_stream(stream, built))


def rows_of(t_env: StreamTableEnvironment, query: str) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in t_env.sql_query(query).execute().collect())


@pytest.mark.parametrize("key", [True, False])
def test_rows_meet_the_version_of_their_time(t_env: StreamTableEnvironment, key: bool) -> None:
    declare(t_env, "history", "rate", RATES, key)
    t_env.create_temporary_system_function(
        "Rates", t_env.from_path("history").create_temporal_table_function(col("ts"), "currency")
    )
    expected = [("eur", 228), ("eur", 348), ("eur", 833), ("usd", 102), ("yen", 50)]
    query = f"SELECT o.currency, o.amount * r.rate {CALL} WHERE o.currency = r.currency"
    assert rows_of(t_env, query) == expected
    left = "FROM orders AS o LEFT JOIN LATERAL TABLE (rates(o.ts)) AS r ON o.currency = r.currency"
    assert rows_of(t_env, f"SELECT o.currency, o.amount, r.rate {left} WHERE r.rate IS NULL") == [("gbp", 9, None)]


def test_further_conditions_do_not_bring_older_versions_back(t_env: StreamTableEnvironment) -> None:
    declare(t_env, "history", "rate", RATES, key=True)
    t_env.create_temporary_function(
        "rates", t_env.from_path("history").create_temporal_table_function("ts", "currency")
    )
    query = f"SELECT o.amount, r.rate {CALL} WHERE o.currency = r.currency AND r.rate < 115 AND o.amount + 114 > r.rate"
    assert rows_of(t_env, query) == [(1, 102), (2, 114), (50, 1)]


def test_what_is_no_temporal_table_function_is_refused(t_env: StreamTableEnvironment) -> None:
    declare(t_env, "history", "rate", RATES)
    history = t_env.from_path("history")
    with pytest.raises(ValidationException, match="'rate' is no time attribute: declare a watermark"):
        history.create_temporal_table_function("rate", "currency")
    with pytest.raises(ValidationException, match="'now' is processing time"):
        history.create_temporal_table_function("now", "currency")
    with pytest.raises(ValidationException, match=r"primary key.* the columns are currency, rate"):
        history.create_temporal_table_function("ts", "money")
    t_env.create_temporary_function("rates", history.create_temporal_table_function("ts", "currency"))
    with pytest.raises(ValidationException, match=r"takes a time attribute of the left table, as in rates\(o.ts\)"):
        t_env.sql_query("SELECT 1 FROM orders AS o, LATERAL TABLE (rates(o.amount)) AS r")
    with pytest.raises((TableException, ValidationException, ExecutionException), match="equality with the key"):
        rows_of(t_env, f"SELECT 1 {CALL}")
