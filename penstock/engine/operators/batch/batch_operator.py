"""BATCH mode for keyed operators: they get their whole input at the end, key by key, each key in order of time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from typing import Any

from penstock.engine.operators.batch.external_sort import ExternalSort
from penstock.engine.operators.functions.slot_contexts import stamps_or_none
from penstock.engine.operators.operator import Operator, OperatorContext
from penstock.engine.records.elements import MAX_TIMESTAMP, Chunk, Timestamps, Values
from penstock.engine.records.failures import USER_ERRORS
from penstock.engine.state.key_bytes import key_bytes
from penstock.engine.state.key_groups import stable_hash

STEP_RECORDS = 1024
"""Number of records after which the output of an operator can be taken away."""


class BatchOperator(Operator):
    """Holds back the inputs of an operator until all have ended, then feeds them sorted, one key after the other."""

    def __init__(self, inner: Operator, selectors: Sequence[Callable[[Any], Any] | None]) -> None:
        """Wrap an operator. An input without a selector is not held back."""
        super().__init__(inner.output_type)
        self.inner = inner
        self.selectors = selectors

    def open(self, context: OperatorContext) -> None:
        super().open(context)
        self._held = ExternalSort(key_order, context.sort_memory, context.spill_folder)
        self.inner.open(context)
        self._inputs = list(self.inner.inputs())

    def close(self) -> None:
        if hasattr(self, "_held"):
            self._held.close()
        self.inner.close()

    def inputs(self) -> Sequence[Callable[[Chunk], None]]:
        return [
            self._holding(index, selector) if selector is not None else self._inputs[index]
            for index, selector in enumerate(self.selectors)
        ]

    def _holding(self, index: int, key_of: Callable[[Any], Any]) -> Callable[[Chunk], None]:
        def hold(chunk: Chunk) -> None:
            values = chunk.values
            feed = iter(values)
            try:
                keys = [key_of(value) for value in feed]
            except USER_ERRORS as error:
                raise self.failure(error, values, feed) from error
            self._hold(keys, index, values, chunk.timestamps)

        return hold

    def _hold(self, keys: Sequence[Any], index: int, values: Values, timestamps: Timestamps) -> None:
        try:
            self._held.add(keys, index, values, timestamps)
        except Exception as error:
            raise self.failure(error, []) from error

    def watermark(self, timestamp: int) -> None:
        """Ignore watermarks: in BATCH mode event time stands still until all input has arrived."""

    def finish(self) -> Iterator[None]:
        """Feed the records in steps, so that the output of each step can leave before it becomes too large."""
        yield from self._drain()
        self.inner.watermark(MAX_TIMESTAMP)
        yield from self.inner.finish() or ()

    def end_epoch(self) -> None:
        self.inner.end_epoch()

    def _drain(self) -> Iterator[None]:
        key: Any = _NO_KEY_YET
        fed = 0
        for piece in self._held.pieces():
            if piece.key != key:
                self._finish_key(key)
                key = piece.key
            for index, values, timestamps in piece.by_input():
                self._inputs[index](Chunk(values, None if timestamps is None else stamps_or_none(timestamps)))
            fed += len(piece.values)
            if fed >= STEP_RECORDS:
                fed = 0
                yield
        self._finish_key(key)
        self._held.close()

    def _finish_key(self, key: Any) -> None:
        if key is not _UNKEYED and key is not _NO_KEY_YET:
            self.inner.finish_key(key)


class _Unkeyed:
    """Stands for the key of records without one."""


_UNKEYED = _Unkeyed()
_NO_KEY_YET = object()


def no_key(_: Any) -> _Unkeyed:
    """Return the same key for all records of an input that is held back and has no keys."""
    return _UNKEYED


def key_order(key: Any) -> tuple[Any, ...]:
    """Return the sort key of a key: numbers by value, strings by length and then by value, others by their hash.

    Keys with the same hash are distinguished by their bytes, so only equal keys are equal in this order.
    """
    if isinstance(key, (int, float, Decimal)):
        return 0, key
    if isinstance(key, str):
        return 1, len(key), str.__str__(key)
    return (2, 0, b"") if key is _UNKEYED else (2, stable_hash(key), key_bytes(key))


def wrap_for_batch(operator: Operator) -> Operator:
    """Return the operator as BATCH mode runs it: wrapped if it has inputs to sort."""
    keys = operator.batch_keys()
    return BatchOperator(operator, keys) if keys else operator
