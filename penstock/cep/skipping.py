"""After-match skip strategies, which choose the partial matches that are dropped after a match.

The number of an event is its position in the order of events of its key. The number of its first event identifies a
partial match.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from penstock.base.arguments import check_arguments
from penstock.errors import RecordError

Numbers: TypeAlias = Mapping[str, Sequence[int]]
"""A match as the numbers of its events, by name."""


@check_arguments
class AfterMatchSkipStrategy(ABC):
    """Chooses the partial matches to drop when another match is complete."""

    skips = True
    """True if matches may be given up. A complete match then waits for those that began before it."""
    target: str | None = None
    """Name of the element to skip to."""

    @staticmethod
    def no_skip() -> AfterMatchSkipStrategy:
        """Emit every possible match."""
        return NoSkip()

    @staticmethod
    def skip_to_next() -> AfterMatchSkipStrategy:
        """Give up all other matches with the same first event."""
        return SkipToNext()

    @staticmethod
    def skip_past_last_event() -> AfterMatchSkipStrategy:
        """Give up all matches that began before the end of this one."""
        return SkipPastLastEvent()

    @staticmethod
    def skip_to_first(pattern_name: str) -> SkipToElement:
        """Give up all matches that began before the first event with this name."""
        return SkipToElement(_require_name(pattern_name, "skip_to_first"), last=False)

    @staticmethod
    def skip_to_last(pattern_name: str) -> SkipToElement:
        """Give up all matches that began before the last event with this name."""
        return SkipToElement(_require_name(pattern_name, "skip_to_last"), last=True)

    @abstractmethod
    def first_kept(self, match: Numbers) -> int | None:
        """Return the least first number of the matches to keep, or None if all are kept."""


@dataclass(frozen=True)
class NoSkip(AfterMatchSkipStrategy):
    """Keeps everything."""

    skips = False

    def first_kept(self, match: Numbers) -> int | None:
        return None

    def __str__(self) -> str:
        return "no skip"


@dataclass(frozen=True)
class SkipToNext(AfterMatchSkipStrategy):
    """Keeps the matches that began after the first event of the match."""

    def first_kept(self, match: Numbers) -> int | None:
        return min(numbers[0] for numbers in match.values()) + 1

    def __str__(self) -> str:
        return "skip to next"


@dataclass(frozen=True)
class SkipPastLastEvent(AfterMatchSkipStrategy):
    """Keeps the matches that began after the last event of the match."""

    def first_kept(self, match: Numbers) -> int | None:
        return max(numbers[-1] for numbers in match.values()) + 1

    def __str__(self) -> str:
        return "skip past last event"


@dataclass(frozen=True)
class SkipToElement(AfterMatchSkipStrategy):
    """Keeps the matches that began at a given event of the match, or later."""

    target: str = ""
    last: bool = False
    strict: bool = False

    def throw_exception_on_miss(self) -> SkipToElement:
        """Fail if the match has no such event, or if it is the first one, where skipping would find the match again."""
        return replace(self, strict=True)

    def first_kept(self, match: Numbers) -> int | None:
        numbers = match.get(self.target)
        if not numbers:
            if self.strict:
                raise RecordError(f"cannot skip to '{self.target}': the match has only {', '.join(map(repr, match))}")
            return None
        number = numbers[-1 if self.last else 0]
        if self.strict and number == min(min(each) for each in match.values()):
            raise RecordError(f"cannot skip to '{self.target}': it is the first event of the match")
        return number

    def __str__(self) -> str:
        strict = " or fail" if self.strict else ""
        return f"skip to {'last' if self.last else 'first'} {self.target}{strict}"


def _require_name(name: str, method: str) -> str:
    if not isinstance(name, str):
        raise TypeError(f"{method} takes the name of an element, not {name!r}")
    return name
