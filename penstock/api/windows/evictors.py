"""Evictors, which remove elements from a window before or after it is evaluated."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

from penstock.api.windows.windows import Delta, PaneClocks, Window
from penstock.base.arguments import check_arguments
from penstock.common.time import LengthOfTime, to_millis
from penstock.persisted import persisted_in


@persisted_in("penstock.datastream.window")
class TimestampedValue(NamedTuple):
    """An element as evictors see it."""

    value: Any
    timestamp: int | None

    def get_value(self) -> Any:
        """Return the element."""
        return self.value

    def get_timestamp(self) -> int | None:
        """Return the timestamp in epoch milliseconds, or None if the element has none."""
        return self.timestamp

    def has_timestamp(self) -> bool:
        """Return True if the element has a timestamp."""
        return self.timestamp is not None


class Evictor(ABC):
    """Removes elements from a pane around its evaluation, by changing the list it is given."""

    class EvictorContext(PaneClocks):
        """The clocks and metrics of the operator."""

    @abstractmethod
    def evict_before(
        self, elements: list[TimestampedValue], size: int, window: Window, ctx: Evictor.EvictorContext
    ) -> None:
        """Remove elements from `elements` before the window function. `size` is the number of elements."""

    @abstractmethod
    def evict_after(
        self, elements: list[TimestampedValue], size: int, window: Window, ctx: Evictor.EvictorContext
    ) -> None:
        """Remove elements from `elements` after the window function. `size` is the number of elements."""


class _Either(Evictor):
    """An evictor that removes the same elements either before or after the window function."""

    def __init__(self, do_evict_after: bool) -> None:
        self.do_evict_after = do_evict_after

    def evict_before(
        self, elements: list[TimestampedValue], size: int, window: Window, ctx: Evictor.EvictorContext
    ) -> None:
        if not self.do_evict_after and elements:
            self.evict(elements)

    def evict_after(
        self, elements: list[TimestampedValue], size: int, window: Window, ctx: Evictor.EvictorContext
    ) -> None:
        if self.do_evict_after and elements:
            self.evict(elements)

    @abstractmethod
    def evict(self, elements: list[TimestampedValue]) -> None:
        """Remove elements from the list `elements`, which is never empty."""


@check_arguments
class CountEvictor(_Either):
    """Keeps the last `max_count` elements."""

    def __init__(self, max_count: int, do_evict_after: bool = False) -> None:
        super().__init__(do_evict_after)
        if max_count < 0:
            raise ValueError(f"a count evictor keeps 0 or more elements, not {max_count}")
        self.max_count = max_count

    @staticmethod
    def of(max_count: int, do_evict_after: bool = False) -> CountEvictor:
        """Return an evictor that keeps the last `max_count` elements."""
        return CountEvictor(max_count, do_evict_after)

    def evict(self, elements: list[TimestampedValue]) -> None:
        del elements[: max(0, len(elements) - self.max_count)]


@check_arguments
class TimeEvictor(_Either):
    """Keeps the elements of the last `window_size`, counted back from the latest element."""

    def __init__(self, window_size: LengthOfTime, do_evict_after: bool = False) -> None:
        super().__init__(do_evict_after)
        self.window_size = to_millis(window_size)

    @staticmethod
    def of(window_size: LengthOfTime, do_evict_after: bool = False) -> TimeEvictor:
        """Return an evictor that keeps the elements of the last `window_size`."""
        return TimeEvictor(window_size, do_evict_after)

    def evict(self, elements: list[TimestampedValue]) -> None:
        if elements[0].timestamp is None:
            return
        cutoff = max(e.timestamp for e in elements if e.timestamp is not None) - self.window_size
        elements[:] = [e for e in elements if e.timestamp is None or e.timestamp > cutoff]


@check_arguments
class DeltaEvictor(_Either):
    """Keeps the elements whose distance from the last one is below a threshold."""

    def __init__(
        self,
        threshold: float,
        delta_function: Delta,
        do_evict_after: bool = False,
    ) -> None:
        super().__init__(do_evict_after)
        self.threshold = threshold
        self.delta: Any = getattr(delta_function, "get_delta", delta_function)

    @staticmethod
    def of(threshold: float, delta_function: Delta, do_evict_after: bool = False) -> DeltaEvictor:
        """Return an evictor that keeps elements whose distance from the last one is below `threshold`."""
        return DeltaEvictor(threshold, delta_function, do_evict_after)

    def evict(self, elements: list[TimestampedValue]) -> None:
        last = elements[-1].value
        elements[:] = [e for e in elements if self.delta(e.value, last) < self.threshold]
