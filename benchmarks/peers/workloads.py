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
TUMBLING = "tumbling"
SLIDING = "sliding_"  # followed by the ratio of size to slide
SESSIONS = "sessions"
INTERVAL_JOIN = "interval_join"
RATIOS = (1, 5, 10, 20)
WORKLOADS = (KEYED_COUNT, STATELESS, TUMBLING, *(f"{SLIDING}{ratio}" for ratio in RATIOS), SESSIONS, INTERVAL_JOIN)

PARALLELISM = 2
EVERY = 1000  # a key's count is emitted each time it reaches a multiple of this
WINDOW_MILLIS = 10_000
GAP_MILLIS, PAUSE_MILLIS = 500, 1000  # a session ends after the gap; keys pause for longer
SESSION_ELEMENTS = 20
BOUND_MILLIS = 50  # how far apart in time the two sides of a join may be
KEPT_OF_JOIN = 97  # of the pairs that a join makes, those of every 97th left element are collected


@dataclass(frozen=True)
class Job:
    """One run: the integers 0 to records - 1 through a workload. `setting` is the peer's own (a mode, a batch size)."""

    workload: str
    records: int
    keys: int
    setting: str = ""


def job_from_arguments() -> Job:
    workload, records, keys, *setting = sys.argv[1:]
    if workload not in WORKLOADS:
        raise SystemExit(f"unknown workload {workload!r}, expected one of {', '.join(WORKLOADS)}")
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


# Windows and joins. An event is (key, time in milliseconds, value). Event n of a stream has key n % keys, time n and
# value n. A sequence source of two subtasks reads the lower half of the numbers in one and the upper half in the other:
# the numbers are turned into events so that both advance through the same time, instead of half of it lying open.

Event = tuple[int, int, int]


def event_of(records: int, keys: int, delay: int = 0) -> Callable[[int], Event]:
    """From numbers below `records` to events, each with a time `delay` later than its place."""
    share = records // PARALLELISM
    if share * PARALLELISM != records:
        raise SystemExit(f"{records} records cannot be split evenly over {PARALLELISM} subtasks")

    def event(number: int) -> Event:
        place = number % share * PARALLELISM + number // share
        return place % keys, place + delay, place

    return event


def event_with_pauses(records: int, keys: int) -> Callable[[int], Event]:
    """All keys pause after every 20 elements of each, long enough to end a session."""
    event, burst = event_of(records, keys), keys * SESSION_ELEMENTS

    def paused(number: int) -> Event:
        key, time, value = event(number)
        return key, time + time // burst * PAUSE_MILLIS, value

    return paused


def time_of(event: Event) -> int:
    return event[1]


class MeanSteps:
    """The mean of the values in a window: what each peer's aggregate function calls."""

    def create_accumulator(self) -> tuple[int, int]:
        return 0, 0

    def add(self, value: Event, accumulator: tuple[int, int]) -> tuple[int, int]:
        return accumulator[0] + value[2], accumulator[1] + 1

    def get_result(self, accumulator: tuple[int, int]) -> float:
        return accumulator[0] / accumulator[1]

    def merge(self, a: tuple[int, int], b: tuple[int, int]) -> tuple[int, int]:
        return a[0] + b[0], a[1] + b[1]


def slide_of(job: Job) -> int:
    """How far apart windows begin; tumbling ones end where the next begins."""
    return WINDOW_MILLIS if job.workload == TUMBLING else WINDOW_MILLIS // int(job.workload.removeprefix(SLIDING))


def side_of(job: Job) -> int:
    """How many records of a join are on each of its sides."""
    return job.records // 2


def pair_of(left: Event, right: Event) -> tuple[int, int]:
    return left[2], right[2]


def is_kept(pair: tuple[int, int]) -> bool:
    return pair[0] % KEPT_OF_JOIN == 0


# Checking results.


def digest(job: Job, results: Iterable) -> tuple[int, int]:
    """How many results came out, and a sum over them that no wrong or doubled result leaves unchanged."""
    weigh = {KEYED_COUNT: weigh_count, STATELESS: int, INTERVAL_JOIN: weigh_pair}.get(job.workload, weigh_mean)
    weights = [weigh(result) for result in results]
    return len(weights), sum(weights)


def weigh_count(result: tuple) -> int:
    key, count = result
    return (int(key) + 1) * count


def weigh_mean(result: float) -> int:
    return int(2 * result)  # the mean of whole numbers at equal distances is a whole number or a half


def weigh_pair(result: tuple) -> int:
    left, right = result
    return left + 2 * right


def expected_digest(job: Job) -> tuple[int, int]:
    """The digest by arithmetic, without going through the records."""
    known = {
        KEYED_COUNT: expected_counts,
        STATELESS: expected_texts,
        SESSIONS: expected_sessions,
        INTERVAL_JOIN: expected_pairs,
    }
    return known.get(job.workload, expected_windows)(job)


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


def expected_windows(job: Job) -> tuple[int, int]:
    slide = slide_of(job)
    starts = range(slide - WINDOW_MILLIS, job.records, slide)
    return expected_means(job, (range(max(start, 0), min(start + WINDOW_MILLIS, job.records)) for start in starts))


def expected_sessions(job: Job) -> tuple[int, int]:
    burst = job.keys * SESSION_ELEMENTS
    return expected_means(job, (range(x, min(x + burst, job.records)) for x in range(0, job.records, burst)))


def expected_means(job: Job, windows: Iterable[range]) -> tuple[int, int]:
    """Each window as the events in it. A key's values are at equal distances: their mean lies amid first and last."""
    emitted = checksum = 0
    for events in windows:
        for first in events[: job.keys]:
            checksum += first + range(first, events.stop, job.keys)[-1]
        emitted += min(len(events), job.keys)
    return emitted, checksum


def expected_pairs(job: Job) -> tuple[int, int]:
    """The right side is late by the bound, so a left element meets the right ones from twice the bound before it on."""
    lefts = range(0, side_of(job), KEPT_OF_JOIN)
    pairs = [(x, y) for x in lefts for y in range(x, max(x - 2 * BOUND_MILLIS, 0) - 1, -job.keys)]
    return len(pairs), sum(map(weigh_pair, pairs))


def report(job: Job, seconds: float, results: tuple[int, int]) -> None:
    print(json.dumps({"seconds": seconds, "records": job.records, "results": list(results)}), flush=True)
