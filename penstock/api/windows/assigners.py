"""The window assigners: tumbling, sliding, session and count windows, and the one that holds everything."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any

from penstock.api.state.descriptors import ValueStateDescriptor
from penstock.api.windows.triggers import (
    CountTrigger,
    EventTimeTrigger,
    NeverTrigger,
    ProcessingTimeTrigger,
    PurgingTrigger,
)
from penstock.api.windows.windows import (
    CountWindow,
    GlobalWindow,
    MergingWindowAssigner,
    TimeWindow,
    Trigger,
    WindowAssigner,
)
from penstock.base.arguments import check_arguments
from penstock.common.time import LengthOfTime, to_millis
from penstock.errors import MissingTimestamp

MIN_LONG_VALUE = -(2**63)


def positive_millis(value: Any, what: str) -> int:
    """Return a time span in milliseconds. It must be above zero; the error names it as `what`."""
    millis = to_millis(value)
    if millis <= 0:
        raise ValueError(f"{what} must be above 0 ms, not {millis} ms")
    return millis


class _ByTime(WindowAssigner[Any, TimeWindow]):
    """Assigns windows by one of the two kinds of time. Subclasses define the windows of an element."""

    @abstractmethod
    def windows_of(self, element: Any, time: int) -> list[TimeWindow]:
        """Return the windows of an element at a time."""


class _ByEventTime(_ByTime):
    """Assigns windows by the records' timestamps."""

    def assign_windows(self, element: Any, timestamp: int | None, context: Any) -> list[TimeWindow]:
        return self.windows_of(element, event_timestamp(timestamp))

    def get_default_trigger(self, env: Any = None) -> Trigger[Any, TimeWindow]:
        return EventTimeTrigger()

    def is_event_time(self) -> bool:
        return True


class _ByProcessingTime(_ByTime):
    """Assigns windows by the processing time of the epoch."""

    def assign_windows(self, element: Any, timestamp: int | None, context: Any) -> list[TimeWindow]:
        return self.windows_of(element, context.get_current_processing_time())

    def get_default_trigger(self, env: Any = None) -> Trigger[Any, TimeWindow]:
        return ProcessingTimeTrigger()

    def is_event_time(self) -> bool:
        return False


class SlidingWindows(_ByTime):
    """Windows of `size` that start every `slide`. Tumbling windows are those whose size and slide are equal."""

    @check_arguments
    def __init__(self, size: int, slide: int, offset: int) -> None:
        if abs(offset) >= slide:
            raise ValueError(
                f"the offset must be smaller than the {'slide' if slide != size else 'size'}: {offset} ms of {slide} ms"
            )
        self.size = size
        self.slide = slide
        self.offset = offset

    def windows_of(self, element: Any, time: int) -> list[TimeWindow]:
        """Return the windows that contain a time, the latest first."""
        size = self.size
        last = TimeWindow.get_window_start_with_offset(time, self.offset, self.slide)
        return [TimeWindow(start, start + size) for start in range(last, time - size, -self.slide)]

    def __repr__(self) -> str:
        tumbling = self.size == self.slide
        inner = f"{self.size}" if tumbling else f"{self.size}, {self.slide}"
        return f"{type(self).__name__}({inner}{f', offset {self.offset}' if self.offset else ''})"


@check_arguments
class TumblingEventTimeWindows(SlidingWindows, _ByEventTime):
    """Windows of one size, side by side, by event time."""

    def __init__(self, size: int, offset: int = 0) -> None:
        super().__init__(size, size, offset)

    @staticmethod
    def of(size: LengthOfTime, offset: LengthOfTime = 0) -> TumblingEventTimeWindows:
        """Return windows of `size`, one of which starts at `offset` from the epoch."""
        return TumblingEventTimeWindows(positive_millis(size, "the window size"), to_millis(offset))


@check_arguments
class TumblingProcessingTimeWindows(SlidingWindows, _ByProcessingTime):
    """Windows of one size, side by side, by processing time."""

    def __init__(self, size: int, offset: int = 0) -> None:
        super().__init__(size, size, offset)

    @staticmethod
    def of(size: LengthOfTime, offset: LengthOfTime = 0) -> TumblingProcessingTimeWindows:
        """Return windows of `size`, one of which starts at `offset` from the epoch."""
        return TumblingProcessingTimeWindows(positive_millis(size, "the window size"), to_millis(offset))


