"""Penstock, in PyFlink's words: parallelism 2 on a local Spark of two slots, warmed by a small job of the same kind."""

import time

import workloads as w

from penstock.common import Types
from penstock.datastream import StreamExecutionEnvironment
from penstock.datastream.functions import KeyedProcessFunction
from penstock.datastream.state import ValueStateDescriptor

PAIR = Types.TUPLE([Types.LONG(), Types.LONG()])
WARM_UP_RECORDS = 2000


class Count(KeyedProcessFunction):
    def open(self, runtime_context):
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value, ctx):
        count = (self.count.value() or 0) + value[1]
        self.count.update(count)
        if count % w.EVERY == 0:
            yield value[0], count


def keyed_count(stream, job):
    pairs = stream.map(w.pair_with_one(job.keys), output_type=PAIR)
    counts = pairs.key_by(w.key_of, key_type=Types.LONG()).process(Count(), output_type=PAIR)
    return counts.filter(w.is_positive)


def stateless(stream, _job):
    stream = stream.map(w.double_plus_one, output_type=Types.LONG()).filter(w.divisible_by_three)
    return stream.map(w.as_text, output_type=Types.STRING()).filter(w.ends_in_999)


def run(job):
    env = StreamExecutionEnvironment.create_local_environment(w.PARALLELISM)
    chain = keyed_count if job.workload == w.KEYED_COUNT else stateless
    start = time.perf_counter()
    with chain(env.from_sequence(0, job.records - 1), job).execute_and_collect() as results:
        digest = w.digest(job, results)
    return time.perf_counter() - start, digest


def main():
    job = w.job_from_arguments()
    run(w.Job(job.workload, WARM_UP_RECORDS, min(job.keys, WARM_UP_RECORDS)))
    w.report(job, *run(job))


if __name__ == "__main__":
    main()
