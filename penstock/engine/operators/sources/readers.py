"""The built-in sources: collections, sequences, records at a rate, and records that the driver feeds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from penstock.engine.operators.operator import Clock, OperatorContext
from penstock.engine.operators.sources.source_operator import CHUNK_RECORDS, Budget, Enumerator, Reader, Source
from penstock.engine.records.elements import Chunk, Receiver


@dataclass
class CollectionSource(Source):
    """The elements of a list, in order, from one subtask."""

    values: list[Any]
    parallel = False

    def reader(self, context: OperatorContext, position: Any = None) -> Reader:
        return _CollectionReader(self.values, position or 0)


class _CollectionReader(Reader):
    def __init__(self, values: list[Any], start: int) -> None:
        self._values = values
        self._next = start

    def poll(self, output: Receiver, budget: Budget) -> int:
        values = self._values[self._next : self._next + min(CHUNK_RECORDS, budget.records)]
        if values:
            output.chunk(Chunk(values))
        self._next += len(values)
        self.finished = self._next >= len(self._values)
        return len(values)

    def position(self) -> int:
        return self._next


@dataclass
class SequenceSource(Source):
    """The whole numbers from start to end, both included, split into one run per subtask."""

    start: int
    end: int

    def reader(self, context: OperatorContext, position: Any = None) -> Reader:
        if position is not None:
            return _SequenceReader(position)
        cuts = [
            self.start + (self.end - self.start + 1) * index // context.parallelism
            for index in (context.subtask, context.subtask + 1)
        ]
        return _SequenceReader([(cuts[0], cuts[1])])

    def redistribute(self, positions: list[Any], parallelism: int) -> list[Any]:
        runs = [run for position in positions for run in position]
        return dealt_out(_halve(runs, parallelism), parallelism)


def _halve(runs: list[tuple[int, int]], wanted: int) -> list[tuple[int, int]]:
    """Halve the longest runs until there are at least this many runs, if the numbers suffice."""
    runs = [run for run in runs if run[0] < run[1]]
    while runs and len(runs) < wanted:
        longest = max(runs, key=lambda run: run[1] - run[0])
        if longest[1] - longest[0] < 2:
            break
        position, middle = runs.index(longest), (longest[0] + longest[1]) // 2
        runs[position : position + 1] = [(longest[0], middle), (middle, longest[1])]
    return runs


def dealt_out(parts: Iterable[Any], hands: int) -> list[list[Any]]:
    """Distribute parts over this many readers in turn."""
    dealt = list(parts)
    return [dealt[hand::hands] for hand in range(hands)]


class _SequenceReader(Reader):
    """Reads runs of numbers (next, stop), one after the other."""

    def __init__(self, runs: list[tuple[int, int]]) -> None:
        self._runs = [run for run in runs if run[0] < run[1]]

    def poll(self, output: Receiver, budget: Budget) -> int:
        taken = 0
        if self._runs:
            first, end = self._runs[0]
            stop = min(first + min(CHUNK_RECORDS, budget.records), end)
            taken = stop - first
            output.chunk(Chunk(list(range(first, stop))))
            self._runs[:1] = [(stop, end)] if stop < end else []
        self.finished = not self._runs
        return taken

    def position(self) -> list[tuple[int, int]]:
        return list(self._runs)


@dataclass
class RateSource(Source):
    """The records function(0), function(1), … at a steady rate, for ever or `count` of them."""

    function: Callable[[int], Any] | None
    per_second: float
    count: int | None = None

    @property
    def bounded(self) -> bool:  # type: ignore[override]
        return self.count is not None

    def reader(self, context: OperatorContext, position: Any = None) -> Reader:
        steps = [(context.subtask, context.parallelism)] if position is None else position
        return _RateReader(self, steps, context.clock)

    def redistribute(self, positions: list[Any], parallelism: int) -> list[Any]:
        steps = [step for position in positions for step in position]
        if len(steps) < parallelism:
            parts = -(-parallelism // len(steps))
            steps = [(first + part * step, step * parts) for first, step in steps for part in range(parts)]
        return dealt_out(steps, parallelism)


class _RateReader(Reader):
    """Emits n, n + s, n + 2s, … for each of its (n, s). The processing time of the epoch decides how many are due.

    Subtask i of p starts with (i, p). A reader that continues from a position does not make up for the time in between.
    """

    def __init__(self, source: RateSource, steps: list[tuple[int, int]], clock: Clock) -> None:
        self._source = source
        self._steps = list(steps)
        self._clock = clock
        self._began = clock.now
        self._emitted = [0] * len(steps)

    def _due(self, index: int) -> int:
        first, step = self._steps[index]
        due = int((self._clock.now - self._began) / 1000 * self._source.per_second / step) + 1 - self._emitted[index]
        return due if self._source.count is None else min(due, -(-(self._source.count - first) // step))

    def poll(self, output: Receiver, budget: Budget) -> int:
        taken = 0
        for index, (first, step) in enumerate(self._steps):
            due = min(self._due(index), CHUNK_RECORDS - taken, budget.records - taken)
            if due > 0:
                self._emit(range(first, first + due * step, step), output)
                self._steps[index] = (first + due * step, step)
                self._emitted[index] += due
                taken += due
        total = self._source.count
        self.finished = total is not None and all(first >= total for first, _ in self._steps)
        return taken

    def _emit(self, numbers: range, output: Receiver) -> None:
        function = self._source.function
        output.chunk(Chunk(list(numbers) if function is None else [function(number) for number in numbers]))

    def next_due(self) -> int | None:
        waits = [e * s / self._source.per_second for e, (_, s) in zip(self._emitted, self._steps, strict=True)]
        return self._began + int(1000 * min(waits)) + 1 if waits else None

    def position(self) -> list[tuple[int, int]]:
        return list(self._steps)


@dataclass
class FedSource(Source):
    """Records that the driver reads and distributes with each command."""

    make_enumerator: Callable[[], Enumerator]

    def reader(self, context: OperatorContext, position: Any = None) -> Reader:
        return _FedReader()

    def redistribute(self, positions: list[Any], parallelism: int) -> list[Any]:
        """Return no positions for readers: the enumerator has the position."""
        return [None] * parallelism

    def enumerator(self) -> Enumerator | None:
        return self.make_enumerator()

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the driver's part, which stays with the driver."""
        return {"make_enumerator": None}


class _FedReader(Reader):
    """Takes a payload (values, last) once an epoch."""

    def poll(self, output: Receiver, budget: Budget) -> int:
        if budget.payload is None:
            return 0
        (values, last), budget.payload = budget.payload, None
        if values:
            output.chunk(Chunk(values))
        self.finished = last
        return len(values)

    def position(self) -> None:
        return None

    def waits_for_input(self) -> bool:
        return True


class IteratorEnumerator(Enumerator):
    """Distributes an iterator's values over the subtasks."""

    def __init__(self, values: Iterator[Any]) -> None:
        self._values = values
        self._taken = 0

    def assign(self, parallelism: int, max_records: int) -> list[Any]:
        if self.exhausted:
            return [None] * parallelism
        taken = [value for _, value in zip(range(max_records), self._values, strict=False)]
        self._taken += len(taken)
        self.exhausted = len(taken) < max_records
        return [(taken[subtask::parallelism], self.exhausted) for subtask in range(parallelism)]

    def position(self) -> int:
        return self._taken

    def resume(self, position: int) -> None:
        """Skip the values that were distributed before. The iterator must give the same values in the same order."""
        self._taken = sum(1 for _ in islice(self._values, position))
