"""The contexts of user functions: RuntimeContext in open(), and those of the process functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from penstock.api.functions.contexts import DistributedCache, RuntimeContext, TimerService
from penstock.api.functions.element_functions import Function
from penstock.api.output_tag import OutputTag
from penstock.api.state.descriptors import (
    AggregatingStateDescriptor,
    FoldingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateDescriptor,
    ValueStateDescriptor,
    check_descriptor,
)
from penstock.api.time_domain import TimeDomain
from penstock.base.arguments import invalid_argument
from penstock.engine.operators.operator import OperatorContext
from penstock.engine.records.elements import Chunk, Timestamps, Values
from penstock.engine.state.backend import BroadcastStateBackend, KeyedStateBackend
from penstock.errors import ContextError, KeyedStateRequired
from penstock.metrics import MetricGroup


class SlotRuntimeContext(RuntimeContext):
    """The RuntimeContext of one subtask of one operator."""

    def __init__(
        self,
        context: OperatorContext,
        keyed: KeyedStateBackend | None,
        without_keys: str = "on a stream without keys: call key_by(...) before this operator",
    ) -> None:
        """Create the context. `without_keys` is the reason, in error messages, for the absence of keyed state."""
        self._context = context
        self._keyed = keyed
        self._without_keys = without_keys

    def get_task_name(self) -> str:
        return self._context.name

    def get_task_name_with_subtasks(self) -> str:
        context = self._context
        return f"{context.name} ({context.subtask + 1}/{context.parallelism})"

    def get_number_of_parallel_subtasks(self) -> int:
        return self._context.parallelism

    def get_max_number_of_parallel_subtasks(self) -> int:
        return self._context.max_parallelism

    def get_index_of_this_subtask(self) -> int:
        return self._context.subtask

    def get_attempt_number(self) -> int:
        return self._context.attempt

    def get_job_id(self) -> str:
        return self._context.job_id

    def get_job_name(self) -> str:
        return self._context.job_name

    def get_job_parameter(self, key: str, default_value: Any) -> Any:
        if not isinstance(key, str):
            raise invalid_argument("RuntimeContext.get_job_parameter", "key", key, "a string")
        return self._context.job_parameters.get(key, default_value)

    def get_metrics_group(self) -> MetricGroup:
        return self._context.metrics

    def get_distributed_cache(self) -> DistributedCache:
        return DistributedCache(self._context.cached_files)

    def get_state(self, state_descriptor: StateDescriptor) -> Any:
        return self._state(state_descriptor, ValueStateDescriptor, "get_state")

    def get_list_state(self, state_descriptor: StateDescriptor) -> Any:
        return self._state(state_descriptor, ListStateDescriptor, "get_list_state")

    def get_map_state(self, state_descriptor: StateDescriptor) -> Any:
        return self._state(state_descriptor, MapStateDescriptor, "get_map_state")

    def get_reducing_state(self, state_descriptor: StateDescriptor) -> Any:
        return self._state(state_descriptor, ReducingStateDescriptor, "get_reducing_state")

    def get_aggregating_state(self, state_descriptor: StateDescriptor) -> Any:
        return self._state(state_descriptor, AggregatingStateDescriptor, "get_aggregating_state")

    def get_folding_state(self, state_descriptor: StateDescriptor) -> Any:
        return self._state(state_descriptor, FoldingStateDescriptor, "get_folding_state")

    def _state(self, descriptor: StateDescriptor, kind: type[StateDescriptor], method: str) -> Any:
        check_descriptor(descriptor, kind, f"RuntimeContext.{method}")
        if self._keyed is None:
            raise KeyedStateRequired(f"keyed state '{descriptor.get_name()}' was asked for {self._without_keys}")
        return self._keyed.state(descriptor)


def open_function(function: Any, context: RuntimeContext) -> None:
    """Give a function object its context and open it. A plain callable needs neither."""
    if isinstance(function, Function):
        function.set_runtime_context(context)
        function.open(context)


class Collected:
    """Gathers the output of one chunk, so that it goes downstream in one piece."""

    def __init__(self, context: OperatorContext, emit: Callable[[Values, Timestamps], None]) -> None:
        self._context = context
        self._emit = emit
        self.values: Values = []
        self.timestamps: list[int | None] = []
        self._side: dict[OutputTag, tuple[Values, list[int | None]]] = {}

    def side(self, tag: OutputTag, value: Any, timestamp: int | None) -> None:
        """Gather a record for a side output. If no operator reads that output, drop the record."""
        if tag.tag_id in self._context.side_outputs:
            values, timestamps = self._side.setdefault(tag, ([], []))
            values.append(value)
            timestamps.append(timestamp)

    def side_of(self, tag: Any, value: Any, timestamp: int | None) -> None:
        """Gather a record for what a function names as a side output. Anything but an OutputTag is refused."""
        if not isinstance(tag, OutputTag):
            raise invalid_argument("Context.output", "tag", tag, "an OutputTag")
        self.side(tag, value, timestamp)

    def gather(self, results: Any, timestamp: int | None) -> None:
        """Gather the results of a function: an iterable of values, or of (OutputTag, value) pairs."""
        for item in results:
            if type(item) is tuple and item and type(item[0]) is OutputTag:
                self.side(item[0], item[1], timestamp)
            else:
                self.values.append(item)
                self.timestamps.append(timestamp)

    def flush(self) -> None:
        """Send everything downstream. The receivers then own the gathered lists."""
        if self.values:
            values, self.values = self.values, []
            timestamps, self.timestamps = self.timestamps, []
            self._emit(values, stamps_or_none(timestamps))
        if self._side:
            sides, self._side = self._side, {}
            for tag, (values, timestamps) in sides.items():
                fitted = tag.type_info.fit(values) if tag.type_info is not None else values
                self._context.side_outputs[tag.tag_id].chunk(Chunk(fitted, stamps_or_none(timestamps)))

    def forget(self) -> None:
        """Drop the gathered output, after a failure."""
        self.values, self.timestamps, self._side = [], [], {}


def stamps_or_none(timestamps: list[int | None]) -> Timestamps:
    """Return the timestamps, or None if no record has one."""
    if timestamps[0] is None and timestamps.count(None) == len(timestamps):
        return None
    return timestamps


class FunctionContext:
    """The `ctx` of every process function.

    Some parts work only on some kinds of streams. The others raise an error that names the missing part.
    """

    __slots__ = ("_broadcast", "_collected", "_domain", "_keyed", "_read_only", "_timers", "record_timestamp")

    def __init__(
        self,
        collected: Collected,
        timers: TimerService,
        keyed: KeyedStateBackend | None = None,
        broadcast: BroadcastStateBackend | None = None,
        read_only: bool = True,
    ) -> None:
        self._collected = collected
        self._timers = timers
        self._keyed = keyed
        self._broadcast = broadcast
        self._read_only = read_only
        self._domain: TimeDomain | None = None
        self.record_timestamp: int | None = None

    def timestamp(self) -> int | None:
        """Return the timestamp of the record, or the time of the firing timer."""
        return self.record_timestamp

    def timer_service(self) -> TimerService:
        return self._timers

    def current_processing_time(self) -> int:
        return self._timers.current_processing_time()

    def current_watermark(self) -> int:
        return self._timers.current_watermark()

    def output(self, tag: OutputTag, value: Any) -> None:
        """Emit to a side output, as `yield tag, value` does."""
        self._collected.side_of(tag, value, self.record_timestamp)

    def get_current_key(self) -> Any:
        if self._keyed is None:
            raise ContextError("there is no current key: this stream has no keys, or this is its broadcast side")
        return self._keyed.scope.key

    def time_domain(self) -> TimeDomain:
        if self._domain is None:
            raise ContextError("time_domain() is available only in on_timer")
        return self._domain

    def get_broadcast_state(self, state_descriptor: MapStateDescriptor) -> Any:
        if self._broadcast is None:
            raise ContextError("broadcast state exists only where a stream was connected with a broadcast(...) stream")
        check_descriptor(state_descriptor, MapStateDescriptor, "Context.get_broadcast_state")
        if self._read_only:
            return self._broadcast.read_only(state_descriptor)
        return self._broadcast.writable(state_descriptor)

    def at_timer(self, timestamp: int | None, domain: TimeDomain | None) -> None:
        """Turn into the context of a firing timer."""
        self.record_timestamp = timestamp
        self._domain = domain


class KeyedBroadcastContext(FunctionContext):
    """The context of the broadcast side of a keyed stream: no current key, but access to the state of all keys."""

    __slots__ = ("_all_keys",)

    def __init__(
        self,
        collected: Collected,
        timers: TimerService,
        broadcast: BroadcastStateBackend,
        all_keys: KeyedStateBackend,
    ) -> None:
        super().__init__(collected, timers, None, broadcast, read_only=False)
        self._all_keys = all_keys

    def apply_to_keyed_state(self, state_descriptor: StateDescriptor, function: Any) -> None:
        """Call function(key, state) for every key that has an entry in this state."""
        apply = function.process if hasattr(function, "process") else function
        scope = self._all_keys.scope
        state = self._all_keys.state(state_descriptor)
        try:
            for key in list(self._all_keys.table(state_descriptor).entries):
                scope.key = key
                apply(key, state)
        finally:
            scope.leave()
