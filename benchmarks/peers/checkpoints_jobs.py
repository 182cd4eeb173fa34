"""What both peers of the checkpoint benchmarks share: records, when to fail, stamps in files, the line of output.

Plain Python without dependencies, like `workloads.py`: it is imported in the environment of every peer. A program is
called with a part and its settings in JSON, works in the current folder, and prints one line of JSON.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

from workloads import PARALLELISM

CHECKPOINTS, DATABASE, STAMPS = "checkpoints", "database", "stamps"  # in the folder of a run
POLL_SECONDS = 0.1


def main(parts: dict[str, Callable[[dict], dict]]) -> None:
    part, settings = sys.argv[1:]
    if part not in parts:
        raise SystemExit(f"unknown part {part!r}, expected one of {', '.join(parts)}")
    print(json.dumps(parts[part](json.loads(settings))), flush=True)


def checkpoint_options(interval_millis: int) -> dict[str, str]:
    return {
        "execution.checkpointing.interval": f"{interval_millis} ms",
        "execution.checkpointing.dir": (Path.cwd() / CHECKPOINTS).as_uri(),
    }


def rocksdb_options(settings: dict) -> dict[str, str]:
    return {
        "state.backend.type": "rocksdb",
        "state.backend.rocksdb.memory.fixed-per-slot": f"{settings['budget_megabytes']} mb",
        "state.backend.rocksdb.localdir": str(Path.cwd() / DATABASE),
        "execution.checkpointing.incremental": "true",
    }


def wait_until(reached: Callable[[], bool], check: Callable[[], None], seconds: float) -> None:
    """Repeat until the condition holds. `check` raises if the job can no longer get there."""
    deadline = time.monotonic() + seconds
    while not reached():
        check()
        if time.monotonic() > deadline:
            raise SystemExit(f"TimeoutError: not there after {seconds:.0f} s")
        time.sleep(POLL_SECONDS)


def place_of(number: int, share: int) -> int:
    """From the numbers of a sequence source, whose subtasks begin far apart, to places that all advance together."""
    return number % share * PARALLELISM + number // share


# Recovery. A record is (key, kind, the source's subtask). The state is filled with a value for every key, and a
# complete checkpoint holds it; then records trickle in until one of them makes the function fail.

FILL, TAIL, FAIL = range(3)
Record = tuple[int, int, int]


class Failed(Exception):
    """What the user function raises."""


class RecoverySteps:
    """What each peer's keyed function calls: fails once an attempt, and stamps when it failed and when it was back."""

    folder: str
    failures: int

    def begin(self, subtask: int, attempt: int) -> None:
        self.subtask, self.attempt, self.returns = subtask, attempt, attempt > 0

    def value_after(self, record: Record, known: int | None) -> int:
        """The new value of the record's key, of which the state says `known`."""
        key, kind, _ = record
        if kind == FILL:
            return key
        if known != key:
            raise ValueError(f"the state of key {key} should be {key}, and is {known}")
        if self.returns:
            self.returns = False
            self.stamp("back")
        if self.attempt < self.failures and self.shall_fail(record):
            self.stamp("failed")
            raise Failed("on purpose")
        return key

    def shall_fail(self, record: Record) -> bool:
        return record[1] == FAIL

    def stamp(self, what: str) -> None:
        line = f"{what} {self.attempt} {self.subtask} {time.time()}\n".encode()
        file = os.open(f"{self.folder}/{STAMPS}", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(file, line)  # at once, so that lines of several processes do not mix
        os.close(file)


def recoveries() -> list[dict[str, float]]:
    """For each restart the seconds from the failure to the first record, and to one in every subtask."""
    file, failed, back = Path(STAMPS), {}, {}
    for line in file.read_text().splitlines() if file.exists() else []:
        what, attempt, _, when = line.split()
        if what == "failed":
            failed[int(attempt)] = float(when)
        else:
            back.setdefault(int(attempt) - 1, []).append(float(when))
    complete = [attempt for attempt in sorted(failed) if len(back.get(attempt, [])) == PARALLELISM]
    return [
        {"first": min(back[attempt]) - failed[attempt], "every": max(back[attempt]) - failed[attempt]}
        for attempt in complete
    ]


# Large state: a key of its own for each of the first places, then keys at random.

SHARE = 1 << 40  # the numbers that each subtask of an endless sequence source has before it
METER_RECORDS, METER_SECONDS = 500, 0.2  # how often the clock is read, and the time is written
_MASK = (1 << 64) - 1


def fill_then_random(keys: int, fill: int) -> Callable[[int], tuple[int, int]]:
    """From numbers to (key, 1 if it is random else 0)."""

    def record(number: int) -> tuple[int, int]:
        place = place_of(number, SHARE)
        return (place, 0) if place < fill else (mixed(place) % keys, 1)

    return record


def mixed(number: int) -> int:
    """Two rounds of SplitMix64: numbers in order become numbers in none, the same in every run."""
    x = number * 0x9E3779B97F4A7C15 & _MASK
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & _MASK
    return x ^ x >> 31


class Meter:
    """Counts the random records of one subtask, and writes the time beside the count into a file now and then."""

    def __init__(self, folder: str, subtask: int) -> None:
        self.file = open(f"{folder}/{STAMPS}-{subtask}", "a")  # noqa: SIM115 (open as long as the function is)
        self.seen, self.written = 0, 0.0

    def count(self, number: int) -> None:
        self.seen += number
        if number and self.seen % METER_RECORDS == 0:
            self.write(time.time())

    def write(self, now: float) -> None:
        if now - self.written >= METER_SECONDS:
            self.written = now
            print(now, self.seen, file=self.file, flush=True)


def metered(settle: float) -> list[tuple[float, int]]:
    """Per subtask the seconds and the records that were metered, without the first `settle` seconds."""
    spans = []
    for subtask in range(PARALLELISM):
        file = Path(f"{STAMPS}-{subtask}")
        # The last line may be half written.
        lines = file.read_text().split("\n")[:-1] if file.exists() else []
        stamps = [(float(when), int(seen)) for when, seen in (line.split() for line in lines)]
        kept = [stamp for stamp in stamps if stamp[0] >= stamps[0][0] + settle]
        spans.append((kept[-1][0] - kept[0][0], kept[-1][1] - kept[0][1]) if kept else (0.0, 0))
    return spans


def metered_for(settle: float, seconds: float) -> bool:
    return all(span >= seconds for span, _ in metered(settle))


def metered_rate(settle: float) -> float:
    return sum(records / span for span, records in metered(settle))
