"""Simulated crashes without end: prints the seed of every failure. Run by `make soak`; Ctrl-C stops it.

    python -m tests.crash.soak [--takeovers | --faults | --sinks | --servers] [SEED [NUMBER OF SEEDS]]

Every seed is a job of some kinds of operators (`short_runs`), and every tenth a random query into a table of SQLite,
too. With `--sinks` each is such a query (`make soak-sinks`), with `--servers` the query into PostgreSQL, upsert-kafka
and Elasticsearch in turn (`make soak-servers`). With `--takeovers` drivers also take the job from each other
(`make soak-takeovers`); with `--faults` the storage fails and clocks jump (`make soak-faults`).
"""

import gc
import itertools
import logging
import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence

from penstock.testing.crashes import Outcome
from tests.crash import test_crash_simulator, test_faults, test_takeovers
from tests.crash.short_runs import program_of
from tests.table.changelogs import sink_runs

QUERIES = 10
"""One of so many seeds is a query too, which costs twice as much as a job."""


def job_or_query(seed: int) -> Outcome:
    """Run a seed as a job, and sometimes as a query into a table, too."""
    if seed % QUERIES == 0:
        sink_runs.check(seed)
    return test_crash_simulator.check(seed, program_of(seed))


def chosen(words: Sequence[str]) -> Callable[[int], Outcome]:
    """The check that the words ask for."""
    if "--takeovers" in words:
        return lambda seed: test_takeovers.check(seed, program_of(seed))
    if "--faults" in words:
        return lambda seed: test_faults.check(seed, program_of(seed))
    if "--servers" in words:
        from tests.table.changelogs import service_sinks

        return service_sinks.check
    return sink_runs.check if "--sinks" in words else job_or_query


def be_quick() -> None:
    """Keep databases in memory, and the garbage collector from what the modules hold: both cost more than a seed."""
    if os.path.isdir("/dev/shm"):
        tempfile.tempdir = "/dev/shm"
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000)


def main(*words: str) -> None:
    logging.disable(logging.WARNING)
    os.environ["PENSTOCK_CHECK_CHANGELOGS"] = "across"
    numbers = [int(word) for word in words if not word.startswith("--")]
    check = chosen(words)
    first = numbers[0] if numbers else int(time.time())
    seeds = range(first, first + numbers[1]) if len(numbers) > 1 else itertools.count(first)
    crashes = drivers = failures = 0
    print(f"from seed {first} on")
    be_quick()
    began = time.monotonic()
    for seed in seeds:
        try:
            outcome = check(seed)
            crashes += len(outcome.crashes)
            drivers += outcome.drivers
        except KeyboardInterrupt:
            break
        except BaseException as error:
            failures += 1
            print(f"\nSEED {seed} failed: {error}")
        if (seed - first) % 20 == 19:
            done = seed - first + 1
            hourly = round(3600 * done / (time.monotonic() - began))
            counts = f"{done} seeds, {drivers} drivers, {crashes} crashes, {failures} failures"
            print(f"\r{counts}; {hourly} seeds an hour", end="", flush=True)
    print()
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main(*sys.argv[1:])
