"""BATCH queries over Parquet: our operators, our plan on Spark SQL, and plain Spark SQL: `make bench-batch-sql`."""

from __future__ import annotations

import argparse
import datetime
import json
import shutil
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

import environments
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from measuring import RESULTS, machine, say
from pyspark.sql import SparkSession
from report import about, table

from penstock.table import EnvironmentSettings, TableEnvironment

FILES = 4
QUERIES = {
    "group by 1,000 keys": "SELECT k, COUNT(*) AS n, SUM(v) AS s, MAX(p) AS m FROM facts GROUP BY k",
    "group by, every tenth row its own key": "SELECT u, COUNT(*) AS n, SUM(v) AS s FROM facts GROUP BY u",
    "filter": "SELECT id, v FROM facts WHERE v < 50000 AND k > 500",
    "filter, and texts by our kernels": "SELECT CHAR_LENGTH(UPPER(name)) AS s FROM facts WHERE v < 50000",
    "join with 1,000 rows": "SELECT f.id, d.label, f.v FROM facts f JOIN dims d ON f.k = d.k",
    "the first 100,000 in order": "SELECT id, p FROM facts ORDER BY p DESC, id LIMIT 100000",
    "ranks within 1,000 groups": "SELECT id, ROW_NUMBER() OVER (PARTITION BY k ORDER BY v, id) AS s FROM facts",
}
PLAIN, ON_SPARK, OPERATORS = "plain Spark SQL", "Penstock on Spark SQL", "Penstock's operators"


def write(folder: Path, rows: int) -> None:
    """Facts in a few files, and a small table to join with."""
    chance = np.random.default_rng(7)
    (folder / "facts").mkdir(parents=True)
    (folder / "dims").mkdir()
    share = rows // FILES
    for part in range(FILES):
        ids = np.arange(part * share, (part + 1) * share)
        columns = {
            "id": ids,
            "k": chance.integers(0, 1000, share),
            "u": chance.integers(0, max(1, rows // 10), share),
            "v": chance.integers(0, 100_000, share),
            "p": chance.random(share),
            "name": np.char.add("name ", (ids % 5000).astype(str)),
        }
        pq.write_table(pa.table(columns), folder / "facts" / f"{part}.parquet")
    pq.write_table(pa.table({"k": np.arange(1000), "label": [f"d{i}" for i in range(1000)]}), folder / "dims/0.parquet")


TABLES = {"facts": "id BIGINT, k BIGINT, u BIGINT, v BIGINT, p DOUBLE, name STRING", "dims": "k BIGINT, label STRING"}


def of_penstock(folder: Path, engine: str, query: str) -> float:
    """Seconds for a query whose rows go nowhere but are counted, so that every side has the same to hand over."""
    t_env = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    t_env.get_config().set("table.exec.batch.engine", engine)
    for name, columns in TABLES.items():
        t_env.execute_sql(
            f"CREATE TABLE {name} ({columns}) WITH ('connector' = 'filesystem', 'path' = '{folder / name}', "
            "'format' = 'parquet')"
        )
    began = time.perf_counter()
    counted(t_env.sql_query(counting(query)))
    return time.perf_counter() - began


def counted(query: Any) -> int:
    with query.execute().collect() as rows:
        return int(next(iter(rows))[0])


def counting(query: str) -> str:
    """The query with one number for a result that needs all of its rows."""
    column = "s" if "AS s" in query else "v" if "f.v" in query or "id, v" in query else "id"
    return f"SELECT SUM({column}) AS x FROM ({query})"


def of_spark(spark: SparkSession, folder: Path, query: str) -> float:
    for name in TABLES:
        spark.read.parquet(str(folder / name)).createOrReplaceTempView(name)
    began = time.perf_counter()
    spark.sql(counting(query)).collect()
    return time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=4_000_000)
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="penstock-batch-sql-"))
    spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    try:
        write(folder, options.rows)
        found = {name: timed(spark, folder, name, options.runs) for name in QUERIES}
    finally:
        spark.stop()
        shutil.rmtree(folder)
    results = {
        "date": datetime.date.today().isoformat(),
        "machine": machine(),
        "versions": {"penstock": environments.versions("")},
        "rows": options.rows,
        "seconds": found,
    }
    (RESULTS / "batch_sql.json").write_text(json.dumps(results, indent=2) + "\n")
    (RESULTS / "batch_sql.md").write_text(page(results))
    print(page(results))


def timed(spark: SparkSession, folder: Path, name: str, runs: int) -> dict[str, float]:
    """The median of some runs of each side, one after the other; a first run of each warms up and does not count."""
    query = QUERIES[name]
    sides = {
        PLAIN: lambda: of_spark(spark, folder, query),
        ON_SPARK: lambda: of_penstock(folder, "spark", query),
        OPERATORS: lambda: of_penstock(folder, "penstock", query),
    }
    times: dict[str, list[float]] = {side: [] for side in sides}
    for turn in range(runs + 1):
        for side, run in sides.items():
            seconds = run()
            if turn:
                times[side].append(seconds)
    found = {side: median(all_of) for side, all_of in times.items()}
    say(f"{name}: " + ", ".join(f"{side} {seconds:.2f} s" for side, seconds in found.items()))
    return found


def page(results: dict[str, Any]) -> str:
    rows = []
    for name, seconds in results["seconds"].items():
        plain = seconds[PLAIN]
        rows.append(
            [name, *(f"{seconds[side]:.2f} ({seconds[side] / plain:.1f})" for side in (PLAIN, ON_SPARK, OPERATORS))]
        )
    return "\n".join(
        [
            "# BATCH queries\n",
            f"{results['rows']:,} rows in {FILES} files of Parquet, on `local[2]`, in one process. Every query is "
            "inside of a sum over its rows, so that all rows are made and one is handed over. Seconds, the median of "
            "several runs, and in brackets how many times as long as plain Spark SQL. `make bench-batch-sql` repeats "
            "it.\n",
            table(["", PLAIN, ON_SPARK, OPERATORS], rows),
            about(results),
        ]
    )


if __name__ == "__main__":
    main()
