"""Patterns that are replaced while the job runs. The second input of the operator brings new patterns as text."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

from penstock.api.state.descriptors import MapStateDescriptor
from penstock.cep.automaton import StateKind
from penstock.cep.cep_operator import PatternOperator
from penstock.cep.event_matching import Matcher
from penstock.cep.partial_matches import Partial, PartialMatches, chain
from penstock.cep.pattern import Pattern
from penstock.cep.pattern_updates import PatternUpdate
from penstock.engine.operators.operator import OperatorContext
from penstock.engine.records.elements import Chunk
from penstock.engine.snapshots.snapshot_parts import SubtaskSnapshot
from penstock.engine.state.backend import BroadcastStateBackend
from penstock.engine.state.key_groups import short_repr
from penstock.errors import MalformedPatternException, UnsupportedOperation

PATTERNS, CURRENT = MapStateDescriptor("_pattern_texts"), "current"
REFUSED = MalformedPatternException, UnsupportedOperation, ValueError, TypeError
_log = logging.getLogger(__name__)


class DynamicPatternOperator(PatternOperator):
    """Finds a pattern in input 0 until input 1, which goes to every subtask, brings another pattern.

    The text of the pattern is broadcast state. An invalid pattern is logged and ignored. It comes from outside, and
    a job that failed because of it would fail again after each restart.
    """

    def open(self, context: OperatorContext) -> None:
        self.broadcast = BroadcastStateBackend(context.restored.broadcast() if context.restored is not None else ())
        self._refused = context.metrics.counter("numPatternsRefused")
        super().open(context)

    def pattern(self) -> Pattern:
        text = self.broadcast.read_only(PATTERNS).get(CURRENT)
        return super().pattern() if text is None else Pattern.parse(text)

    # --- inputs ---
    def inputs(self) -> Sequence[Callable[[Chunk], None]]:
        return (self.chunk, self._updates)

    def batch_keys(self) -> Sequence[Callable[[Any], Any] | None]:
        """Return the key of events, and no key for patterns.

        Patterns are not held back in BATCH mode, so the last pattern is known before the first event.
        """
        return (self.key_selector, None)

    def _updates(self, chunk: Chunk) -> None:
        self.leave_key()
        for value in chunk.values:
            update = PatternUpdate(value) if isinstance(value, str) else value
            try:
                if not isinstance(update, PatternUpdate):
                    raise TypeError("it must be a string or a PatternUpdate")
                pattern = Pattern.parse(update.pattern)
                self._replace(pattern, update.keep_matches)
            except REFUSED as error:
                self._refused.inc()
                _log.warning("%s keeps its pattern and refuses %s: %s", self.context.name, short_repr(value), error)
            else:
                self.broadcast.writable(PATTERNS).put(CURRENT, update.pattern)

    # --- replacing ---
    def _replace(self, pattern: Pattern, keep: bool) -> None:
        before = self._matcher
        self._use(pattern)
        for leaf in before.leaves:
            leaf.condition.close()
        passage = Passage(before, self._matcher) if keep else None
        for key in list(self._matches.addresses()):
            matches = self._matches.entries.get(key)
            kept = passage.carry_over(matches) if passage is not None and matches is not None else None
            if kept:
                self._matches.put(key, kept)
                self._limit_again(key, kept)
            else:
                self._matches.remove(key)

    def _limit_again(self, key: Any, matches: PartialMatches) -> None:
        """Set the limit of the matches under way again, because the new pattern may have another limit."""
        for started in {partial[3] for partial in matches.partials}:
            self._limit(started, key)

    # --- checkpoints ---
    def broadcast_backend(self) -> BroadcastStateBackend:
        return self.broadcast

    def snapshot(self, into: SubtaskSnapshot) -> None:
        super().snapshot(into)
        into.broadcast(self.broadcast)

    def end_epoch(self) -> None:
        super().end_epoch()
        self.broadcast.end_epoch()


class Passage:
    """Transfer of partial matches from one automaton to another, by the names of their states."""

    def __init__(self, before: Matcher, after: Matcher) -> None:
        states = {state.name: state for state in after.states if state.kind is not StateKind.STOP}
        self._shape = after.shape
        self._numbers = {state.number: states[state.name].number for state in before.states if state.name in states}
        self._elements = set(after.elements)

    def carry_over(self, matches: PartialMatches) -> PartialMatches:
        """Return those partial matches of a key that fit the new automaton."""
        kept = PartialMatches(self._shape)
        kept.last_number, kept.finished = matches.last_number, matches.finished
        kept.partials = [
            (self._numbers[partial[0]], *partial[1:]) for partial in matches.partials if self._fits(partial)
        ]
        return kept

    def _fits(self, partial: Partial) -> bool:
        return partial[0] in self._numbers and all(node[0] in self._elements for node in chain(partial[1]))
