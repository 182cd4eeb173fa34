"""Sources and sinks written as plain functions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Generic, TypeAlias

from penstock.api.functions.element_functions import Function
from penstock.base.type_variables import IN, OUT

if TYPE_CHECKING:
    from penstock.common.watermark_strategy import Watermark


class SourceContext(ABC, Generic[IN]):
    """The output of a running source. It is valid until `run` returns."""

    @abstractmethod
    def collect(self, value: IN) -> None:
        """Emit an element without a timestamp; the watermark strategy may give it one."""

    @abstractmethod
    def collect_with_timestamp(self, value: IN, timestamp: int) -> None:
        """Emit an element with its event time in epoch milliseconds."""

    @abstractmethod
    def emit_watermark(self, mark: Watermark) -> None:
        """Promise that no element with a timestamp at or before that of `mark` will follow."""

    @abstractmethod
    def mark_as_temporarily_idle(self) -> None:
        """Tell the operators downstream not to wait for watermarks of this subtask until it emits again."""

    @abstractmethod
    def get_checkpoint_lock(self) -> AbstractContextManager[Any]:
        """Return the re-entrant lock that keeps checkpoints from being taken while it is held.

        A source that keeps its position in state emits and advances inside `with ctx.get_checkpoint_lock():`,
        so that both are in the same checkpoint or neither is.
        """

    @abstractmethod
    def close(self) -> None:
        """End the output of this subtask. It cannot emit anything afterwards."""


class SourceFunction(Function, Generic[OUT]):
    """A source that runs in one subtask and emits until it is done or cancelled."""

    SourceContext: TypeAlias = SourceContext

    @abstractmethod
    def run(self, ctx: SourceContext[OUT], /) -> None:
        """Emit through `ctx`.

        The stream ends when this method returns; an endless source loops until it is cancelled.
        """

    @abstractmethod
    def cancel(self) -> None:
        """Make `run` return soon. It is called from another thread, and may be called when `run` has ended."""


class ParallelSourceFunction(SourceFunction[OUT]):
    """A source that may run in many subtasks. Each is a copy; the runtime context tells which one it is."""


RichSourceFunction = SourceFunction
RichParallelSourceFunction = ParallelSourceFunction


class SinkFunction(Function, Generic[IN]):
    """Receives each element at the end of a stream."""

    class Context(ABC):
        """The times that belong to the element being written."""

        @abstractmethod
        def current_processing_time(self) -> int:
            """Return the processing time in epoch milliseconds."""

        @abstractmethod
        def current_watermark(self) -> int:
            """Return the event-time clock of this operator."""

        @abstractmethod
        def timestamp(self) -> int | Any:
            """Return the timestamp of the element; None if it has none."""

    @abstractmethod
    def invoke(self, value: IN, context: SinkFunction.Context | None = None, /) -> None:
        """Write one element."""


RichSinkFunction = SinkFunction
