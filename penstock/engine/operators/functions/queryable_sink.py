"""The operator of as_queryable_state: it keeps records in a state that clients can look up, and emits nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from penstock.api.state.descriptors import StateDescriptor, ValueStateDescriptor
from penstock.engine.operators.function_operator import FunctionOperator
from penstock.engine.operators.operator import OperatorContext
from penstock.engine.records.elements import Timestamps, Values
from penstock.engine.records.failures import USER_ERRORS


class QueryableStateSink(FunctionOperator):
    """Stores records in a queryable state.

    A value state keeps the last record of a key; reducing, aggregating and list states add each record.
    """

    def __init__(self, descriptor: StateDescriptor, key_selector: Callable[[Any], Any]) -> None:
        super().__init__(None, None, key_selector)
        self.descriptor = descriptor

    @property
    def queryable_names(self) -> tuple[str, ...]:
        """The names of queryable states that are known before the job runs."""
        return (self.descriptor.get_queryable_state_name() or "",)

    def open(self, context: OperatorContext) -> None:
        super().open(context)
        assert self.keyed is not None
        assert self.key_selector is not None
        state = self.keyed.state(self.descriptor)
        self._take = state.update if isinstance(self.descriptor, ValueStateDescriptor) else state.add
        self._enter = self.keyed.scope.entering(self.key_selector)

    def records(self, values: Values, timestamps: Timestamps) -> None:
        feed, enter, take = iter(values), self._enter, self._take
        try:
            for value in feed:
                enter(value)
                take(value)
        except USER_ERRORS as error:
            raise self.failure(error, values, feed) from error
