"""Questions for one slot alone, which it answers between two steps of an epoch: nobody has to wait for the epoch's end.

A question whose keys are in several slots needs a cut of the whole job, which only the end of an epoch is. What one
slot holds between two of its steps belongs to some consistent cut at any time: to the one that has what this slot has
heard of, and nothing else.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from penstock.engine.job.state_queries import MOST_ASIDE_BYTES, QueryDesk, StateQuery
from penstock.engine.queryable.query_requests import Cut
from penstock.engine.queryable.slot_states import Findings, Lookup, Question
from penstock.errors import StateUnavailable

PAUSE_SECONDS = 0.01
"""How long slots work before they are asked again: a question waits for half of it on average."""
SLOW_SECONDS = 0.015
"""An answer that takes longer than this is late: the slot was slow to come to its next step."""


@dataclass(frozen=True)
class AsideTimes:
    """How many questions the slots have answered within an epoch, and how many of them late."""

    answered: int = 0
    late: int = 0

    def with_answers(self, more: int, late: bool) -> AsideTimes:
        return AsideTimes(self.answered + more, self.late + (more if late else 0))

    @property
    def are_slow(self) -> bool:
        """Whether so many were late that short epochs would be better."""
        return 4 * self.late > self.answered


@dataclass(frozen=True)
class _Asked:
    """What one slot was asked and has not answered yet."""

    at: float
    """On time.monotonic()."""
    processing_time: int
    queries: Mapping[int, StateQuery]
    """By the numbers of the questions."""


class Asides:
    """The queries that wait for a step of one slot, and those that a slot was asked.

    `add` may be called from any thread, the rest from the thread that runs the job's epochs.
    """

    def __init__(self, desk: QueryDesk, now: Callable[[], int]) -> None:
        """`now` is the job's clock, in milliseconds."""
        self._desk = desk
        self._now = now
        self._waiting: deque[StateQuery] = deque()
        self._asked: dict[int, _Asked] = {}
        self._last = 0.0
        self._times = AsideTimes()

    def add(self, query: StateQuery) -> None:
        self._waiting.append(query)

    def left(self) -> Iterator[StateQuery]:
        """Those that no slot was asked, now that an epoch has ended and there is a cut to answer them from."""
        while self._waiting:
            yield self._waiting.popleft()

    def times(self) -> AsideTimes:
        """How quickly the slots have answered since the last call."""
        times, self._times = self._times, AsideTimes()
        return times

    # --- while an epoch runs ---
    def due_in(self) -> float | None:
        """In how many seconds to ask what waits; None if nothing does, or if answers are to come first."""
        if self._asked or not self._waiting:
            return None
        return max(0.0, self._last + PAUSE_SECONDS - time.monotonic())

    def are_open(self, slot: int | None = None) -> bool:
        """Whether this slot, or any, owes answers."""
        return bool(self._asked) if slot is None else slot in self._asked

    def questions(self) -> dict[int, Lookup]:
        """By slot, what to ask it now. Its answers go to `found`; if there will be none, `refuse` is called."""
        queries, questions = self._taken()
        now = self._now()
        self._last = time.monotonic()
        for slot, some in questions.items():
            self._asked[slot] = _Asked(self._last, now, {number: queries[number] for number in some})
        return {slot: Lookup(now, some) for slot, some in questions.items()}

    def _taken(self) -> tuple[list[StateQuery], dict[int, dict[int, Question]]]:
        queries: list[StateQuery] = []
        questions: dict[int, dict[int, Question]] = {}
        size = 0
        while self._waiting and size < MOST_ASIDE_BYTES:
            query = self._waiting.popleft()
            size += query.size
            self._desk.put(query, len(queries), questions)
            queries.append(query)
        return queries, questions

    def found(self, findings: Findings) -> None:
        """A slot has answered what it was asked."""
        asked = self._asked.pop(findings.slot)
        late = time.monotonic() - asked.at > SLOW_SECONDS
        self._times = self._times.with_answers(len(asked.queries), late)
        slot = findings.slot if findings.step else None
        cut = Cut(findings.attempt, findings.epoch, asked.processing_time, slot, findings.step)
        for finding in findings.found:
            self._desk.answer(asked.queries[finding.number], [finding], cut)

    def refuse(self, error: StateUnavailable) -> None:
        """What was asked will not be answered."""
        open_ones, self._asked = self._asked, {}
        for asked in open_ones.values():
            for query in asked.queries.values():
                query.refuse(error)
