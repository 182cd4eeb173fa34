"""Functions called with the contents of a window when its trigger fires."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from typing import TYPE_CHECKING, Generic

from penstock.api.functions.element_functions import Function, Outputs, TaggedOutputs
from penstock.api.functions.process_functions import SideOutputContext
from penstock.base.type_variables import IN, KEY, OUT, W_co, W_in

if TYPE_CHECKING:
    from penstock.api.functions.contexts import KeyedStateStore


class WindowFunction(Function, Generic[IN, OUT, KEY, W_in]):
    """Evaluates the window of one key."""

    @abstractmethod
    def apply(self, key: KEY, window: W_in, inputs: Iterable[IN], /) -> Outputs[OUT]:
        """Yield the results for the present elements of the window."""


class AllWindowFunction(Function, Generic[IN, OUT, W_in]):
    """Evaluates a window over a stream without keys."""

    @abstractmethod
    def apply(self, window: W_in, inputs: Iterable[IN], /) -> Outputs[OUT]:
        """Yield the results for the present elements of the window."""


class WindowStateContext(SideOutputContext, Generic[W_co]):
    """The window being evaluated, and the state that belongs to it."""

    @abstractmethod
    def window(self) -> W_co:
        """Return the window."""

    @abstractmethod
    def window_state(self) -> KeyedStateStore:
        """Return the store of state for this key in this window alone. Remove that state in `clear`."""

    @abstractmethod
    def global_state(self) -> KeyedStateStore:
        """Return the store of state that all windows of this key share."""


class ProcessWindowFunction(Function, Generic[IN, OUT, KEY, W_in]):
    """Evaluates the window of one key, with access to time and to state of its own."""

    class Context(WindowStateContext[W_co]):
        """The context of `process` and `clear`."""

        @abstractmethod
        def current_processing_time(self) -> int:
            """Return the processing time in epoch milliseconds."""

        @abstractmethod
        def current_watermark(self) -> int:
            """Return the event-time clock of this operator."""

    @abstractmethod
    def process(
        self, key: KEY, context: ProcessWindowFunction.Context[W_in], elements: Iterable[IN], /
    ) -> TaggedOutputs[OUT]:
        """Yield the results for a firing: all elements of the window, or the one result of its aggregation."""

    def clear(self, context: ProcessWindowFunction.Context[W_in], /) -> None:
        """Remove the window state, just before the window is dropped."""


class ProcessAllWindowFunction(Function, Generic[IN, OUT, W_in]):
    """Evaluates a window over a stream without keys, with access to state of its own."""

    class Context(WindowStateContext[W_co]):
        """The context of `process` and `clear`."""

    @abstractmethod
    def process(self, context: ProcessAllWindowFunction.Context[W_in], elements: Iterable[IN], /) -> TaggedOutputs[OUT]:
        """Yield the results for a firing: all elements of the window, or the one result of its aggregation."""

    def clear(self, context: ProcessAllWindowFunction.Context[W_in], /) -> None:
        """Remove the window state, just before the window is dropped."""
