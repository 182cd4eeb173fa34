"""Lookups with a fixed latency through AsyncDataStream: records a second against capacity / latency.

Run as `python benchmarks/async_lookups.py`, with `--quick` for tiny sizes. The job has one subtask on Spark, which
takes the times after the lookups, without the first tenth of the records. "asyncio alone" is the same number of
coroutines that do nothing but sleep, in this process: what the event loop and the timers of this machine allow. A
latency of 0 shows what the operator itself can do.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from penstock.common import Time
from penstock.datastream import AsyncDataStream, AsyncFunction, FlatMapFunction, StreamExecutionEnvironment

LATENCY_MILLIS = 5
CASES = [(1, LATENCY_MILLIS), (10, LATENCY_MILLIS), (100, LATENCY_MILLIS), (100, 0)]
"""(capacity, latency in milliseconds)"""
UNLIMITED = 200_000
"""How many records a second to expect where latency sets no limit; only the size of the job depends on it."""
WAITS = {"ordered": AsyncDataStream.ordered_wait, "unordered": AsyncDataStream.unordered_wait}


@dataclass(frozen=True)
class Figure:
    """One line of the table."""

    mode: str
    capacity: int
    latency_millis: int
    rate: float
    """Records a second."""
    limit: float | None
    """The rate with `capacity` requests in flight at all times; None if requests take no time."""

    @property
    def share(self) -> float | None:
        """How much of the limit was reached."""
        return None if self.limit is None else self.rate / self.limit


class Lookup(AsyncFunction):
    """Returns what it was asked about after a fixed time."""

    def __init__(self, latency_millis: int) -> None:
        self.seconds = latency_millis / 1000

    async def async_invoke(self, value: int) -> list[int]:
        if self.seconds:
            await asyncio.sleep(self.seconds)
        return [value]


class Times(FlatMapFunction):
    """Notes when some of the records arrive, counted from 1."""

    def __init__(self, *wanted: int) -> None:
        self.wanted = set(wanted)
        self.seen = 0

    def flat_map(self, value: Any) -> Iterator[float]:
        self.seen += 1
        if self.seen in self.wanted:
            yield time.time()


def measure(quick: bool = False) -> list[Figure]:
    """All figures; each takes about 5 seconds, or half a second."""
    seconds = 0.5 if quick else 5.0
    figures = []
    for capacity, latency_millis in CASES:
        limit = capacity * 1000 / latency_millis if latency_millis else None
        records = int((limit or UNLIMITED) * seconds)
        rates = {mode: job_rate(mode, capacity, latency_millis, records) for mode in WAITS}
        if latency_millis:
            rates["asyncio alone"] = asyncio_rate(capacity, latency_millis, records)
        figures += [Figure(mode, capacity, latency_millis, rate, limit) for mode, rate in rates.items()]
    return figures


def job_rate(mode: str, capacity: int, latency_millis: int, records: int) -> float:
    """Records a second in a job of one subtask."""
    environment = StreamExecutionEnvironment.create_local_environment(parallelism=1)
    first = max(1, records // 10)
    wait: Any = WAITS[mode]
    found = wait(environment.from_sequence(1, records), Lookup(latency_millis), Time.minutes(1), capacity)
    with found.flat_map(Times(first, records)).execute_and_collect(f"{records} lookups") as times:
        start, end = times
    return (records - first) / (end - start)


def asyncio_rate(capacity: int, latency_millis: int, records: int) -> float:
    """How many sleeps asyncio completes a second, with `capacity` at a time."""

    async def sleep_in_turn() -> None:
        for _ in range(records // capacity):
            await asyncio.sleep(latency_millis / 1000)

    async def sleep_at_a_time() -> None:
        await asyncio.gather(*(sleep_in_turn() for _ in range(capacity)))

    start = time.perf_counter()
    asyncio.run(sleep_at_a_time())
    return records // capacity * capacity / (time.perf_counter() - start)


def table(figures: list[Figure]) -> str:
    """The figures as a Markdown table."""
    lines = [
        "| lookups | capacity | latency | records/s | limit (capacity / latency) | reached |",
        "|---|---|---|---|---|---|",
    ]
    for figure in figures:
        limit = "none" if figure.limit is None else f"{figure.limit:,.0f}"
        share = "" if figure.share is None else f"{figure.share:.0%}"
        cells = [figure.mode, str(figure.capacity), f"{figure.latency_millis} ms", f"{figure.rate:,.0f}", limit, share]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    print(table(measure(quick="--quick" in sys.argv[1:])))


if __name__ == "__main__":
    main()
