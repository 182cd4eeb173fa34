"""Quantifiers: the number of matches of an element, and the events that may lie between them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import NoReturn

from penstock.base.arguments import check_arguments
from penstock.errors import MalformedPatternException


class ConsumingStrategy(Enum):
    """Rules for the events between two events of a match."""

    STRICT = "next"
    SKIP_TILL_NEXT = "followed_by"
    SKIP_TILL_ANY = "followed_by_any"
    NOT_NEXT = "not_next"
    NOT_FOLLOW = "not_followed_by"

    @property
    def is_negated(self) -> bool:
        """True if the element forbids its events."""
        return self in (ConsumingStrategy.NOT_NEXT, ConsumingStrategy.NOT_FOLLOW)


class WithinType(Enum):
    """Events between which the time of `within` passes."""

    FIRST_AND_LAST = "first and last"
    PREVIOUS_AND_CURRENT = "previous and current"


class Kind(Enum):
    """Number of events that an element may take."""

    SINGLE = "one event"
    TIMES = "a number of times"
    LOOPING = "any number of times"


@check_arguments
@dataclass(frozen=True)
class Times:
    """Least and greatest number of events of an element. A looping element takes at least `least`."""

    least: int
    most: int
    window_time: int | None = None
    """Longest wait for each event of the loop, in milliseconds."""

    def __post_init__(self) -> None:
        if self.least <= 0:
            raise ValueError(f"an element matches at least once, not {self.least} times")
        if self.most < self.least:
            raise ValueError(f"an element cannot match from {self.least} up to {self.most} times")


class Quantifier:
    """The quantifier of one element. Its methods refuse settings that cannot be combined."""

    def __init__(self, element: str, kind: Kind, strategy: ConsumingStrategy) -> None:
        self.element = element
        self.kind = kind
        self.strategy = strategy
        self.inner_strategy = ConsumingStrategy.SKIP_TILL_NEXT
        self.is_optional = False
        self.is_greedy = False

    def optional(self) -> None:
        """Allow that the element is missing."""
        if self.is_optional:
            self._refuse("is optional already")
        if self.strategy.is_negated:
            self._refuse(f"is a {self.strategy.value} element, which cannot be optional")
        self.is_optional = True

    def greedy(self) -> None:
        """Make the element take as many events as possible."""
        if self.inner_strategy is ConsumingStrategy.SKIP_TILL_ANY:
            self._refuse("allows combinations and cannot be greedy as well")
        if self.kind is Kind.SINGLE:
            self._refuse("takes one event: greedy() is for times, one_or_more and times_or_more")
        self.is_greedy = True

    def consecutive(self) -> None:
        """Forbid other events between the element's events."""
        self._inner(ConsumingStrategy.STRICT, "consecutive")

    def combinations(self) -> None:
        """Allow that matching events are left out between the element's events."""
        self._inner(ConsumingStrategy.SKIP_TILL_ANY, "allow_combinations")

    def _inner(self, strategy: ConsumingStrategy, method: str) -> None:
        if self.kind is Kind.SINGLE:
            self._refuse(f"takes one event: {method}() is for times, one_or_more and times_or_more")
        if self.inner_strategy is not ConsumingStrategy.SKIP_TILL_NEXT:
            self._refuse("can have one of consecutive() and allow_combinations(), once")
        self.inner_strategy = strategy

    def _refuse(self, why: str) -> NoReturn:
        raise MalformedPatternException(f"'{self.element}' {why}")
