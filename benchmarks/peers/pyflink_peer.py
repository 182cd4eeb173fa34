"""PyFlink: the setting is its Python execution mode, `thread` or `process`. It has no interval join.

In process mode a local PyFlink runs all Python functions in the one client process unless told to start workers as it
would on a cluster; the workers were the faster of the two, so they are what is measured.
"""

import os
import sys
import time

os.environ["_python_worker_execution_mode"] = "process"  # noqa: SIM112 (PyFlink's spelling)

import workloads as w
from pyflink.common import Configuration, Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import StreamExecutionEnvironment
from pyflink.datastream.connectors.number_seq import NumberSequenceSource
from pyflink.datastream.functions import AggregateFunction, KeyedProcessFunction
from pyflink.datastream.state import ValueStateDescriptor
from pyflink.datastream.window import EventTimeSessionWindows, SlidingEventTimeWindows, TumblingEventTimeWindows

PAIR = Types.TUPLE([Types.LONG(), Types.LONG()])
EVENT = Types.TUPLE([Types.LONG(), Types.LONG(), Types.LONG()])


class Count(KeyedProcessFunction):
    def open(self, runtime_context):
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value, ctx):
        count = (self.count.value() or 0) + value[1]
        self.count.update(count)
        if count % w.EVERY == 0:
            yield value[0], count


class EventTime(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return w.time_of(value)


class Mean(w.MeanSteps, AggregateFunction):
    pass


def environment(mode):
    configuration = Configuration()
    configuration.set_string("python.execution-mode", mode)
    configuration.set_string("python.executable", sys.executable)
    configuration.set_string("python.client.executable", sys.executable)
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    env.set_parallelism(w.PARALLELISM)
    return env


def keyed_count(stream, job):
    pairs = stream.map(w.pair_with_one(job.keys), output_type=PAIR)
    counts = pairs.key_by(w.key_of, key_type=Types.LONG()).process(Count(), output_type=PAIR)
    return counts.filter(w.is_positive)


def stateless(stream, _job):
    stream = stream.map(w.double_plus_one, output_type=Types.LONG()).filter(w.divisible_by_three)
    return stream.map(w.as_text, output_type=Types.STRING()).filter(w.ends_in_999)


def windows(stream, job):
    event_of = w.event_with_pauses if job.workload == w.SESSIONS else w.event_of
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(EventTime())
    events = stream.map(event_of(job.records, job.keys), output_type=EVENT).assign_timestamps_and_watermarks(strategy)
    windowed = events.key_by(w.key_of, key_type=Types.LONG()).window(assigner(job))
    return windowed.aggregate(Mean(), accumulator_type=PAIR, output_type=Types.DOUBLE())


def assigner(job):
    if job.workload == w.SESSIONS:
        return EventTimeSessionWindows.with_gap(Time.milliseconds(w.GAP_MILLIS))
    size = Time.milliseconds(w.WINDOW_MILLIS)
    if job.workload == w.TUMBLING:
        return TumblingEventTimeWindows.of(size)
    return SlidingEventTimeWindows.of(size, Time.milliseconds(w.slide_of(job)))


CHAINS = {w.KEYED_COUNT: keyed_count, w.STATELESS: stateless}


def main():
    job = w.job_from_arguments()
    if job.workload == w.INTERVAL_JOIN:
        raise SystemExit("PyFlink has no interval join")
    source = NumberSequenceSource(0, job.records - 1)
    numbers = environment(job.setting).from_source(
        source, WatermarkStrategy.no_watermarks(), "numbers", type_info=Types.LONG()
    )
    start = time.perf_counter()
    with CHAINS.get(job.workload, windows)(numbers, job).execute_and_collect() as results:
        digest = w.digest(job, results)
    w.report(job, time.perf_counter() - start, digest)


if __name__ == "__main__":
    main()
