"""BATCH mode: a keyed operator gets its whole input at the end, key by key, each key's records in order of time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any

from penstock.runtime.context import stamps_or_none
from penstock.runtime.elements import MAX_TIMESTAMP, MIN_TIMESTAMP, Timestamps, Values
from penstock.runtime.operator import Operator, OperatorContext
from penstock.runtime.process import BroadcastProcessOperator, CoProcessOperator
from penstock.runtime.stateless import FunctionOperator
from penstock.state.key_groups import stable_hash


class BatchOperator(Operator):
    """Holds back the inputs of an operator until all have ended, then feeds them sorted.

    What is broadcast is not held back, so it is complete before the first record of the other side.
    """

    def __init__(self, inner: Operator, selectors: Sequence[Callable[[Any], Any] | None]) -> None:
        super().__init__(inner.output_type)
        self.inner = inner
        self.selectors = selectors

    def open(self, context: OperatorContext) -> None:
        super().open(context)
        self.inner.open(context)
        self._held: list[tuple[Any, int, int | None, Any]] = []
        self._inputs = list(self.inner.inputs())

    def close(self) -> None:
        self.inner.close()

    def inputs(self) -> Sequence[Callable[[Values, Timestamps], None]]:
        return [
            self._holding(index, selector) if selector is not None else self._inputs[index]
            for index, selector in enumerate(self.selectors)
        ]

    def _holding(self, index: int, key_of: Callable[[Any], Any]) -> Callable[[Values, Timestamps], None]:
        def records(values: Values, timestamps: Timestamps) -> None:
            stamps = timestamps if timestamps is not None else [None] * len(values)
            self._held.extend((key_of(v), index, t, v) for v, t in zip(values, stamps, strict=True))

        return records

    def watermark(self, timestamp: int) -> None:
        """In BATCH mode event time stands still until everything is there."""

    def finish(self) -> None:
        self._drain()
        self.inner.watermark(MAX_TIMESTAMP)
        self.inner.finish()

    def end_epoch(self) -> None:
        self.inner.end_epoch()

    def _drain(self) -> None:
        groups: dict[Any, list[tuple[Any, int, int | None, Any]]] = {}
        for entry in self._held:
            groups.setdefault(entry[0], []).append(entry)
        self._held = []
        for key in sorted(groups, key=key_order):
            self._feed(groups.pop(key))
            finish_key = getattr(self.inner, "finish_key", None)
            if finish_key is not None and key is not _UNKEYED:
                finish_key(key)

    def _feed(self, entries: list[tuple[Any, int, int | None, Any]]) -> None:
        entries.sort(key=lambda entry: MIN_TIMESTAMP if entry[2] is None else entry[2])
        start = 0
        for position in range(1, len(entries) + 1):
            if position == len(entries) or entries[position][1] != entries[start][1]:
                run = entries[start:position]
                stamps = [entry[2] for entry in run]
                self._inputs[run[0][1]](list(map(itemgetter(3), run)), stamps_or_none(stamps))
                start = position


class _Unkeyed:
    """Stands for the key of records that have none."""


_UNKEYED = _Unkeyed()


def _no_key(_: Any) -> _Unkeyed:
    return _UNKEYED


def key_order(key: Any) -> tuple[int, Any]:
    """The order of keys in BATCH mode: numbers by value, strings by length and then by value, others by their hash."""
    if isinstance(key, (int, float)):
        return 0, key
    if isinstance(key, str):
        return 1, (len(key), key)
    return 2, 0 if key is _UNKEYED else stable_hash(key)


def batched(operator: Operator) -> Operator:
    """The operator as BATCH mode runs it: wrapped if it has keyed or broadcast inputs."""
    if isinstance(operator, BroadcastProcessOperator):
        return BatchOperator(operator, (operator.key_selector or _no_key, None))
    if isinstance(operator, CoProcessOperator):
        return BatchOperator(operator, operator.key_selectors) if operator.key_selectors else operator
    if isinstance(operator, FunctionOperator) and operator.key_selector is not None:
        return BatchOperator(operator, (operator.key_selector,))
    return operator
