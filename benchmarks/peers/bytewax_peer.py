"""Bytewax: the setting is the number of workers, each a process of its own, since threads would share the GIL.

Every worker reads its own part of the numbers. Bytewax routes by text keys only, hence the `str` around the key.
"""

import multiprocessing
import socket
import time

import bytewax.operators as op
import workloads as w
from bytewax.dataflow import Dataflow
from bytewax.inputs import DynamicSource, StatelessSourcePartition
from bytewax.testing import TestingSink, cluster_main, run_main

BATCH = 10_000  # twice as fast as 1000 on one worker
CONNECT_SECONDS = 0.5  # otherwise a process may wait a second, by chance, because its peer does not listen yet


class Numbers(StatelessSourcePartition):
    def __init__(self, numbers):
        self.numbers = numbers
        self.position = 0

    def next_batch(self):
        batch = self.numbers[self.position : self.position + BATCH]
        if not batch:
            raise StopIteration
        self.position += BATCH
        return list(batch)


class NumberSource(DynamicSource):
    def __init__(self, records):
        self.records = records

    def build(self, step_id, worker_index, worker_count):
        return Numbers(range(worker_index, self.records, worker_count))


def count(state, one):
    state = (state or 0) + one
    return state, ((state,) if state % w.EVERY == 0 else ())


def keyed_count(stream, job):
    pair_with_one = w.pair_with_one(job.keys)

    def pair_with_text_key(x):
        key, one = pair_with_one(x)
        return str(key), one

    pairs = op.map("pair", stream, pair_with_text_key)
    counts = op.stateful_flat_map("count", pairs, count)
    return op.filter("positive", counts, w.is_positive)


def stateless(stream, _job):
    stream = op.map("double_plus_one", stream, w.double_plus_one)
    stream = op.filter("divisible_by_three", stream, w.divisible_by_three)
    stream = op.map("as_text", stream, w.as_text)
    return op.filter("ends_in_999", stream, w.ends_in_999)


def dataflow(job, results):
    flow = Dataflow("benchmark")
    numbers = op.input("numbers", flow, NumberSource(job.records))
    chain = keyed_count if job.workload == w.KEYED_COUNT else stateless
    op.output("results", chain(numbers, job), TestingSink(results))
    return flow


def run_alone(job):
    results = []
    run_main(dataflow(job, results))
    return w.digest(job, results)


def run_process(job, addresses, process):
    results = []
    time.sleep(CONNECT_SECONDS * process)
    cluster_main(dataflow(job, results), addresses, process)
    return w.digest(job, results)


def run_cluster(job, workers):
    addresses = free_addresses(workers)
    with multiprocessing.Pool(workers) as pool:
        digests = pool.starmap(run_process, [(job, addresses, process) for process in range(workers)], chunksize=1)
    return tuple(map(sum, zip(*digests, strict=True)))


def free_addresses(count):
    sockets = [socket.create_server(("localhost", 0)) for _ in range(count)]
    addresses = [f"localhost:{s.getsockname()[1]}" for s in sockets]
    for s in sockets:
        s.close()
    return addresses


def main():
    job = w.job_from_arguments()
    workers = int(job.setting or 1)
    start = time.perf_counter()
    results = run_alone(job) if workers == 1 else run_cluster(job, workers)
    w.report(job, time.perf_counter() - start, results)


if __name__ == "__main__":
    main()
