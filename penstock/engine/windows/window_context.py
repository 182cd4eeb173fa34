"""The contexts of triggers, evictors, assigners and window functions for the current pane."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.api.functions.contexts import RuntimeContext
from penstock.api.output_tag import OutputTag
from penstock.api.state.descriptors import StateDescriptor, check_descriptor
from penstock.api.windows.evictors import Evictor
from penstock.api.windows.windows import Trigger, WindowAssigner
from penstock.engine.operators.functions.slot_contexts import SlotRuntimeContext
from penstock.engine.state.state_objects import HeapAggregatingState, HeapListState, HeapReducingState
from penstock.errors import UnsupportedOperation
from penstock.metrics import MetricGroup

if TYPE_CHECKING:
    from penstock.engine.windows.window_operator import WindowOperator


class AssignerContext(WindowAssigner.WindowAssignerContext):
    """The context of an assigner: processing time, and keyed state for assigners that count."""

    def __init__(self, operator: WindowOperator) -> None:
        self._operator = operator

    def get_current_processing_time(self) -> int:
        return self._operator.context.clock.now

    def get_runtime_context(self) -> RuntimeContext:
        return self._operator.runtime_context


class PaneContext(Trigger.OnMergeContext, Evictor.EvictorContext):
    """The pane of `key` and `window`: clocks, timers of the window, state of the pane."""

    def __init__(self, operator: WindowOperator) -> None:
        self._operator = operator
        self.key: Any = None
        self.window: Any = None
        self.merged: list[Any] = []

    def at(self, key: Any, window: Any) -> PaneContext:
        """Move to a pane. States that were requested at another pane follow."""
        self.key = key
        self.window = window
        self._operator.pane_state.scope.key = (key, window)
        return self

    def get_current_processing_time(self) -> int:
        return self._operator.context.clock.now

    def get_current_watermark(self) -> int:
        return self._operator.timers.watermark

    def get_metric_group(self) -> MetricGroup:
        return self._operator.context.metrics

    def register_event_time_timer(self, time: int) -> None:
        self._operator.timers.event_time.register(time, self.key, self.window)

    def register_processing_time_timer(self, time: int) -> None:
        self._operator.timers.processing_time.register(time, self.key, self.window)

    def delete_event_time_timer(self, time: int) -> None:
        self._operator.timers.event_time.delete(time, self.key, self.window)

    def delete_processing_time_timer(self, time: int) -> None:
        self._operator.timers.processing_time.delete(time, self.key, self.window)

    def get_partitioned_state(self, state_descriptor: StateDescriptor) -> Any:
        check_descriptor(state_descriptor, StateDescriptor, "TriggerContext.get_partitioned_state")
        return self._operator.pane_state.state(state_descriptor)

    def merge_partitioned_state(self, state_descriptor: StateDescriptor) -> None:
        """Fold the values of the merged panes into the value of the result, in the order of the windows."""
        panes = self._operator.pane_state
        table = panes.table(state_descriptor)
        state = panes.state(state_descriptor)
        for window in self.merged:
            address = (self.key, window)
            held = table.entries.get(address)
            if held is None or window == self.window:
                continue
            table.remove(address)
            _fold(state, table, panes.scope.key, held)


def _fold(state: Any, table: Any, address: Any, held: Any) -> None:
    if isinstance(state, HeapListState):
        state.add_all(held)
    elif isinstance(state, HeapReducingState):
        state.add(held)
    elif isinstance(state, HeapAggregatingState):
        into = table.entries.get(address)
        table.put(address, held if into is None else state.aggregate.merge(into, held))
    else:
        name = table.name
        raise UnsupportedOperation(
            f"trigger state '{name}' cannot be merged: use reducing, aggregating or list state without a time to live"
        )


class WindowFunctionContext:
    """The `context` of ProcessWindowFunction and ProcessAllWindowFunction."""

    def __init__(self, operator: WindowOperator, merging: bool) -> None:
        self._operator = operator
        self._window: Any = None
        self._global = SlotRuntimeContext(operator.context, operator.keyed)
        self._per_window = SlotRuntimeContext(operator.context, operator.pane_state)
        self._merging = merging

    def at(self, key: Any, window: Any) -> WindowFunctionContext:
        """Move to a pane."""
        self._window = window
        self._operator.pane_state.scope.key = (key, window)
        return self

    def window(self) -> Any:
        return self._window

    def current_processing_time(self) -> int:
        return self._operator.context.clock.now

    def current_watermark(self) -> int:
        return self._operator.timers.watermark

    def window_state(self) -> Any:
        if self._merging:
            raise UnsupportedOperation("windows that merge have no per-window state: use global_state()")
        return self._per_window

    def global_state(self) -> Any:
        return self._global

    def output(self, tag: OutputTag, value: Any) -> None:
        """Emit to a side output, as `yield tag, value` does."""
        self._operator.collected.side_of(tag, value, self._window.max_timestamp())
