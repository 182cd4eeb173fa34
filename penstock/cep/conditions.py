"""Conditions of a pattern's elements: what users write, and the trees that `where`, `or_` and `until` build of it."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from penstock.api.functions.element_functions import Function


class ConditionContext(ABC):
    """What an iterative condition may ask. It is valid only during the call."""

    @abstractmethod
    def get_events_for_pattern(self, name: str) -> list[Any]:
        """Return the events that the partial match holds under this name, in order; none if there are none yet."""

    @abstractmethod
    def timestamp(self) -> int:
        """Return the timestamp of the event: the processing time if the pattern runs in processing time."""

    @abstractmethod
    def current_processing_time(self) -> int:
        """Return the processing time."""


class IterativeCondition(Function):
    """A condition that may look at the events which the partial match has accepted so far."""

    @abstractmethod
    def filter(self, value: Any, ctx: ConditionContext) -> bool:
        """Whether the event is accepted. It must not change the event."""


class SimpleCondition(IterativeCondition):
    """A condition on the event alone. It is asked at most once for each event, however many matches are under way."""

    @abstractmethod
    def filter(self, value: Any) -> bool:  # type: ignore[override]
        """Whether the event is accepted. It must not change the event."""

    @staticmethod
    def of(function: Callable[[Any], bool]) -> SimpleCondition:
        """A plain function of the event as a condition."""
        if not callable(function):
            raise TypeError(f"SimpleCondition.of takes a function of one argument, not {function!r}")
        return _OfEvent(function)


class RichIterativeCondition(IterativeCondition):
    """An iterative condition with a life: `open`, `close` and `get_runtime_context` work as in any function."""


@dataclass(eq=False)
class _OfEvent(SimpleCondition):
    function: Callable[[Any], bool]

    def filter(self, value: Any) -> bool:  # type: ignore[override]
        return self.function(value)


@dataclass(eq=False)
class _OfEventAndContext(IterativeCondition):
    function: Callable[[Any, ConditionContext], bool]

    def filter(self, value: Any, ctx: ConditionContext) -> bool:
        return self.function(value, ctx)


@dataclass(eq=False)
class IsInstance(SimpleCondition):
    """The condition of `subtype`."""

    kind: type

    def filter(self, value: Any) -> bool:  # type: ignore[override]
        return isinstance(value, self.kind)

    def __str__(self) -> str:
        return f"is {self.kind.__name__}"


# --- trees of conditions ---


@dataclass(frozen=True)
class Always:
    """True of every event."""


@dataclass(frozen=True, eq=False)
class Leaf:
    """A condition that a user wrote, and the element it belongs to."""

    condition: IterativeCondition
    element: str

    @property
    def simple(self) -> bool:
        """Whether it depends on the event alone."""
        return isinstance(self.condition, SimpleCondition)


@dataclass(frozen=True)
class Not:
    """True where the other is false."""

    of: Condition


@dataclass(frozen=True)
class Both:
    """The right one is asked only if the left one is true."""

    left: Condition
    right: Condition


@dataclass(frozen=True)
class Either:
    """The right one is asked only if the left one is false."""

    left: Condition
    right: Condition


Condition: TypeAlias = Always | Leaf | Not | Both | Either
ALWAYS = Always()


def both(left: Condition, right: Condition) -> Condition:
    """A conjunction, without what is always true."""
    return right if isinstance(left, Always) else left if isinstance(right, Always) else Both(left, right)


def leaf(condition: Any, element: str, method: str) -> Leaf:
    """What a user passed to `where`, `or_` or `until`: an object, or a function of one or two arguments."""
    if isinstance(condition, IterativeCondition):
        return Leaf(condition, element)
    if isinstance(condition, type) and issubclass(condition, IterativeCondition):
        raise TypeError(f"{method} of '{element}' takes an object, not the class: write {condition.__name__}()")
    if not callable(condition):
        raise TypeError(
            f"{method} of '{element}' takes a condition or a function of (event) or of (event, ctx), not {condition!r}"
        )
    return Leaf(_OfEventAndContext(condition) if _takes_context(condition, element) else _OfEvent(condition), element)


def question(condition: IterativeCondition) -> Callable[[Any], bool]:
    """A simple condition as a function of the event, without a detour where it is a user's function."""
    return condition.function if isinstance(condition, _OfEvent) else condition.filter  # type: ignore[return-value]


def _takes_context(function: Callable[..., bool], element: str) -> bool:
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return False  # a builtin that does not tell; it is a function of the event
    for count in (1, 2):
        try:
            signature.bind(*[None] * count)
        except TypeError:
            continue
        return count == 2
    raise TypeError(
        f"the condition of '{element}' must be a function of (event) or of (event, ctx), but its arguments are "
        f"{signature}"
    )


def leaves(condition: Condition) -> list[Leaf]:
    """All conditions of users in a tree, from left to right."""
    if isinstance(condition, Leaf):
        return [condition]
    if isinstance(condition, Not):
        return leaves(condition.of)
    if isinstance(condition, Both | Either):
        return leaves(condition.left) + leaves(condition.right)
    return []


def condition_text(condition: Condition) -> str:
    """A condition as `explain` shows it: conditions in text form as they are, functions by their names."""
    if isinstance(condition, Always):
        return "always"
    if isinstance(condition, Not):
        return f"not ({condition_text(condition.of)})"
    if isinstance(condition, Both):
        return f"{_within(condition.left, Either)} and {_within(condition.right, Either)}"
    if isinstance(condition, Either):
        return f"{_within(condition.left, Both)} or {_within(condition.right, Both)}"
    return name_of(condition)


def _within(condition: Condition, other: type) -> str:
    text = condition_text(condition)
    ambiguous = isinstance(condition, other) or (isinstance(condition, Leaf) and " " in text and "or" in text)
    return f"({text})" if ambiguous else text


def name_of(leaf: Leaf) -> str:
    """How a condition is called: what it prints itself as, or the name of its function or class."""
    condition = leaf.condition
    if isinstance(condition, _OfEvent | _OfEventAndContext):
        return _name_of(condition.function)
    return _name_of(condition)


def _name_of(thing: Any) -> str:
    if inspect.isroutine(thing):
        return str(thing.__name__)
    return str(thing) if "__str__" in vars(type(thing)) else type(thing).__name__
