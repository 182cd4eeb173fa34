"""Pattern: a sequence of elements, built by chained method calls."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Generic, NoReturn, Self, overload

from penstock.base.arguments import check_arguments
from penstock.base.type_variables import IN, T
from penstock.cep.conditions import (
    ALWAYS,
    Both,
    Condition,
    ConditionContext,
    Either,
    IsInstance,
    IterativeCondition,
    Leaf,
    leaf,
)
from penstock.cep.quantifier import ConsumingStrategy, Kind, Quantifier, Times, WithinType
from penstock.cep.skipping import AfterMatchSkipStrategy
from penstock.common.time import to_millis
from penstock.errors import MalformedPatternException, UnsupportedOperation

GROUP = "GroupPattern"
"""Name of every group."""


@check_arguments
class Pattern(Generic[IN]):
    """The last element of a sequence, which knows the element before it.

    `begin`, `next` and similar methods create a new element. All other methods change the element and return it.
    """

    def __init__(
        self,
        name: str,
        previous: Pattern[Any] | None,
        strategy: ConsumingStrategy,
        skip: AfterMatchSkipStrategy,
    ) -> None:
        self._name = name
        self._previous = previous
        self._quantifier = Quantifier(name, Kind.SINGLE, strategy)
        self._skip = skip
        self._condition: Condition | None = None
        self._until: Leaf | None = None
        self._times: Times | None = None
        self._windows: dict[WithinType, int] = {}

    # --- the sequence ---
    @staticmethod
    def begin(name: str | Pattern[T], after_match_skip_strategy: AfterMatchSkipStrategy | None = None) -> Pattern[T]:
        """Begin a pattern with its first element: a name, or a whole pattern as a group."""
        skip = AfterMatchSkipStrategy.no_skip() if after_match_skip_strategy is None else after_match_skip_strategy
        if not isinstance(skip, AfterMatchSkipStrategy):
            raise TypeError(
                f"begin takes an AfterMatchSkipStrategy, such as AfterMatchSkipStrategy.no_skip(), not {skip!r}"
            )
        return _element(name, None, ConsumingStrategy.STRICT, skip)

    def next(self, name: str | Pattern[IN]) -> Pattern[IN]:
        """Add an element whose event must be the very next one."""
        return self._then(name, ConsumingStrategy.STRICT)

    def followed_by(self, name: str | Pattern[IN]) -> Pattern[IN]:
        """Add an element whose event comes later. Events that do not match it are skipped."""
        return self._then(name, ConsumingStrategy.SKIP_TILL_NEXT)

    def followed_by_any(self, name: str | Pattern[IN]) -> Pattern[IN]:
        """Add an element whose event comes later. Events that match it may be skipped as well."""
        return self._then(name, ConsumingStrategy.SKIP_TILL_ANY)

    def not_next(self, name: str) -> Pattern[IN]:
        """Forbid that the next event is one of this element."""
        return self._never(name, ConsumingStrategy.NOT_NEXT)

    def not_followed_by(self, name: str) -> Pattern[IN]:
        """Forbid events of this element before the next element, or before the time is up."""
        return self._never(name, ConsumingStrategy.NOT_FOLLOW)

    def _then(self, name: str | Pattern, strategy: ConsumingStrategy) -> Pattern[IN]:
        return _element(name, self, strategy, self._skip)

    def _never(self, name: str, strategy: ConsumingStrategy) -> Pattern[IN]:
        if self._quantifier.is_optional:
            raise UnsupportedOperation(
                f"'{name}' cannot be a {strategy.value} element behind '{self._name}', which is optional: write two "
                "patterns, one with and one without the optional element"
            )
        return _element(name, self, strategy, self._skip)

    # --- conditions ---
    @overload
    def where(self, condition: IterativeCondition[IN] | Callable[[IN], object]) -> Self: ...

    @overload
    def where(self, condition: Callable[[IN, ConditionContext[Any]], object]) -> Self: ...

    def where(self, condition: Any) -> Self:
        """Add a condition on the event: an object, or a function of (event) or (event, ctx).

        All conditions must hold.
        """
        return self._and(leaf(condition, self._name, "where"))

    @overload
    def or_(self, condition: IterativeCondition[IN] | Callable[[IN], object]) -> Self: ...

    @overload
    def or_(self, condition: Callable[[IN, ConditionContext[Any]], object]) -> Self: ...

    def or_(self, condition: Any) -> Self:
        """Add an alternative to the conditions given so far."""
        added = leaf(condition, self._name, "or_")
        self._condition = added if self._condition is None else Either(self._condition, added)
        return self

    def subtype(self, subtype_class: type) -> Self:
        """Require that the event is an instance of this class."""
        return self._and(Leaf(IsInstance(subtype_class), self._name))

    def _and(self, added: Leaf) -> Self:
        self._condition = added if self._condition is None else Both(self._condition, added)
        return self

    @overload
    def until(self, condition: IterativeCondition[IN] | Callable[[IN], object]) -> Self: ...

    @overload
    def until(self, condition: Callable[[IN, ConditionContext[Any]], object]) -> Self: ...

    def until(self, condition: Any) -> Self:
        """End a loop at an event that fulfils the condition. The loop takes neither that event nor any later one."""
        if self._until is not None:
            raise MalformedPatternException(f"'{self._name}' has an until condition already")
        if self._quantifier.kind is not Kind.LOOPING:
            raise MalformedPatternException(
                f"'{self._name}' does not loop: until() is for one_or_more() and times_or_more()"
            )
        self._until = leaf(condition, self._name, "until")
        return self

    # --- how often ---
    def optional(self) -> Self:
        """Allow that the element is missing."""
        if self._previous is not None and self._previous._quantifier.is_greedy:
            raise MalformedPatternException(
                f"'{self._name}' cannot be optional: '{self._previous._name}' before it is greedy"
            )
        self._quantifier.optional()
        return self

    def one_or_more(self, window_time: Any = None) -> Self:
        """Take any number of events, but at least one. `window_time` limits the wait for each."""
        return self._repeat(Kind.LOOPING, 1, 1, window_time)

    def times_or_more(self, times: int, window_time: Any = None) -> Self:
        """Take any number of events, but at least `times`. `window_time` limits the wait for each."""
        return self._repeat(Kind.LOOPING, times, times, window_time)

    def times(self, from_times: int, to_times: Any = None, window_time: Any = None) -> Self:
        """Take exactly `from_times` events, or from `from_times` up to `to_times`.

        Starting at 0 means 1 and optional.
        """
        if to_times is not None and not isinstance(to_times, int):
            to_times, window_time = None, to_times
        if to_times is None:
            return self._repeat(Kind.TIMES, from_times, from_times, window_time)
        optional = from_times == 0
        self._repeat(Kind.TIMES, 1 if optional else from_times, to_times, window_time)
        if optional:
            self._quantifier.optional()
        return self

    def _repeat(self, kind: Kind, least: int, most: int, window_time: Any) -> Self:
        self._refuse_negated()
        if self._quantifier.kind is not Kind.SINGLE:
            raise MalformedPatternException(f"'{self._name}' has a quantifier already: {self._quantifier.kind.value}")
        for number in (least, most):
            if isinstance(number, bool) or not isinstance(number, int):
                raise TypeError(f"'{self._name}' matches a whole number of times, not {number!r}")
        try:
            self._times = Times(least, most, None if window_time is None else self._millis(window_time, "window_time"))
        except ValueError as error:
            raise ValueError(f"'{self._name}': {error}") from None
        self._quantifier = Quantifier(self._name, kind, self._quantifier.strategy)
        return self

    def greedy(self) -> Self:
        """Take as many events as there are, instead of every possible number."""
        self._refuse_negated()
        self._quantifier.greedy()
        return self

    def allow_combinations(self) -> Self:
        """Allow the loop to leave out matching events between its events."""
        self._quantifier.combinations()
        return self

    def consecutive(self) -> Self:
        """Forbid other events between the events of the loop."""
        self._quantifier.consecutive()
        return self

    def _refuse_negated(self) -> None:
        if self._quantifier.strategy.is_negated:
            raise MalformedPatternException(
                f"'{self._name}' is a {self._quantifier.strategy.value} element, which cannot be repeated"
            )

    # --- time ---
    def within(self, window_time: Any, within_type: WithinType = WithinType.FIRST_AND_LAST) -> Self:
        """Limit the time of the whole match, or with PREVIOUS_AND_CURRENT the wait for this element's event.

        If several elements set a limit for the whole match, the shortest one counts.
        """
        if not isinstance(within_type, WithinType):
            raise TypeError(f"within of '{self._name}' takes a WithinType, not {within_type!r}")
        if window_time is not None:
            self._windows[within_type] = self._millis(window_time, "within")
        return self

    def _millis(self, time: Any, what: str) -> int:
        millis = to_millis(time)
        if millis <= 0:
            raise ValueError(f"{what} of '{self._name}' must be at least a millisecond, but is {millis} ms")
        return millis

    # --- what it is ---
    def get_name(self) -> str:
        """Return the name of the element."""
        return self._name

    def get_previous(self) -> Pattern[Any] | None:
        """Return the element before this one."""
        return self._previous

    def get_times(self) -> Times | None:
        """Return the number of events that a repeated element takes, or None for a single event."""
        return self._times

    def get_quantifier(self) -> Quantifier:
        """Return the quantifier of the element."""
        return self._quantifier

    def get_condition(self) -> Condition:
        """Return the condition built by `where`, `or_` and `subtype`, or ALWAYS if there is none."""
        return ALWAYS if self._condition is None else self._condition

    def get_until_condition(self) -> Leaf | None:
        """Return the condition given to `until`, or None."""
        return self._until

    def get_window_size(self, within_type: WithinType = WithinType.FIRST_AND_LAST) -> int | None:
        """Return the limit set by `within`, in milliseconds, or None."""
        return self._windows.get(within_type)

    def get_after_match_skip_strategy(self) -> AfterMatchSkipStrategy:
        """Return the after-match skip strategy of the pattern."""
        return self._skip

    def elements(self) -> list[Pattern[Any]]:
        """Return the elements up to this one, the first one first."""
        return list(self._backwards())[::-1]

    def _backwards(self) -> Iterator[Pattern[Any]]:
        element: Pattern[Any] | None = self
        while element is not None:
            yield element
            element = element._previous

    # --- other forms ---
    def explain(self, format: str = "text") -> str:
        """Return the automaton of the pattern, as text or as a graph for Graphviz (`dot`)."""
        from penstock.cep.automaton_text import explain_pattern

        return explain_pattern(self, format)

    @staticmethod
    def parse(text: str, after_match_skip_strategy: AfterMatchSkipStrategy | None = None) -> Pattern[T]:
        """Parse a pattern in text form, such as `start(type = 'a') -> end+(value > start.value) within 10 s`."""
        from penstock.cep.pattern_text import parse_pattern

        return parse_pattern(text, after_match_skip_strategy)

    def __str__(self) -> str:
        from penstock.cep.pattern_text import format_pattern

        return format_pattern(self)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self}>"


@check_arguments
class GroupPattern(Pattern[IN]):
    """A pattern as one element of another pattern. It has quantifiers, but no conditions of its own except `until`."""

    def __init__(
        self,
        group: Pattern[IN],
        previous: Pattern[Any] | None,
        strategy: ConsumingStrategy,
        skip: AfterMatchSkipStrategy,
    ) -> None:
        super().__init__(GROUP, previous, strategy, skip)
        self._group = group

    def get_raw_pattern(self) -> Pattern[IN]:
        """Return the pattern of the group."""
        return self._group

    def where(self, condition: Any) -> NoReturn:
        self._refuse("where")

    def or_(self, condition: Any) -> NoReturn:
        self._refuse("or_")

    def subtype(self, subtype_class: type) -> NoReturn:
        self._refuse("subtype")

    def greedy(self) -> NoReturn:
        raise MalformedPatternException(f"the group ({self._group}) cannot be greedy")

    def _refuse(self, method: str) -> NoReturn:
        raise UnsupportedOperation(
            f"the group ({self._group}) has no {method}(): conditions belong to the elements inside it"
        )


def _element(
    what: str | Pattern[Any], previous: Pattern[Any] | None, strategy: ConsumingStrategy, skip: AfterMatchSkipStrategy
) -> Pattern[Any]:
    if isinstance(what, Pattern):
        return GroupPattern(what, previous, strategy, skip)
    return Pattern(what, previous, strategy, skip)
