"""The limit for Python: the same user functions over a range, one process per slot, a dict for state, no exchange.

Each process takes every second number, or half of them where they become events. With an even number of keys (or every
key new) no two processes then share a key, so the results are those of a real keyed stream although no record is
exchanged.
"""

import multiprocessing
import time

import bare_windows
import workloads as w


class ValueState:
    """The least a keyed state can be: a dict and the key of the record at hand."""

    def __init__(self):
        self.values = {}
        self.key = None

    def value(self):
        return self.values.get(self.key)

    def update(self, value):
        self.values[self.key] = value


def keyed_count(job, numbers):
    pair_with_one, key_of, state = w.pair_with_one(job.keys), w.key_of, ValueState()

    def process_element(pair):
        count = (state.value() or 0) + pair[1]
        state.update(count)
        if count % w.EVERY == 0:
            yield pair[0], count

    for x in numbers:
        pair = pair_with_one(x)
        state.key = key_of(pair)
        for result in process_element(pair):
            if w.is_positive(result):
                yield result


def stateless(_job, numbers):
    double_plus_one, divisible_by_three = w.double_plus_one, w.divisible_by_three
    as_text, ends_in_999 = w.as_text, w.ends_in_999
    for x in numbers:
        x = double_plus_one(x)
        if divisible_by_three(x):
            text = as_text(x)
            if ends_in_999(text):
                yield text


def run_slot(job, slot):
    if job.workload in (w.KEYED_COUNT, w.STATELESS):
        loop = keyed_count if job.workload == w.KEYED_COUNT else stateless
        return w.digest(job, loop(job, range(slot, job.records, w.PARALLELISM)))
    return w.digest(job, bare_windows.run(job, slot))


def main():
    job = w.job_from_arguments()
    if job.workload != w.STATELESS and job.keys < job.records and job.keys % w.PARALLELISM:
        raise SystemExit(f"{job.keys} keys cannot be split over {w.PARALLELISM} processes without an exchange")
    warm_up = w.Job(job.workload, 20, 10)
    with multiprocessing.Pool(w.PARALLELISM) as pool:
        pool.starmap(run_slot, [(warm_up, slot) for slot in range(w.PARALLELISM)], chunksize=1)
        start = time.perf_counter()
        digests = pool.starmap(run_slot, [(job, slot) for slot in range(w.PARALLELISM)], chunksize=1)
        seconds = time.perf_counter() - start
    w.report(job, seconds, tuple(map(sum, zip(*digests, strict=True))))


if __name__ == "__main__":
    main()
