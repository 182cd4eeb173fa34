"""What an idle epoch costs: two stages at two slots, against a JVM-only `count()` job beside it in the same session."""

from __future__ import annotations

import json
import statistics
import time

from pyspark import SparkConf, SparkContext

SLOTS = 2
WARM_UP = 50
COUNTS = 50


def idle_epoch_seconds(sc: SparkContext) -> list[float]:
    """The seconds of each of a few dozen epochs, two stages at two slots and not a record, after as many warm ones."""
    raise NotImplementedError("no idle epoch to time yet")


def jvm_count_seconds(sc: SparkContext, times: int) -> list[float]:
    """The seconds of each of so many `count()` jobs over two partitions in which no Python runs."""
    numbers = sc._jvm.java.util.ArrayList()
    for number in range(SLOTS):
        numbers.add(number)
    rdd = sc._jsc.parallelize(numbers, SLOTS)
    return [timed(rdd.count) for _ in range(times)]


def timed(call) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def main() -> None:
    conf = SparkConf().setMaster(f"local[{SLOTS}]").setAppName("epoch cost")
    sc = SparkContext(conf=conf.set("spark.ui.enabled", "false").set("spark.ui.showConsoleProgress", "false"))
    jvm_count_seconds(sc, WARM_UP)
    counts = jvm_count_seconds(sc, COUNTS // 2)
    epoch = statistics.median(idle_epoch_seconds(sc))
    count = statistics.median(counts + jvm_count_seconds(sc, COUNTS - len(counts)))
    print(json.dumps({"epoch_seconds": epoch, "count_seconds": count, "ratio": epoch / count}), flush=True)
    sc.stop()


if __name__ == "__main__":
    main()
