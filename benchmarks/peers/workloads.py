"""What every peer computes: the same user functions, the same counting, the same line of output.

This module is plain Python without dependencies, since it is imported in the environment of every peer. A peer program
is called with `workload records keys [setting]` and prints one line of JSON through `report`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass

KEYED_COUNT = "keyed_count"
STATELESS = "stateless"

PARALLELISM = 2
EVERY = 1000  # a key's count is emitted each time it reaches a multiple of this


@dataclass(frozen=True)
class Job:
    """One run: the integers 0 to records - 1 through a workload. `setting` is the peer's own (a mode, a batch size)."""

    workload: str
    records: int
    keys: int
    setting: str = ""


def job_from_arguments() -> Job:
    workload, records, keys, *setting = sys.argv[1:]
    if workload not in (KEYED_COUNT, STATELESS):
        raise SystemExit(f"unknown workload {workload!r}, expected {KEYED_COUNT!r} or {STATELESS!r}")
    return Job(workload, int(records), int(keys), *setting)


# The user functions of the keyed count. What remains of it, the process function that keeps a count in a ValueState
# and emits (key, count) at every thousandth, is written in each peer's own API.


def pair_with_one(keys: int) -> Callable[[int], tuple[int, int]]:
    return lambda x: (x % keys, 1)


def key_of(pair: tuple[int, int]) -> int:
    return pair[0]


def is_positive(result: tuple[int, int]) -> bool:
    return result[1] > 0


# The user functions of the stateless chain: map, filter, map, filter.


def double_plus_one(x: int) -> int:
    return x * 2 + 1


def divisible_by_three(x: int) -> bool:
    return x % 3 == 0


def as_text(x: int) -> str:
    return str(x)


def ends_in_999(text: str) -> bool:
    return text.endswith("999")


def digest(job: Job, results: Iterable) -> tuple[int, int]:
    """How many results came out, and a sum over them that no wrong or doubled result leaves unchanged."""
    weigh = weigh_count if job.workload == KEYED_COUNT else int
    weights = [weigh(result) for result in results]
    return len(weights), sum(weights)


def weigh_count(result: tuple) -> int:
    key, count = result
    return (int(key) + 1) * count


def expected_digest(job: Job) -> tuple[int, int]:
    """The digest by arithmetic, without going through the records."""
    return expected_counts(job) if job.workload == KEYED_COUNT else expected_texts(job)


def expected_counts(job: Job) -> tuple[int, int]:
    per_key, longer_keys = divmod(job.records, job.keys)
    if per_key + 1 < EVERY:
        return 0, 0
    emitted = checksum = 0
    for key in range(job.keys):
        results = (per_key + (key < longer_keys)) // EVERY
        emitted += results
        checksum += (key + 1) * EVERY * results * (results + 1) // 2
    return emitted, checksum


def expected_texts(job: Job) -> tuple[int, int]:
    """Odd multiples of three that end in 999 are 999 and every 3000th number after it."""
    kept = range(999, 2 * job.records, 3000)
    return len(kept), sum(kept)


def report(job: Job, seconds: float, results: tuple[int, int]) -> None:
    print(json.dumps({"seconds": seconds, "records": job.records, "results": list(results)}), flush=True)
