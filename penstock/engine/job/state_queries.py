"""Clients' queries: the choice of slots to ask, the combination of their findings, and the pages of answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from penstock.base import pickling
from penstock.engine.messages.commands_and_reports import Report
from penstock.engine.queryable.query_requests import MOST_ANSWER_BYTES, Cut, QueryAnswer, QueryRequest
from penstock.engine.queryable.result_pages import Scans
from penstock.engine.queryable.slot_states import Finding, Findings, Lookup, QueryableState, Question, describe_clash
from penstock.engine.state.key_groups import key_group, subtask_for_group
from penstock.errors import (
    PenstockError,
    ProgramError,
    QueryError,
    SlotLost,
    StateUnavailable,
    TypeMismatch,
    UnknownState,
)
from penstock.graph.partitioning import ByKey
from penstock.graph.plan import Node, Plan

MOST_ASIDE_BYTES = 1 << 16
"""Largest size, in bytes, of the keys that a working slot is asked for. They wait on a link that it reads later."""


@dataclass(eq=False)
class StateQuery:
    """A request, and the future of its answer."""

    request: QueryRequest
    future: Future[QueryAnswer] = field(default_factory=Future)
    parts: Parts | None = None
    """Questions for the slots, if they are known already."""

    @property
    def is_aside(self) -> bool:
        """Whether a slot can be asked while it works: as far as known, it owns all the keys, and they are few.

        Any other query needs a cut of the whole job.
        """
        if self.request.keys is None or self.parts is None or len(self.parts.by_slot) != 1:
            return False
        return self.size <= MOST_ASIDE_BYTES

    @property
    def size(self) -> int:
        """Size of the keys in bytes, as far as they are known."""
        questions = self.parts.by_slot.values() if self.parts is not None else ()
        return sum(len(question.keys or b"") for question in questions)

    def answer_with(self, page: Callable[[QueryRequest], QueryAnswer]) -> None:
        """Answer at once, without asking any slot."""
        try:
            self.future.set_result(page(self.request))
        except PenstockError as error:
            self.refuse(error)

    def refuse(self, error: Exception) -> None:
        """Fail the query, unless its client has cancelled it."""
        if self.future.running() or self.future.set_running_or_notify_cancel():
            self.future.set_exception(error)


@dataclass(frozen=True)
class Parts:
    """A request divided among the slots that own its keys."""

    uid: str
    """Uid of the operator that has the state."""
    by_slot: Mapping[int, Question]


Answering = Callable[[StateQuery, list[Finding], Cut], None]


class Round:
    """Queries that are answered together, from one cut."""

    def __init__(
        self, lookups: Mapping[int, Lookup], cut: Cut, asked: dict[int, StateQuery], answer: Answering
    ) -> None:
        self.lookups = lookups
        """Questions by slot; empty if no slot needs to be asked."""
        self._cut = cut
        self._asked = asked
        self._answer = answer

    def answer_all(self, findings: list[Findings]) -> None:
        """Answer the queries from the findings of all slots."""
        found: dict[int, list[Finding]] = {number: [] for number in self._asked}
        for one in _from(self._cut, findings):
            for finding in one.found:
                found[finding.number].append(finding)
        asked, self._asked = self._asked, {}
        for number, query in asked.items():
            self._answer(query, found[number], self._cut)

    def refuse(self, error: StateUnavailable) -> None:
        """Refuse the queries that have no answer yet."""
        for query in self._asked.values():
            query.refuse(error)


class QueryDesk:
    """The queryable states of a running job, and the conversion of requests into questions for its slots."""

    def __init__(self, plan: Plan) -> None:
        self._nodes = {node.uid: node for node in plan.nodes}
        self._key_types = {node.uid: _key_type(plan, node) for node in plan.nodes}
        self._states: dict[str, QueryableState] = {}
        self._scans = Scans()

    def states(self) -> tuple[QueryableState, ...]:
        """Return the states that are known so far. A function may ask for its state only with its first record."""
        return tuple(self._states.values())

    def restart(self) -> None:
        """Forget the states at the start of an attempt, whose functions ask for them anew."""
        self._states = {}

    def learn(self, reports: list[Report]) -> None:
        """Take note of the states that functions in the slots have asked for."""
        for report in reports:
            for state in report.queryable:
                known = self._states.get(state.name, state)
                if (known.uid, known.state) != (state.uid, state.state):
                    raise ProgramError(describe_clash(known, state))
                self._states = {**self._states, state.name: known}

    def next_page(self, request: QueryRequest) -> QueryAnswer:
        """Return the next page of an answer. May be called from any thread."""
        return self._scans.page(request)

    # --- one look ---
    @contextmanager
    def looking(self, queries: tuple[StateQuery, ...], cut: Cut) -> Iterator[Round]:
        """Ask the slots within the block. After an error in it, queries without an answer are refused."""
        questions: dict[int, dict[int, Question]] = {}
        asked = {number: query for number, query in enumerate(queries) if self.put(query, number, questions)}
        lookups = {slot: Lookup(cut.processing_time, some) for slot, some in questions.items()}
        asking = Round(lookups, cut, asked, self.answer)
        try:
            if asked and not lookups:
                asking.answer_all([])
            yield asking
        except BaseException as error:
            asking.refuse(StateUnavailable(f"the job failed while it was asked: {error}"))
            raise

    def prepare(self, query: StateQuery) -> None:
        """Find out which slots to ask, in the client's thread. The job's thread then has less to do between epochs."""
        with suppress(Exception):  # the cut reports the error if it persists
            query.parts = self._split(query.request)

    def _parts(self, query: StateQuery) -> Parts:
        state = self._states.get(query.request.name)
        if query.parts is not None and state is not None and state.uid == query.parts.uid:
            return query.parts
        return self._split(query.request)

    def put(self, query: StateQuery, number: int, questions: dict[int, dict[int, Question]]) -> bool:
        """Add a query to the questions for slots. Return False if its client no longer waits, or it was refused."""
        if not query.future.set_running_or_notify_cancel():
            return False
        try:
            parts = self._parts(query)
        except PenstockError as error:
            query.refuse(error)
        except Exception as error:  # a key is the client's own object
            query.refuse(QueryError(f"queryable state '{query.request.name}': {type(error).__name__}: {error}"))
        else:
            for slot, question in parts.by_slot.items():
                questions.setdefault(slot, {})[number] = question
            return True
        return False

    def _split(self, request: QueryRequest) -> Parts:
        state = self._states.get(request.name)
        if state is None:
            known = ", ".join(f"'{name}'" for name in sorted(self._states)) or "none"
            raise UnknownState(f"the job has no queryable state '{request.name}'; there are: {known}")
        node = self._nodes[state.uid]
        if request.keys is not None:
            return Parts(node.uid, self._by_slot(request.name, request.keys, node))
        slots = range(node.parallelism)
        if request.key_groups is not None:
            slots = self._owners(request.key_groups, node)
        question = Question(request.name, None, request.key_groups, MOST_ANSWER_BYTES // len(slots))
        return Parts(node.uid, dict.fromkeys(slots, question))

    def _by_slot(self, name: str, keys: tuple[Any, ...], node: Node) -> dict[int, Question]:
        self._check_keys(name, keys, node)
        places: dict[int, list[tuple[int, Any]]] = {}
        for place, key in enumerate(keys):
            group = key_group(key, node.max_parallelism)
            slot = subtask_for_group(group, node.max_parallelism, node.parallelism)
            places.setdefault(slot, []).append((place, key))
        return {slot: Question(name, pickling.dumps(some)) for slot, some in places.items()}

    def _check_keys(self, name: str, keys: tuple[Any, ...], node: Node) -> None:
        declared = self._key_types[node.uid]
        if declared is not None:
            try:
                declared.fit(list(keys))
            except TypeMismatch as error:
                raise TypeMismatch(
                    f"a key of queryable state '{name}' of {node.name} (uid {node.uid}) must be {declared.notation}: "
                    f"{error}"
                ) from None

    def _owners(self, groups: tuple[int, int], node: Node) -> range:
        if groups[1] >= node.max_parallelism:
            raise QueryError(
                f"{node.name} (uid {node.uid}) has the key groups 0 to {node.max_parallelism - 1}, and not "
                f"{groups[0]} to {groups[1]}"
            )
        first, last = (subtask_for_group(group, node.max_parallelism, node.parallelism) for group in groups)
        return range(first, last + 1)

    def answer(self, query: StateQuery, found: list[Finding], cut: Cut) -> None:
        """Answer a query from the findings of its slots, or refuse it with the first error among them."""
        errors = [finding.error for finding in found if finding.error]
        if errors:
            query.refuse(QueryError(errors[0]))
            return
        request = query.request
        packs = tuple(pack for finding in found for pack in finding.packs)
        answer = QueryAnswer(request.name, self._states[request.name].kind, cut, request.keys, packs=packs)
        query.future.set_result(answer if request.limit is None else self._scans.first(answer, request.limit))


def _from(cut: Cut, findings: list[Findings]) -> list[Findings]:
    """Return the findings of this cut. Raise SlotLost for another cut: its slot left the job."""
    for one in findings:
        if (one.attempt, one.epoch) != (cut.attempt, cut.epoch):
            raise SlotLost(f"slot {one.slot} is at epoch {one.epoch} of attempt {one.attempt}, and not at {cut}")
    return findings


def _key_type(plan: Plan, node: Node) -> Any:
    """Return the type that the program declares for the keys of an operator; None if it declares none."""
    keyed = (edge.partitioning for edge in plan.incoming[node.id] if isinstance(edge.partitioning, ByKey))
    return next((partitioning.key_type for partitioning in keyed if partitioning.key_type is not None), None)
