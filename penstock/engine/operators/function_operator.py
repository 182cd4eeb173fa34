"""The common base of operators that run a user function: its life cycle, its state and its part in checkpoints."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from penstock.api.functions.element_functions import Function
from penstock.api.latency_marker import LatencyMarker
from penstock.common.typeinfo import TypeInformation
from penstock.engine.operators.functions.slot_contexts import SlotRuntimeContext, open_function
from penstock.engine.operators.operator import Operator, OperatorContext
from penstock.engine.operators.participation import Participation
from penstock.engine.records.failures import USER_ERRORS
from penstock.engine.snapshots.snapshot_parts import SubtaskSnapshot
from penstock.engine.state.backend import BroadcastStateBackend, KeyedStateBackend
from penstock.engine.state.tables import Layout


class FunctionOperator(Operator):
    """Base of operators around one user function, which is an object with a method or a callable."""

    method = ""

    def __init__(
        self,
        function: Any,
        output_type: TypeInformation | None = None,
        key_selector: Callable[[Any], Any] | None = None,
    ) -> None:
        super().__init__(output_type)
        self.function = function
        self.key_selector = key_selector

    def open(self, context: OperatorContext) -> None:
        super().open(context)
        self.keyed = self.create_backend("", Layout.KEY) if self.key_selector is not None else None
        self.runtime_context = SlotRuntimeContext(context, self.keyed)
        self.participation = Participation(self.function, context, self.keyed, self.broadcast_backend())
        try:
            self.participation.initialize()
            open_function(self.function, self.runtime_context)
        except USER_ERRORS as error:
            raise self.failure(error, []) from error

    def create_backend(self, scope: str, layout: Layout) -> KeyedStateBackend:
        """Create a backend for keyed state, and fill it with restored state."""
        context, clock = self.context, self.context.clock
        publish = partial(context.queryables.publish, context.name, context.uid, context.max_parallelism)
        backend = KeyedStateBackend(lambda: clock.now, context.tables, f"{context.uid}/{scope}", layout, publish)
        if context.restored is not None:
            context.restored.fill(backend, scope)
        return backend

    def close(self) -> None:
        self.leave_key()
        if isinstance(self.function, Function):
            self.function.close()

    def process_latency_marker(self, marker: LatencyMarker) -> None:
        """Give the marker to the function, outside of any key, if it has a method with this name. Then pass it on."""
        handle = getattr(self.function, "process_latency_marker", None)
        if handle is not None:
            self.leave_key()
            try:
                handle(marker)
            except USER_ERRORS as error:
                raise self.failure(error, []) from error
        super().process_latency_marker(marker)

    def leave_key(self) -> None:
        """Leave the current key. The function can no longer reach its state and timers."""
        if getattr(self, "keyed", None) is not None:
            for backend in self.backends().values():
                backend.scope.leave()

    def finish_key(self, key: Any) -> None:
        """Drop the state of a key that is complete in BATCH mode."""
        for backend in self.backends().values():
            backend.drop_keys()

    def end_epoch(self) -> None:
        self.leave_key()
        for backend in self.backends().values():
            backend.end_epoch(self.context.tracks_changes)

    def batch_keys(self) -> Sequence[Callable[[Any], Any] | None]:
        return () if self.key_selector is None else (self.key_selector,)

    def broadcast_backend(self) -> BroadcastStateBackend | None:
        """Return the backend of broadcast state, or None for operators without it."""
        return None

    def backends(self) -> dict[str, KeyedStateBackend]:
        return {"": self.keyed} if self.keyed is not None else {}

    def snapshot(self, into: SubtaskSnapshot) -> None:
        self.participation.snapshot(into)
        for scope, backend in self.backends().items():
            into.keyed(backend, scope)

    def checkpoint_complete(self, checkpoint: int) -> None:
        self.participation.complete(checkpoint)

    def checkpoint_aborted(self, checkpoint: int) -> None:
        self.participation.abort(checkpoint)

    def call(self, method: str = "") -> Callable[..., Any]:
        """Return the bound method of the function object, or the callable itself."""
        if isinstance(self.function, Function):
            return getattr(self.function, method or self.method)  # type: ignore[no-any-return]
        return self.function  # type: ignore[no-any-return]
