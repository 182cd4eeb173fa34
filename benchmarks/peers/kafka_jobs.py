"""What all peers of the Kafka benchmark share: records, user functions, settings.

Plain Python without dependencies: it is imported in the environment of every peer. A program is called with its
settings in JSON (`servers`, `source`, `target`, `guarantee`, `interval_millis`, and `mode` where there are several),
works in the current folder, reads committed records, and runs until it is ended.

An input record is the text "key,number"; the output record for it is "key,how many of this key so far".
"""

from __future__ import annotations

import json
import random
import sys
from collections import Counter
from collections.abc import Iterable, Iterator

AT_LEAST_ONCE, EXACTLY_ONCE = "at least once", "exactly once"
KEYS = 10_000
SEED = 20_260_101
FLINK_TRANSACTION_MILLIS = 600_000  # its own default is more than a broker allows


def settings() -> dict:
    return json.loads(sys.argv[1])


def values(records: int) -> Iterator[str]:
    """The input, the same each time."""
    chance = random.Random(SEED)
    return (f"{chance.randrange(KEYS)},{number}" for number in range(records))


def key_of(value: str) -> str:
    return value.partition(",")[0]


def result(key: str, count: int) -> str:
    return f"{key},{count}"


def wrong(records: int, results: Iterable[bytes]) -> str:
    """What is wrong with the output of all peers together, or nothing: every key has each of its counts once."""
    expected = Counter(key_of(value) for value in values(records))
    found: dict[str, list[int]] = {}
    for text in results:
        key, _, count = text.decode().partition(",")
        found.setdefault(key, []).append(int(count))
    missing = len(expected.keys() - found.keys())
    bad = sum(sorted(counts) != list(range(1, expected[key] + 1)) for key, counts in found.items())
    return f"{missing} keys are missing, {bad} keys have wrong counts" if missing or bad else ""