@check_arguments
class SlidingEventTimeWindows(SlidingWindows, _ByEventTime):
    """Windows of one size that start every slide, by event time."""

    @staticmethod
    def of(size: LengthOfTime, slide: LengthOfTime, offset: LengthOfTime = 0) -> SlidingEventTimeWindows:
        """Return windows of `size` that start every `slide`. A record is in about size / slide of them."""
        millis = positive_millis(size, "the window size")
        return SlidingEventTimeWindows(millis, positive_millis(slide, "the window slide"), to_millis(offset))


@check_arguments
class SlidingProcessingTimeWindows(SlidingWindows, _ByProcessingTime):
    """Windows of one size that start every slide, by processing time."""

    @staticmethod
    def of(size: LengthOfTime, slide: LengthOfTime, offset: LengthOfTime = 0) -> SlidingProcessingTimeWindows:
        """Return windows of `size` that start every `slide`. A record is in about size / slide of them."""
        millis = positive_millis(size, "the window size")
        return SlidingProcessingTimeWindows(millis, positive_millis(slide, "the window slide"), to_millis(offset))


class SessionWindowTimeGapExtractor(ABC):
    """Defines the time for which a session waits after a given element."""

    @abstractmethod
    def extract(self, element: Any) -> int:
        """Return the gap in milliseconds, above 0."""


class SessionWindows(MergingWindowAssigner[Any, TimeWindow], _ByTime):
    """Windows that grow while elements come within a gap of each other."""

    @check_arguments
    def __init__(self, gap: int | Callable[[Any], int]) -> None:
        self._gap = gap

    def gap_of(self, element: Any) -> int:
        """Return the time, in milliseconds, for which the session of this element stays open after it."""
        if isinstance(self._gap, int):
            return self._gap
        return positive_millis(self._gap(element), "a session gap")

    def windows_of(self, element: Any, time: int) -> list[TimeWindow]:
        return [TimeWindow(time, time + self.gap_of(element))]

    def merge_windows(
        self, windows: Iterable[TimeWindow], callback: MergingWindowAssigner.MergeCallback[TimeWindow]
    ) -> None:
        TimeWindow.merge_windows(windows, callback)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._gap if isinstance(self._gap, int) else 'dynamic'})"


def _gap_function(extractor: Any) -> Callable[[Any], int]:
    if isinstance(extractor, SessionWindowTimeGapExtractor):
        return extractor.extract
    if callable(extractor):
        return extractor  # type: ignore[no-any-return]
    raise TypeError(f"a dynamic gap is a SessionWindowTimeGapExtractor or a function, not {extractor!r}")


@check_arguments
class EventTimeSessionWindows(SessionWindows, _ByEventTime):
    """Sessions by event time, with one gap for all elements."""

    def __init__(self, session_gap: int) -> None:
        super().__init__(session_gap)

    @staticmethod
    def with_gap(size: LengthOfTime) -> EventTimeSessionWindows:
        """Return session windows by event time with a constant gap."""
        return EventTimeSessionWindows(positive_millis(size, "the session gap"))

    @staticmethod
    def with_dynamic_gap(
        extractor: SessionWindowTimeGapExtractor | Callable[[Any], int],
    ) -> DynamicEventTimeSessionWindows:
        """Return session windows by event time whose gap is computed for each element."""
        return DynamicEventTimeSessionWindows(extractor)


@check_arguments
class ProcessingTimeSessionWindows(SessionWindows, _ByProcessingTime):
    """Sessions by processing time, with one gap for all elements."""

    def __init__(self, session_gap: int) -> None:
        super().__init__(session_gap)

    @staticmethod
    def with_gap(size: LengthOfTime) -> ProcessingTimeSessionWindows:
        """Return session windows by processing time with a constant gap."""
        return ProcessingTimeSessionWindows(positive_millis(size, "the session gap"))

    @staticmethod
    def with_dynamic_gap(
        extractor: SessionWindowTimeGapExtractor | Callable[[Any], int],
    ) -> DynamicProcessingTimeSessionWindows:
        """Return session windows by processing time whose gap is computed for each element."""
        return DynamicProcessingTimeSessionWindows(extractor)


