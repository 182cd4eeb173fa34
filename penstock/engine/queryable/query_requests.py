"""Requests for a job's queryable state, and their answers."""

from __future__ import annotations

import pickle
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from penstock.engine.queryable.slot_states import Pack

MOST_KEYS = 100_000
"""Greatest number of keys in one request."""
MOST_ANSWER_BYTES = 256 << 20
"""Largest size, in bytes, of one answer of the slots."""


@dataclass(frozen=True)
class QueryRequest:
    """A request for values of one state: of some keys, or of all keys in some key groups, at once or page by page.

    Everything in the answer to one request is from one cut, also if it is fetched in pages.
    """

    name: str
    """The queryable name of the state."""
    keys: tuple[Any, ...] | None = None
    """The keys to look up, or None for all existing keys."""
    key_groups: tuple[int, int] | None = None
    """The first and the last requested key group, or None for all key groups."""
    limit: int | None = None
    """Number of entries in a page, or None for everything in one answer."""
    token: str | None = None
    """Start of the next page, as given by the page before. It continues the request of that page."""

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise ValueError(f"the name of a queryable state is a string that is not empty, not {self.name!r}")
        if self.keys is not None:
            if self.key_groups is not None or self.limit is not None or self.token is not None:
                raise ValueError("a request either names keys or asks for all keys (in pages or at once), not both")
            if len(self.keys) > MOST_KEYS:
                raise ValueError(f"a request has at most {MOST_KEYS} keys, not {len(self.keys)}")
        if self.limit is not None and (not isinstance(self.limit, int) or self.limit < 1):
            raise ValueError(f"a page has at least 1 entry, not {self.limit!r}")
        if self.key_groups is not None and not _is_range(self.key_groups):
            raise ValueError(
                f"key groups are given as the numbers of the first and the last group, not {self.key_groups!r}"
            )

    @classmethod
    def of(cls, name: str, *keys: Any) -> QueryRequest:
        """Return a request for some keys."""
        return cls(name, keys)


def _is_range(groups: Any) -> bool:
    return (
        isinstance(groups, tuple)
        and len(groups) == 2
        and all(isinstance(group, int) for group in groups)
        and 0 <= groups[0] <= groups[1]
    )


@dataclass(frozen=True)
class Cut:
    """The moment that an answer shows: the end of an epoch, at which nothing is in flight in the whole job.

    If one slot has all the keys of a request, it may also be a moment of that slot within the next epoch, between two
    of its steps; `slot` and `step` say which. The state there need not be part of a checkpoint yet: if the job fails,
    its next attempt may show an earlier one.
    """

    attempt: int
    epoch: int
    processing_time: int
    """Time of the cut, in milliseconds since 1970. Values that have expired by then are not shown."""
    slot: int | None = None
    """The slot that answered within the following epoch, or None for the end of `epoch`."""
    step: int = 0
    """Number of the slot's answer in that epoch, counted from 1; later answers show more.

    0 means the end of `epoch`.
    """


@dataclass(frozen=True)
class Entry:
    """A key of an answer. If `found` is False, the state holds no value for this key, or the value has expired."""

    key: Any
    found: bool
    value: Any = None


@dataclass(frozen=True)
class QueryAnswer:
    """The entries of the requested keys, in that order, or of all keys, in no particular order."""

    name: str
    kind: str
    """Kind of the state: value, list, map, reducing or aggregating."""
    cut: Cut
    keys: tuple[Any, ...] | None = None
    """The requested keys, or None for all keys."""
    next_token: str | None = None
    """Token of the next page, or None if there is none."""
    packs: tuple[Pack, ...] = field(default=(), repr=False)
    """The entries as the slots have sent them. Reading `entries` unpickles them, in the reader's own thread."""
    skip: int = field(default=0, repr=False)
    limit: int | None = field(default=None, repr=False)

    @cached_property
    def entries(self) -> tuple[Entry, ...]:
        """The entries, as copies. Changing them changes nothing in the job."""
        pairs = [pair for pack in self.packs for pair in pickle.loads(pack.data)]
        if self.keys is None:
            end = None if self.limit is None else self.skip + self.limit
            return tuple(Entry(key, True, value) for key, value in pairs[self.skip : end])
        found = dict(pairs)
        return tuple(_entry(place, key, found) for place, key in enumerate(self.keys))

    def values(self) -> dict[Any, Any]:
        """Return the values that were found, by key."""
        return {entry.key: entry.value for entry in self.entries if entry.found}


def _entry(place: int, key: Any, found: dict[int, Any]) -> Entry:
    return Entry(key, True, found[place]) if place in found else Entry(key, False)
