"""What measuring costs, and how quickly REST answers for a large job: `make bench-metrics`.

Jobs run in this process, in turn with everything measured and with nothing, and their processor time is compared:
that is what measuring costs, whatever else the machine does. REST is asked about a job with 32 slots and 20 operators.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
import urllib.request
from contextlib import contextmanager

import environments
from measuring import attempt, folder_of, header, say
from pages import about, failures, joined, quick_warning, save, table, targets

sys.path.insert(0, str(environments.ROOT))

LEAST_RATE, MOST_MILLIS = 0.98, 50.0
ROUNDS = 9
SLOTS, OPERATORS, KEYS = 32, 20, 1000
ON = {"metrics.latency.interval": "1 s"}
OFF = {"penstock.metrics.enabled": "false"}
FIGURES = ("estimate-num-keys", "total-sst-files-size", "cur-size-all-mem-tables", "block-cache-usage")
ROCKSDB = {f"state.backend.rocksdb.metrics.{name}": "true" for name in FIGURES}


# --- jobs ---
def chained(env, records: int) -> None:
    stream = env.from_sequence(1, records)
    for _ in range(4):
        stream = stream.map(lambda number: number + 1)
    stream.filter(lambda number: number < 0).print()


def counting(env, records: int) -> None:
    from penstock.datastream import KeyedProcessFunction
    from penstock.datastream.state import ValueStateDescriptor

    class Counting(KeyedProcessFunction):
        def open(self, context):
            self.count = context.get_state(ValueStateDescriptor("count"))

        def process_element(self, value, ctx):
            self.count.update((self.count.value() or 0) + 1)

    env.from_sequence(1, records).key_by(lambda number: number % KEYS).process(Counting()).print()


JOBS = {
    "a chain of maps": (chained, 2_000_000, {}),
    "counting by key": (counting, 800_000, {}),
    "counting by key in RocksDB": (counting, 600_000, {"state.backend.type": "rocksdb"}),
}


def seconds_of(build, records: int, options: dict[str, str], watched: bool) -> float:
    """The processor time of one run; a job that is watched is also looked at once a second, as by a page."""
    from penstock.common import Configuration
    from penstock.datastream import StreamExecutionEnvironment
    from penstock.testing import in_process

    with in_process():
        env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(options))
        env.set_parallelism(2)
        build(env, records)
        began = time.process_time()
        handle = env.execute_async("measured")._job
        while not handle.wait(1.0):
            if watched:
                handle.record()
        handle.result()
        return time.process_time() - began


def quicker_half(seconds: list[float]) -> float:
    """The mean of the quicker half: what else the machine does can only add to a run."""
    return statistics.fmean(sorted(seconds)[: (len(seconds) + 1) // 2])


def cost(name: str, rounds: int, share: float) -> dict:
    build, records, extra = JOBS[name]
    records = int(records * share)
    options = ON | extra | (ROCKSDB if "RocksDB" in name else {})
    seconds_of(build, records // 4, options, True)
    with_it, without = [], []
    for number in range(rounds):
        # What comes second in a round finds other caches than what comes first.
        for watched in (True, False) if number % 2 else (False, True):
            taken = seconds_of(build, records, options if watched else OFF | extra, watched)
            (with_it if watched else without).append(taken)
    off, on = quicker_half(without), quicker_half(with_it)
    found = {
        "records": records,
        "off": records / off,
        "on": records / on,
        "seconds": {"off": without, "on": with_it},
        "ratio": off / on,
    }
    say(f"{name}: {found['on']:,.0f} records a second of processor time, {found['ratio']:.1%} of {found['off']:,.0f}")
    return found


# --- REST ---
def large_record():
    """A job of 32 slots and 20 operators, each with a counter, a meter and a histogram of its own."""
    from penstock.common.job import JobStatus
    from penstock.datastream import StreamExecutionEnvironment
    from penstock.engine.job.job_record import Settings, record_of
    from penstock.engine.job.job_view import JobView, StatusChange
    from penstock.engine.observe.rates import Rates
    from penstock.service.launch.submission import plan_of

    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(SLOTS)
    stream = env.from_sequence(0, 1)
    for number in range(OPERATORS - 2):
        stream = stream.map(lambda value: value).uid(f"op-{number}").name(f"operator {number}")
        if number % 4 == 3:
            stream = stream.rebalance()
    stream.print()
    plan, rates = plan_of(env, "large"), Rates()
    changes = (StatusChange(JobStatus.RUNNING, 1),)
    views = [JobView("a" * 32, plan, JobStatus.RUNNING, changes, reports=reports(plan, n)) for n in range(2)]
    turn = iter(range(10**9))
    return lambda: record_of(views[next(turn) % 2], Settings(), rates, time.time_ns() // 1_000_000)


def reports(plan, epoch: int) -> tuple:
    from penstock.engine.messages.commands_and_reports import Report
    from penstock.metrics import MetricGroup

    def report(slot: int) -> Report:
        root = MetricGroup()
        for node in plan.nodes:
            group = root.add_group(node.uid)
            group.counter("dropped").inc(slot)
            group.meter("seen").mark_event(5)
            for value in range(100):
                group.histogram("sizes").update(value + epoch)
        uids = [node.uid for node in plan.nodes]
        return Report(
            slot,
            epoch,
            place=f"worker-{slot % 4}",
            watermarks=dict.fromkeys(uids, 1000),
            metrics=root.changes({}),
            described=root.described,
            operators=dict.fromkeys(uids, (100, 100, 1000, None, None)),
            activity=dict.fromkeys(uids, (1, 2, 3, 4, 0.5, 0.1, 10.0 + epoch)),
            usage={"Status.JVM.CPU.Load": 0.1},
        )

    return tuple(report(slot) for slot in range(SLOTS))


class OneJob:
    """Stands for the handle of a running job."""

    def __init__(self) -> None:
        self.record = large_record()
        found = self.record()
        self.job_id = type("Id", (), {"hex": found.job_id})
        self.vertex = found.vertices[1].id

    @property
    def view(self):
        from penstock.common.job import JobStatus

        return type("View", (), {"status": JobStatus.RUNNING})

    def status(self):
        return self.view.status


PATHS = [
    "/jobs/overview",
    "/jobs/{job}",
    "/jobs/{job}/metrics",
    "/jobs/{job}/vertices/{vertex}",
    "/jobs/{job}/vertices/{vertex}/metrics",
    "/jobs/{job}/vertices/{vertex}/subtasks/metrics",
    "/jobs/{job}/vertices/{vertex}/subtasks/metrics?get=numRecordsIn,busyTimeMsPerSecond&agg=sum,max",
    "/jobs/{job}/vertices/{vertex}/subtasks/0/metrics",
    "/jobs/{job}/vertices/{vertex}/backpressure",
    "/jobs/{job}/vertices/{vertex}/watermarks",
    "/taskmanagers",
]


@contextmanager
def answering():
    from penstock.service.options.rest_options import RestSettings
    from penstock.service.rest.embedded import serve_in_thread
    from penstock.service.rest.local_jobs import LocalJobs

    job, jobs = OneJob(), LocalJobs()
    jobs.add(job)
    with serve_in_thread(jobs, RestSettings(ports=(0,))) as url:
        yield url, job


def answers(requests: int) -> dict:
    """Every path in turn, each time with a pause that makes the record a new one for the first of them."""
    with answering() as (url, job):
        paths = [url + path.format(job=job.job_id.hex, vertex=job.vertex) for path in PATHS]
        took: dict[str, list[float]] = {path: [] for path in PATHS}
        for _ in range(requests):
            time.sleep(0.3)
            for path, address in zip(PATHS, paths, strict=True):
                began = time.perf_counter()
                urllib.request.urlopen(address, timeout=60).read()
                took[path].append(1000 * (time.perf_counter() - began))
    every = [millis for one in took.values() for millis in one]
    found = {"median": statistics.median(every), "p95": statistics.quantiles(every, n=20)[18]}
    say(f"REST: median {found['median']:.1f} ms, 95th percentile {found['p95']:.1f} ms")
    return found | {"paths": {path: statistics.median(one) for path, one in took.items()}}


# --- telling ---
def page(results: dict) -> str:
    costs = {name: found for name, found in results["jobs"].items() if "error" not in found}
    rows = [[name, f"{f['off']:,.0f}", f"{f['on']:,.0f}", f"{f['ratio']:.1%}"] for name, f in costs.items()]
    aims = [(f"{name}: ≥ {LEAST_RATE:.0%}", f"{f['ratio']:.1%}", f["ratio"] >= LEAST_RATE) for name, f in costs.items()]
    rest = results["rest"]
    if "error" not in rest:
        met = rest["median"] <= MOST_MILLIS
        aims.append(
            (f"REST, {SLOTS} slots and {OPERATORS} operators: ≤ {MOST_MILLIS:g} ms", f"{rest['median']:.1f} ms", met)
        )
    text = (
        "Records per second of processor time, with nothing measured but what chains count, and with everything: "
        "counts at every operator, processes, latency markers once a second, RocksDB's figures where it is used, and a "
        "record of the job taken once a second. Both run in turn in one process; of each the quicker half of the "
        "rounds counts.\n"
    )
    return joined(
        [
            "# What measuring costs\n",
            quick_warning(results),
            about(results),
            text,
            table(["job", "off", "on", "on / off"], rows),
            f"REST over a job with {SLOTS} slots and {OPERATORS} operators, three metrics of its own in each. Paths "
            "are asked one after the other, and the first one pays for a new record of the job:\n",
            table(["path", "median ms"], [[f"`{path}`", f"{ms:.1f}"] for path, ms in rest.get("paths", {}).items()]),
            targets(results, aims),
            failures({"jobs": results["jobs"], "rest": rest}),
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    given = parser.parse_args()
    rounds, share, requests = (2, 0.05, 2) if given.quick else (given.rounds, 1.0, 20)
    results = header(given.quick) | {"jobs": {}}
    results["jobs"] = {name: attempt(name, cost, name, rounds, share) for name in JOBS}
    results["rest"] = attempt("REST", answers, requests)
    text = page(results)
    save(folder_of(given.quick, partial=rounds != ROUNDS), "metrics", results, text)
    print(text)


if __name__ == "__main__":
    main()
