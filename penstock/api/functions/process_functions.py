"""Process functions: element by element, with timestamps, timers, side outputs, keyed and broadcast state."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic

from penstock.api.functions.element_functions import Function, TaggedOutputs
from penstock.base.type_variables import IN, IN1, IN2, KEY, OUT, K, K_co, T, V

if TYPE_CHECKING:
    from penstock.api.functions.contexts import TimerService
    from penstock.api.output_tag import OutputTag
    from penstock.api.state.descriptors import (
        BroadcastState,
        MapStateDescriptor,
        ReadOnlyBroadcastState,
        StateDescriptor,
    )
    from penstock.api.time_domain import TimeDomain


class SideOutputContext(ABC):
    """A context from which a function can reach the side outputs of its operator."""

    @abstractmethod
    def output(self, tag: OutputTag[T], value: T) -> None:
        """Emit `value` to the side output `tag`, like yielding the pair `tag, value`."""


class ElementContext(SideOutputContext):
    """Facts and services for a process function while it handles one element or timer. Valid only during that call."""

    @abstractmethod
    def timestamp(self) -> int | Any:
        """Return the timestamp of the element or of the firing timer, or None if elements have no timestamps."""

    @abstractmethod
    def timer_service(self) -> TimerService:
        """Return the clocks and, on a keyed stream, the timers."""


class KeyedElementContext(ElementContext, Generic[K_co]):
    """An element context on a keyed stream."""

    @abstractmethod
    def get_current_key(self) -> K_co:
        """Return the key of the element or timer."""


class FiringTimer(ABC):
    """Additional facts for `on_timer` about the firing timer."""

    @abstractmethod
    def time_domain(self) -> TimeDomain:
        """Return the clock that the timer followed."""


class ProcessFunction(Function, Generic[IN, OUT]):
    """Handles each element of a stream and emits any number of elements."""

    class Context(ElementContext):
        """The context of `process_element`."""

    class OnTimerContext(Context, FiringTimer):
        """The context of `on_timer`."""

    @abstractmethod
    def process_element(self, value: IN, ctx: ProcessFunction.Context, /) -> TaggedOutputs[OUT]:
        """Yield the results for one element; a yielded pair of an OutputTag and a value goes to that side output."""

    def on_timer(self, timestamp: int, ctx: ProcessFunction.OnTimerContext, /) -> TaggedOutputs[OUT]:
        """Yield the results for a timer that fires. Timers need a keyed stream."""


class KeyedProcessFunction(Function, Generic[KEY, IN, OUT]):
    """Handles each element of a keyed stream, with timers and keyed state."""

    class Context(KeyedElementContext[K_co]):
        """The context of `process_element`."""

    class OnTimerContext(Context[K_co], FiringTimer):
        """The context of `on_timer`."""

    @abstractmethod
    def process_element(self, value: IN, ctx: KeyedProcessFunction.Context[KEY], /) -> TaggedOutputs[OUT]:
        """Yield the results for one element; a yielded pair of an OutputTag and a value goes to that side output."""

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext[KEY], /) -> TaggedOutputs[OUT]:
        """Yield the results for a timer that fires; the current key is the one that registered it."""


class CoProcessFunction(Function, Generic[IN1, IN2, OUT]):
    """Handles the elements of two connected streams that share one instance, and so their state."""

    class Context(ElementContext):
        """The context of `process_element1` and `process_element2`."""

    class OnTimerContext(Context, FiringTimer):
        """The context of `on_timer`."""

    @abstractmethod
    def process_element1(self, value: IN1, ctx: CoProcessFunction.Context, /) -> TaggedOutputs[OUT]:
        """Yield the results for an element of the first stream."""

    @abstractmethod
    def process_element2(self, value: IN2, ctx: CoProcessFunction.Context, /) -> TaggedOutputs[OUT]:
        """Yield the results for an element of the second stream."""

    def on_timer(self, timestamp: int, ctx: CoProcessFunction.OnTimerContext, /) -> TaggedOutputs[OUT]:
        """Yield the results for a timer that fires. Timers need keyed streams."""


class KeyedCoProcessFunction(Function, Generic[KEY, IN1, IN2, OUT]):
    """Handles the elements of two connected streams with equal keys, with timers and keyed state."""

    class Context(KeyedElementContext[K_co]):
        """The context of `process_element1` and `process_element2`."""

    class OnTimerContext(Context[K_co], FiringTimer):
        """The context of `on_timer`."""

    @abstractmethod
    def process_element1(self, value: IN1, ctx: KeyedCoProcessFunction.Context[KEY], /) -> TaggedOutputs[OUT]:
        """Yield the results for an element of the first stream."""

    @abstractmethod
    def process_element2(self, value: IN2, ctx: KeyedCoProcessFunction.Context[KEY], /) -> TaggedOutputs[OUT]:
        """Yield the results for an element of the second stream."""

    def on_timer(self, timestamp: int, ctx: KeyedCoProcessFunction.OnTimerContext[KEY], /) -> TaggedOutputs[OUT]:
        """Yield the results for a timer that fires; the current key is the one that registered it."""


class ProcessJoinFunction(Function, Generic[IN1, IN2, OUT]):
    """Handles each pair of elements that an interval join finds."""

    class Context(SideOutputContext):
        """The context of `process_element`."""

        @abstractmethod
        def timestamp(self) -> int:
            """Return the timestamp of the pair and of its results: the later of the two timestamps."""

        @abstractmethod
        def left_timestamp(self) -> int:
            """Return the timestamp of the left element."""

        @abstractmethod
        def right_timestamp(self) -> int:
            """Return the timestamp of the right element."""

    @abstractmethod
    def process_element(self, left: IN1, right: IN2, ctx: ProcessJoinFunction.Context, /) -> TaggedOutputs[OUT]:
        """Yield the results for one pair."""


class BaseBroadcastProcessFunction(Function):
    """Base class of both broadcast functions, whose contexts give access to broadcast state.

    Only the broadcast side may write, since every subtask sees the same elements there and must arrive at the same
    state.
    """

    class BaseContext(SideOutputContext):
        """Facts and services on either side."""

        @abstractmethod
        def timestamp(self) -> int | Any:
            """Return the timestamp of the element, or None if elements have no timestamps."""

        @abstractmethod
        def current_processing_time(self) -> int:
            """Return the processing time in epoch milliseconds."""

        @abstractmethod
        def current_watermark(self) -> int:
            """Return the event-time clock of this operator."""

    class Context(BaseContext):
        """The context of the broadcast side."""

        @abstractmethod
        def get_broadcast_state(self, state_descriptor: MapStateDescriptor[K, V]) -> BroadcastState[K, V]:
            """Return the broadcast state for reading and writing."""

    class ReadOnlyContext(BaseContext):
        """The context of the side that is not broadcast."""

        @abstractmethod
        def get_broadcast_state(self, state_descriptor: MapStateDescriptor[K, V]) -> ReadOnlyBroadcastState[K, V]:
            """Return the broadcast state, to read."""


class BroadcastProcessFunction(BaseBroadcastProcessFunction, Generic[IN1, IN2, OUT]):
    """Connects a stream without keys to a broadcast stream."""

    class Context(BaseBroadcastProcessFunction.Context):
        """The context of `process_broadcast_element`."""

    class ReadOnlyContext(BaseBroadcastProcessFunction.ReadOnlyContext):
        """The context of `process_element`."""

    @abstractmethod
    def process_element(self, value: IN1, ctx: BroadcastProcessFunction.ReadOnlyContext, /) -> TaggedOutputs[OUT]:
        """Yield the results for an element of the stream that is not broadcast."""

    @abstractmethod
    def process_broadcast_element(self, value: IN2, ctx: BroadcastProcessFunction.Context, /) -> TaggedOutputs[OUT]:
        """Yield the results for a broadcast element. Every subtask is called with it."""


class KeyedBroadcastProcessFunction(BaseBroadcastProcessFunction, Generic[KEY, IN1, IN2, OUT]):
    """Connects a keyed stream to a broadcast stream, with timers and keyed state on the keyed side."""

    class Context(BaseBroadcastProcessFunction.Context):
        """The context of `process_broadcast_element`. There is no current key, but all of them can be visited."""

        @abstractmethod
        def apply_to_keyed_state(
            self, state_descriptor: StateDescriptor, function: Callable[[Any, Any], object]
        ) -> None:
            """Call `function(key, state)` for every key of this subtask that has this state.

            The function may change it.
            """

    class ReadOnlyContext(BaseBroadcastProcessFunction.ReadOnlyContext, Generic[K_co]):
        """The context of `process_element`."""

        @abstractmethod
        def timer_service(self) -> TimerService:
            """Return the clocks and the timers of the current key."""

        @abstractmethod
        def get_current_key(self) -> K_co:
            """Return the key of the element or timer."""

    class OnTimerContext(ReadOnlyContext[K_co], FiringTimer):
        """The context of `on_timer`."""

    @abstractmethod
    def process_element(
        self, value: IN1, ctx: KeyedBroadcastProcessFunction.ReadOnlyContext[KEY], /
    ) -> TaggedOutputs[OUT]:
        """Yield the results for an element of the keyed stream."""

    @abstractmethod
    def process_broadcast_element(
        self, value: IN2, ctx: KeyedBroadcastProcessFunction.Context, /
    ) -> TaggedOutputs[OUT]:
        """Yield the results for a broadcast element. Every subtask is called with it."""

    def on_timer(self, timestamp: int, ctx: KeyedBroadcastProcessFunction.OnTimerContext[KEY], /) -> TaggedOutputs[OUT]:
        """Yield the results for a timer that fires; the current key is the one that registered it."""
