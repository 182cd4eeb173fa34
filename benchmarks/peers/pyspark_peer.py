"""PySpark Structured Streaming: transformWithStateInPandas for the keyed count, mapInPandas for the stateless chain.

The setting is the number of records in a micro-batch. The numbers lie in parquet files, written before the clock
starts, of which each batch reads one per slot. The map of the keyed count is a Spark SQL expression, which spares this
peer a Python function that all others call.
"""

import tempfile
import time
from pathlib import Path

import pandas as pd
import workloads as w
from pyspark.sql import SparkSession
from pyspark.sql.streaming import StatefulProcessor

STATE_STORE = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


class Count(StatefulProcessor):
    def init(self, handle):
        self.count = handle.getValueState("count", "count long")

    def handleInputRows(self, key, rows, timerValues):
        count = self.count.get()[0] if self.count.exists() else 0
        results = []
        for frame in rows:
            for one in frame["one"].tolist():
                count += one
                if count % w.EVERY == 0:
                    results.append(count)
        self.count.update((count,))
        yield pd.DataFrame({"key": [key[0]] * len(results), "count": results})

    def close(self):
        pass


def chain_frames(frames):
    for frame in frames:
        doubled = map(w.double_plus_one, frame["id"].tolist())
        texts = map(w.as_text, filter(w.divisible_by_three, doubled))
        yield pd.DataFrame({"text": list(filter(w.ends_in_999, texts))}, dtype="object")


def keyed_count(numbers, job):
    pairs = numbers.selectExpr(f"id % {job.keys} as key", "1L as one")
    counts = pairs.groupBy("key").transformWithStateInPandas(Count(), "key long, count long", "Append", "None")
    return counts.filter("count > 0")


def stateless(numbers, _job):
    return numbers.mapInPandas(chain_frames, "text string")


def spark_session():
    builder = SparkSession.builder.master(f"local[{w.PARALLELISM}]")
    builder = builder.config("spark.ui.enabled", "false").config("spark.ui.showConsoleProgress", "false")
    builder = builder.config("spark.sql.shuffle.partitions", str(w.PARALLELISM))
    spark = builder.config("spark.sql.streaming.stateStore.providerClass", STATE_STORE).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def write_numbers(spark, job, folder):
    """Files of which every batch reads as many as there are slots."""
    batches = max(1, job.records // int(job.setting))
    spark.range(0, job.records, 1, batches * w.PARALLELISM).write.parquet(str(folder))


def run(spark, job, folder):
    write_numbers(spark, job, folder / "numbers")
    files = spark.readStream.schema("id long").option("maxFilesPerTrigger", w.PARALLELISM)
    numbers = files.parquet(str(folder / "numbers"))
    chain = keyed_count if job.workload == w.KEYED_COUNT else stateless
    start = time.perf_counter()
    sink = chain(numbers, job).writeStream.format("memory").queryName("results").outputMode("append")
    sink = sink.option("checkpointLocation", str(folder / "checkpoint")).trigger(availableNow=True)
    sink.start().awaitTermination()
    seconds = time.perf_counter() - start
    rows = spark.table("results").collect()
    results = [tuple(row) if job.workload == w.KEYED_COUNT else row[0] for row in rows]
    w.report(job, seconds, w.digest(job, results))


def main():
    job = w.job_from_arguments()
    with tempfile.TemporaryDirectory() as folder:
        spark = spark_session()
        run(spark, job, Path(folder))
        spark.stop()


if __name__ == "__main__":
    main()
