"""Matching: what an event, or time that passes, does to the partial matches of a key."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from penstock.cep import java_heap
from penstock.cep.automaton import Action, Automaton, Edge, StateKind
from penstock.cep.moments import Moment, Test, Tests
from penstock.cep.partial_matches import Finished, Node, Partial, PartialMatches, events_of, numbers_of
from penstock.errors import StateMigrationException

Match = dict[str, list[Any]]


@dataclass
class _Way:
    """An edge, compiled."""

    test: Test | None
    action: Action
    element: str
    target: int
    kind: StateKind
    """The kind of the target."""
    ends: bool
    """Whether the target has edges that may lead on to the end without an event."""


@dataclass
class _Step:
    """What has come out of one partial match, or of the search for a new one."""

    kept: list[Partial] = field(default_factory=list)
    finished: list[Finished] = field(default_factory=list)
    stopped: bool = False


class Matcher:
    """Runs an automaton. It holds no state of keys: that is in the PartialMatches which every method is given."""

    def __init__(self, automaton: Automaton, reports_timeouts: bool, now: Callable[[], int] = lambda: 0) -> None:
        tests = Tests(automaton)
        self.leaves = tests.leaves
        self.shape = automaton.shape()
        self.window = automaton.window
        self._skip = automaton.skip
        self._reports_timeouts = reports_timeouts
        self._start = automaton.start.number
        self._moment = Moment(len(tests.leaves), now)
        self._limits = {state.number: state.limit for state in automaton.states if state.limit is not None}
        self._pending = {state.number for state in automaton.states if state.kind is StateKind.PENDING}
        self._ways = [[_way(edge, tests) for edge in state.edges] for state in automaton.states]
        self._direct = [all(way.action is not Action.PROCEED for way in ways) for ways in self._ways]

    def new(self) -> PartialMatches:
        """The state of a key that has none."""
        return PartialMatches(self.shape)

    def check(self, matches: PartialMatches) -> None:
        """Refuse what was saved by a pattern of another shape."""
        if matches.shape != self.shape:
            raise StateMigrationException(
                "the saved partial matches belong to another pattern: conditions and lengths of time may change, but "
                "names, order, contiguity and quantifiers of the elements may not. Start without this operator's "
                "state (give it another uid), or with the former pattern"
            )

    # --- events ---
    def feed(self, matches: PartialMatches, event: Any, time: int) -> tuple[list[Match], bool]:
        """Process an event. Gives the matches that can be emitted, and whether anything has changed."""
        self._moment.at(event, time)
        number = matches.last_number + 1
        kept: list[Partial] = []
        finished: list[Finished] = []
        changed = False
        for partial in matches.partials:
            step = self._step(partial, number)
            finished += step.finished
            if not step.stopped:
                kept += step.kept
            changed = changed or step.stopped or len(step.kept) != 1 or step.kept[0] is not partial
        begun = self._begin(number)
        if begun.kept or begun.finished:
            changed = True
            matches.begun = matches.begun or time > 0
        kept += begun.kept
        finished += begun.finished
        if not changed and not finished:
            return [], False
        matches.last_number = number
        matches.partials = kept
        return self._emitted(matches, finished), True

    def _step(self, partial: Partial, number: int) -> _Step:
        state, node, start, started, _ = partial
        step, moment = _Step(), self._moment
        moment.of(node)
        for way in self._open_ways(state):
            if way.action is Action.TAKE:
                taken = (way.element, number, moment.event, node)
                self._take(step, way, (way.target, taken, start, started, moment.time))
            elif way.target == state:
                step.kept.append(partial)
            else:
                _sort(step, way.kind, (way.target, *partial[1:]))
        return step

    def _begin(self, number: int) -> _Step:
        """The search for a new first event, which goes on whatever is found."""
        step, moment = _Step(), self._moment
        moment.of(None)
        for way in self._open_ways(self._start):
            if way.action is Action.TAKE:
                taken = (way.element, number, moment.event, None)
                self._take(step, way, (way.target, taken, number, moment.time, moment.time))
        return step if not step.stopped else _Step(finished=step.finished)

    def _take(self, step: _Step, way: _Way, partial: Partial) -> None:
        _sort(step, way.kind, partial)
        if way.ends and self._leads_to_end(way.target):
            step.finished.append((partial[2], partial[1]))

    def _open_ways(self, state: int) -> list[_Way]:
        """The ways that are open to the event: the state's own, then those behind its proceeding edges."""
        moment, ways = self._moment, self._ways
        if self._direct[state]:
            return [way for way in ways[state] if way.test is None or way.test(moment)]
        found, waiting = [], [state]
        while waiting:
            for way in ways[waiting.pop()]:
                if way.test is None or way.test(moment):
                    if way.action is Action.PROCEED:
                        waiting.append(way.target)
                    else:
                        found.append(way)
        return found

    def _leads_to_end(self, state: int) -> bool:
        """Whether what follows is optional, so that the match may end here."""
        waiting = [state]
        while waiting:
            for way in self._ways[waiting.pop()]:
                if way.action is Action.PROCEED and (way.test is None or way.test(self._moment)):
                    if way.kind is StateKind.FINAL:
                        return True
                    waiting.append(way.target)
        return False

    # --- time ---
    def advance(self, matches: PartialMatches, time: int) -> tuple[list[Match], list[tuple[Match, int]]]:
        """Let time pass. Gives the matches that it completes, and those that run out of time with their limit."""
        if not matches.partials or not self._may_be_late(matches.partials[0], time):
            return [], []
        kept: list[Partial] = []
        finished: list[Finished] = []
        late: list[tuple[Match, int]] = []
        for partial in matches.partials:
            limit = self._limit(partial, time)
            if limit is None:
                kept.append(partial)
            elif partial[0] in self._pending:
                finished.append((partial[2], partial[1]))
            elif self._reports_timeouts:
                late.append((events_of(partial[1]), limit))
        if len(kept) == len(matches.partials):
            return [], []
        matches.partials = kept
        return self._emitted(matches, finished), late

    def _may_be_late(self, first: Partial, time: int) -> bool:
        """The first one began before all others, so that they have time if it has."""
        return bool(self._limits) or (self.window is not None and time - first[3] >= self.window)

    def _limit(self, partial: Partial, time: int) -> int | None:
        """The time at which a partial match should have gone on; None if that lies ahead."""
        state, _, _, started, latest = partial
        limit = self._limits.get(state)
        if limit is not None and time - latest >= limit:
            return latest + limit
        if self.window is not None and time - started >= self.window:
            return started + self.window
        return None

    # --- complete matches ---
    def _emitted(self, matches: PartialMatches, finished: list[Finished]) -> list[Match]:
        """The matches that need not wait for others. What a strategy skips is dropped."""
        heap, emitted, skip = matches.finished, list[Match](), self._skip
        for item in finished:
            java_heap.push(heap, item)
        while heap:
            if skip.skips and matches.partials and matches.partials[0][2] < heap[0][0]:
                break
            _, node = java_heap.pop(heap)
            if skip.skips:
                self._drop(matches, node)
            emitted.append(events_of(node))
        return emitted

    def _drop(self, matches: PartialMatches, found: Node) -> None:
        first = self._skip.first_kept(numbers_of(found))
        if first is not None:
            matches.partials = [partial for partial in matches.partials if partial[2] >= first]
            java_heap.keep(matches.finished, lambda item: item[0] >= first)


def _sort(step: _Step, kind: StateKind, partial: Partial) -> None:
    if kind is StateKind.FINAL:
        step.finished.append((partial[2], partial[1]))
    elif kind is StateKind.STOP:
        step.stopped = True
    else:
        step.kept.append(partial)


def _way(edge: Edge, tests: Tests) -> _Way:
    target = edge.target
    ends = any(further.action is Action.PROCEED for further in target.edges)
    return _Way(tests.compile(edge.condition), edge.action, edge.source.element, target.number, target.kind, ends)
