"""Random queries over random rows: what a stream leaves at its end, Spark SQL finds, too."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest
from pyspark.sql import SparkSession

from penstock.table import DataTypes, EnvironmentSettings, StreamTableEnvironment
from penstock.table.api.results import remaining
from penstock.testing import in_process

pytestmark = pytest.mark.spark

COLUMNS = {"id": "BIGINT", "k": "STRING", "n": "BIGINT"}
QUERIES = 24


class Queries:
    """A grammar of which both sides mean the same: whole numbers without division, texts, no order of rows."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def rows(self) -> list[tuple[Any, ...]]:
        pick = self._random
        return [
            (index, pick.choice([None, "a", "b", "c", "d"]), pick.choice([None, *range(-5, 15)]))
            for index in range(pick.randint(0, 40))
        ]

    def query(self) -> str:
        return self._random.choice([self._group, self._join, self._sets, self._nested, self._semi])()

    def _number(self, side: str = "") -> str:
        return self._random.choice(
            [f"{side}n", f"{side}id", f"({side}n + {side}id)", f"COALESCE({side}n, 0)", f"ABS({side}n) * 2"]
        )

    def _condition(self, side: str = "") -> str:
        return self._random.choice(
            [
                f"{side}n > {self._random.randint(-4, 9)}",
                f"{side}k IN ('a', 'b')",
                f"{side}k IS NULL",
                f"{side}n BETWEEN 0 AND 7",
                f"NOT ({side}id < 5) OR {side}k = 'c'",
            ]
        )

    def _aggregate(self, side: str = "") -> str:
        inside = self._number(side)
        return self._random.choice(
            [
                "COUNT(*)",
                f"COUNT({side}n)",
                f"SUM({inside})",
                f"MIN({inside})",
                f"MAX({side}k)",
                f"COUNT(DISTINCT {side}k)",
                f"SUM({inside}) FILTER (WHERE {self._condition(side)})",
            ]
        )

    def _group(self) -> str:
        having = self._random.choice(["", " HAVING COUNT(*) > 1"])
        chosen = f"{self._aggregate()} AS x, {self._aggregate()} AS y"
        return f"SELECT k, {chosen} FROM a WHERE {self._condition()} GROUP BY k{having}"

    def _join(self) -> str:
        kind = self._random.choice(["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"])
        on = self._random.choice(["l.k = r.k", "l.id = r.id", "l.k = r.k AND l.id < r.id"])
        return f"SELECT l.id AS i, r.id AS j, l.k AS k, r.n AS n FROM a l {kind} b r ON {on}"

    def _sets(self) -> str:
        word = self._random.choice(["UNION", "UNION ALL", "INTERSECT", "EXCEPT", "INTERSECT ALL", "EXCEPT ALL"])
        return f"SELECT k, n FROM a WHERE {self._condition()} {word} SELECT k, n FROM b"

    def _nested(self) -> str:
        return (
            f"SELECT c, COUNT(*) AS m, SUM(s) AS s FROM (SELECT k, COUNT(*) AS c, SUM(n) AS s FROM a WHERE"
            f" {self._condition()} GROUP BY k) AS t GROUP BY c"
        )

    def _semi(self) -> str:
        word = self._random.choice(["EXISTS", "NOT EXISTS"])
        return f"SELECT id, k FROM a WHERE {word} (SELECT 1 FROM b WHERE b.k = a.k AND {self._condition('b.')})"


def of_penstock(tables: dict[str, list[tuple[Any, ...]]], query: str, epoch: int | None) -> Counter:
    kinds = DataTypes.ROW([("id", DataTypes.BIGINT()), ("k", DataTypes.STRING()), ("n", DataTypes.BIGINT())])
    with in_process(epoch_records=epoch):
        t_env = StreamTableEnvironment.create(environment_settings=EnvironmentSettings.in_streaming_mode())
        t_env.get_config().set("parallelism.default", "2")
        for name, rows in tables.items():
            t_env.create_temporary_view(name, t_env.from_elements(rows, kinds))
        with t_env.sql_query(query).execute().collect() as changes:
            return Counter(tuple(row) for row in remaining(changes))


def of_spark(spark: SparkSession, tables: dict[str, list[tuple[Any, ...]]], query: str) -> Counter:
    for name, rows in tables.items():
        spark.createDataFrame(rows, "id BIGINT, k STRING, n BIGINT").createOrReplaceTempView(name)
    return Counter(tuple(row) for row in spark.sql(query).collect())


def test_queries_over_streams_leave_what_spark_finds() -> None:
    spark = SparkSession.builder.master("local[2]").config("spark.sql.shuffle.partitions", "2").getOrCreate()
    try:
        for seed in range(QUERIES):
            queries = Queries(seed)
            tables, query = {"a": queries.rows(), "b": queries.rows()}, queries.query()
            wanted = of_spark(spark, tables, query)
            epoch = (1, 5, None)[seed % 3]
            assert of_penstock(tables, query, epoch) == wanted, f"seed {seed}, epochs of {epoch}: {query}"
    finally:
        spark.stop()
