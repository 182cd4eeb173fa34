"""The queryable states of a slot, and its answers to questions that the driver asks between two epochs."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, NamedTuple

from penstock.api.state.descriptors import StateDescriptor
from penstock.base import pickling
from penstock.engine.records.failures import USER_ERRORS
from penstock.engine.state.key_groups import key_group
from penstock.engine.state.live_entries import ABSENT
from penstock.engine.state.peeking import Peek, peek_of
from penstock.engine.state.state_schema import Schema, schema_of
from penstock.engine.state.tables import Layout, Table
from penstock.errors import ProgramError, UnsupportedOperation

PACK_ENTRIES = 256
"""Number of entries of a scan that are serialised together."""


# --- what is said between driver and slot ---
class Pack(NamedTuple):
    """A part of the found entries, pickled: pairs of a value and its key, or the key's place in the request."""

    entries: int
    data: bytes


@dataclass(frozen=True)
class QueryableState:
    """Description of a queryable state for the driver."""

    name: str
    kind: str
    """value, list, map, reducing or aggregating."""
    uid: str
    operator: str
    state: str
    """Its name inside the operator."""
    schema: Schema = field(default_factory=dict, hash=False)

    def describe(self) -> str:
        """Return a text that names the state and its operator, for errors."""
        return f"state '{self.state}' of {self.operator} (uid {self.uid})"


@dataclass(frozen=True)
class Question:
    """A question to one slot about one state: for some keys, or for all entries of some key groups."""

    name: str
    keys: bytes | None = None
    """The keys, each with its position in the request, or None for all keys.

    They are pickled, so a key that cannot be unpickled fails only this question.
    """
    groups: tuple[int, int] | None = None
    """The first and the last key group of a question without keys, or None for all groups."""
    most_bytes: int = 1 << 30


@dataclass(frozen=True)
class Lookup:
    """The questions for one slot, and the processing time that decides which values have expired."""

    now: int
    questions: Mapping[int, Question]
    """The questions, each by the number that its answer will carry."""


@dataclass(frozen=True)
class Finding:
    """The answer to one question, or the reason why there is no answer."""

    number: int
    packs: tuple[Pack, ...] = ()
    error: str = ""


@dataclass(frozen=True)
class Findings:
    """A slot's answers, and the cut that they are from."""

    slot: int
    attempt: int
    epoch: int
    """The last epoch that has ended."""
    found: tuple[Finding, ...]
    step: int = 0
    """Number of the slot's answer within the next epoch, counted from 1, or 0 before that epoch begins."""


# --- in the slot ---
@dataclass(frozen=True)
class _Published:
    state: QueryableState
    table: Table
    peek: Peek
    max_parallelism: int

    def some(self, keys: list[tuple[int, Any]], now: int) -> list[tuple[int, Any]]:
        """Return the existing values, each with the position of its key."""
        table, peek = self.table, self.peek
        shown = ((place, peek(table.peek(key), now)) for place, key in keys)
        return [(place, value) for place, value in shown if value is not ABSENT]

    def all(self, groups: tuple[int, int] | None, now: int) -> Iterator[tuple[Any, Any]]:
        for key, held in self.table.items():
            if groups is None or groups[0] <= key_group(key, self.max_parallelism) <= groups[1]:
                value = self.peek(held, now)
                if value is not ABSENT:
                    yield key, value


class Queryables:
    """The states of one slot that clients can look up, by name."""

    def __init__(self) -> None:
        self._published: dict[str, _Published] = {}
        self._new: list[QueryableState] = []

    def publish(self, operator: str, uid: str, max_parallelism: int, descriptor: StateDescriptor, table: Table) -> None:
        """Register a queryable state when a function asks for it."""
        name = descriptor.get_queryable_state_name()
        assert name is not None
        known = self._published.get(name)
        if known is not None and known.table is table:
            return  # functions may ask for their state with every record
        schema = schema_of(descriptor)
        state = QueryableState(name, schema["kind"], uid, operator, descriptor.get_name(), schema)
        if table.layout is not Layout.KEY:
            raise UnsupportedOperation(
                f"{state.describe()} cannot be queryable as '{name}': it is state of windows, and only state of "
                "keys can be looked up"
            )
        if known is not None:
            raise ProgramError(describe_clash(known.state, state))
        self._published[name] = _Published(state, table, peek_of(descriptor), max_parallelism)
        self._new.append(state)

    def news(self) -> list[QueryableState]:
        """Return the states that were registered since the last call."""
        new, self._new = self._new, []
        return new

    def __bool__(self) -> bool:
        return bool(self._published)

    def answers(self, lookup: Lookup) -> tuple[Finding, ...]:
        """Return the answers to all questions. The state does not change."""
        return tuple(self.answer(number, question, lookup.now) for number, question in lookup.questions.items())

    def answer(self, number: int, question: Question, now: int) -> Finding:
        """Return the answer to a question. Errors become part of the answer, and the job continues."""
        published = self._published.get(question.name)
        if published is None:
            # Published later in some slots than in others: this one has none of its keys yet.
            return Finding(number)
        try:
            return Finding(number, tuple(_packs(published, question, now)))
        except USER_ERRORS as error:
            return Finding(number, error=f"{published.state.describe()}: {type(error).__name__}: {error}")


def describe_clash(first: QueryableState, second: QueryableState) -> str:
    """Return the message for two states that have the same name for clients."""
    return (
        f"two states are queryable as '{first.name}': {first.describe()} and {second.describe()}; each needs a name of "
        "its own in the job"
    )


def _packs(published: _Published, question: Question, now: int) -> Iterator[Pack]:
    if question.keys is not None:
        found = published.some(pickle.loads(question.keys), now)
        if found:
            yield Pack(len(found), pickling.dumps(found))
        return
    size = 0
    for piece in _pieces(published.all(question.groups, now)):
        pack = Pack(len(piece), pickling.dumps(piece))
        size += len(pack.data)
        if size > question.most_bytes:
            raise UnsupportedOperation(
                f"it holds more than {question.most_bytes} bytes in one slot, the largest size of an answer: ask "
                "for fewer key groups, or read a savepoint with the state processor"
            )
        yield pack


def _pieces(entries: Iterable[tuple[Any, Any]]) -> Iterator[list[tuple[Any, Any]]]:
    feed = iter(entries)
    while piece := list(islice(feed, PACK_ENTRIES)):
        yield piece
