"""Penstock, in PyFlink's words: parallelism 2 on a local Spark of two slots, warmed by a small job of the same kind."""

import time

import workloads as w

from penstock.common import Time, Types, WatermarkStrategy
from penstock.common.watermark_strategy import TimestampAssigner
from penstock.datastream import StreamExecutionEnvironment
from penstock.datastream.functions import AggregateFunction, KeyedProcessFunction, ProcessJoinFunction
from penstock.datastream.state import ValueStateDescriptor
from penstock.datastream.window import EventTimeSessionWindows, SlidingEventTimeWindows, TumblingEventTimeWindows

PAIR = Types.TUPLE([Types.LONG(), Types.LONG()])
EVENT = Types.TUPLE([Types.LONG(), Types.LONG(), Types.LONG()])
WARM_UP_RECORDS = 2000


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


class Pair(ProcessJoinFunction):
    def process_element(self, left, right, ctx):
        yield w.pair_of(left, right)


def keyed_count(env, job):
    pairs = numbers(env, job.records).map(w.pair_with_one(job.keys), output_type=PAIR)
    counts = pairs.key_by(w.key_of, key_type=Types.LONG()).process(Count(), output_type=PAIR)
    return counts.filter(w.is_positive)


def stateless(env, job):
    stream = numbers(env, job.records).map(w.double_plus_one, output_type=Types.LONG()).filter(w.divisible_by_three)
    return stream.map(w.as_text, output_type=Types.STRING()).filter(w.ends_in_999)


def windows(env, job):
    event_of = w.event_with_pauses if job.workload == w.SESSIONS else w.event_of
    events = keyed_events(env, job.records, event_of(job.records, job.keys))
    return events.window(assigner(job)).aggregate(Mean(), accumulator_type=PAIR, output_type=Types.DOUBLE())


def assigner(job):
    if job.workload == w.SESSIONS:
        return EventTimeSessionWindows.with_gap(Time.milliseconds(w.GAP_MILLIS))
    size = Time.milliseconds(w.WINDOW_MILLIS)
    if job.workload == w.TUMBLING:
        return TumblingEventTimeWindows.of(size)
    return SlidingEventTimeWindows.of(size, Time.milliseconds(w.slide_of(job)))


def interval_join(env, job):
    side = w.side_of(job)
    left = keyed_events(env, side, w.event_of(side, job.keys))
    right = keyed_events(env, side, w.event_of(side, job.keys, w.BOUND_MILLIS))
    bound = w.BOUND_MILLIS
    joined = left.interval_join(right).between(Time.milliseconds(-bound), Time.milliseconds(bound))
    return joined.process(Pair(), output_type=PAIR).filter(w.is_kept)


def keyed_events(env, records, event_of):
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(EventTime())
    events = numbers(env, records).map(event_of, output_type=EVENT)
    return events.assign_timestamps_and_watermarks(strategy).key_by(w.key_of, key_type=Types.LONG())


def numbers(env, records):
    return env.from_sequence(0, records - 1)


CHAINS = {w.KEYED_COUNT: keyed_count, w.STATELESS: stateless, w.INTERVAL_JOIN: interval_join}


def run(job):
    env = StreamExecutionEnvironment.create_local_environment(w.PARALLELISM)
    stream = CHAINS.get(job.workload, windows)(env, job)
    start = time.perf_counter()
    with stream.execute_and_collect() as results:
        digest = w.digest(job, results)
    return time.perf_counter() - start, digest


def main():
    job = w.job_from_arguments()
    run(w.Job(job.workload, WARM_UP_RECORDS, min(job.keys, WARM_UP_RECORDS)))
    w.report(job, *run(job))


if __name__ == "__main__":
    main()
