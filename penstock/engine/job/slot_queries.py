"""Questions for one slot alone, which it answers between two steps of an epoch, before the epoch ends.

A question whose keys are in several slots needs a cut of the whole job, and only the end of an epoch is such a cut. The
state of one slot between two of its steps always belongs to a consistent cut: the cut that contains exactly what this
slot has received.
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
"""Time for which slots work before they are asked again. A question waits for half of it on average."""
SLOW_SECONDS = 0.015
"""Time after which an answer counts as late. The slot was then slow to reach its next step."""


@dataclass(frozen=True)
class AsideTimes:
    """The number of questions that slots have answered within an epoch, and the number of late answers."""

    answered: int = 0
    late: int = 0

    def with_answers(self, more: int, late: bool) -> AsideTimes:
        """Return the numbers with more answers, all of which are late or in time."""
        return AsideTimes(self.answered + more, self.late + (more if late else 0))

    @property
    def are_slow(self) -> bool:
        """Whether more than a quarter of the answers were late, so that short epochs would be better."""
        return 4 * self.late > self.answered


@dataclass(frozen=True)
class _Asked:
    """The questions that one slot has not answered yet."""

    at: float
    """Time of asking, from time.monotonic()."""
    processing_time: int
    queries: Mapping[int, StateQuery]
    """Queries by the numbers of their questions."""


class Asides:
    """The queries that wait for a step of one slot, and those that a slot was asked.

    `add` may be called from any thread, and other methods only from the thread that runs the job's epochs.
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
        """Let a query wait until its slot can be asked."""
        self._waiting.append(query)

    def left(self) -> Iterator[StateQuery]:
        """Remove and yield the queries that were not sent to a slot. The next cut can answer them."""
        while self._waiting:
            yield self._waiting.popleft()

    def times(self) -> AsideTimes:
        """Return the numbers of answers since the last call."""
        times, self._times = self._times, AsideTimes()
        return times

    # --- while an epoch runs ---
    def due_in(self) -> float | None:
        """Return the seconds until the next questions; None if no query waits, or if slots still owe answers."""
        if self._asked or not self._waiting:
            return None
        return max(0.0, self._last + PAUSE_SECONDS - time.monotonic())

    def are_open(self, slot: int | None = None) -> bool:
        """Return True if this slot owes answers, or any slot if it is None."""
        return bool(self._asked) if slot is None else slot in self._asked

    def questions(self) -> dict[int, Lookup]:
        """Return the questions to ask now, by slot. Pass answers to `found`, or call `refuse` if none will come."""
        queries, questions = self._take_questions()
        now = self._now()
        self._last = time.monotonic()
        for slot, some in questions.items():
            self._asked[slot] = _Asked(self._last, now, {number: queries[number] for number in some})
        return {slot: Lookup(now, some) for slot, some in questions.items()}

    def _take_questions(self) -> tuple[list[StateQuery], dict[int, dict[int, Question]]]:
        queries: list[StateQuery] = []
        questions: dict[int, dict[int, Question]] = {}
        size = 0
        while self._waiting and size < MOST_ASIDE_BYTES:
            query = self._waiting.popleft()
            size += query.size
            self._desk.put(query, len(queries), questions)
            queries.append(query)
        return queries, questions

    def answer(self, findings: Findings) -> None:
        """Answer the queries that a slot was asked."""
        asked = self._asked.pop(findings.slot)
        late = time.monotonic() - asked.at > SLOW_SECONDS
        self._times = self._times.with_answers(len(asked.queries), late)
        slot = findings.slot if findings.step else None
        cut = Cut(findings.attempt, findings.epoch, asked.processing_time, slot, findings.step)
        for finding in findings.found:
            self._desk.answer(asked.queries[finding.number], [finding], cut)

    def refuse(self, error: StateUnavailable) -> None:
        """Refuse all queries that slots have not answered."""
        open_ones, self._asked = self._asked, {}
        for asked in open_ones.values():
            for query in asked.queries.values():
                query.refuse(error)
