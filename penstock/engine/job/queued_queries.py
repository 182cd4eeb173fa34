"""The queue of queries until the next consistent cut. Epochs are short while queries are waiting."""

from __future__ import annotations

from penstock.engine.job.epochs import EpochOptions
from penstock.engine.job.slot_queries import AsideTimes
from penstock.engine.job.state_queries import StateQuery

BRISK_MILLIS = 15
"""Target duration of an epoch while clients ask for cuts. A query waits for half of it on average."""
BRISK_WAIT_MILLIS = 5
"""Longest time that a source without input may wait in its slot while clients ask for cuts."""
ATTENTION_MILLIS = 1_000
"""Time after the last query for which epochs stay short."""
SLOW_MILLIS = 30_000
"""Time for which slots count as slow after a slow answer within an epoch."""
_NEVER = -(10**15)


class Lookups:
    """The queries that wait for the next cut."""

    def __init__(self, options: EpochOptions) -> None:
        self._waiting: list[StateQuery] = []
        self._cut_wanted = self._asked = self._slow = _NEVER
        """Times of the last query that needed a cut, of the last query, and of the last slow answer within an epoch."""
        self._pace = BriskPace(options)

    def add(self, query: StateQuery) -> None:
        """Let a query wait for the next cut."""
        self._waiting.append(query)

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def take(self, now: int) -> tuple[StateQuery, ...]:
        """Remove and return all waiting queries, which are answered or refused together."""
        waiting, self._waiting = tuple(self._waiting), []
        self._asked = now
        if not all(query.is_aside for query in waiting):
            self._cut_wanted = now
        return waiting

    # --- epochs ---
    def epoch_ran(self, millis: float, read: int, asides: AsideTimes, now: int) -> None:
        """Note how long an epoch took, how many records a slot read, and how slots answered within it."""
        self._pace.adapt(millis, read)
        if asides.answered:
            self._asked = now
        if asides.are_slow:
            self._slow = now

    def limits(self, options: EpochOptions, records: int, wait_millis: int, now: int) -> tuple[int, int, int]:
        """Return the limits of the next epoch: records to read, milliseconds for reading and for waiting."""
        if not self._wants_cuts(now):
            return records, options.max_millis, wait_millis
        brisk = min(options.max_millis, BRISK_MILLIS)
        return min(records, self._pace.records), brisk, min(wait_millis, BRISK_WAIT_MILLIS)

    def _wants_cuts(self, now: int) -> bool:
        """Return True if the next cut should come soon. Queries to one slot need no cut, unless its steps are long."""
        slow = now - self._slow <= SLOW_MILLIS and now - self._asked <= ATTENTION_MILLIS
        return slow or now - self._cut_wanted <= ATTENTION_MILLIS


class BriskPace:
    """The number of records with which an epoch, including its later stages, takes about BRISK_MILLIS."""

    def __init__(self, options: EpochOptions) -> None:
        self._most = options.max_records
        self.records = options.max_records

    def adapt(self, millis: float, read: int) -> None:
        """Adapt the number to an epoch. The number grows slowly, since short epochs may be short for lack of input."""
        if read and millis > BRISK_MILLIS:
            self.records = max(1, min(self._most, int(read * BRISK_MILLIS / millis)))
        elif millis < 0.8 * BRISK_MILLIS:
            self.records = min(self._most, int(self.records * 1.5) + 1)
