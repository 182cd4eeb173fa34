"""The batch job with Penstock: a process function with keyed state, in BATCH mode."""

from __future__ import annotations

import json
import sys
import time

import batch_job
from worker_watch import WorkerWatch

from penstock.datastream import RuntimeExecutionMode, StreamExecutionEnvironment
from penstock.datastream.functions import KeyedProcessFunction
from penstock.datastream.state import ValueStateDescriptor
from penstock.spark.sessions.session import session


class Totals(KeyedProcessFunction):
    def open(self, runtime_context):
        self.totals = runtime_context.get_state(ValueStateDescriptor("totals", default_value=(0, 0, 0)))

    def process_element(self, value, ctx):
        count, numbers, length = self.totals.value()
        if not count:
            ctx.timer_service().register_event_time_timer(0)
        self.totals.update((count + 1, numbers + value[1], length + len(value[2])))

    def on_timer(self, timestamp, ctx):
        yield ctx.get_current_key(), *self.totals.value()


def key_of(record):
    return record[0]


def main() -> None:
    records = int(sys.argv[1])
    session(f"local[{batch_job.SLOTS}]", "batch", {}).sparkContext.parallelize([0]).count()
    watch = WorkerWatch()
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(batch_job.SLOTS)
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    began = time.monotonic()
    totals = env.from_sequence(0, records - 1).map(batch_job.record).key_by(key_of).process(Totals())
    results = list(totals.execute_and_collect())
    seconds = time.monotonic() - began
    found = batch_job.digest(results)
    print(json.dumps({"seconds": seconds, "results": found, **watch.found()}), flush=True)


if __name__ == "__main__":
    main()
