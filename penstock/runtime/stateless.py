"""map, filter, flat_map and their kin: whole chunks at a time, no context."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import compress
from typing import Any

from penstock.common.typeinfo import TypeInformation
from penstock.datastream.functions import Function
from penstock.runtime.context import SlotRuntimeContext, open_function
from penstock.runtime.elements import Chunk, Timestamps, Values
from penstock.runtime.failures import USER_ERRORS
from penstock.runtime.operator import Operator, OperatorContext
from penstock.runtime.participation import Participation
from penstock.runtime.snapshots import SubtaskSnapshot
from penstock.state.backend import BroadcastStateBackend, KeyedStateBackend
from penstock.state.tables import Layout


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
        self.keyed = self.keyed_backend("", Layout.KEY) if self.key_selector is not None else None
        self.runtime_context = SlotRuntimeContext(context, self.keyed)
        self.participation = Participation(self.function, context, self.keyed, self.broadcast_backend())
        try:
            self.participation.initialize()
            open_function(self.function, self.runtime_context)
        except USER_ERRORS as error:
            raise self.failed(error, []) from error

    def keyed_backend(self, scope: str, layout: Layout) -> KeyedStateBackend:
        """A backend for keyed state, with what was restored for it."""
        context, clock = self.context, self.context.clock
        backend = KeyedStateBackend(lambda: clock.now, context.tables, f"{context.uid}/{scope}", layout)
        if context.restored is not None:
            context.restored.fill(backend, scope)
        return backend

    def close(self) -> None:
        self.leave_key()
        if isinstance(self.function, Function):
            self.function.close()

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
        self.participation.aborted(checkpoint)

    def call(self, method: str = "") -> Callable[..., Any]:
        """The bound method of the function object, or the callable itself."""
        if isinstance(self.function, Function):
            return getattr(self.function, method or self.method)  # type: ignore[no-any-return]
        return self.function  # type: ignore[no-any-return]


class PerRecordOperator(FunctionOperator):
    """Base of map, filter and flat_map: on a keyed stream the function may hold keyed state."""

    def open(self, context: OperatorContext) -> None:
        super().open(context)
        plain = self.call()
        self.function_call = self._with_key(plain) if self.key_selector is not None else plain

    def _with_key(self, plain: Callable[[Any], Any]) -> Callable[[Any], Any]:
        assert self.keyed is not None and self.key_selector is not None
        scope, key_of = self.keyed.scope, self.key_selector

        def call(value: Any) -> Any:
            scope.key = key_of(value)
            return plain(value)

        return call


class MapOperator(PerRecordOperator):
    """One value for each."""

    method = "map"

    def records(self, values: Values, timestamps: Timestamps) -> None:
        call, feed = self.function_call, iter(values)
        try:
            mapped = [call(value) for value in feed]
        except USER_ERRORS as error:
            raise self.failed(error, values, feed) from error
        self.emit(mapped, timestamps)


class FilterOperator(PerRecordOperator):
    """The values for which the function says true."""

    method = "filter"

    def records(self, values: Values, timestamps: Timestamps) -> None:
        call, feed = self.function_call, iter(values)
        try:
            kept = [call(value) for value in feed]
        except USER_ERRORS as error:
            raise self.failed(error, values, feed) from error
        try:
            passed = list(compress(values, kept))
        except USER_ERRORS as error:
            raise self.failed(error, []) from error
        if passed:
            self.emit(passed, None if timestamps is None else list(compress(timestamps, kept)))


class FlatMapOperator(PerRecordOperator):
    """Any number of values for each: the function returns an iterable, yields, or returns None."""

    method = "flat_map"

    def records(self, values: Values, timestamps: Timestamps) -> None:
        feed = iter(values)
        try:
            if timestamps is None:
                flat, stamps = self._flat(feed), None
            else:
                flat, stamps = self._flat_timed(feed, timestamps)
        except USER_ERRORS as error:
            raise self.failed(error, values, feed) from error
        if flat:
            self.emit(flat, stamps)

    def _flat(self, feed: Iterator[Any]) -> Values:
        call, flat = self.function_call, list[Any]()
        for value in feed:
            results = call(value)
            if results is not None:
                flat.extend(results)
        return flat

    def _flat_timed(self, feed: Iterator[Any], timestamps: list[int | None]) -> tuple[Values, list[int | None]]:
        call, flat, stamps = self.function_call, list[Any](), list[int | None]()
        for value, timestamp in zip(feed, timestamps, strict=True):
            results = call(value)
            if results is not None:
                before = len(flat)
                flat.extend(results)
                stamps.extend([timestamp] * (len(flat) - before))
        return flat, stamps


class SplitOperator(FunctionOperator):
    """Sends each record to the outputs that an OutputSelector names."""

    method = "select"

    def records(self, values: Values, timestamps: Timestamps) -> None:
        select, feed = self.call(), iter(values)
        sides: dict[str, tuple[Values, list[int | None]]] = {}
        try:
            for position, value in enumerate(feed):
                for name in select(value):
                    chosen = sides.setdefault(name, ([], []))
                    chosen[0].append(value)
                    chosen[1].append(None if timestamps is None else timestamps[position])
        except USER_ERRORS as error:
            raise self.failed(error, values, feed) from error
        for name, (chosen_values, stamps) in sides.items():
            if name in self.context.side_outputs:
                self.context.side_outputs[name].chunk(Chunk(chosen_values, None if timestamps is None else stamps))
        self.emit(values, timestamps)
