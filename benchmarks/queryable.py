"""What lookups cost a job that works, and how long they take: `make bench-queryable`.

A job counts records by key on Spark. In turn it is left alone and asked for single keys by a client in another process,
which sends its questions at a steady rate whether earlier ones are answered or not. A third process asks nothing, and
takes as much of the processor as the client did: what the job loses to it, it loses to any neighbour.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

import environments
from measuring import attempt, folder_of, header, say
from pages import about, failures, joined, quick_warning, save, table, targets

HERE = Path(__file__).resolve()
KEYS = 10_000
LOOKUPS = 1_000  # a second
LEAST_RATE = 0.95  # of what the job does when it is left alone
MOST_MILLIS = 10.0  # of a lookup, median
SLOTS = 1
PACED = 50_000  # records a second
LOADS = {"as fast as it can": None, f"{PACED:,} records a second": PACED}


# --- the job, in a process of its own ---
def run_job(rate: int | None, slots: int) -> None:
    """Runs the job, says where it is found, and then how many records it has counted whenever a line comes."""
    sys.path.insert(0, str(environments.ROOT))
    from penstock.common import Configuration
    from penstock.datastream import StreamExecutionEnvironment

    configuration = Configuration()
    configuration.set_string("queryable-state.enable", "true")
    configuration.set_string("queryable-state.proxy.ports", "0")
    env = StreamExecutionEnvironment.get_execution_environment(configuration).set_parallelism(slots)
    numbers = env.from_sequence(0, 10**15) if rate is None else env.generate(rate=rate)
    numbers.key_by(lambda number: number % KEYS).process(counting()).discard()
    job = env.execute_async("queryable")
    host, port = job.get_queryable_state_address()
    print(json.dumps({"host": host, "port": port, "job": str(job.get_job_id())}), flush=True)
    for _ in sys.stdin:
        print(json.dumps({"at": time.time(), "counted": job.get_accumulators().result()}), flush=True)
    job.cancel().result()


def counting():
    from penstock.datastream import KeyedProcessFunction
    from penstock.datastream.state import ValueStateDescriptor

    class Counting(KeyedProcessFunction):
        def open(self, context):
            descriptor = ValueStateDescriptor("count")
            descriptor.set_queryable("counts")
            self.count = context.get_state(descriptor)
            self.records = context.get_metrics_group().counter("records")

        def process_element(self, value, ctx):
            self.count.update((self.count.value() or 0) + 1)
            self.records.inc()

    return Counting()


# --- the client, in another ---
def run_client(found: dict, seconds: float, rate: float) -> None:
    """Asks for one key after the other at a steady rate; says how long each answer took, in milliseconds."""
    sys.path.insert(0, str(environments.ROOT))
    from penstock.queryable import QueryableStateClient

    client = QueryableStateClient(found["host"], found["port"], timeout=60)
    client.get_kv_state(found["job"], "counts", 0).result()
    took: list[float] = []
    asked, begin = [], time.perf_counter()
    total = int(seconds * rate)
    for number in range(total):
        pause = begin + number / rate - time.perf_counter()
        if pause > 0:
            time.sleep(pause)
        sent = time.perf_counter()
        future = client.get_kv_state(found["job"], "counts", number * 7919 % KEYS)
        future.add_done_callback(lambda _, sent=sent: took.append(1000 * (time.perf_counter() - sent)))
        asked.append(future)
    errors = [repr(error) for future in asked if (error := future.exception()) is not None]
    client.shutdown_and_wait()
    found = {"took": took, "errors": errors[:3], "seconds": time.perf_counter() - begin, "cpu": time.process_time()}
    print(json.dumps(found), flush=True)


# --- a neighbour that takes as much of the processor as the client ---
def run_neighbour(seconds: float, share: float) -> None:
    """Works for its share of every millisecond, as the client does for every lookup."""
    begin = time.perf_counter()
    while (now := time.perf_counter()) < begin + seconds:
        while time.perf_counter() < now + share / LOOKUPS:
            pass
        time.sleep((1 - share) / LOOKUPS)


# --- measuring ---
class Job:
    def __init__(self, rate: int | None, slots: int) -> None:
        command = [environments.python_of(""), str(HERE), "--job", json.dumps([rate, slots])]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.found = self._line()

    def _line(self) -> dict:
        return json.loads(self._process.stdout.readline())

    def counted(self) -> tuple[float, int]:
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        said = self._line()
        return said["at"], sum(value for name, value in said["counted"].items() if name.endswith("records"))

    def next_cut(self) -> tuple[float, int]:
        """The job counts when an epoch ends: the moment of the next end, and how many records there were."""
        _, before = self.counted()
        while (found := self.counted())[1] == before:
            time.sleep(0.002)
        return found

    def rate_during(self, action) -> tuple[float, dict]:
        (began, before) = self.next_cut()
        result = action()
        (ended, after) = self.next_cut()
        return (after - before) / (ended - began), result

    def end(self) -> None:
        self._process.stdin.close()
        self._process.wait(60)


def asking(job: Job, seconds: float) -> dict:
    arguments = [json.dumps(job.found), str(seconds), str(LOOKUPS)]
    command = [environments.python_of(""), str(HERE), "--client", *arguments]
    said = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, timeout=20 * seconds + 60)
    return json.loads(said.stdout)


def beside(seconds: float, share: float) -> dict:
    command = [environments.python_of(""), str(HERE), "--neighbour", str(seconds), str(share)]
    subprocess.run(command, check=True, timeout=2 * seconds + 60)
    return {}


def measure(rate: int | None, slots: int, rounds: int, seconds: float) -> dict:
    job = Job(rate, slots)
    try:
        while job.counted()[1] == 0:
            time.sleep(0.2)
        asking(job, 2)
        alone, asked, neighboured, took, shares = [], [], [], [], []
        for _ in range(rounds):
            alone.append(job.rate_during(lambda: time.sleep(seconds) or {})[0])
            found, answers = job.rate_during(lambda: asking(job, seconds))
            assert not answers["errors"], answers["errors"]
            asked.append(found)
            took += answers["took"]
            shares.append(answers["cpu"] / answers["seconds"])
            share, lasting = shares[-1], answers["seconds"]
            neighboured.append(job.rate_during(lambda share=share, lasting=lasting: beside(lasting, share))[0])
        ratios = [with_lookups / without for with_lookups, without in zip(asked, alone, strict=True)]
        quantiles = statistics.quantiles(took, n=100)
        return {
            "alone": statistics.median(alone),
            "asked": statistics.median(asked),
            "ratios": ratios,
            "ratio": statistics.median(ratios),
            "of_neighboured": statistics.median(one / other for one, other in zip(asked, neighboured, strict=True)),
            "share": statistics.median(shares),
            "lookups": len(took),
            "median": quantiles[49],
            "p99": quantiles[98],
        }
    finally:
        job.end()


# --- telling ---
def page(results: dict) -> str:
    rows, aims = [], []
    for load, found in results["loads"].items():
        if "error" in found:
            continue
        rates = f"{found['alone']:,.0f}", f"{found['asked']:,.0f}"
        ratios = f"{found['ratio']:.1%}", f"{found['of_neighboured']:.1%}"
        rows.append([load, *rates, *ratios, f"{found['median']:.1f}", f"{found['p99']:.1f}"])
        aims.append((f"{load}: ≥ {LEAST_RATE:.0%} of the rate", f"{found['ratio']:.1%}", found["ratio"] >= LEAST_RATE))
        aims.append(
            (f"{load}: a lookup ≤ {MOST_MILLIS:g} ms", f"{found['median']:.1f} ms", found["median"] <= MOST_MILLIS)
        )
    shares = [f"{found['share']:.0%}" for found in results["loads"].values() if "share" in found]
    head = ["load", "records/s alone", "records/s asked", "ratio", "to a neighbour", "median ms", "99th percentile ms"]
    text = (
        f"A job (slots: {results['slots']}) counts records by {KEYS:,} keys; a client in another process asks for "
        f"{LOOKUPS:,} single keys a second over TCP. Rates are medians of rounds in which the job is left alone and "
        "asked in turn; the ratio is the median of theirs. All share the machine's cores; the next column is the ratio "
        "to the rate that the job has while a process that asks nothing takes as much of them as the client "
        f"({', '.join(shares)} of a core).\n"
    )
    return joined(
        [
            "# Lookups in queryable state\n",
            quick_warning(results),
            about(results),
            text,
            table(head, rows),
            targets(results, aims),
            failures(results["loads"]),
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=8)
    parser.add_argument("--slots", type=int, default=SLOTS)
    parser.add_argument("--job", help=argparse.SUPPRESS)
    parser.add_argument("--client", nargs=3, help=argparse.SUPPRESS)
    parser.add_argument("--neighbour", nargs=2, type=float, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.job is not None:
        run_job(*json.loads(given.job))
    elif given.client is not None:
        run_client(json.loads(given.client[0]), float(given.client[1]), float(given.client[2]))
    elif given.neighbour is not None:
        run_neighbour(*given.neighbour)
    else:
        run(given)


def run(given: argparse.Namespace) -> None:
    rounds, seconds = (1, 2) if given.quick else (given.rounds, given.seconds)
    results = header(given.quick) | {"slots": given.slots, "loads": {}}
    for load, rate in LOADS.items():
        results["loads"][load] = found = attempt(load, measure, rate, given.slots, rounds, seconds)
        say(
            f"{load}: " + ", ".join(f"{name} {value:,.2f}" for name, value in found.items() if isinstance(value, float))
        )
    text = page(results)
    save(folder_of(given.quick, partial=(rounds, seconds, given.slots) != (4, 8, SLOTS)), "queryable", results, text)
    print(text)


if __name__ == "__main__":
    main()
