"""Functions called with the contents of a window when its trigger fires."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from typing import TYPE_CHECKING, Generic, TypeVar

from penstock.api.functions.element_functions import Function
from penstock.api.functions.process_functions import SideOutputContext

if TYPE_CHECKING:
    from penstock.api.functions.contexts import KeyedStateStore
    from penstock.api.windows.windows import Window

IN = TypeVar("IN")
OUT = TypeVar("OUT")
KEY = TypeVar("KEY")
W = TypeVar("W", bound="Window")
W2 = TypeVar("W2", bound="Window")


class WindowFunction(Function, Generic[IN, OUT, KEY, W]):
    """Evaluates the window of one key."""

    @abstractmethod
    def apply(self, key: KEY, window: W, inputs: Iterable[IN]) -> Iterable[OUT]:
        """Yield the results for the present elements of the window."""


class AllWindowFunction(Function, Generic[IN, OUT, W]):
    """Evaluates a window over a stream without keys."""

    @abstractmethod
    def apply(self, window: W, inputs: Iterable[IN]) -> Iterable[OUT]:
        """Yield the results for the present elements of the window."""


class WindowStateContext(SideOutputContext, Generic[W2]):
    """The window being evaluated, and the state that belongs to it."""

    @abstractmethod
    def window(self) -> W2:
        """Return the window."""

    @abstractmethod
    def window_state(self) -> KeyedStateStore:
        """Return the store of state for this key in this window alone. Remove that state in `clear`."""

    @abstractmethod
    def global_state(self) -> KeyedStateStore:
        """Return the store of state that all windows of this key share."""


class ProcessWindowFunction(Function, Generic[IN, OUT, KEY, W]):
    """Evaluates the window of one key, with access to time and to state of its own."""

    class Context(WindowStateContext[W2]):
        """The context of `process` and `clear`."""

        @abstractmethod
        def current_processing_time(self) -> int:
            """Return the processing time in epoch milliseconds."""

        @abstractmethod
        def current_watermark(self) -> int:
            """Return the event-time clock of this operator."""

    @abstractmethod
    def process(self, key: KEY, context: ProcessWindowFunction.Context[W], elements: Iterable[IN]) -> Iterable[OUT]:
        """Yield the results for a firing: all elements of the window, or the one result of its aggregation."""

    def clear(self, context: ProcessWindowFunction.Context[W]) -> None:
        """Remove the window state, just before the window is dropped."""


class ProcessAllWindowFunction(Function, Generic[IN, OUT, W]):
    """Evaluates a window over a stream without keys, with access to state of its own."""

    class Context(WindowStateContext[W2]):
        """The context of `process` and `clear`."""

    @abstractmethod
    def process(self, context: ProcessAllWindowFunction.Context[W], elements: Iterable[IN]) -> Iterable[OUT]:
        """Yield the results for a firing: all elements of the window, or the one result of its aggregation."""

    def clear(self, context: ProcessAllWindowFunction.Context[W]) -> None:
        """Remove the window state, just before the window is dropped."""
