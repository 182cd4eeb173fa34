"""The view of conditions on one event, and conditions compiled into functions of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from penstock.cep.automaton import Automaton
from penstock.cep.conditions import Always, Both, Condition, ConditionContext, Leaf, Not, leaves, question
from penstock.cep.partial_matches import Node, events_of
from penstock.engine.records.failures import USER_ERRORS
from penstock.engine.state.key_groups import short_repr


class Moment(ConditionContext):
    """The current event, as seen from the partial match that is being processed."""

    def __init__(self, conditions: int, now: Callable[[], int]) -> None:
        self.event: Any = None
        self.time = 0
        self.answers: list[bool | None] = [None] * conditions
        """Results of simple conditions for this event, or None for those not evaluated yet."""
        self._unasked: list[bool | None] = [None] * conditions
        self._now = now
        self._node: Node | None = None
        self._events: dict[str, list[Any]] | None = None

    def at(self, event: Any, time: int) -> None:
        """Make this the current event."""
        self.event = event
        self.time = time
        self.answers[:] = self._unasked

    def of(self, node: Node | None) -> None:
        """Make this the current partial match."""
        self._node = node
        self._events = None

    def get_events_for_pattern(self, name: str) -> list[Any]:
        if self._events is None:
            self._events = events_of(self._node)
        return list(self._events.get(name, ()))

    def timestamp(self) -> int:
        return self.time

    def current_processing_time(self) -> int:
        return self._now()


Test: TypeAlias = Callable[[Moment], bool]


class Tests:
    """Compiles the conditions of an automaton. A simple condition is evaluated once for each event."""

    def __init__(self, automaton: Automaton) -> None:
        found = (leaf for state in automaton.states for edge in state.edges for leaf in leaves(edge.condition))
        self.leaves = list(dict.fromkeys(found))
        self._indices = {leaf: index for index, leaf in enumerate(self.leaves)}

    def compile(self, condition: Condition) -> Test | None:
        """Return a function that tests the condition at a moment, or None if the condition is always true."""
        if isinstance(condition, Always):
            return None
        if isinstance(condition, Leaf):
            return self._ask_once(condition) if condition.simple else _ask(condition)
        if isinstance(condition, Not):
            return _negation(self.compile(condition.of))
        left, right = self.compile(condition.left), self.compile(condition.right)
        if isinstance(condition, Both):
            return right if left is None else left if right is None else _both(left, right)
        return None if left is None else _either(left, right)

    def _ask_once(self, leaf: Leaf) -> Test:
        index, accepts = self._indices[leaf], question(leaf.condition)

        def test(moment: Moment) -> bool:
            answer = moment.answers[index]
            if answer is None:
                try:
                    answer = moment.answers[index] = bool(accepts(moment.event))
                except USER_ERRORS as error:
                    raise _add_note(error, leaf, moment.event)  # noqa: B904 - it is the same error
            return answer

        return test


def _ask(leaf: Leaf) -> Test:
    accepts = leaf.condition.filter

    def test(moment: Moment) -> bool:
        try:
            return bool(accepts(moment.event, moment))
        except USER_ERRORS as error:
            raise _add_note(error, leaf, moment.event)  # noqa: B904 - it is the same error

    return test


def _negation(test: Test | None) -> Test:
    if test is None:
        return lambda moment: False
    return lambda moment: not test(moment)


def _both(left: Test, right: Test) -> Test:
    return lambda moment: left(moment) and right(moment)


def _either(left: Test, right: Test | None) -> Test | None:
    if right is None:
        return lambda moment: left(moment) or True
    return lambda moment: left(moment) or right(moment)


def _add_note(error: BaseException, leaf: Leaf, event: Any) -> BaseException:
    """Add a note to the error of a condition that names the element and the event. Return the error."""
    error.add_note(f"in a condition of the element '{leaf.element}', on the event {short_repr(event)}")
    return error
