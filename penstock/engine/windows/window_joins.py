"""Joins of two streams: one tagged stream of both, the match in a window, and the interval join."""

from __future__ import annotations

import dataclasses
from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Sequence
from itertools import product
from numbers import Number
from typing import Any

from penstock.api.functions.element_functions import CoGroupFunction, FlatJoinFunction, JoinFunction
from penstock.api.output_tag import OutputTag
from penstock.api.state.descriptors import ValueStateDescriptor
from penstock.common.typeinfo import TypeInformation
from penstock.engine.operators.functions.process_operators import CoProcessOperator, KeySelector
from penstock.engine.operators.functions.slot_contexts import Collected, FunctionContext
from penstock.engine.operators.operator import OperatorContext
from penstock.engine.operators.timers import KeylessTimerService
from penstock.engine.records.elements import MIN_TIMESTAMP, Chunk
from penstock.engine.state.key_groups import short_repr
from penstock.engine.state.tables import Table
from penstock.engine.windows.window_evaluation import Evaluation
from penstock.errors import MissingTimestamp, RecordError
from penstock.persisted import persisted


@dataclasses.dataclass(frozen=True)
class Tagged:
    """Marks a value with the side from which it comes."""

    side: int

    def __call__(self, value: Any) -> tuple[int, Any]:
        return self.side, value


class KeyKinds:
    """Remembers the kind of key of each side of a join, and refuses two kinds that can never be equal."""

    def __init__(self) -> None:
        self._kinds: dict[int, tuple[type, Any]] = {}

    def see(self, side: int, key: Any) -> None:
        """Look at a key. The first key of a side decides the kind."""
        if side not in self._kinds:
            self._kinds[side] = (_kind(key), key)
            self._check()

    def _check(self) -> None:
        if len(self._kinds) == 2:
            (first, left), (second, right) = self._kinds[0], self._kinds[1]
            if first is not second and type(None) not in (first, second):
                raise RecordError(
                    f"the two sides of the join have keys that can never be equal: {short_repr(left)} "
                    f"({type(left).__name__}) and {short_repr(right)} ({type(right).__name__})"
                )


class TaggedKey:
    """The key selector of tagged values, which applies the selector of the value's side."""

    def __init__(self, selectors: tuple[Callable[[Any], Any], Callable[[Any], Any]]) -> None:
        self._selectors = selectors
        self._kinds = KeyKinds()

    def __call__(self, tagged: tuple[int, Any]) -> Any:
        side, value = tagged
        key = self._selectors[side](value)
        self._kinds.see(side, key)
        return key


def _kind(key: Any) -> type:
    """Return the kind of a key.

    A key that is also a number, string, … may equal one, as an enum or a named tuple can.
    """
    return next((base for base in (Number, str, bytes, tuple) if isinstance(key, base)), type(key))


def _sides(elements: list[Any]) -> tuple[list[Any], list[Any]]:
    return [v for side, v in elements if side == 0], [v for side, v in elements if side == 1]


@dataclasses.dataclass
class JoinEvaluation(Evaluation):
    """The evaluation of a join: every pair of a left and a right element."""

    def evaluate(self, key: Any, window: Any, context: Any, elements: list[Any]) -> Any:
        lefts, rights = _sides(elements)
        if isinstance(self.function, FlatJoinFunction):
            return [out for pair in product(lefts, rights) for out in self.function.join(*pair) or ()]
        join = self.function.join if isinstance(self.function, JoinFunction) else self.function
        return [join(left, right) for left, right in product(lefts, rights)]


@dataclasses.dataclass
class CoGroupEvaluation(Evaluation):
    """The evaluation of a co-group: all left and all right elements at once."""

    def evaluate(self, key: Any, window: Any, context: Any, elements: list[Any]) -> Any:
        co_group = self.function.co_group if isinstance(self.function, CoGroupFunction) else self.function
        return co_group(*_sides(elements))


@persisted
@dataclasses.dataclass
class TimeBuffer:
    """The elements of one side and key by timestamp. A range of time can be looked up."""

    times: list[int] = dataclasses.field(default_factory=list)
    values: dict[int, list[Any]] = dataclasses.field(default_factory=dict)

    def add(self, timestamp: int, value: Any) -> None:
        """Add an element."""
        held = self.values.get(timestamp)
        if held is None:
            self.values[timestamp] = [value]
            insort(self.times, timestamp)
        else:
            held.append(value)

    def between(self, lower: int, upper: int) -> list[tuple[int, list[Any]]]:
        """Return (timestamp, elements) for timestamps between the bounds, both included."""
        times = self.times
        found = times[bisect_left(times, lower) : bisect_right(times, upper)]
        return [(timestamp, self.values[timestamp]) for timestamp in found]

    def remove(self, timestamp: int) -> None:
        """Remove the elements of a timestamp."""
        if self.values.pop(timestamp, None) is not None:
            del self.times[bisect_left(self.times, timestamp)]


