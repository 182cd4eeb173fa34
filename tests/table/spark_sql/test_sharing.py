"""What the queries of a statement set have in common."""

from __future__ import annotations

import pytest

from penstock.spark.sql.sharing import common, sharing
from penstock.table import DataTypes, EnvironmentSettings, TableEnvironment
from penstock.table.expression.function_declarations import udf
from penstock.table.logical.nodes import Aggregate, Relation
from penstock.table.rules.optimiser import optimise

VIEW = "(SELECT k, SUM(v) AS s FROM t GROUP BY k)"


@pytest.fixture
def t_env() -> TableEnvironment:
    made = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    for name in "tu":
        options = "'connector' = 'datagen', 'number-of-rows' = '5'"
        made.execute_sql(f"CREATE TABLE {name} (k STRING, v BIGINT) WITH ({options})")
    made.create_temporary_system_function("same", udf(lambda v: v, result_type=DataTypes.BIGINT()))
    other = udf(lambda v: v, result_type=DataTypes.BIGINT(), deterministic=False)
    made.create_temporary_system_function("other", other)
    return made


def plans(t_env: TableEnvironment, *queries: str) -> list[Relation]:
    return [optimise(t_env.sql_query(query).relation, True) for query in queries]


def test_the_top_of_what_is_common_is_found(t_env: TableEnvironment) -> None:
    queries = plans(t_env, f"SELECT k FROM {VIEW} WHERE s > 1", f"SELECT MAX(s) AS m FROM {VIEW}", "SELECT k FROM u")
    (found,) = common(queries)
    assert isinstance(found, Aggregate)
    assert [sharing(queries, number) for number in range(3)] == [{0, 1}, {0, 1}, {2}]


def test_what_one_query_alone_uses_twice_is_left_to_spark(t_env: TableEnvironment) -> None:
    queries = plans(t_env, f"SELECT a.s FROM {VIEW} a JOIN {VIEW} b ON a.k = b.k", "SELECT k FROM u")
    assert common(queries) == []


def test_sharing_goes_on_from_hand_to_hand(t_env: TableEnvironment) -> None:
    queries = plans(
        t_env, "SELECT k, v FROM t", "SELECT t.k, u.v FROM t JOIN u ON t.k = u.k", "SELECT k, v FROM u", "SELECT 1 AS x"
    )
    assert sharing(queries, 0) == {0, 1, 2}
    assert sharing(queries, 3) == {3}


@pytest.mark.parametrize(("function", "kind"), [("same", "Calc"), ("other", "Scan"), ("RAND_INTEGER", "Scan")])
def test_only_what_repeats_itself_is_common(t_env: TableEnvironment, function: str, kind: str) -> None:
    argument = "CAST(v AS INT)" if function == "RAND_INTEGER" else "v"
    view = f"(SELECT k, v, {function}({argument}) AS w FROM t)"
    queries = plans(t_env, f"SELECT k, SUM(w) AS s, MAX(v) AS v FROM {view} GROUP BY k", f"SELECT k, v, w FROM {view}")
    assert [type(one).__name__ for one in common(queries)] == [kind]
