"""The operators of map, filter, flat_map and split, which work on whole chunks and have no context."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import compress
from typing import Any

from penstock.engine.operators.function_operator import FunctionOperator
from penstock.engine.operators.operator import OperatorContext
from penstock.engine.records.elements import Chunk, Timestamps, Values
from penstock.engine.records.failures import USER_ERRORS


class PerRecordOperator(FunctionOperator):
    """Base of map, filter and flat_map. On a keyed stream the function may hold keyed state."""

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
    """Turns each value into exactly one other."""

    method = "map"

    def records(self, values: Values, timestamps: Timestamps) -> None:
        call, feed = self.function_call, iter(values)
        try:
            mapped = [call(value) for value in feed]
        except USER_ERRORS as error:
            raise self.failure(error, values, feed) from error
        self.emit(mapped, timestamps)


class FilterOperator(PerRecordOperator):
    """Keeps the values for which the function returns true."""

    method = "filter"

    def records(self, values: Values, timestamps: Timestamps) -> None:
        call, feed = self.function_call, iter(values)
        try:
            kept = [call(value) for value in feed]
        except USER_ERRORS as error:
            raise self.failure(error, values, feed) from error
        try:
            passed = list(compress(values, kept))
        except USER_ERRORS as error:
            raise self.failure(error, []) from error
        if passed:
            self.emit(passed, None if timestamps is None else list(compress(timestamps, kept)))


class FlatMapOperator(PerRecordOperator):
    """Turns each value into any number of values. The function returns an iterable, yields values, or returns None."""

    method = "flat_map"

    def records(self, values: Values, timestamps: Timestamps) -> None:
        feed = iter(values)
        try:
            if timestamps is None:
                flat, stamps = self._flat(feed), None
            else:
                flat, stamps = self._flat_timed(feed, timestamps)
        except USER_ERRORS as error:
            raise self.failure(error, values, feed) from error
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
    """Sends each record to the selections that read one of the outputs named by an OutputSelector."""

    method = "select"

    def __init__(self, function: Any) -> None:
        super().__init__(function)
        self.selections: dict[str, frozenset[str]] = {}
        """Names of outputs, by the tag of the side output that reads them."""

    def add_selection(self, names: Iterable[str]) -> str:
        """Return the tag of the side output for records of any of these outputs."""
        selection = frozenset(names)
        tag = ", ".join(sorted(selection))
        while self.selections.setdefault(tag, selection) != selection:
            tag += "'"
        return tag

    def records(self, values: Values, timestamps: Timestamps) -> None:
        select, feed = self.call(), iter(values)
        outputs: list[frozenset[str]] = []
        try:
            outputs.extend(_output_names(select(value)) for value in feed)
        except USER_ERRORS as error:
            raise self.failure(error, values, feed) from error
        for tag, receiver in self.context.side_outputs.items():
            names = self.selections.get(tag, frozenset())
            chosen = [position for position, found in enumerate(outputs) if not names.isdisjoint(found)]
            if chosen:
                stamps = None if timestamps is None else [timestamps[position] for position in chosen]
                receiver.chunk(Chunk([values[position] for position in chosen], stamps))
        self.emit(values, timestamps)


def _output_names(answer: str | Iterable[str]) -> frozenset[str]:
    """Return the names that an OutputSelector gave; a text is one name."""
    if isinstance(answer, str):
        return frozenset((answer,))
    names = frozenset(answer) if isinstance(answer, Iterable) else frozenset((answer,))
    if not all(isinstance(name, str) for name in names):
        raise TypeError(f"an OutputSelector must return a name or a list of names, not {answer!r}")
    return names