@dataclasses.dataclass(frozen=True)
class IntervalSpec:
    """The interval left.ts + lower ≤ right.ts ≤ left.ts + upper, and the side outputs of late elements."""

    lower: int
    upper: int
    lower_exclusive: bool = False
    upper_exclusive: bool = False
    left_late: OutputTag | None = None
    right_late: OutputTag | None = None

    def inclusive(self) -> IntervalSpec:
        """Return the same interval with bounds that belong to it."""
        return dataclasses.replace(
            self,
            lower=self.lower + self.lower_exclusive,
            upper=self.upper - self.upper_exclusive,
            lower_exclusive=False,
            upper_exclusive=False,
        )


class JoinContext(FunctionContext):
    """The context of a ProcessJoinFunction."""

    __slots__ = ("left", "right")

    def left_timestamp(self) -> int:
        return self.left

    def right_timestamp(self) -> int:
        return self.right

    def of(self, left: int, right: int) -> int:
        """Move to a pair, and return its timestamp, which is the later one."""
        self.left, self.right = left, right
        self.record_timestamp = max(left, right)
        return self.record_timestamp


_LEFT, _RIGHT = 0, 1


class IntervalJoinOperator(CoProcessOperator):
    """Joins each element with those of the other side within an interval.

    It drops elements that no later one can match.
    """

    def __init__(
        self,
        function: Any,
        spec: IntervalSpec,
        output_type: TypeInformation | None,
        key_selectors: tuple[KeySelector, KeySelector],
    ) -> None:
        super().__init__(function, ("process_element", "process_element"), output_type, key_selectors)
        self.spec = spec

    def open(self, context: OperatorContext) -> None:
        super().open(context)
        assert self.keyed is not None
        self._buffers: tuple[Table, Table] = (
            self.keyed.table(ValueStateDescriptor("_left_buffer")),
            self.keyed.table(ValueStateDescriptor("_right_buffer")),
        )
        self._join_context = JoinContext(self.collected, KeylessTimerService(self.timers), self.keyed)
        self._late_dropped = context.metrics.counter("numLateRecordsDropped")
        self._kinds = KeyKinds()

    def inputs(self) -> Sequence[Callable[[Chunk], None]]:
        return (self._side_input(_LEFT), self._side_input(_RIGHT))

    def _side_input(self, side: int) -> Callable[[Chunk], None]:
        assert self.key_selectors is not None
        key_of = self.key_selectors[side]

        def one(value: Any, context: FunctionContext) -> None:
            self._element(side, value, context.record_timestamp)

        def take(chunk: Chunk) -> None:
            self.drive(one, key_of, chunk.values, chunk.timestamps)

        return take

    def _element(self, side: int, value: Any, timestamp: int | None) -> None:
        if timestamp is None or timestamp == MIN_TIMESTAMP:
            raise MissingTimestamp(
                "an interval join needs timestamps: call assign_timestamps_and_watermarks(...) before key_by, with a "
                "strategy that has a timestamp assigner (with_timestamp_assigner) unless the source attaches timestamps"
            )
        assert self.keyed is not None
        if timestamp < self.timers.watermark:
            self._late(side, value, timestamp)
            return
        key = self.keyed.scope.key
        self._kinds.see(side, key)
        lower, upper = (self.spec.lower, self.spec.upper) if side == _LEFT else (-self.spec.upper, -self.spec.lower)
        own, others = self._buffers[side], self._buffers[1 - side].entries.get(key)
        buffer = own.entries.get(key) or TimeBuffer()
        buffer.add(timestamp, value)
        own.put(key, buffer)
        if others is not None:
            self._join(side, value, timestamp, others.between(timestamp + lower, timestamp + upper))
        self.timers.event_time.register(timestamp + max(upper, 0), key, side)

    def _join(self, side: int, value: Any, timestamp: int, matches: list[tuple[int, list[Any]]]) -> None:
        context, collected = self._join_context, self.collected
        for other_time, others in matches:
            for other in others:
                if side == _LEFT:
                    self._pair(context, collected, (value, timestamp), (other, other_time))
                else:
                    self._pair(context, collected, (other, other_time), (value, timestamp))

    def _pair(self, context: JoinContext, collected: Collected, left: Any, right: Any) -> None:
        timestamp = context.of(left[1], right[1])
        results = self.function.process_element(left[0], right[0], context)
        if results is not None:
            collected.gather(results, timestamp)

    def _late(self, side: int, value: Any, timestamp: int) -> None:
        tag = self.spec.left_late if side == _LEFT else self.spec.right_late
        if tag is None:
            self._late_dropped.inc()
        else:
            self.collected.side(tag, value, timestamp)

    def on_event_time(self, time: int, key: Any, side: Any) -> None:
        """Drop the elements of a time that no later element can match."""
        upper = self.spec.upper if side == _LEFT else -self.spec.lower
        table = self._buffers[side]
        buffer = table.entries.get(key)
        if buffer is None:
            return
        buffer.remove(time - max(upper, 0))
        if buffer.times:
            table.put(key, buffer)
        else:
            table.remove(key)
