"""The triggers, which decide when a pane is evaluated."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from penstock.api.state.descriptors import ReducingStateDescriptor, ValueStateDescriptor
from penstock.api.windows.windows import MAX_LONG_VALUE, Delta, Trigger, TriggerResult
from penstock.base.arguments import check_arguments
from penstock.common.time import LengthOfTime, to_millis
from penstock.common.type_information import TypeInformation

CONTINUE, FIRE = TriggerResult.CONTINUE, TriggerResult.FIRE


class _Untimed(Trigger[Any, Any]):
    """Continues at every timer. A trigger that fires by one of the two kinds of time overrides that method."""

    def on_processing_time(self, time: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        return CONTINUE

    def on_event_time(self, time: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        return CONTINUE


class EventTimeTrigger(_Untimed):
    """Fires when the watermark passes the end of the window, and for every later element."""

    @staticmethod
    def create() -> EventTimeTrigger:
        """Return the trigger."""
        return EventTimeTrigger()

    def on_element(self, element: Any, timestamp: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        if window.max_timestamp() <= ctx.get_current_watermark():
            return FIRE
        ctx.register_event_time_timer(window.max_timestamp())
        return CONTINUE

    def on_event_time(self, time: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        return FIRE if time == window.max_timestamp() else CONTINUE

    def can_merge(self) -> bool:
        return True

    def on_merge(self, window: Any, ctx: Trigger.OnMergeContext) -> None:
        if window.max_timestamp() > ctx.get_current_watermark():
            ctx.register_event_time_timer(window.max_timestamp())

    def clear(self, window: Any, ctx: Trigger.TriggerContext) -> None:
        ctx.delete_event_time_timer(window.max_timestamp())


class ProcessingTimeTrigger(_Untimed):
    """Fires when processing time passes the end of the window."""

    @staticmethod
    def create() -> ProcessingTimeTrigger:
        """Return the trigger."""
        return ProcessingTimeTrigger()

    def on_element(self, element: Any, timestamp: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        ctx.register_processing_time_timer(window.max_timestamp())
        return CONTINUE

    def on_processing_time(self, time: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        return FIRE

    def can_merge(self) -> bool:
        return True

    def on_merge(self, window: Any, ctx: Trigger.OnMergeContext) -> None:
        if window.max_timestamp() > ctx.get_current_processing_time():
            ctx.register_processing_time_timer(window.max_timestamp())

    def clear(self, window: Any, ctx: Trigger.TriggerContext) -> None:
        ctx.delete_processing_time_timer(window.max_timestamp())


class _ContinuousTrigger(_Untimed):
    """Base of the two continuous triggers. It keeps the next time to fire for each pane."""

    @check_arguments
    def __init__(self, interval: LengthOfTime) -> None:
        self.interval = to_millis(interval)
        if self.interval <= 0:
            raise ValueError(f"the interval of a trigger must be above 0 ms, not {self.interval} ms")
        self._next = ReducingStateDescriptor("_next_fire", min)

    def can_merge(self) -> bool:
        return True

    def schedule(self, time: int, window: Any, ctx: Trigger.TriggerContext, register: Callable[[int], None]) -> None:
        """Schedule the next firing: at the first multiple of the interval after `time`, or at the window's end.

        A window without an end, such as the global window, fires only once more when the watermark has its maximum.
        """
        over = ctx.get_current_watermark() == MAX_LONG_VALUE == window.max_timestamp()
        at = MAX_LONG_VALUE if over else min(time + self.interval, window.max_timestamp())
        next_fire: Any = ctx.get_partitioned_state(self._next)
        next_fire.add(at)
        register(at)

    def due(self, time: int, ctx: Trigger.TriggerContext) -> bool:
        """Return True if a firing timer is the scheduled one. The schedule is then forgotten."""
        next_fire: Any = ctx.get_partitioned_state(self._next)
        if next_fire.get() != time:
            return False
        next_fire.clear()
        return True

    def next_timer(self, ctx: Trigger.TriggerContext) -> int | None:
        """Return the time of the scheduled timer, or None if there is none."""
        state: Any = ctx.get_partitioned_state(self._next)
        at: int | None = state.get()
        return at

    def forget(self, ctx: Trigger.TriggerContext, delete: Callable[[int], None]) -> None:
        at = self.next_timer(ctx)
        if at is not None:
            delete(at)
            ctx.get_partitioned_state(self._next).clear()

    def merge(self, ctx: Trigger.OnMergeContext, register: Callable[[int], None]) -> None:
        ctx.merge_partitioned_state(self._next)
        at = self.next_timer(ctx)
        if at is not None:
            register(at)


@check_arguments
class ContinuousEventTimeTrigger(_ContinuousTrigger):
    """Fires every interval of event time, and at the end of the window."""

    @staticmethod
    def of(interval: LengthOfTime) -> ContinuousEventTimeTrigger:
        """Return a trigger that fires every `interval` of event time."""
        return ContinuousEventTimeTrigger(interval)

    def on_element(self, element: Any, timestamp: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        if window.max_timestamp() <= ctx.get_current_watermark():
            return FIRE
        ctx.register_event_time_timer(window.max_timestamp())
        if self.next_timer(ctx) is None:
            self.schedule(timestamp - timestamp % self.interval, window, ctx, ctx.register_event_time_timer)
        return CONTINUE

    def on_event_time(self, time: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        if time == window.max_timestamp():
            return FIRE
        if self.due(time, ctx):
            self.schedule(time, window, ctx, ctx.register_event_time_timer)
            return FIRE
        return CONTINUE

    def on_merge(self, window: Any, ctx: Trigger.OnMergeContext) -> None:
        self.merge(ctx, ctx.register_event_time_timer)

    def clear(self, window: Any, ctx: Trigger.TriggerContext) -> None:
        ctx.delete_event_time_timer(window.max_timestamp())
        self.forget(ctx, ctx.delete_event_time_timer)


@check_arguments
class ContinuousProcessingTimeTrigger(_ContinuousTrigger):
    """Fires every interval of processing time."""

    @staticmethod
    def of(interval: LengthOfTime) -> ContinuousProcessingTimeTrigger:
        """Return a trigger that fires every `interval` of processing time."""
        return ContinuousProcessingTimeTrigger(interval)

    def on_element(self, element: Any, timestamp: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        if self.next_timer(ctx) is None:
            now = ctx.get_current_processing_time()
            self.schedule(now - now % self.interval, window, ctx, ctx.register_processing_time_timer)
        return CONTINUE

    def on_processing_time(self, time: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        if not self.due(time, ctx):
            return CONTINUE
        if time < window.max_timestamp():
            self.schedule(time, window, ctx, ctx.register_processing_time_timer)
        return FIRE

    def on_merge(self, window: Any, ctx: Trigger.OnMergeContext) -> None:
        self.merge(ctx, ctx.register_processing_time_timer)

    def clear(self, window: Any, ctx: Trigger.TriggerContext) -> None:
        self.forget(ctx, ctx.delete_processing_time_timer)


def _add(left: int, right: int) -> int:
    return left + right


@check_arguments
class CountTrigger(_Untimed):
    """Fires when the pane has taken a number of elements since it last fired."""

    def __init__(self, window_size: int) -> None:
        if window_size <= 0:
            raise ValueError(f"a count trigger needs a count above 0, not {window_size}")
        self.max_count = window_size
        self.count = ReducingStateDescriptor("_trigger_count", _add)

    @staticmethod
    def of(window_size: int) -> CountTrigger:
        """Return a trigger that fires after every `window_size` elements."""
        return CountTrigger(window_size)

    def on_element(self, element: Any, timestamp: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        count: Any = ctx.get_partitioned_state(self.count)
        count.add(1)
        if count.get() >= self.max_count:
            count.clear()
            return FIRE
        return CONTINUE

    def can_merge(self) -> bool:
        return True

    def on_merge(self, window: Any, ctx: Trigger.OnMergeContext) -> None:
        ctx.merge_partitioned_state(self.count)

    def clear(self, window: Any, ctx: Trigger.TriggerContext) -> None:
        ctx.get_partitioned_state(self.count).clear()


@check_arguments
class PurgingTrigger(Trigger[Any, Any]):
    """Fires when another trigger fires, and then drops the contents."""

    def __init__(self, nested_trigger: Trigger[Any, Any]) -> None:
        self.nested = nested_trigger

    @staticmethod
    def of(nested_trigger: Trigger[Any, Any]) -> PurgingTrigger:
        """Return a trigger that purges the window whenever `nested_trigger` fires."""
        return PurgingTrigger(nested_trigger)

    def on_element(self, element: Any, timestamp: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        return _purging(self.nested.on_element(element, timestamp, window, ctx))

    def on_processing_time(self, time: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        return _purging(self.nested.on_processing_time(time, window, ctx))

    def on_event_time(self, time: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        return _purging(self.nested.on_event_time(time, window, ctx))

    def can_merge(self) -> bool:
        return self.nested.can_merge()

    def on_merge(self, window: Any, ctx: Trigger.OnMergeContext) -> None:
        self.nested.on_merge(window, ctx)

    def clear(self, window: Any, ctx: Trigger.TriggerContext) -> None:
        self.nested.clear(window, ctx)


def _purging(result: TriggerResult) -> TriggerResult:
    """Add the purge to a firing result. Return any other object unchanged, for the operator to refuse it."""
    return TriggerResult.FIRE_AND_PURGE if isinstance(result, TriggerResult) and result.is_fire() else result


@check_arguments
class DeltaTrigger(_Untimed):
    """Fires when an element differs by more than a threshold from the one that fired last."""

    def __init__(self, threshold: float, delta_function: Delta) -> None:
        self.threshold = threshold
        self.delta: Any = getattr(delta_function, "get_delta", delta_function)
        self._last = ValueStateDescriptor("_last_element")

    @staticmethod
    def of(
        threshold: float,
        delta_function: Delta,
        type_info: TypeInformation | None = None,
    ) -> DeltaTrigger:
        """Return a trigger that fires when `delta_function(last, element)` is above `threshold`."""
        return DeltaTrigger(threshold, delta_function)

    def on_element(self, element: Any, timestamp: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        last: Any = ctx.get_partitioned_state(self._last)
        if last.value() is None:
            last.update(element)
            return CONTINUE
        if self.delta(last.value(), element) > self.threshold:
            last.update(element)
            return FIRE
        return CONTINUE

    def clear(self, window: Any, ctx: Trigger.TriggerContext) -> None:
        ctx.get_partitioned_state(self._last).clear()


class NeverTrigger(_Untimed):
    """Never fires: the default of GlobalWindows."""

    def on_element(self, element: Any, timestamp: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        return CONTINUE

    def can_merge(self) -> bool:
        return True

    def on_merge(self, window: Any, ctx: Trigger.OnMergeContext) -> None:
        pass

    def clear(self, window: Any, ctx: Trigger.TriggerContext) -> None:
        pass
