"""Functions that receive matches, and the conversion of `select` and `flat_select` functions into them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeAlias

from penstock.api.functions.contexts import RuntimeContext
from penstock.api.functions.element_functions import Function, Outputs, TaggedOutputs
from penstock.api.functions.process_functions import SideOutputContext
from penstock.api.output_tag import OutputTag
from penstock.base.type_variables import IN, OUT, T

Match: TypeAlias = dict[str, list[T]]
"""Events of a match by the names of the elements, in the order in which the elements accepted their first events."""


class PatternProcessFunction(Function, Generic[T, OUT]):
    """Processes every match. With `TimedOutPartialMatchHandler` as a second base it also receives timed-out matches."""

    class Context(SideOutputContext):
        """Facts and services for the function while it handles a match."""

        @abstractmethod
        def timestamp(self) -> int:
            """Return the time of the event that completed the match, or the limit of a match that timed out."""

        @abstractmethod
        def current_processing_time(self) -> int:
            """Return the processing time."""

    @abstractmethod
    def process_match(self, match: Match[T], ctx: PatternProcessFunction.Context, /) -> TaggedOutputs[OUT]:
        """Yield results for a match."""


class TimedOutPartialMatchHandler(ABC, Generic[T]):
    """A mixin for a PatternProcessFunction that handles the partial matches that `within` ended."""

    @abstractmethod
    def process_timed_out_match(self, match: Match[T], ctx: PatternProcessFunction.Context, /) -> TaggedOutputs[Any]:
        """Handle a timed-out match. Results go to side outputs: `ctx.output(tag, value)`, or `yield tag, value`."""


class PatternSelectFunction(Function, Generic[T, OUT]):
    """Makes one result of each match."""

    @abstractmethod
    def select(self, match: Match[T], /) -> OUT:
        """Return the result."""


class PatternFlatSelectFunction(Function, Generic[T, OUT]):
    """Makes any number of results of each match."""

    @abstractmethod
    def flat_select(self, match: Match[T], /) -> Outputs[OUT]:
        """Yield the results."""


class PatternTimeoutFunction(Function, Generic[T, OUT]):
    """Makes one result of each partial match that ran out of time."""

    @abstractmethod
    def timeout(self, match: Match[T], timeout_timestamp: int, /) -> OUT:
        """Return the result, which goes to the side output."""


class PatternFlatTimeoutFunction(Function, Generic[T, OUT]):
    """Makes any number of results of each partial match that ran out of time."""

    @abstractmethod
    def timeout(self, match: Match[T], timeout_timestamp: int, /) -> Outputs[OUT]:
        """Yield the results, which go to the side output."""


class RichPatternSelectFunction(PatternSelectFunction[T, OUT]):
    """A PatternSelectFunction; `open`, `close` and the runtime context work in both."""


class RichPatternFlatSelectFunction(PatternFlatSelectFunction[T, OUT]):
    """A PatternFlatSelectFunction; `open`, `close` and the runtime context work in both."""


class EventComparator(ABC, Generic[IN]):
    """Orders events of one key that have the same timestamp."""

    @abstractmethod
    def compare(self, first: IN, second: IN, /) -> int:
        """Return a negative number if `first` comes before `second`, a positive one if after, 0 if it is the same."""


# --- select and flat_select ---


class Selecting(PatternProcessFunction):
    """A select or flat-select function, as a process function."""

    def __init__(self, function: Any, flat: bool) -> None:
        self.function = function
        self.flat = flat

    def open(self, runtime_context: RuntimeContext) -> None:
        for each in self._functions():
            if isinstance(each, Function):
                each.set_runtime_context(runtime_context)
                each.open(runtime_context)
        self._select = _callable(self.function, "flat_select" if self.flat else "select")

    def close(self) -> None:
        for each in self._functions():
            if isinstance(each, Function):
                each.close()

    def process_match(self, match: Match, ctx: PatternProcessFunction.Context) -> Outputs:
        selected = self._select(match)
        return selected if self.flat else (selected,)

    def _functions(self) -> Iterable[Any]:
        return (self.function,)


class SelectingWithTimeouts(Selecting, TimedOutPartialMatchHandler):
    """A select function with a function for timeouts and the side output for its results."""

    def __init__(self, function: Any, flat: bool, tag: OutputTag, on_timeout: Any) -> None:
        super().__init__(function, flat)
        self.tag = tag
        self.on_timeout = on_timeout

    def open(self, runtime_context: RuntimeContext) -> None:
        super().open(runtime_context)
        self._timeout = _callable(self.on_timeout, "timeout")

    def process_timed_out_match(self, match: Match, ctx: PatternProcessFunction.Context) -> None:
        results = self._timeout(match, ctx.timestamp())
        for result in (results or ()) if self.flat else (results,):
            ctx.output(self.tag, result)

    def _functions(self) -> Iterable[Any]:
        return (self.function, self.on_timeout)


def _callable(function: Any, method: str) -> Callable[..., Any]:
    return getattr(function, method) if isinstance(function, Function) else function  # type: ignore[no-any-return]
