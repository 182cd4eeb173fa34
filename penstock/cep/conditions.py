"""Conditions of a pattern's elements: the classes for users, and the trees that `where`, `or_` and `until` build."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeAlias

from penstock.api.functions.element_functions import Function
from penstock.base.arguments import check_arguments
from penstock.base.type_variables import T, U


class ConditionContext(ABC, Generic[T]):
    """Facts for an iterative condition. It is valid only during the call."""

    @abstractmethod
    def get_events_for_pattern(self, name: str) -> list[T]:
        """Return the events that the partial match holds under this name, in order. The list may be empty."""

    @abstractmethod
    def timestamp(self) -> int:
        """Return the timestamp of the event. In processing time this is the processing time."""

    @abstractmethod
    def current_processing_time(self) -> int:
        """Return the processing time."""


class IterativeCondition(Function, Generic[T]):
    """A condition that may use the events which the partial match has accepted so far."""

    @abstractmethod
    def filter(self, value: T, ctx: ConditionContext[T], /) -> bool:
        """Return True if the event is accepted. The method must not change the event."""


class SimpleCondition(IterativeCondition[T]):
    """A condition on the event alone.

    It is evaluated at most once for each event, however many matches are under way.
    """

    @abstractmethod
    def filter(self, value: T, /) -> bool:  # type: ignore[override]
        """Return True if the event is accepted. The method must not change the event."""

    @staticmethod
    @check_arguments
    def of(function: Callable[[U], object]) -> SimpleCondition[U]:
        """Return a plain function of the event as a condition."""
        if not callable(function):
            raise TypeError(f"SimpleCondition.of takes a function of one argument, not {function!r}")
        return _OfEvent(function)


class RichIterativeCondition(IterativeCondition[T]):
    """An iterative condition with `open`, `close` and `get_runtime_context`, which work as in any function."""


@dataclass(eq=False)
class _OfEvent(SimpleCondition[T]):
    function: Callable[[T], Any]

    def filter(self, value: T) -> bool:  # type: ignore[override]
        return self.function(value)  # type: ignore[no-any-return]


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
        """True if the condition depends on the event alone."""
        return isinstance(self.condition, SimpleCondition)


@dataclass(frozen=True)
class Not:
    """Negates a condition."""

    of: Condition


@dataclass(frozen=True)
class Both:
    """Both conditions hold. The right one is evaluated only if the left one is true."""

    left: Condition
    right: Condition


@dataclass(frozen=True)
class Either:
    """One of the conditions holds. The right one is evaluated only if the left one is false."""

    left: Condition
    right: Condition


Condition: TypeAlias = Always | Leaf | Not | Both | Either
ALWAYS = Always()


def both(left: Condition, right: Condition) -> Condition:
    """Return a conjunction, without parts that are always true."""
    return right if isinstance(left, Always) else left if isinstance(right, Always) else Both(left, right)


def leaf(condition: Any, element: str, method: str) -> Leaf:
    """Return the argument of `where`, `or_` or `until` as a leaf.

    It is an object or a function of one or two arguments.
    """
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
    """Return a simple condition as a function of the event. A user's function is returned itself."""
    return condition.function if isinstance(condition, _OfEvent) else condition.filter  # type: ignore[return-value]


def _takes_context(function: Callable[..., bool], element: str) -> bool:
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return False  # a builtin without a signature; it is a function of the event
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
    """Return all conditions of users in a tree, from left to right."""
    if isinstance(condition, Leaf):
        return [condition]
    if isinstance(condition, Not):
        return leaves(condition.of)
    if isinstance(condition, Both | Either):
        return leaves(condition.left) + leaves(condition.right)
    return []


def condition_text(condition: Condition) -> str:
    """Return a condition as `explain` shows it. Conditions in text form stay as they are; functions appear by name."""
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
    """Return the text that a condition prints for itself, or the name of its function or class."""
    condition = leaf.condition
    if isinstance(condition, _OfEvent | _OfEventAndContext):
        return _name_of(condition.function)
    return _name_of(condition)


def _name_of(thing: Any) -> str:
    if inspect.isroutine(thing):
        return str(thing.__name__)
    return str(thing) if "__str__" in vars(type(thing)) else type(thing).__name__
