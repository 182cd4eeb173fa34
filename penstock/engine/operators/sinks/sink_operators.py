"""The operators at the end of streams: terminal output, values for execute_and_collect, and user sink functions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import repeat
from typing import Any

from penstock.api.functions.source_functions import SinkFunction
from penstock.base.pickling import dumps
from penstock.common.typeinfo import RowTypeInfo, TypeInformation
from penstock.engine.operators.function_operator import FunctionOperator
from penstock.engine.operators.operator import Operator, OperatorContext
from penstock.engine.records.elements import Chunk, Timestamps, Values
from penstock.engine.records.failures import USER_ERRORS


class PrintSink(Operator):
    """Prints on the driver.

    Each line begins with the identifier and, if there are several subtasks, the number of the subtask.
    """

    wants_declared_form = True

    def __init__(self, identifier: str = "", input_type: TypeInformation | None = None) -> None:
        super().__init__()
        self.identifier = identifier
        self.input_type = input_type

    def records(self, values: Values, timestamps: Timestamps) -> None:
        assert self.context.results is not None
        prefix, feed = self._prefix(), iter(values)
        text = _text_of(self.input_type)
        try:
            lines = [f"{prefix}{text(value)}\n" for value in feed]
        except USER_ERRORS as error:
            raise self.failure(error, values, feed) from error
        self.context.results(self.context.uid, "".join(lines))

    def _prefix(self) -> str:
        number = str(self.context.subtask + 1) if self.context.parallelism > 1 else ""
        label = ":".join(part for part in (self.identifier, number) if part)
        return f"{label}> " if label else ""


def _text_of(declared: TypeInformation | None) -> Callable[[Any], str]:
    """Return the function that turns a record into text as PyFlink does.

    Fields of rows are printed with Python's text, other declared types with Java's.
    """
    if declared is None:
        return str
    if isinstance(declared, RowTypeInfo):
        return lambda row: f"{row.get_row_kind()}[{','.join(map(str, row))}]"
    return declared.text


class CollectSink(Operator):
    """Sends values to the driver, which receives them pickled."""

    wants_declared_form = True

    def records(self, values: Values, timestamps: Timestamps) -> None:
        assert self.context.results is not None
        try:
            payload = dumps(values)
        except USER_ERRORS as error:
            raise self.failure(error, []) from error
        self.context.results(self.context.uid, payload)


class DiscardingSink(Operator):
    """Takes everything and keeps nothing. Columns do not even become rows."""

    wants_declared_form = True

    def chunk(self, chunk: Chunk) -> None:
        if chunk.columns is None:
            super().chunk(chunk)

    def records(self, values: Values, timestamps: Timestamps) -> None:
        pass


class SinkContext(SinkFunction.Context):
    """The context of a SinkFunction for the current record."""

    def __init__(self, operator: Operator) -> None:
        self._operator = operator
        self.record_timestamp: int | None = None

    def current_processing_time(self) -> int:
        return self._operator.context.clock.now

    def current_watermark(self) -> int:
        return self._operator.current_watermark

    def timestamp(self) -> int | None:
        return self.record_timestamp


class FunctionSink(FunctionOperator):
    """Calls a SinkFunction, or a plain callable, for each record."""

    wants_declared_form = True

    method = "invoke"

    def open(self, context: OperatorContext) -> None:
        super().open(context)
        self._sink_context = SinkContext(self)

    def records(self, values: Values, timestamps: Timestamps) -> None:
        feed = iter(values)
        try:
            if isinstance(self.function, SinkFunction):
                self._invoke(feed, timestamps, self._enter_key())
            else:
                for value in feed:
                    self.function(value)
        except USER_ERRORS as error:
            raise self.failure(error, values, feed) from error

    def _enter_key(self) -> Callable[[Any], Any] | None:
        """Return a function that sets the key of a record, or None on a stream without keys."""
        if self.keyed is None or self.key_selector is None:
            return None
        return self.keyed.scope.entering(self.key_selector)

    def _invoke(self, feed: Iterator[Any], timestamps: Timestamps, enter: Callable[[Any], Any] | None) -> None:
        invoke, context = self.function.invoke, self._sink_context
        for value, timestamp in zip(feed, timestamps or repeat(None), strict=False):
            if enter is not None:
                enter(value)
            context.record_timestamp = timestamp
            invoke(value, context)
