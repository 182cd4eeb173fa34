"""Runs the queries that Spark Structured Streaming can run, and prints pairs of rows and seconds as lines of JSON.

python sql_spark.py SETTINGS, which are JSON: queries, parallelism, and what `pairing` takes. The input is Spark's own
generator of micro-batches, the state is in RocksDB, and the results are thrown away, as with the others.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

from pairing import ROUND, report
from pyspark.sql import DataFrame, SparkSession

SHAPES = {
    "events": "value AS n, value % 50 AS kind, value DIV 50 AS epoch, (value * 48271) % 2147483647 AS r",
    "gen": "value AS n, value % 1000 AS k, (value * 7919) % 10007 AS v",
    "orders": "value AS id",
    "shipments": "value AS id",
}
MOMENT = "timestamp_millis(1700000000000 + value DIV 10) AS ts"
VIEWS = {
    "person": """SELECT epoch AS id, concat('person ', r % 1000) AS name, concat('p', epoch, '@example.org') AS email,
    CASE r % 5 WHEN 0 THEN 'or' WHEN 1 THEN 'id' WHEN 2 THEN 'ca' WHEN 3 THEN 'wa' ELSE 'az' END AS state, ts
    FROM events WHERE kind = 0""",
    "auction": """SELECT epoch * 3 + kind - 1 AS id, concat('item ', r % 500) AS item_name, r % 100 + 1 AS initial_bid,
    r % 1000 + 100 AS reserve, ts + INTERVAL 10 SECONDS AS expires, epoch - r % 20 AS seller, 10 + r % 5 AS category, ts
    FROM events WHERE kind BETWEEN 1 AND 3""",
    "bid": """SELECT epoch * 3 - r % 100 AS auction, epoch - r % 50 AS bidder, 100 + r % 10000 AS price,
    CASE r % 4 WHEN 0 THEN 'Google' WHEN 1 THEN 'Facebook' WHEN 2 THEN 'Baidu' ELSE 'Apple' END AS channel,
    concat('https://www.example.org/', r % 997, '/item.htm?query=1&channel_id=', r % 9973) AS url, ts
    FROM events WHERE kind > 3""",
}
APPEND, UPDATE = "append", "update"
QUERIES: dict[str, tuple[str, str]] = {
    "filter": (APPEND, "SELECT n, k FROM gen WHERE n % 4 = 0"),
    "group by 1,000 keys": (UPDATE, "SELECT k, count(*), sum(n) FROM gen GROUP BY k"),
    "group by, every key new": (UPDATE, "SELECT n, count(*), sum(v) FROM gen GROUP BY n"),
    "tumbling windows": (
        APPEND,
        "SELECT window(ts, '10 seconds') AS w, k, count(*), sum(n) FROM gen GROUP BY window(ts, '10 seconds'), k",
    ),
    "interval join": (
        APPEND,
        "SELECT o.id, o.ts, s.ts AS sent FROM orders o JOIN shipments s ON o.id = s.id AND s.ts >= o.ts AND"
        " s.ts <= o.ts + INTERVAL 5 SECONDS",
    ),
    "q0": (APPEND, "SELECT auction, bidder, price, ts FROM bid"),
    "q1": (APPEND, "SELECT auction, bidder, 0.908 * price, ts FROM bid"),
    "q2": (APPEND, "SELECT auction, price FROM bid WHERE auction % 123 = 0"),
    "q3": (
        APPEND,
        "SELECT p.name, p.state, a.id FROM auction a JOIN person p ON a.seller = p.id WHERE a.category = 10 AND"
        " (p.state = 'or' OR p.state = 'id' OR p.state = 'ca')",
    ),
    "q8": (
        APPEND,
        "SELECT p.id, p.name, p.w FROM (SELECT id, name, window(ts, '10 seconds') AS w FROM person GROUP BY id, name,"
        " window(ts, '10 seconds')) p JOIN (SELECT seller, window(ts, '10 seconds') AS w FROM auction GROUP BY seller,"
        " window(ts, '10 seconds')) a ON p.id = a.seller AND p.w = a.w",
    ),
    "q11": (
        APPEND,
        "SELECT bidder, count(*), session_window(ts, '10 seconds') AS w FROM bid GROUP BY bidder,"
        " session_window(ts, '10 seconds')",
    ),
    "q17": (
        UPDATE,
        "SELECT auction, date_format(ts, 'yyyy-MM-dd'), count(*), min(price), max(price), avg(price), sum(price) FROM"
        " bid GROUP BY auction, date_format(ts, 'yyyy-MM-dd')",
    ),
}
"""The same queries in Spark's words, with the mode of their output. Of the others it refuses most: over streams it
has no Top-N, no distinct counts and no aggregates of what was updated."""


def session(parallelism: int) -> SparkSession:
    options = {
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": str(parallelism),
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.ansi.enabled": "false",
        "spark.sql.streaming.stateStore.providerClass": (
            "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
        ),
    }
    builder = SparkSession.builder.master(f"local[{parallelism}]")
    for name, value in options.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def source(spark: SparkSession, name: str, rows_a_batch: int, parallelism: int) -> DataFrame:
    generated = (
        spark.readStream.format("rate-micro-batch")
        .option("rowsPerBatch", rows_a_batch)
        .option("numPartitions", parallelism)
        .load()
    )
    return generated.selectExpr(*SHAPES[name].split(", "), MOMENT).withWatermark("ts", "4 seconds")


def runner(parallelism: int) -> Callable[[str, int], float]:
    spark = session(parallelism)

    def seconds(query: str, rows: int) -> float:
        if query not in QUERIES:
            raise ValueError("no form of it was written")
        mode, text = QUERIES[query]
        read = [name for name in SHAPES if name in text] or ["events"]
        rows_a_batch = min(rows, ROUND) // len(read)
        for name in read:
            source(spark, name, rows_a_batch, parallelism).createOrReplaceTempView(name)
        if read == ["events"]:
            for name, view in VIEWS.items():
                spark.sql(view).createOrReplaceTempView(name)
        with tempfile.TemporaryDirectory() as folder:
            began = time.perf_counter()
            running = (
                spark.sql(text).writeStream.format("noop").outputMode(mode).option("checkpointLocation", folder).start()
            )
            while (progress := running.lastProgress) is None or (progress["batchId"] + 1) * ROUND < rows:
                if running.exception() is not None:
                    raise running.exception()
                time.sleep(0.01)
            took = time.perf_counter() - began
            running.stop()
        return took

    return seconds


def main(settings: dict[str, Any]) -> None:
    report(runner(settings["parallelism"]), settings)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
