"""What checkpoints cost, and how fast a job is back after a failure: `python benchmarks/checkpoints.py --help`."""

from __future__ import annotations

import argparse
import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

import checkpoints_report
import environments
import launch
import psutil
from measuring import attempt, folder_of, header, say

PENSTOCK, PYFLINK = "penstock", "pyflink"
ENVIRONMENTS = {PENSTOCK: "", PYFLINK: "flink"}
LEAST_SECONDS = 5  # a program is not started if less time is left
SAMPLE_SECONDS = 0.5  # often enough: Linux remembers the peak of a process


@dataclass(frozen=True)
class Sizes:
    """How much each part measures."""

    # a. A small and a large run, whose difference is measured; a quick run is measured as a whole.
    count_keys: tuple[int, ...] = (1_000, 100_000)
    count_records: tuple[int, ...] = (500_000, 12_500_000)
    count_rounds: int = 3
    # b. First one key in a hundred is changed, then `few_keys` keys whatever the size of the state.
    cost_keys: tuple[tuple[int, ...], ...] = ((10_000, 100_000), (1_000_000,), (5_000_000,))  # by program
    cost_repeats: int = 5
    few_keys: int = 1_000
    # c. PyFlink would take minutes to fill a state of a million keys.
    recovery_keys: tuple[int, ...] = (10_000, 100_000, 1_000_000)
    recovery_keys_of_pyflink: tuple[int, ...] = (10_000, 100_000)
    failures: int = 3
    # d. PyFlink is spared filling the state first.
    large_keys: int = 5_000_000
    large_seconds: float = 60
    heap_seconds: float = 30
    settle_seconds: float = 5
    large_interval_millis: int = 10_000


QUICK = Sizes(
    count_keys=(1_000,),
    count_records=(50_000,),
    count_rounds=1,
    cost_keys=((1_000, 10_000),),
    cost_repeats=2,
    few_keys=100,
    recovery_keys=(1_000,),
    recovery_keys_of_pyflink=(1_000,),
    failures=2,
    large_keys=20_000,
    large_seconds=3,
    heap_seconds=2,
    settle_seconds=0.5,
    large_interval_millis=1_000,
)

COUNT_INTERVAL_MILLIS = 1_000
RECOVERY_INTERVAL_MILLIS, RECOVERY_DELAY_MILLIS = 500, 0
BUDGET_MEGABYTES = 200
EPOCH_RECORDS = 100_000  # for each slot: with RocksDB, which is slower, an epoch then takes a second or two


class Programs:
    """Runs the programs of one part, within its time."""

    def __init__(self, seconds: float) -> None:
        self.deadline = time.monotonic() + seconds

    def run(self, peer: str, job: str, settings: dict) -> dict:
        left = int(self.deadline - time.monotonic())
        if left < LEAST_SECONDS:
            raise launch.RunFailed("the time of this part was used up before")
        launch.TIMEOUT = left
        python = environments.python_of(ENVIRONMENTS[peer])
        arguments = [job, json.dumps({**settings, "patience": left})]
        started = time.monotonic()
        result = launch.run_program(python, launch.HERE / "peers" / f"checkpoints_{peer}.py", arguments)
        say(f"{peer}: {job}, {settings['keys']} keys in {time.monotonic() - started:.0f} s")
        return {**settings, **result}

    def run_watched(self, peer: str, job: str, settings: dict) -> dict:
        with PeakMemory() as memory:
            result = self.run(peer, job, settings)
        return {**result, **memory.peaks()}


class PeakMemory:
    """The largest resident memory of each slot and of the largest JVM below this process, sampled while they run."""

    def __init__(self) -> None:
        self.slots: dict[int, float] = {}  # by process
        self.jvm = 0.0
        self.stopped = threading.Event()
        self.thread = threading.Thread(target=self.sample, daemon=True)

    def __enter__(self) -> PeakMemory:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stopped.set()
        self.thread.join()

    def peaks(self) -> dict:
        return {"slot_megabytes": sorted(self.slots.values()), "jvm_megabytes": self.jvm}

    def sample(self) -> None:
        while not self.stopped.wait(SAMPLE_SECONDS):
            for process in psutil.Process().children(recursive=True):
                self.look_at(process)

    def look_at(self, process: psutil.Process) -> None:
        try:
            if process.name() == "java":
                self.jvm = max(self.jvm, process.memory_info().rss / 1024**2)
            elif megabytes := launch.peak_megabytes(process):
                self.slots[process.pid] = max(self.slots.get(process.pid, 0.0), megabytes)
        except psutil.Error:  # it ended in between
            pass


