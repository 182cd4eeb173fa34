"""What an idle epoch costs, by stages: the settings in JSON are `slots`, `stages`, `epochs`, `seconds`."""

from __future__ import annotations

import json
import statistics
import sys
import time

from pyspark import SparkContext

from penstock.datastream import StreamExecutionEnvironment
from penstock.engine.job.deploying import deployment_of
from penstock.engine.job.slot_queries import Asides
from penstock.engine.job.state_queries import QueryDesk
from penstock.engine.messages.commands_and_reports import Command
from penstock.service.launch import submission
from penstock.spark.hosts.classic_host import ClassicHost
from penstock.spark.sessions.session import session
from penstock.spark.slots.spark_cluster import SparkCluster

WARM_UP = 0.2  # of the epochs and of the time, before those that count


class IdleJob:
    """A keyed job whose source has nothing to give, so that an epoch is all overhead."""

    def __init__(self, context: SparkContext, slots: int, stages: int) -> None:
        env = StreamExecutionEnvironment.create_local_environment(slots)
        stream = env.generate(rate=1e-9)
        for _ in range(stages - 1):
            stream = stream.key_by(lambda x: x).sum()
        stream.discard()
        plan = submission.plan_of(env, "idle")
        assert (plan.slots, plan.stages) == (slots, stages)
        self._cluster = SparkCluster(ClassicHost(context))
        self._cluster.asides = Asides(QueryDesk(plan), lambda: 0)
        self._cluster.deploy(deployment_of(plan, "0" * 32))
        self._epoch = 0

    def epoch(self) -> float:
        """The seconds of one more epoch, from the driver's orders to the last report."""
        self._epoch += 1
        start = time.perf_counter()
        self._cluster.run(Command(self._epoch, 0, self._epoch, 1000, 100))
        return time.perf_counter() - start

    def epochs(self, most: int, seconds: float) -> list[float]:
        found: list[float] = []
        end = time.monotonic() + seconds
        while len(found) < most and time.monotonic() < end:
            found.append(self.epoch())
        return found

    def close(self) -> None:
        self._cluster.release()


def measured(context: SparkContext, slots: int, stages: int, settings: dict) -> dict:
    job = IdleJob(context, slots, stages)
    most, seconds = settings["epochs"], settings["seconds"]
    job.epochs(int(WARM_UP * most), WARM_UP * seconds)
    found = sorted(job.epochs(most, seconds))
    job.close()
    millis = {"median": 1000 * statistics.median(found), "p99": 1000 * found[int(0.99 * (len(found) - 1))]}
    return {"epochs": len(found), **millis}


def main() -> None:
    settings = json.loads(sys.argv[1])
    slots = settings["slots"]
    context = session("local[*]", "idle epochs", {}, slots).sparkContext
    found = {str(stages): measured(context, slots, stages, settings) for stages in settings["stages"]}
    print(json.dumps(found), flush=True)
    context.stop()


if __name__ == "__main__":
    main()
