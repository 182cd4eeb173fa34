"""The batch job with plain PySpark: pairs are shuffled and sorted by key, and a loop sees one key after the other."""

from __future__ import annotations

import json
import sys
import time
from itertools import groupby
from operator import itemgetter

import batch_job
from pyspark.sql import SparkSession
from worker_watch import WorkerWatch


def pair(number):
    record = batch_job.record(number)
    return record[0], record


def totals(pairs):
    """A user's loop over the records of one key, which holds no more than it must."""
    for key, group in groupby(pairs, key=itemgetter(0)):
        count = numbers = length = 0
        for _, (_, number, text) in group:
            count, numbers, length = count + 1, numbers + number, length + len(text)
        yield key, count, numbers, length


def main() -> None:
    records, slots = int(sys.argv[1]), batch_job.SLOTS
    spark = SparkSession.builder.master(f"local[{slots}]").config("spark.ui.enabled", "false").getOrCreate()
    context = spark.sparkContext
    context.parallelize([0]).count()
    watch = WorkerWatch()
    began = time.monotonic()
    pairs = context.range(records, numSlices=slots).map(pair)
    results = pairs.repartitionAndSortWithinPartitions(slots).mapPartitions(totals).collect()
    seconds = time.monotonic() - began
    found = batch_job.digest(results)
    print(json.dumps({"seconds": seconds, "results": found, **watch.found()}), flush=True)


if __name__ == "__main__":
    main()
