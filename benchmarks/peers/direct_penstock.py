"""Penstock without Kafka: a SourceFunction with a rate, a keyed count, a SinkFunction that looks at the clock."""

import os
import time
from uuid import uuid4

import direct_jobs as d
from workloads import PARALLELISM

from penstock.common import Types
from penstock.datastream import ParallelSourceFunction, StreamExecutionEnvironment
from penstock.datastream.functions import KeyedProcessFunction, SinkFunction
from penstock.datastream.state import ValueStateDescriptor


class StampedRecords(ParallelSourceFunction):
    """Every subtask emits its share of the records, evenly spread over the time."""

    def __init__(self, rate, records):
        self.rate = rate / PARALLELISM
        self.records = records
        self.running = True

    def open(self, runtime_context):
        self.numbers = range(runtime_context.get_index_of_this_subtask(), self.records, PARALLELISM)

    def run(self, ctx):
        began = time.monotonic()
        for place, number in enumerate(self.numbers):
            wait = began + place / self.rate - time.monotonic()
            if wait > 0:
                time.sleep(wait)
            if not self.running:
                return
            ctx.collect(f"{number % d.KEYS},{d.micros()}")

    def cancel(self):
        self.running = False


class CountAndPassOn(KeyedProcessFunction):
    def open(self, runtime_context):
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value, ctx):
        self.count.update((self.count.value() or 0) + 1)
        yield value


class ArrivalSink(SinkFunction):
    """Notes when each record arrives. Every subtask has a file, made when it opens and written when it closes."""

    def __init__(self, folder):
        self.folder = folder

    def open(self, runtime_context):
        self.lines = []
        self.file = open(os.path.join(self.folder, f"{d.ARRIVALS}{uuid4()}"), "w")  # noqa: SIM115

    def invoke(self, value, context=None):
        self.lines.append(f"{value.partition(',')[2]} {d.micros()}\n")

    def close(self):
        with self.file:
            self.file.writelines(self.lines)


def main():
    settings = d.settings()
    env = StreamExecutionEnvironment.create_local_environment(PARALLELISM)
    env.set_buffer_timeout(0)
    records = env.add_source(StampedRecords(settings["rate"], d.records_of(settings)))
    counted = records.key_by(d.key_of, key_type=Types.STRING()).process(CountAndPassOn(), output_type=Types.STRING())
    counted.add_sink(ArrivalSink(os.getcwd()))
    env.execute("source to sink")
    d.report(settings)


if __name__ == "__main__":
    main()