@check_arguments
class DynamicEventTimeSessionWindows(SessionWindows, _ByEventTime):
    """Sessions by event time, with a gap for each element."""

    def __init__(self, session_window_time_gap_extractor: SessionWindowTimeGapExtractor | Callable[[Any], int]) -> None:
        super().__init__(_gap_function(session_window_time_gap_extractor))

    @staticmethod
    def with_dynamic_gap(
        extractor: SessionWindowTimeGapExtractor | Callable[[Any], int],
    ) -> DynamicEventTimeSessionWindows:
        """Return session windows by event time whose gap is computed for each element."""
        return DynamicEventTimeSessionWindows(extractor)


@check_arguments
class DynamicProcessingTimeSessionWindows(SessionWindows, _ByProcessingTime):
    """Sessions by processing time, with a gap for each element."""

    def __init__(self, session_window_time_gap_extractor: SessionWindowTimeGapExtractor | Callable[[Any], int]) -> None:
        super().__init__(_gap_function(session_window_time_gap_extractor))

    @staticmethod
    def with_dynamic_gap(
        extractor: SessionWindowTimeGapExtractor | Callable[[Any], int],
    ) -> DynamicProcessingTimeSessionWindows:
        """Return session windows by processing time whose gap is computed for each element."""
        return DynamicProcessingTimeSessionWindows(extractor)


class GlobalWindows(WindowAssigner[Any, GlobalWindow]):
    """Assigns every element to one window, which only a trigger chosen by the user evaluates."""

    @staticmethod
    def create() -> GlobalWindows:
        """Return an assigner with one window for all elements."""
        return GlobalWindows()

    def assign_windows(self, element: Any, timestamp: int | None, context: Any) -> list[GlobalWindow]:
        return [GlobalWindow.get()]

    def get_default_trigger(self, env: Any = None) -> Trigger[Any, GlobalWindow]:
        return NeverTrigger()

    def is_event_time(self) -> bool:
        return False

    def __repr__(self) -> str:
        return "GlobalWindows()"


@check_arguments
class CountSlidingWindowAssigner(WindowAssigner[Any, CountWindow]):
    """Windows of `size` elements that start every `slide` elements of a key; each is evaluated when it is full."""

    def __init__(self, window_size: int, window_slide: int) -> None:
        for what, number in (("size", window_size), ("slide", window_slide)):
            if not isinstance(number, int) or number <= 0:
                raise ValueError(f"the {what} of a count window is a whole number above 0, not {number!r}")
        self.size = window_size
        self.slide = window_slide
        self.count = ValueStateDescriptor("_window_count")

    @staticmethod
    def of(window_size: int, window_slide: int) -> CountSlidingWindowAssigner:
        """Return windows of `window_size` elements of a key, one of which starts every `window_slide` elements."""
        return CountSlidingWindowAssigner(window_size, window_slide)

    def assign_windows(self, element: Any, timestamp: int | None, context: Any) -> list[CountWindow]:
        state = context.get_runtime_context().get_state(self.count)
        position = state.value() or 0
        state.update(position + 1)
        last = position // self.slide
        first = max(0, (position - self.size) // self.slide + 1)
        return [CountWindow(number) for number in range(last, first - 1, -1)]

    def get_default_trigger(self, env: Any = None) -> Trigger[Any, CountWindow]:
        return PurgingTrigger.of(CountTrigger.of(self.size))

    def is_event_time(self) -> bool:
        return False

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.size}, {self.slide})"


@check_arguments
class CountTumblingWindowAssigner(CountSlidingWindowAssigner):
    """Windows of `size` elements of a key, one after the other."""

    def __init__(self, window_size: int) -> None:
        super().__init__(window_size, window_size)

    @staticmethod
    def of(window_size: int, window_slide: int = 0) -> CountTumblingWindowAssigner:
        """Return windows of `window_size` elements of a key. `window_slide` is ignored."""
        return CountTumblingWindowAssigner(window_size)


def event_timestamp(timestamp: int | None) -> int:
    """Return the timestamp of a record for an event-time window. Raise MissingTimestamp if it has none."""
    if timestamp is None or timestamp == MIN_LONG_VALUE:
        raise MissingTimestamp(
            "an event-time window needs records with timestamps: call assign_timestamps_and_watermarks(...) before it, "
            "with a strategy that has a timestamp assigner (with_timestamp_assigner) unless the source attaches "
            "timestamps; or use processing-time windows"
        )
    return timestamp
