"""A pattern under test: feed events, and inspect matches and partial matches, without Spark and without a stream."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from penstock.api.functions.contexts import RuntimeContext
from penstock.cep.compiler import compile_pattern
from penstock.cep.event_matching import Match, Matcher
from penstock.cep.partial_matches import events_of
from penstock.cep.pattern import Pattern


@dataclass(frozen=True)
class PartialMatch:
    """A match that is under way."""

    waiting_for: str
    """Element at which the match waits. A match that waits in a loop may also go on to the next element."""
    events: Match
    """Events of the match so far."""
    since: int
    """Timestamp of the first event."""


class PatternTester:
    """Feeds one key's events, in order, to one pattern.

    >>> tester = PatternTester(Pattern.begin("a").where(lambda e: e > 5).next("b"))
    >>> tester.feed(7)
    []
    >>> tester.partial_matches()
    [PartialMatch(waiting_for='b', events={'a': [7]}, since=1)]
    >>> tester.feed(3)
    [{'a': [7], 'b': [3]}]
    """

    def __init__(self, pattern: Pattern, runtime_context: RuntimeContext | None = None) -> None:
        self._automaton = compile_pattern(pattern)
        self._matcher = Matcher(self._automaton, reports_timeouts=True, now=lambda: self.now)
        self._matches = self._matcher.new()
        self.now = 0
        """Present time, in milliseconds."""
        self.matches: list[Match] = []
        """All matches so far."""
        self.timeouts: list[tuple[Match, int]] = []
        """All partial matches that ran out of time, each with the time of that."""
        for leaf in self._matcher.leaves:
            leaf.condition.open(runtime_context)  # type: ignore[arg-type]

    def feed(self, event: Any, timestamp: int | None = None) -> list[Match]:
        """Process an event, by default a millisecond after the one before. Return the new matches."""
        found = self.advance(self.now + 1 if timestamp is None else timestamp)
        emitted, _ = self._matcher.feed(self._matches, event, self.now)
        self.matches += emitted
        return [*found, *emitted]

    def advance(self, timestamp: int) -> list[Match]:
        """Let time pass, as a watermark does. Return the new matches; timed-out matches are added to `timeouts`."""
        if timestamp < self.now:
            raise ValueError(f"the time is {self.now} and cannot be set back to {timestamp}")
        self.now = timestamp
        found, late = self._matcher.advance(self._matches, timestamp)
        self.matches += found
        self.timeouts += late
        return list(found)

    def partial_matches(self) -> list[PartialMatch]:
        """Return the matches that are under way, in the order of their first events."""
        states = self._automaton.states
        return [
            PartialMatch(states[state].element, events_of(node), since)
            for state, node, _, since, _ in self._matches.partials
        ]

    def held_back(self) -> list[Match]:
        """Return the complete matches that wait for matches which began before them."""
        return [events_of(node) for _, node in sorted(self._matches.finished, key=lambda item: item[0])]
