"""The queries that wait for the next cut; and epochs are short while somebody asks for one."""

from __future__ import annotations

from penstock.engine.job.epochs import EpochOptions
from penstock.engine.job.slot_queries import AsideTimes
from penstock.engine.job.state_queries import StateQuery

BRISK_MILLIS = 15
"""How long an epoch should take while somebody asks for cuts: a query waits for half of it on average."""
BRISK_WAIT_MILLIS = 5
"""How long a source that finds nothing may wait in its slot meanwhile."""
ATTENTION_MILLIS = 1_000
"""How long after the last query epochs stay short."""
SLOW_MILLIS = 30_000
"""For how long slots that were slow to answer within an epoch count as slow."""
_NEVER = -(10**15)


class Lookups:
    """The queries that wait for the next cut."""

    def __init__(self, options: EpochOptions) -> None:
        self._waiting: list[StateQuery] = []
        self._cut_wanted = self._asked = self._slow = _NEVER
        """When a query came that needs a cut, when any came, and when slots were slow to answer within an epoch."""
        self._pace = BriskPace(options)

    def add(self, query: StateQuery) -> None:
        self._waiting.append(query)

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def take(self, now: int) -> tuple[StateQuery, ...]:
        """All that wait, since they are answered or refused together."""
        waiting, self._waiting = tuple(self._waiting), []
        self._asked = now
        if not all(query.is_aside for query in waiting):
            self._cut_wanted = now
        return waiting

    # --- epochs ---
    def epoch_ran(self, millis: float, read: int, asides: AsideTimes, now: int) -> None:
        self._pace.ran(millis, read)
        if asides.answered:
            self._asked = now
        if asides.are_slow:
            self._slow = now

    def shortened(self, options: EpochOptions, records: int, wait_millis: int, now: int) -> tuple[int, int, int]:
        """How many records the next epoch may read, for how many milliseconds, and how long it may wait for input."""
        if not self._wants_cuts(now):
            return records, options.max_millis, wait_millis
        brisk = min(options.max_millis, BRISK_MILLIS)
        return min(records, self._pace.records), brisk, min(wait_millis, BRISK_WAIT_MILLIS)

    def _wants_cuts(self, now: int) -> bool:
        """Whether it is worth while to come to the next cut soon. One slot need not, unless its steps are long."""
        slow = now - self._slow <= SLOW_MILLIS and now - self._asked <= ATTENTION_MILLIS
        return slow or now - self._cut_wanted <= ATTENTION_MILLIS


class BriskPace:
    """How many records an epoch may read so that all of it, with what later stages do, takes about BRISK_MILLIS."""

    def __init__(self, options: EpochOptions) -> None:
        self._most = options.max_records
        self.records = options.max_records

    def ran(self, millis: float, read: int) -> None:
        """An epoch took so long, and a slot has read so much in it. Short epochs may be short for lack of input."""
        if read and millis > BRISK_MILLIS:
            self.records = max(1, min(self._most, int(read * BRISK_MILLIS / millis)))
        elif millis < 0.8 * BRISK_MILLIS:
            self.records = min(self._most, int(self.records * 1.5) + 1)
