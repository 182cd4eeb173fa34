"""Services of the runtime for a function: time and timers, keyed state, and facts about the running task."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING

from penstock.base.type_variables import NOTHING, K, R, T, V
from penstock.errors import ContextError

if TYPE_CHECKING:
    from penstock.api.state.descriptors import (
        AggregatingState,
        AggregatingStateDescriptor,
        FoldingState,
        FoldingStateDescriptor,
        ListState,
        ListStateDescriptor,
        MapState,
        MapStateDescriptor,
        ReducingState,
        ReducingStateDescriptor,
        ValueState,
        ValueStateDescriptor,
    )
    from penstock.metrics import MetricGroup


class TimerService(ABC):
    """The clocks of an operator and the timers of the current key. All times are epoch milliseconds."""

    @abstractmethod
    def current_processing_time(self) -> int:
        """Return the processing time."""

    @abstractmethod
    def current_watermark(self) -> int:
        """Return the current watermark of this operator.

        Before the first watermark it is the smallest 64-bit number.
        """

    @abstractmethod
    def register_processing_time_timer(self, timestamp: int) -> None:
        """Register a timer that calls `on_timer` once processing time reaches `timestamp`.

        Repeating this has no effect.
        """

    @abstractmethod
    def register_event_time_timer(self, timestamp: int) -> None:
        """Register a timer that calls `on_timer` once the watermark reaches `timestamp`.

        Repeating this has no effect.
        """

    @abstractmethod
    def delete_processing_time_timer(self, timestamp: int) -> None:
        """Forget the timer if it is registered and has not fired."""

    @abstractmethod
    def delete_event_time_timer(self, timestamp: int) -> None:
        """Forget the timer if it is registered and has not fired."""


class KeyedStateStore(ABC):
    """A store of state for the current key. All requests with the same descriptor name return the same state."""

    @abstractmethod
    def get_state(self, state_descriptor: ValueStateDescriptor[T, NOTHING]) -> ValueState[T, NOTHING]:
        """Return the state that holds one value for each key."""

    @abstractmethod
    def get_list_state(self, state_descriptor: ListStateDescriptor[T]) -> ListState[T]:
        """Return the state that holds a list for each key."""

    @abstractmethod
    def get_map_state(self, state_descriptor: MapStateDescriptor[K, V]) -> MapState[K, V]:
        """Return the state that holds a map for each key."""

    @abstractmethod
    def get_reducing_state(self, state_descriptor: ReducingStateDescriptor[T]) -> ReducingState[T]:
        """Return the state that reduces the values added for each key."""

    @abstractmethod
    def get_aggregating_state(self, state_descriptor: AggregatingStateDescriptor[T, R]) -> AggregatingState[T, R]:
        """Return the state that aggregates the values added for each key."""

    @abstractmethod
    def get_folding_state(self, state_descriptor: FoldingStateDescriptor[T, R]) -> FoldingState[T, R]:
        """Return the state that folds the values added for each key, as in Flink 1.x."""


class DistributedCache:
    """Files that the program registered, on the machine of this slot."""

    def __init__(self, files: Mapping[str, str]) -> None:
        self._files = files

    def get_file(self, name: str) -> str:
        """Return the path of a file or folder by the name that it was registered under."""
        try:
            return self._files[name]
        except KeyError:
            known = ", ".join(sorted(self._files)) or "none"
            raise ContextError(f"no file is cached under the name '{name}'; registered names: {known}") from None


class RuntimeContext(KeyedStateStore):
    """The argument of `Function.open`: the place of this subtask in the job, its metrics and its keyed state."""

    @abstractmethod
    def get_job_id(self) -> str:
        """Return the id of the job, stable across its recoveries."""

    @abstractmethod
    def get_task_name(self) -> str:
        """Return the name of the operator."""

    @abstractmethod
    def get_task_name_with_subtasks(self) -> str:
        """Return the name of the operator with subtask number (counted from one) and parallelism, as in `Map (2/4)`."""

    @abstractmethod
    def get_number_of_parallel_subtasks(self) -> int:
        """Return the parallelism of the operator."""

    @abstractmethod
    def get_max_number_of_parallel_subtasks(self) -> int:
        """Return the max parallelism of the operator, which is the number of its key groups."""

    @abstractmethod
    def get_index_of_this_subtask(self) -> int:
        """Return the number of this subtask, counted from zero."""

    @abstractmethod
    def get_attempt_number(self) -> int:
        """Return the number of restarts of the job before this attempt."""

    @abstractmethod
    def get_job_parameter(self, key: str, default_value: str) -> str:
        """Return the global job parameter `key`, or the default if the job has none with that name."""

    @abstractmethod
    def get_metrics_group(self) -> MetricGroup:
        """Return the group under which this subtask registers its metrics."""

    @abstractmethod
    def get_distributed_cache(self) -> DistributedCache:
        """Return the files that the program registered with `env.register_cached_file`."""

    def get_metric_group(self) -> MetricGroup:
        """Return the same group: Java's spelling of `get_metrics_group`."""
        return self.get_metrics_group()
