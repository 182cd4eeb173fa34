"""The window operator: it assigns elements to panes, asks the trigger, evaluates, and cleans up.

A pane is the bucket of elements that have the same key and the same window. Elements and timers, merging windows and
others all use the same step, `_act`: it evaluates the pane if the trigger says so, and then purges it if the trigger
says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from penstock.api.output_tag import OutputTag
from penstock.api.state.descriptors import ValueStateDescriptor
from penstock.api.windows.assigners import (
    CountSlidingWindowAssigner,
    CountTumblingWindowAssigner,
    SessionWindows,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
    event_timestamp,
)
from penstock.api.windows.evictors import Evictor
from penstock.api.windows.triggers import CountTrigger, EventTimeTrigger, PurgingTrigger
from penstock.api.windows.windows import (
    MergingWindowAssigner,
    TimeWindow,
    Trigger,
    TriggerResult,
    WindowAssigner,
)
from penstock.common.typeinfo import TypeInformation
from penstock.engine.operators.functions.rolling import Accumulate, Choose
from penstock.engine.operators.keyed_timer_operator import KeyedTimerOperator
from penstock.engine.operators.operator import OperatorContext
from penstock.engine.records.elements import MAX_TIMESTAMP, MIN_TIMESTAMP, Chunk, Timestamps, Values
from penstock.engine.records.failures import USER_ERRORS
from penstock.engine.state.backend import KeyedStateBackend
from penstock.engine.state.tables import Layout
from penstock.engine.windows.merging_windows import MergingWindowSet, SessionSet
from penstock.engine.windows.pane_contents import ABSENT, Contents, Reduced
from penstock.engine.windows.window_context import AssignerContext, PaneContext, WindowFunctionContext
from penstock.engine.windows.window_evaluation import Evaluation
from penstock.errors import RecordError, UnsupportedOperation

if TYPE_CHECKING:
    from penstock.engine.windows.column_counts import ColumnCounts
    from penstock.engine.windows.column_panes import ColumnPanes

_CACHED_WINDOWS = 10_000


@dataclass
class WindowSpec:
    """The definition of the windows of a stream."""

    assigner: WindowAssigner[Any, Any]
    trigger: Trigger[Any, Any]
    contents: Contents
    evaluation: Evaluation
    evictor: Evictor | None = None
    allowed_lateness: int = 0
    late_tag: OutputTag | None = None


def _counts(spec: WindowSpec) -> bool:
    """Return True if windows are a number of elements each, one after the other, evaluated when they are full."""
    assigner, trigger = spec.assigner, spec.trigger
    if type(assigner) is not CountTumblingWindowAssigner or type(trigger) is not PurgingTrigger:
        return False
    return type(trigger.nested) is CountTrigger and trigger.nested.max_count == assigner.size


class WindowOperator(KeyedTimerOperator):
    """The operator of all kinds of windows."""

    def __init__(
        self, spec: WindowSpec, key_selector: Callable[[Any], Any], output_type: TypeInformation | None = None
    ) -> None:
        super().__init__(spec.evaluation.function, output_type, key_selector)
        self.spec = spec

    # --- life ---
    def open(self, context: OperatorContext) -> None:
        super().open(context)
        spec = self.spec
        assert self.keyed is not None
        self.pane_state = self.create_backend("window", Layout.PANE)
        self._panes = self.keyed.table(ValueStateDescriptor("_window_contents"), Layout.PANE)
        self._sets = self.keyed.table(ValueStateDescriptor("_merging_windows"))
        self._event_time = spec.assigner.is_event_time()
        self._merging = isinstance(spec.assigner, MergingWindowAssigner)
        self._new_set = SessionSet if isinstance(spec.assigner, SessionWindows) else MergingWindowSet
        self._pane = PaneContext(self)
        self._assigning = AssignerContext(self)
        self._evaluating = WindowFunctionContext(self, self._merging)
        self._late_dropped = context.metrics.counter("numLateRecordsDropped")
        self._late_output = context.side_outputs.get(spec.late_tag.tag_id) if spec.late_tag is not None else None
        try:
            spec.contents.open(self.runtime_context)
        except USER_ERRORS as error:
            raise self.failure(error, []) from error
        self._element = self._in_merging_windows if self._merging else self._in_windows
        self._windows: dict[int, TimeWindow] = {}
        fixed = type(spec.assigner) in (TumblingEventTimeWindows, SlidingEventTimeWindows)
        plain = fixed and type(spec.trigger) is EventTimeTrigger and spec.evictor is None
        self._drive = self._drive_fixed if plain else self._drive_any
        reduced = spec.contents.functions if type(spec.contents) is Reduced and (plain or _counts(spec)) else ()
        self._folds_fields = any(isinstance(function, Accumulate | Choose) for function in reduced)
        self._in_columns: ColumnPanes | ColumnCounts | None = None

    def close(self) -> None:
        super().close()
        self.spec.contents.close()

    def backends(self) -> dict[str, KeyedStateBackend]:
        return {**super().backends(), "window": self.pane_state}

    # --- elements ---
    def chunk(self, chunk: Chunk) -> None:
        """Add a chunk. Columns go into panes as they are if the aggregation is built in; other rows go one by one."""
        if chunk.columns is None or not self._folds_fields:
            super().chunk(chunk)
            return
        assert self.key_selector is not None
        self._in_columns = self._in_columns or self._column_panes()
        rest = self._in_columns.add(chunk.columns, self.key_selector, self.timers.watermark)
        self.flush()
        if rest is not None:
            super().chunk(chunk if rest is chunk.columns else Chunk.of(rest))

    def _column_panes(self) -> ColumnPanes | ColumnCounts:
        (fold,), assigner = self.spec.contents.functions, self.spec.assigner
        if isinstance(assigner, CountSlidingWindowAssigner):
            return self._column_counts(fold, assigner)
        from penstock.engine.windows.column_panes import ColumnPanes

        assert isinstance(assigner, TumblingEventTimeWindows | SlidingEventTimeWindows)
        window_at = lambda start: self._windows.get(start) or self._window_at(start)  # noqa: E731
        return ColumnPanes(assigner, fold, self._panes, window_at, self._open_pane)

    def _column_counts(self, fold: Any, assigner: CountSlidingWindowAssigner) -> ColumnCounts:
        from penstock.engine.windows.column_counts import ColumnCounts, CountStates

        def element_count(key: Any) -> Any:
            assert self.keyed is not None
            self.keyed.scope.key = key
            return self.keyed.state(assigner.count)

        def waiting(key: Any, window: Any) -> Any:
            return self._pane.at(key, window).get_partitioned_state(self.spec.trigger.nested.count)  # type: ignore[attr-defined]

        def emit(result: Any, window: Any) -> None:
            self.collected.gather([result], window.max_timestamp())

        return ColumnCounts(assigner.size, fold, CountStates(self._panes, element_count, waiting), emit)

    def _open_pane(self, key: Any, window: TimeWindow) -> None:
        """Register the timers of a pane that has its first elements, before it is due."""
        self.timers.event_time.register(window.max_timestamp(), key, window)
        if self.spec.allowed_lateness:
            self._register_cleanup(key, window)

    def records(self, values: Values, timestamps: Timestamps) -> None:
        self.go_through(self._drive, values, timestamps)

    def _drive_any(self, feed: Iterator[Any], stamps: Any) -> None:
        assert self.keyed is not None and self.key_selector is not None
        scope, key_of, add = self.keyed.scope, self.key_selector, self._element
        for value, timestamp in zip(feed, stamps, strict=False):
            scope.key = key = key_of(value)
            if not add(key, value, timestamp) and self._is_late(timestamp):
                self._late(value, timestamp)

    def _drive_fixed(self, feed: Iterator[Any], stamps: Any) -> None:
        """Add elements in the hot loop, for event-time windows of a fixed size with the default trigger.

        It does the work of `_drive_any` without asking the trigger about a pane that is not due yet: a new pane sets
        its timers, and an existing pane has them.
        """
        assert self.keyed is not None and self.key_selector is not None
        assert isinstance(self.spec.assigner, TumblingEventTimeWindows | SlidingEventTimeWindows)
        size, slide, offset = self.spec.assigner.size, self.spec.assigner.slide, self.spec.assigner.offset
        entries, mark, fold = self._panes.entries, self._panes.changed.add, self.spec.contents.add
        scope, key_of, windows = self.keyed.scope, self.key_selector, self._windows
        watermark, lateness, register = (
            self.timers.watermark,
            self.spec.allowed_lateness,
            self.timers.event_time.register,
        )
        closed, beyond = watermark - lateness, MAX_TIMESTAMP - size
        for value, timestamp in zip(feed, stamps, strict=False):
            if timestamp is None or timestamp <= MIN_TIMESTAMP or timestamp > beyond:
                self._strange(value, timestamp)
                continue
            scope.key = key = key_of(value)
            start = timestamp - (timestamp - offset) % slide
            taken = False
            while start > timestamp - size and (last := start + size - 1) > closed:
                taken = True
                address = (key, windows.get(start) or self._window_at(start))
                held = entries.get(address, ABSENT)
                entries[address] = fold(held, value, timestamp)
                mark(address)
                if last <= watermark:
                    self._ask(key, address[1], address[1], value, timestamp)
                elif held is ABSENT:
                    register(last, *address)
                    if lateness:
                        self._register_cleanup(*address)
                start -= slide
            if not taken and timestamp <= closed:
                self._late(value, timestamp)

    def _strange(self, value: Any, timestamp: int | None) -> None:
        """Handle an element without a timestamp, or with one so late that its windows would end after the end of time.

        Such windows never fire.
        """
        self._late(value, event_timestamp(timestamp))

    def _window_at(self, start: int) -> TimeWindow:
        """Return the window that starts at this time. One object serves all panes."""
        if len(self._windows) >= _CACHED_WINDOWS:
            self._windows.clear()
        assert isinstance(self.spec.assigner, TumblingEventTimeWindows | SlidingEventTimeWindows)
        window = self._windows[start] = TimeWindow(start, start + self.spec.assigner.size)
        return window

    def _in_windows(self, key: Any, value: Any, timestamp: int | None) -> bool:
        """Add an element to its windows. Return True if a window took it."""
        taken = False
        for window in self.spec.assigner.assign_windows(value, timestamp, self._assigning):  # type: ignore[arg-type]
            if not self._is_window_late(window):
                taken = True
                self._add(key, window, window, value, timestamp)
        return taken

    def _in_merging_windows(self, key: Any, value: Any, timestamp: int | None) -> bool:
        taken = False
        windows, assigner = self._window_set(key), self.spec.assigner
        assert isinstance(assigner, MergingWindowAssigner)
        for assigned in assigner.assign_windows(value, timestamp, self._assigning):  # type: ignore[arg-type]
            window = windows.add(assigned, assigner, lambda *merge: self._merge(key, *merge))
            if self._is_window_late(window):
                windows.retire(window)
            else:
                taken = True
                self._add(key, window, windows.state_window(window), value, timestamp)
        self._keep(key, windows)
        return taken

    def _add(self, key: Any, window: Any, state_window: Any, value: Any, timestamp: int | None) -> None:
        address = (key, state_window)
        held = self._panes.entries.get(address, ABSENT)
        self._panes.put(address, self.spec.contents.add(held, value, timestamp))
        self._ask(key, window, state_window, value, timestamp)

    def _ask(self, key: Any, window: Any, state_window: Any, value: Any, timestamp: int | None) -> None:
        """Ask the trigger about an element that was added."""
        result = self.spec.trigger.on_element(value, timestamp, window, self._pane.at(key, window))  # type: ignore[arg-type]
        self._act(key, window, state_window, result)
        self._register_cleanup(key, window)

    def _act(self, key: Any, window: Any, state_window: Any, result: Any) -> None:
        """Apply the answer of a trigger to a pane."""
        if result is TriggerResult.CONTINUE:
            return
        if not isinstance(result, TriggerResult):
            raise RecordError(f"{type(self.spec.trigger).__name__} returned {result!r}, which is not a TriggerResult")
        address = (key, state_window)
        if result.is_fire():
            held = self._panes.entries.get(address, ABSENT)
            if held is not ABSENT:
                self._evaluate(key, window, address, held)
        if result.is_purge():
            self._panes.remove(address)

    def _evaluate(self, key: Any, window: Any, address: Any, held: Any) -> None:
        spec, evictor = self.spec, self.spec.evictor
        if evictor is not None:
            evictor.evict_before(held, len(held), window, self._pane.at(key, window))
        elements = spec.contents.elements(held)
        results = spec.evaluation.evaluate(key, window, self._evaluating.at(key, window), elements)
        if results is not None:
            self.collected.gather(results, window.max_timestamp())
        if evictor is not None:
            evictor.evict_after(held, len(held), window, self._pane.at(key, window))
            if held:
                self._panes.put(address, held)
            else:
                self._panes.remove(address)

    # --- merging ---
    def _window_set(self, key: Any) -> MergingWindowSet:
        held = self._sets.entries.get(key)
        return self._new_set() if held is None else held

    def _keep(self, key: Any, windows: MergingWindowSet) -> None:
        if windows.mapping:
            self._sets.put(key, windows)
        else:
            self._sets.remove(key)

    def _merge(self, key: Any, result: Any, merged: list[Any], state_window: Any, moved: list[Any]) -> None:
        """Merge windows into one: the trigger combines its state, old timers are deleted, contents move."""
        self._check_merge(result)
        pane = self._pane.at(key, result)
        pane.merged = merged
        self.spec.trigger.on_merge(result, pane)
        for window in merged:
            if window != result:
                self.spec.trigger.clear(window, self._pane.at(key, window))
                self._delete_cleanup(key, window)
        self._move_contents(key, state_window, moved)

    def _move_contents(self, key: Any, state_window: Any, moved: list[Any]) -> None:
        for window in moved:
            other = self._panes.entries.get((key, window), ABSENT)
            if other is ABSENT:
                continue
            self._panes.remove((key, window))
            into = self._panes.entries.get((key, state_window), ABSENT)
            merged = other if into is ABSENT else self.spec.contents.merge(into, other)
            self._panes.put((key, state_window), merged)

    def _check_merge(self, result: Any) -> None:
        now = self.timers.watermark if self._event_time else self.context.clock.now
        lateness = self.spec.allowed_lateness if self._event_time else 0
        if result.max_timestamp() + lateness <= now:
            raise UnsupportedOperation(
                f"merging made {result}, which ends before the current time {now}: an assigner must not shrink windows"
            )

    # --- time ---
    def on_event_time(self, time: int, key: Any, namespace: Any) -> None:
        self._on_timer(time, key, namespace, self.spec.trigger.on_event_time, self._event_time)

    def on_processing_time(self, time: int, key: Any, namespace: Any) -> None:
        self._on_timer(time, key, namespace, self.spec.trigger.on_processing_time, not self._event_time)

    def _on_timer(self, time: int, key: Any, window: Any, ask: Callable[..., Any], cleans_up: bool) -> None:
        assert self.keyed is not None
        self.keyed.scope.key = key
        windows = self._window_set(key) if self._merging else None
        state_window = window if windows is None else windows.state_window(window)
        if state_window is None:
            return
        self._act(key, window, state_window, ask(time, window, self._pane.at(key, window)))
        if cleans_up and time == self._cleanup_time(window):
            self._clear(key, window, state_window, windows)

    def _clear(self, key: Any, window: Any, state_window: Any, windows: MergingWindowSet | None) -> None:
        """Clear a window that is over: its contents, its trigger, the user's window state and its merging entry."""
        self._panes.remove((key, state_window))
        self.spec.trigger.clear(window, self._pane.at(key, window))
        self.spec.evaluation.clear(self._evaluating.at(key, window))
        if windows is not None:
            windows.retire(window)
            self._keep(key, windows)

    # --- lateness and cleanup ---
    def _cleanup_time(self, window: Any) -> int:
        if not self._event_time:
            return window.max_timestamp()  # type: ignore[no-any-return]
        return min(window.max_timestamp() + self.spec.allowed_lateness, MAX_TIMESTAMP)  # type: ignore[no-any-return]

    def _register_cleanup(self, key: Any, window: Any) -> None:
        time = self._cleanup_time(window)
        if time == MAX_TIMESTAMP:
            return
        queue = self.timers.event_time if self._event_time else self.timers.processing_time
        queue.register(time, key, window)

    def _delete_cleanup(self, key: Any, window: Any) -> None:
        queue = self.timers.event_time if self._event_time else self.timers.processing_time
        queue.delete(self._cleanup_time(window), key, window)

    def _is_window_late(self, window: Any) -> bool:
        if not self._event_time:
            return False
        return self._cleanup_time(window) <= self.timers.watermark or window.max_timestamp() > MAX_TIMESTAMP

    def _is_late(self, timestamp: int | None) -> bool:
        if not self._event_time or timestamp is None:
            return False
        closed = timestamp + self.spec.allowed_lateness <= self.timers.watermark
        return closed or timestamp == MAX_TIMESTAMP

    def _late(self, value: Any, timestamp: int | None) -> None:
        if self.spec.late_tag is None:
            self._late_dropped.inc()
        elif self._late_output is not None:
            self.collected.side(self.spec.late_tag, value, timestamp)
