"""The contents of a pane: its elements, or one value into which they are folded."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

from penstock.api.functions.element_functions import AggregateFunction, Function
from penstock.api.windows.evictors import TimestampedValue
from penstock.engine.operators.functions.slot_contexts import SlotRuntimeContext, open_function
from penstock.errors import UnsupportedOperation

ABSENT: Any = object()
"""Stands for an empty pane."""


class Contents(ABC):
    """The way in which elements enter a pane, two panes become one, and the window function gets the result."""

    functions: Sequence[Any] = ()
    """User functions inside, which the operator opens and closes."""

    @abstractmethod
    def add(self, held: Any, value: Any, timestamp: int | None) -> Any:
        """Return the contents of a pane after an element. `held` is ABSENT for the first element."""

    @abstractmethod
    def merge(self, into: Any, other: Any) -> Any:
        """Return the contents of two merged panes. Neither is ABSENT."""

    @abstractmethod
    def elements(self, held: Any) -> list[Any]:
        """Return the elements for the window function."""

    def nothing(self) -> list[Any]:
        """Return the elements for the window function when an evictor has left none."""
        return []

    def open(self, context: SlotRuntimeContext) -> None:
        """Open the user functions."""
        for function in self.functions:
            open_function(function, context)

    def close(self) -> None:
        """Close the user functions."""
        for function in self.functions:
            if isinstance(function, Function):
                function.close()


class Buffered(Contents):
    """All elements, in order of arrival."""

    def add(self, held: Any, value: Any, timestamp: int | None) -> Any:
        if held is ABSENT:
            return [value]
        held.append(value)
        return held

    def merge(self, into: Any, other: Any) -> Any:
        into.extend(other)
        return into

    def elements(self, held: Any) -> list[Any]:
        return list(held)


class Reduced(Contents):
    """One value to which all elements have been reduced."""

    def __init__(self, function: Any) -> None:
        self.functions = (function,)
        self._reduce: Callable[[Any, Any], Any] = function.reduce if isinstance(function, Function) else function  # type: ignore[attr-defined]

    def add(self, held: Any, value: Any, timestamp: int | None) -> Any:
        return value if held is ABSENT else self._reduce(held, value)

    def merge(self, into: Any, other: Any) -> Any:
        return self._reduce(into, other)

    def elements(self, held: Any) -> list[Any]:
        return [held]


class Aggregated(Contents):
    """One accumulator. The window function gets its result."""

    def __init__(self, function: AggregateFunction) -> None:
        self.functions = (function,)
        self._function = function

    def add(self, held: Any, value: Any, timestamp: int | None) -> Any:
        return self._function.add(value, self._function.create_accumulator() if held is ABSENT else held)

    def merge(self, into: Any, other: Any) -> Any:
        try:
            merged = self._function.merge(into, other)
        except NotImplementedError:
            # A merge() that only raises this error was left out by the user, like one that returns nothing.
            merged = None
        if merged is None:
            raise UnsupportedOperation(
                f"windows were merged, but {type(self._function).__name__}.merge is missing or returned "
                "None: return an accumulator from merge(), or use windows that do not merge"
            )
        return merged

    def elements(self, held: Any) -> list[Any]:
        return [self._function.get_result(held)]

    def nothing(self) -> list[Any]:
        return [self._function.get_result(self._function.create_accumulator())]


class Evicting(Buffered):
    """All elements with their timestamps, for an evictor. They are folded only when the window is evaluated."""

    def __init__(self, folded: Contents) -> None:
        self.functions = folded.functions
        self._folded = folded

    def add(self, held: Any, value: Any, timestamp: int | None) -> Any:
        return super().add(held, TimestampedValue(value, timestamp), timestamp)

    def elements(self, held: Any) -> list[Any]:
        if not held:
            return self._folded.nothing()
        folded = reduce(lambda so_far, e: self._folded.add(so_far, e.value, e.timestamp), held, ABSENT)
        return self._folded.elements(folded)
