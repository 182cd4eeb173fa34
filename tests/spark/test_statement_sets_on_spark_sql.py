"""BATCH statement sets on Spark SQL: what INSERTs share is computed once, and all of them are done or none."""

from __future__ import annotations

import json
import os
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from penstock.errors import JobFailed
from penstock.spark.sessions.session import session
from penstock.table import DataTypes, EnvironmentSettings, StatementSet, TableEnvironment
from penstock.table.expression.function_declarations import udf

ROWS = 60
SHARED = "SELECT k, seen(v) AS w FROM t"
TWO = ("INSERT INTO counts SELECT k, COUNT(w) FROM d GROUP BY k", "INSERT INTO sums SELECT k, SUM(w) FROM d GROUP BY k")


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    made = session("local[2]", "statement sets", {"spark.sql.shuffle.partitions": "2"})
    yield made
    made.stop()


@pytest.fixture
def t_env(spark: SparkSession, tmp_path: Path) -> TableEnvironment:
    """A table t of CSV files, a view d over it with a function that notes its calls, and sinks."""
    made = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    (tmp_path / "in").mkdir()
    for part in (0, 1):
        lines = [f"k{i % 5},{i}" for i in range(part, ROWS, 2)]
        (tmp_path / "in" / f"{part}.csv").write_text("\n".join(lines) + "\n")
    made.execute_sql(
        f"CREATE TABLE t (k STRING, v BIGINT) WITH ('connector' = 'filesystem', 'path' = '{tmp_path}/in', "
        "'format' = 'csv')"
    )
    notes = str(tmp_path / "calls")

    def seen(v: int) -> int:
        with open(notes, "a") as file:
            file.write(f"{v}\n")
        return v * 2

    made.create_temporary_system_function("seen", udf(seen, result_type=DataTypes.BIGINT()))
    made.execute_sql(f"CREATE VIEW d AS {SHARED}")
    for name in ("counts", "sums", "others"):
        made.execute_sql(
            f"CREATE TABLE {name} (k STRING, n BIGINT) WITH ('connector' = 'filesystem', "
            f"'path' = '{tmp_path}/{name}', 'format' = 'json')"
        )
    return made


def together(t_env: TableEnvironment, *statements: str) -> StatementSet:
    made = t_env.create_statement_set()
    for statement in statements:
        made.add_insert_sql(statement)
    return made


def engines(plan: str) -> list[str]:
    """What an explanation says of each INSERT."""
    return [line for line in plan.partition("== Engine ==")[2].splitlines() if line.startswith("Runs on")]


def written(folder: Path) -> dict[str, int]:
    lines = [json.loads(line) for file in folder.glob("[!.]*") for line in file.read_text().splitlines()]
    found = {line["k"]: line["n"] for line in lines}
    assert len(found) == len(lines), "a row is there twice"
    return found


def calls(folder: Path) -> Counter[int]:
    return Counter(map(int, (folder / "calls").read_text().split()))


def held(spark: SparkSession) -> int:
    """How many DataFrames Spark keeps."""
    return int(spark.sparkContext._jsc.sc().getPersistentRDDs().size())


def test_what_inserts_share_is_computed_once(
    t_env: TableEnvironment, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "temporary"  # tests beside this one stage rows in the machine's folder
    own.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(own))
    plan = together(t_env, *TWO).explain()
    assert engines(plan) == ["Runs on Spark SQL"] * 2
    assert plan.count("InMemoryTableScan") == 2
    together(t_env, *TWO).execute().wait()
    assert calls(tmp_path) == Counter(range(ROWS))
    assert written(tmp_path / "counts") == {f"k{i}": ROWS // 5 for i in range(5)}
    assert written(tmp_path / "sums") == {f"k{i}": sum(range(i, ROWS, 5)) * 2 for i in range(5)}
    assert held(spark) == 0
    assert not [name for name in os.listdir(own) if "staged" in name]


def test_the_same_rows_go_into_two_tables(t_env: TableEnvironment, spark: SparkSession, tmp_path: Path) -> None:
    query = "SELECT k, SUM(w) FROM d GROUP BY k"
    together(t_env, f"INSERT INTO sums {query}", f"INSERT INTO others {query}").execute().wait()
    assert calls(tmp_path) == Counter(range(ROWS))
    assert written(tmp_path / "sums") == written(tmp_path / "others") != {}
    assert held(spark) == 0


def test_no_insert_is_done_if_one_fails(t_env: TableEnvironment, spark: SparkSession, tmp_path: Path) -> None:
    t_env.create_temporary_system_function("bad", udf(lambda v: v // (v - v), result_type=DataTypes.BIGINT()))
    bad = "INSERT INTO others SELECT k, bad(w) FROM d"
    with pytest.raises(JobFailed, match="ZeroDivisionError"):
        together(t_env, *TWO, bad).execute().wait()
    assert not any(written(tmp_path / name) for name in ("counts", "sums", "others") if (tmp_path / name).exists())
    assert held(spark) == 0


def test_inserts_that_share_a_part_run_on_one_engine(t_env: TableEnvironment, tmp_path: Path) -> None:
    """MATCH_RECOGNIZE has no form in Spark SQL; an INSERT that shares nothing with it does not care."""
    matched = (
        "INSERT INTO others SELECT k, n FROM (SELECT k, w, PROCTIME() AS p FROM d) MATCH_RECOGNIZE (PARTITION BY k "
        "ORDER BY p MEASURES LAST(A.w) AS n ONE ROW PER MATCH PATTERN (A) DEFINE A AS A.w = 0)"
    )
    apart = "INSERT INTO sums SELECT x, 1 FROM (SELECT DISTINCT x FROM (VALUES ('a'), ('b'), ('a')) AS v(x))"
    plan = together(t_env, TWO[0], matched, apart).explain()
    one, other, last = engines(plan)
    assert "shares a part with another INSERT" in one and "Penstock's operators" in other
    assert last == "Runs on Spark SQL"
