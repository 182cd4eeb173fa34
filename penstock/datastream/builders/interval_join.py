"""`left.interval_join(right).between(lower, upper).process(function)`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Generic

from penstock.api.functions.process_functions import ProcessJoinFunction
from penstock.api.output_tag import OutputTag
from penstock.base.arguments import check_arguments
from penstock.base.type_variables import A, B, K, R
from penstock.common.time import LengthOfTime, to_millis
from penstock.common.type_information import DeclaredType, declared_type
from penstock.datastream.builders.connected_streams import add_two_input_operator
from penstock.datastream.builders.keyed_stream import KeyedStream
from penstock.datastream.data_stream import DataStream
from penstock.engine.windows.window_joins import IntervalJoinOperator, IntervalSpec
from penstock.errors import UnsupportedOperation


@check_arguments
class IntervalJoin(Generic[K, A, B]):
    """Two keyed streams. The next step, `between`, bounds the distance of matching elements in event time."""

    def __init__(self, left: KeyedStream[K, A], right: DataStream[B]) -> None:
        if not isinstance(right, KeyedStream):
            raise UnsupportedOperation("an interval join needs two keyed streams: call key_by on the other one too")
        self._left = left
        self._right = right

    def between(self, lower_bound: LengthOfTime, upper_bound: LengthOfTime) -> IntervalJoined[K, A, B]:
        """Match if left.timestamp + lower_bound ≤ right.timestamp ≤ left.timestamp + upper_bound."""
        return IntervalJoined(self._left, self._right, IntervalSpec(to_millis(lower_bound), to_millis(upper_bound)))


@check_arguments
class IntervalJoined(Generic[K, A, B]):
    """An interval join with its bounds."""

    def __init__(self, left: KeyedStream[K, A], right: KeyedStream[Any, B], spec: IntervalSpec) -> None:
        self._left = left
        self._right = right
        self._spec = spec

    def lower_bound_exclusive(self) -> IntervalJoined[K, A, B]:
        """Exclude the lower bound itself."""
        return IntervalJoined(self._left, self._right, replace(self._spec, lower_exclusive=True))

    def upper_bound_exclusive(self) -> IntervalJoined[K, A, B]:
        """Exclude the upper bound itself."""
        return IntervalJoined(self._left, self._right, replace(self._spec, upper_exclusive=True))

    def side_output_left_late_data(self, output_tag: OutputTag[A]) -> IntervalJoined[K, A, B]:
        """Send late elements of the left stream to a side output instead of dropping them."""
        return IntervalJoined(self._left, self._right, replace(self._spec, left_late=output_tag))

    def side_output_right_late_data(self, output_tag: OutputTag[B]) -> IntervalJoined[K, A, B]:
        """Send late elements of the right stream to a side output instead of dropping them."""
        return IntervalJoined(self._left, self._right, replace(self._spec, right_late=output_tag))

    def process(
        self, process_join_function: ProcessJoinFunction[A, B, R], output_type: DeclaredType[R] | None = None
    ) -> DataStream[R]:
        """Apply process_element(left, right, ctx) to every pair within the bounds."""
        spec = self._spec.inclusive()
        if spec.lower > spec.upper:
            raise ValueError(f"the lower bound of the join ({spec.lower} ms) is above the upper ({spec.upper} ms)")
        types = (self._left._key_type, self._right._key_type)
        if None not in types and types[0] != types[1]:
            raise UnsupportedOperation(
                f"the keys of a join must be of one type, and {types[0]} is never equal to {types[1]}"
            )
        selectors = (self._left.key_selector, self._right.key_selector)
        declared = declared_type(output_type)
        operator = IntervalJoinOperator(process_join_function, spec, declared, selectors)
        return add_two_input_operator(self._left, self._right, "Interval Join", operator, declared)


__all__ = ["IntervalJoin", "IntervalJoined"]
