"""The batch job that all peers run: padded records; for each key how many there are, and the sum of their numbers."""

from __future__ import annotations

KEYS = 100_000
PAYLOAD = 200
SLOTS = 2
_PADDING = "x" * (PAYLOAD - 12)


def record(number: int) -> tuple[int, int, str]:
    """A key, a number, and a text that makes it large and is never the same."""
    return number % KEYS, number, f"{number:012}{_PADDING}"


def records_in(gigabytes: float) -> int:
    """How many records have so much payload."""
    return int(gigabytes * 1024**3) // PAYLOAD


def expected(records: int) -> list[int]:
    """Keys, records and the sum of their numbers, by arithmetic."""
    return [min(KEYS, records), records, records * (records - 1) // 2, records * PAYLOAD]


def digest(results: list[tuple[int, int, int, int]]) -> list[int]:
    """The same of what a peer found: (key, count, sum of numbers, length of texts) for each key."""
    return [len(results), *(sum(result[field] for result in results) for field in (1, 2, 3))]
