"""Windows, and the base classes that define which elements belong to them and when they are evaluated."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable
from enum import Enum
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeAlias, runtime_checkable

from penstock.base.type_variables import IN, W, W_in
from penstock.errors import UnsupportedOperation
from penstock.persisted import persisted_in

if TYPE_CHECKING:
    from penstock.api.functions.contexts import RuntimeContext
    from penstock.api.state.descriptors import State, StateDescriptor
    from penstock.metrics import MetricGroup

MAX_LONG_VALUE = 2**63 - 1


@runtime_checkable
class DeltaFunction(Protocol):
    """An object that computes the distance of two elements."""

    def get_delta(self, old: Any, new: Any) -> float: ...


Delta: TypeAlias = Callable[[Any, Any], float] | DeltaFunction
"""A function of an old and a new element, or a DeltaFunction. It computes their distance."""


class Window(ABC):
    """A finite bucket of elements. Windows are keys of state: they are compared and hashed by value."""

    __slots__ = ()

    @abstractmethod
    def max_timestamp(self) -> int:
        """Return the largest timestamp of this window. A watermark at or after it completes the window."""


@persisted_in("penstock.datastream.window")
class TimeWindow(Window, tuple[int, int]):
    """The time from `start`, inclusive, to `end`, exclusive, in epoch milliseconds.

    A tuple underneath, since windows are compared and hashed for every record.
    """

    __slots__ = ()

    def __new__(cls, start: int, end: int) -> TimeWindow:
        return tuple.__new__(cls, (start, end))

    @property
    def start(self) -> int:
        """First millisecond of the window."""
        return self[0]

    @property
    def end(self) -> int:
        """Millisecond after the last one of the window."""
        return self[1]

    def get_start(self) -> int:
        """Return the first millisecond, as `start` does."""
        return self[0]

    def get_end(self) -> int:
        """Return the millisecond after the last, as `end` does."""
        return self[1]

    def __getnewargs__(self) -> tuple[int, int]:
        return self[0], self[1]

    def max_timestamp(self) -> int:
        """Return the last millisecond of the window."""
        return self[1] - 1

    def intersects(self, other: TimeWindow) -> bool:
        """Return True if the windows overlap or touch. Two sessions exactly a gap apart are one session."""
        return self.start <= other.end and self.end >= other.start

    def cover(self, other: TimeWindow) -> TimeWindow:
        """Return the smallest window that contains both."""
        return TimeWindow(min(self.start, other.start), max(self.end, other.end))

    @staticmethod
    def get_window_start_with_offset(timestamp: int, offset: int, window_size: int) -> int:
        """Return the start of the window that contains `timestamp`, where one window starts at `offset`.

        >>> TimeWindow.get_window_start_with_offset(-1, 0, 10)
        -10
        """
        return timestamp - (timestamp - offset) % window_size

    @staticmethod
    def merge_windows(windows: Iterable[TimeWindow], callback: MergingWindowAssigner.MergeCallback[TimeWindow]) -> None:
        """Report every group of windows that intersect, directly or through others, along with their cover."""
        group: list[TimeWindow] = []
        cover: TimeWindow | None = None
        for window in sorted(set(windows)):
            if cover is not None and cover.intersects(window):
                cover = cover.cover(window)
                group.append(window)
                continue
            if cover is not None and len(group) > 1:
                callback.merge(group, cover)
            group, cover = [window], window
        if cover is not None and len(group) > 1:
            callback.merge(group, cover)

    def __repr__(self) -> str:
        return f"TimeWindow(start={self.start}, end={self.end})"


@persisted_in("penstock.datastream.window")
class CountWindow(Window):
    """A window of a number of elements, identified by its id."""

    __slots__ = ("id",)

    def __init__(self, id: int) -> None:
        self.id = id

    def max_timestamp(self) -> int:
        """Return the end of time: no watermark completes a count."""
        return MAX_LONG_VALUE

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CountWindow) and self.id == other.id

    def __hash__(self) -> int:
        return hash(self.id)

    def __repr__(self) -> str:
        return f"CountWindow(id={self.id})"


@persisted_in("penstock.datastream.window")
class GlobalWindow(Window):
    """The window that holds everything. All instances are equal."""

    __slots__ = ()

    @staticmethod
    def get() -> GlobalWindow:
        """Return the window."""
        return _GLOBAL_WINDOW

    def max_timestamp(self) -> int:
        """Return the end of time."""
        return MAX_LONG_VALUE

    def __eq__(self, other: object) -> bool:
        return isinstance(other, GlobalWindow)

    def __hash__(self) -> int:
        return 0

    def __repr__(self) -> str:
        return "GlobalWindow"


_GLOBAL_WINDOW = GlobalWindow()


@persisted_in("penstock.datastream.window")
class TriggerResult(Enum):
    """The decision of a trigger about a window: a pair of flags, to evaluate it and to drop its contents."""

    CONTINUE = (False, False)
    FIRE_AND_PURGE = (True, True)
    FIRE = (True, False)
    PURGE = (False, True)

    def is_fire(self) -> bool:
        """Return True if the window is evaluated."""
        return self is TriggerResult.FIRE or self is TriggerResult.FIRE_AND_PURGE

    def is_purge(self) -> bool:
        """Return True if the contents are dropped."""
        return self is TriggerResult.PURGE or self is TriggerResult.FIRE_AND_PURGE


class PaneClocks(ABC):
    """Clocks and metrics for triggers and evictors. All times are epoch milliseconds."""

    @abstractmethod
    def get_current_processing_time(self) -> int:
        """Return the processing time."""

    @abstractmethod
    def get_current_watermark(self) -> int:
        """Return the current watermark of the operator."""

    @abstractmethod
    def get_metric_group(self) -> MetricGroup:
        """Return the group under which the operator registers its metrics."""


class Trigger(ABC, Generic[IN, W_in]):
    """Decides when a pane, the elements with the same key and the same window, is evaluated.

    One instance serves all panes of a subtask: what it must remember belongs in state of its context, where it is kept
    for each pane.
    """

    class TriggerContext(PaneClocks):
        """Clocks, timers and state of the current pane."""

        @abstractmethod
        def register_processing_time_timer(self, time: int) -> None:
            """Register a timer that calls `on_processing_time` once processing time reaches `time`."""

        @abstractmethod
        def register_event_time_timer(self, time: int) -> None:
            """Register a timer that calls `on_event_time` once the watermark reaches `time`."""

        @abstractmethod
        def delete_processing_time_timer(self, time: int) -> None:
            """Forget the timer if it is registered and has not fired."""

        @abstractmethod
        def delete_event_time_timer(self, time: int) -> None:
            """Forget the timer if it is registered and has not fired."""

        @abstractmethod
        def get_partitioned_state(self, state_descriptor: StateDescriptor) -> State:
            """Return state that belongs to this pane alone."""

    class OnMergeContext(TriggerContext):
        """The context of `on_merge`. The current pane is that of the merged window."""

        @abstractmethod
        def merge_partitioned_state(self, state_descriptor: StateDescriptor) -> None:
            """Move the merging state of the merged panes into the pane of the result."""

    @abstractmethod
    def on_element(self, element: IN, timestamp: int, window: W_in, ctx: Trigger.TriggerContext, /) -> TriggerResult:
        """Return the decision about the pane after `element` was added to it."""

    @abstractmethod
    def on_processing_time(self, time: int, window: W_in, ctx: Trigger.TriggerContext, /) -> TriggerResult:
        """Return the decision about the pane when one of its processing-time timers fires."""

    @abstractmethod
    def on_event_time(self, time: int, window: W_in, ctx: Trigger.TriggerContext, /) -> TriggerResult:
        """Return the decision about the pane when one of its event-time timers fires."""

    def can_merge(self) -> bool:
        """Return True if the trigger supports windows that merge. It must then define `on_merge`."""
        return False

    def on_merge(self, window: W_in, ctx: Trigger.OnMergeContext, /) -> None:
        """Combine state and timers after windows were merged into `window`."""
        raise UnsupportedOperation(f"{type(self).__name__} does not define on_merge, so it cannot merge windows")

    @abstractmethod
    def clear(self, window: W_in, ctx: Trigger.TriggerContext, /) -> None:
        """Remove state and timers of the pane, just before the window is dropped."""


class WindowAssigner(ABC, Generic[IN, W]):
    """Decides to which windows an element belongs."""

    class WindowAssignerContext(ABC):
        """Facts and services for an assigner."""

        @abstractmethod
        def get_current_processing_time(self) -> int:
            """Return the processing time in epoch milliseconds."""

        @abstractmethod
        def get_runtime_context(self) -> RuntimeContext:
            """Return the runtime context of the operator."""

    @abstractmethod
    def assign_windows(
        self, element: IN, timestamp: int, context: WindowAssigner.WindowAssignerContext, /
    ) -> Collection[W]:
        """Return the windows of an element: zero, one or several."""

    @abstractmethod
    def get_default_trigger(self, env: Any, /) -> Trigger[IN, W]:
        """Return the trigger to use if the program sets none."""

    @abstractmethod
    def is_event_time(self) -> bool:
        """Return True if windows are assigned by event time, so that elements can be late."""

    def get_window_serializer(self) -> Any:
        """Return None.

        PyFlink's assigners define this method; Penstock never calls it and stores windows as objects.
        """
        return None


class MergingWindowAssigner(WindowAssigner[IN, W]):
    """An assigner whose windows can merge, as sessions do."""

    class MergeCallback(ABC, Generic[W_in]):
        """Receives from `merge_windows` the groups of windows to merge."""

        @abstractmethod
        def merge(self, to_be_merged: Iterable[W_in], merge_result: W_in) -> None:
            """Replace the windows `to_be_merged` by `merge_result`."""

    @abstractmethod
    def merge_windows(self, windows: Iterable[W], callback: MergingWindowAssigner.MergeCallback[W], /) -> None:
        """Call `callback.merge` for every group of two or more windows that become one."""
