"""Matching: the effect of events and of passing time on the partial matches of a key."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from penstock.cep import java_heap
from penstock.cep.automaton import Action, Automaton, Edge, State, StateKind
from penstock.cep.event_context import Moment, Test, Tests
from penstock.cep.partial_matches import Finished, Node, Partial, PartialMatches, events_of, numbers_of
from penstock.errors import StateMigrationException

Match = dict[str, list[Any]]
KEPT, FINISHED, STOPPED = range(3)
"""Outcomes for a match that takes a way: it continues, is complete, or ends without a result."""
Way: TypeAlias = tuple[Test | None, bool, str, int, int, bool]
"""A compiled edge of the automaton.

Its parts are: the test; True if the edge takes the event; the element's name; the target state; the outcome there
(KEPT, FINISHED or STOPPED); True if the target may reach the final state without an event.
"""


class Matcher:
    """Runs an automaton. The state of keys is not here, but in the PartialMatches that every method receives."""

    def __init__(self, automaton: Automaton, reports_timeouts: bool, now: Callable[[], int] = lambda: 0) -> None:
        tests = Tests(automaton)
        self.leaves = tests.leaves
        self.shape = automaton.shape()
        self.states = automaton.states
        self.elements = [state.element for state in automaton.states]
        """The element of each state, by its number."""
        self.window = automaton.window
        self.limits = {state.number: state.limit for state in automaton.states if state.limit is not None}
        """Time for which a partial match may wait after its last event, in milliseconds, by the number of its state."""
        self._skip = automaton.skip
        self._reports_timeouts = reports_timeouts
        self._start = automaton.start.number
        self._moment = Moment(len(tests.leaves), now)
        self._looks_back = not all(leaf.simple for leaf in tests.leaves)
        self._pending = {state.number for state in automaton.states if state.kind is StateKind.PENDING}
        self._in_order = [_in_order(state, tests) for state in automaton.states]
        self._ways = [None if any(p for p, _ in ways) else [way for _, way in ways] for ways in self._in_order]
        """Edges of the states without proceeding edges, which are most states; None for the others."""
        self._may_begin = self._test_of_start()

    def _test_of_start(self) -> Test | None:
        """Return the test that an event must pass to begin a match, if there is a single one. Most events fail it."""
        ways = self._ways[self._start]
        return ways[0][0] if ways is not None and len(ways) == 1 and not self._looks_back else None

    def new(self) -> PartialMatches:
        """Return empty state for a key."""
        return PartialMatches(self.shape)

    def check(self, matches: PartialMatches) -> None:
        """Refuse partial matches that a pattern of another shape saved."""
        if matches.shape != self.shape:
            raise StateMigrationException(
                "the saved partial matches belong to another pattern: conditions and lengths of time may change, but "
                "names, order, contiguity and quantifiers of the elements may not. Start without this operator's "
                "state (give it another uid), or with the former pattern"
            )

    # --- events ---
    def feed(self, matches: PartialMatches, event: Any, time: int) -> tuple[Sequence[Match], bool]:
        """Process an event. Return the matches that can be emitted, and True if anything has changed."""
        moment, partials = self._moment, matches.partials
        moment.at(event, time)
        number, finished = matches.last_number + 1, list[Finished]()
        kept, changed = self._go_on(partials, number, finished) if partials else ([], False)
        going_on = len(kept)
        if self._may_begin is None or self._may_begin(moment):
            self._step(self._start, None, kept, finished, number)
        begun = len(kept) > going_on or (bool(finished) and any(start == number for start, _ in finished))
        matches.begun = begun
        if not (changed or begun or finished):
            return (), False
        matches.last_number = number
        matches.partials = kept
        return self._take_ready(matches, finished) if finished or matches.finished else (), True

    def _go_on(self, partials: list[Partial], number: int, finished: list[Finished]) -> tuple[list[Partial], bool]:
        """Advance the partial matches by an event. Return those that remain, and True if any of them changed."""
        kept, changed = list[Partial](), False
        for partial in partials:
            before = len(kept)
            self._step(partial[0], partial, kept, finished, number)
            changed = changed or len(kept) != before + 1 or kept[before] is not partial
        return kept, changed

    def _step(
        self, state: int, partial: Partial | None, kept: list[Partial], finished: list[Finished], number: int
    ) -> None:
        """Apply the event to one partial match, or to the search for a new one. The results are added to the lists."""
        moment, before, stopped = self._moment, len(kept), False
        if self._looks_back:
            moment.of(None if partial is None else partial[1])
        for test, takes, element, target, outcome, ends in self._ways[state] or self._open_ways(state):
            if test is not None and not test(moment):
                continue
            if takes:
                result = _extend(partial, target, element, number, moment)
            elif partial is None:
                continue  # the search for a new match goes on in any case
            else:
                result = partial if target == partial[0] else (target, *partial[1:])
            if outcome == KEPT:
                kept.append(result)
            elif outcome == FINISHED:
                finished.append((result[2], result[1]))
            else:
                stopped = True
            if takes and ends and self._leads_to_end(target):
                finished.append((result[2], result[1]))
        if stopped:
            del kept[before:]

    def _open_ways(self, state: int) -> list[Way]:
        """Return the ways that are open to the event: the state's own, then those behind its proceeding edges."""
        moment, found, waiting = self._moment, list[Way](), [state]
        while waiting:
            for proceeds, way in self._in_order[waiting.pop()]:
                if way[0] is None or way[0](moment):
                    if proceeds:
                        waiting.append(way[3])
                    else:
                        found.append((None, *way[1:]))
        return found

    def _leads_to_end(self, state: int) -> bool:
        """Return True if all following elements are optional, so that the match may end here."""
        waiting = [state]
        while waiting:
            for proceeds, way in self._in_order[waiting.pop()]:
                if proceeds and (way[0] is None or way[0](self._moment)):
                    if way[4] == FINISHED:
                        return True
                    waiting.append(way[3])
        return False

    # --- time ---
    def advance(self, matches: PartialMatches, time: int) -> tuple[Sequence[Match], Sequence[tuple[Match, int]]]:
        """Let time pass. Return the completed matches, and the timed-out matches with their limits."""
        if not matches.partials or not self._may_be_late(matches.partials[0], time):
            return (), ()
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
            return (), ()
        matches.partials = kept
        return self._take_ready(matches, finished), late

    def _may_be_late(self, first: Partial, time: int) -> bool:
        """Return True if a match may have run out of time. The first match began earliest, so checking it is enough."""
        return bool(self.limits) or (self.window is not None and time - first[3] >= self.window)

    def _limit(self, partial: Partial, time: int) -> int | None:
        """Return the time limit of a partial match if it has passed, or None."""
        state, _, _, started, latest = partial
        limit = self.limits.get(state)
        if limit is not None and time - latest >= limit:
            return latest + limit
        if self.window is not None and time - started >= self.window:
            return started + self.window
        return None

    # --- complete matches ---
    def _take_ready(self, matches: PartialMatches, finished: list[Finished]) -> list[Match]:
        """Return the matches that need not wait for others. Matches that the strategy skips are dropped."""
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


def _extend(partial: Partial | None, target: int, element: str, number: int, moment: Moment) -> Partial:
    """Return a partial match with one more event, or a new one with its first event."""
    time = moment.time
    if partial is None:
        return target, (element, number, moment.event, None), number, time, time
    _, node, start, started, _ = partial
    return target, (element, number, moment.event, node), start, started, time


def _in_order(state: State, tests: Tests) -> list[tuple[bool, Way]]:
    """Return a state's edges, each with True if it proceeds to another state."""
    return [(edge.action is Action.PROCEED, _way(edge, tests)) for edge in state.edges]


def _way(edge: Edge, tests: Tests) -> Way:
    target = edge.target
    outcome = {StateKind.FINAL: FINISHED, StateKind.STOP: STOPPED}.get(target.kind, KEPT)
    ends = any(further.action is Action.PROCEED for further in target.edges)
    takes = edge.action is Action.TAKE
    return tests.compile(edge.condition), takes, edge.source.element, target.number, outcome, ends
