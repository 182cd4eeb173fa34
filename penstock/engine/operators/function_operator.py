"""The common base of operators that run a user function: its life cycle, its state, its part in checkpoints."""

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
from penstock.engine.snapshots.gathering import SubtaskSnapshot
from penstock.engine.state.backend import BroadcastStateBackend, KeyedStateBackend
from penstock.engine.state.tables import Layout


class FunctionOperator(Operator):
    """An operator around one user function, given as an object with a method or as a callable."""

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
            raise self.failed(error, []) from error

    def create_backend(self, scope: str, layout: Layout) -> KeyedStateBackend:
        """A backend for keyed state, with what was restored for it."""
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
        """A function that has a method of this name is given the marker first, outside of any key."""
        handle = getattr(self.function, "process_latency_marker", None)
        if handle is not None:
            self.leave_key()
            try:
                handle(marker)
            except USER_ERRORS as error:
                raise self.failed(error, []) from error
        super().process_latency_marker(marker)

    def leave_key(self) -> None:
        """What the function does next, it does for no key: state and timers of the last one are out of its reach."""
        if getattr(self, "keyed", None) is not None:
            for backend in self.backends().values():
                backend.scope.leave()

    def finish_key(self, key: Any) -> None:
        """BATCH: a key is complete, and its state goes."""
        for backend in self.backends().values():
            backend.drop_keys()

    def end_epoch(self) -> None:
        self.leave_key()
        for backend in self.backends().values():
            backend.end_epoch(self.context.tracks_changes)

    def batch_keys(self) -> Sequence[Callable[[Any], Any] | None]:
        return () if self.key_selector is None else (self.key_selector,)

    def broadcast_backend(self) -> BroadcastStateBackend | None:
        """Where broadcast state lives, for operators that have it."""
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
        """The bound method of the function object, or the callable itself."""
        if isinstance(self.function, Function):
            return getattr(self.function, method or self.method)  # type: ignore[no-any-return]
        return self.function  # type: ignore[no-any-return]
