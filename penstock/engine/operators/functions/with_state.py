"""The operators of map_with_state, flat_map_with_state and filter_with_state.

Their function takes a value and the state of its key, and returns a result and the new state.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from penstock.api.state.descriptors import ValueStateDescriptor
from penstock.engine.operators.function_operator import FunctionOperator
from penstock.engine.operators.operator import OperatorContext
from penstock.engine.records.elements import Timestamps, Values
from penstock.engine.records.failures import USER_ERRORS


class WithState(FunctionOperator):
    """Base of the operators here. It goes through a chunk and stores the state that the function returned."""

    def open(self, context: OperatorContext) -> None:
        super().open(context)
        assert self.keyed is not None
        self._scope = self.keyed.scope
        self._state = self.keyed.state(ValueStateDescriptor("_with_state"))

    def records(self, values: Values, timestamps: Timestamps) -> None:
        feed = iter(values)
        try:
            results = list(self._results(feed))
        except USER_ERRORS as error:
            raise self.failure(error, values, feed) from error
        self.send(values, results, timestamps)

    def _results(self, feed: Iterator[Any]) -> Iterator[Any]:
        assert self.key_selector is not None
        call, key_of, scope, state = self.function, self.key_selector, self._scope, self._state
        for value in feed:
            scope.key = key_of(value)
            returned = call(value, state.value())
            if not isinstance(returned, tuple) or len(returned) != 2:
                raise TypeError(f"the function must return (result, new state), not {returned!r}")
            state.update(returned[1])
            yield returned[0]

    def send(self, values: Values, results: Values, timestamps: Timestamps) -> None:
        """Emit the output for the results of a chunk."""
        self.emit(results, timestamps)


class MapWithState(WithState):
    """Turns each value into exactly one result."""


class FilterWithState(WithState):
    """Keeps the values whose result is true."""

    def send(self, values: Values, results: Values, timestamps: Timestamps) -> None:
        kept = [position for position, keep in enumerate(results) if keep]
        if kept:
            stamps = None if timestamps is None else [timestamps[position] for position in kept]
            self.emit([values[position] for position in kept], stamps)


class FlatMapWithState(WithState):
    """Turns each value into any number of values."""

    def _results(self, feed: Iterator[Any]) -> Iterator[Any]:
        return map(list, super()._results(feed))

    def send(self, values: Values, results: Values, timestamps: Timestamps) -> None:
        flat = [item for result in results for item in result]
        if flat:
            stamps = (
                None
                if timestamps is None
                else [t for t, result in zip(timestamps, results, strict=True) for _ in result]
            )
            self.emit(flat, stamps)