# The parts.


def throughput(programs: Programs, sizes: Sizes) -> dict:
    """a. The keyed count with checkpoints against the same without, by number of keys."""
    measured = {}
    for keys in sizes.count_keys:
        settings = {
            "keys": keys,
            "sizes": sizes.count_records,
            "rounds": sizes.count_rounds,
            "interval_millis": COUNT_INTERVAL_MILLIS,
        }
        measured[str(keys)] = attempt(f"throughput, {keys:,} keys", programs.run, PENSTOCK, "throughput", settings)
    return measured


def cost(programs: Programs, sizes: Sizes) -> dict:
    """b. Full and incremental checkpoints by size of the state."""
    measured = {}
    for some_keys in sizes.cost_keys:
        settings = {"keys": some_keys, "repeats": sizes.cost_repeats, "few": sizes.few_keys}
        run = attempt(f"cost, {some_keys} keys", programs.run, PENSTOCK, "cost", settings)
        measured.update({str(keys): run if "error" in run else run["by_keys"][str(keys)] for keys in some_keys})
    return measured


def recovery(programs: Programs, sizes: Sizes) -> dict:
    """c. From the failure of a user function to the first record after the restart, by size of the state."""
    measured: dict[str, dict] = {}
    for peer, all_keys in ((PENSTOCK, sizes.recovery_keys), (PYFLINK, sizes.recovery_keys_of_pyflink)):
        for keys in all_keys:
            settings = {
                "keys": keys,
                "failures": sizes.failures,
                "interval_millis": RECOVERY_INTERVAL_MILLIS,
                "delay_millis": RECOVERY_DELAY_MILLIS,
            }
            run = attempt(f"recovery of {peer}, {keys:,} keys", programs.run, peer, "recovery", settings)
            measured.setdefault(str(keys), {})[peer] = run
    return measured


def large_state(programs: Programs, sizes: Sizes) -> dict:
    """d. A keyed count over random keys of a state that is larger than the memory it may use."""
    settings = {
        "backend": "rocksdb",
        "keys": sizes.large_keys,
        "fill": sizes.large_keys,
        "seconds": sizes.large_seconds,
        "settle_seconds": sizes.settle_seconds,
        "interval_millis": sizes.large_interval_millis,
        "budget_megabytes": BUDGET_MEGABYTES,
        "epoch_records": EPOCH_RECORDS,
    }
    heap = {**settings, "backend": "hashmap", "seconds": sizes.heap_seconds}
    return {
        "pyflink": attempt("PyFlink's RocksDB", programs.run_watched, PYFLINK, "large_state", {**settings, "fill": 0}),
        "hashmap": attempt("HashMap", programs.run_watched, PENSTOCK, "large_state", heap),
        "rocksdb": attempt("RocksDB", programs.run_watched, PENSTOCK, "large_state", settings),
    }


@dataclass(frozen=True)
class Part:
    name: str
    measure: Callable[[Programs, Sizes], dict]
    limit: float  # seconds


PARTS = {
    "a": Part("throughput", throughput, 300),
    "b": Part("cost", cost, 240),
    "c": Part("recovery", recovery, 240),
    "d": Part("large_state", large_state, 400),
}


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to prove that everything runs")
    names = ", ".join(f"{letter}: {part.measure.__doc__[3:]}" for letter, part in PARTS.items())
    parser.add_argument("--only", metavar="PARTS", help=f"measure these alone, separated by commas. {names}")
    parser.add_argument("--limit", type=float, metavar="SECONDS", help="for each part, in place of its own")
    options = parser.parse_args()
    options.chosen = options.only.split(",") if options.only else list(PARTS)
    unknown = set(options.chosen) - set(PARTS)
    if unknown:
        parser.error(f"unknown parts {sorted(unknown)}, choose from {','.join(PARTS)}")
    return options


def run_all(options: argparse.Namespace) -> dict:
    results = header(options.quick, ENVIRONMENTS.values())
    for letter in options.chosen:
        part = PARTS[letter]
        programs = Programs(options.limit or part.limit)
        results[part.name] = part.measure(programs, QUICK if options.quick else Sizes())
    return results


def main() -> None:
    options = parse_arguments()
    folder = folder_of(options.quick, bool(options.only))
    results = run_all(options)
    (folder / "checkpoints.json").write_text(json.dumps(results, indent=2) + "\n")
    checkpoints_report.write(results, folder)
    say(f"written: {folder / 'checkpoints.md'}")


if __name__ == "__main__":
    main()
