"""What an idle epoch costs: two stages at two slots, against a JVM-only `count()` job beside it in the same session."""

from __future__ import annotations

import json
import statistics
import time

from pyspark import SparkContext

from penstock.datastream import StreamExecutionEnvironment, submission
from penstock.job.submission import deployment_of
from penstock.runtime.protocol import Command
from penstock.spark.cluster import SparkCluster
from penstock.spark.session import session

SLOTS = 2
WARM_UP = 50
COUNTS = 50


class IdleJob:
    """A keyed job whose source has nothing to give, so that an epoch is all overhead."""

    def __init__(self, sc: SparkContext) -> None:
        env = StreamExecutionEnvironment.create_local_environment(SLOTS)
        env.generate(rate=1e-9).key_by(lambda x: x).sum().discard()
        plan = submission.plan_of(env, "idle")
        assert (plan.slots, plan.stages) == (SLOTS, 2)
        self._cluster = SparkCluster(sc)
        self._cluster.deploy(deployment_of(plan, "0" * 32))
        self._epoch = 0

    def epoch(self) -> None:
        self._epoch += 1
        self._cluster.run(Command(self._epoch, 0, self._epoch, 1000, 100))

    def close(self) -> None:
        self._cluster.release()


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
    sc = session(f"local[{SLOTS}]", "epoch cost", {}, SLOTS).sparkContext
    job = IdleJob(sc)
    for _ in range(WARM_UP):
        job.epoch()
        jvm_count_seconds(sc, 1)
    epochs, counts = [], []
    for _ in range(COUNTS):
        epochs.append(timed(job.epoch))
        counts += jvm_count_seconds(sc, 1)
    job.close()
    epoch, count = statistics.median(epochs), statistics.median(counts)
    print(json.dumps({"epoch_seconds": epoch, "count_seconds": count, "ratio": epoch / count}), flush=True)
    sc.stop()


if __name__ == "__main__":
    main()
