"""The way of results to the program: they are sent at the end of an attempt, and those of the last attempt count."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from typing import Any

from penstock.base.pickling import dumps
from penstock.engine.operators.operator import Operator, OperatorContext
from penstock.engine.records.elements import Timestamps, Values
from penstock.engine.records.failures import USER_ERRORS


class GatheringSink(Operator):
    """Sends elements to the driver, with the number of the attempt."""

    def open(self, context: OperatorContext) -> None:
        super().open(context)
        self._number = 0

    def records(self, values: Values, timestamps: Timestamps) -> None:
        assert self.context.results is not None
        try:
            payload = dumps((self.context.attempt, self.context.subtask, self._number, values))
        except USER_ERRORS as error:
            raise self.failure(error, []) from error
        self._number += 1
        self.context.results(self.context.uid, payload)

    def watermark(self, timestamp: int) -> None:
        """Ignore watermarks, which a DataSet program does not have."""

    def finish(self) -> Iterator[None] | None:
        return None


class Gathered:
    """The elements that have come from all tasks of a sink."""

    def __init__(self) -> None:
        self._attempt = -1
        self._parts: dict[tuple[int, int], list[Any]] = {}

    def put(self, payload: bytes) -> None:
        """Take a part of the elements. A new attempt begins anew."""
        attempt, subtask, number, values = pickle.loads(payload)
        if attempt > self._attempt:
            self._attempt, self._parts = attempt, {}
        if attempt == self._attempt:
            self._parts[subtask, number] = values

    def end(self) -> None:
        """Note that the job is over."""

    def values(self) -> list[Any]:
        """Return the elements, in the order of the tasks."""
        return [value for _, values in sorted(self._parts.items(), key=lambda part: part[0]) for value in values]
