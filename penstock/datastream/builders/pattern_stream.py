"""CEP and PatternStream: a stream with a pattern, to which functions for the matches are applied."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, Generic, TypeAlias, overload

from penstock.api.output_tag import OutputTag
from penstock.base.arguments import check_arguments
from penstock.base.type_variables import R, T, U
from penstock.cep.cep_operator import PatternOperator, PatternSpec
from penstock.cep.compiler import compile_pattern
from penstock.cep.dynamic import DynamicPatternOperator
from penstock.cep.pattern import Pattern
from penstock.cep.pattern_functions import (
    EventComparator,
    PatternFlatSelectFunction,
    PatternFlatTimeoutFunction,
    PatternProcessFunction,
    PatternSelectFunction,
    PatternTimeoutFunction,
    Selecting,
    SelectingWithTimeouts,
)
from penstock.common.type_information import DeclaredType, declared_type
from penstock.common.watermark_strategy import Watermark, WatermarkGenerator, WatermarkStrategy
from penstock.datastream.builders.annotations import Results
from penstock.datastream.builders.argument_checks import check_function, check_instance
from penstock.datastream.builders.connected_streams import add_two_input_operator
from penstock.datastream.builders.keyed_stream import KeyedStream
from penstock.datastream.builders.windowed_stream import one_key
from penstock.datastream.data_stream import DataStream
from penstock.engine.records.elements import MAX_TIMESTAMP

Comparator: TypeAlias = EventComparator[T] | Callable[[T, T], int]


@check_arguments
class CEP:
    """The entry to pattern matching on streams."""

    @staticmethod
    def pattern(
        input: DataStream[T], pattern: Pattern[Any], comparator: Comparator[T] | None = None
    ) -> PatternStream[T]:
        """Match a pattern in a stream: for each key separately, or without keys in the whole stream, in one subtask.

        A comparator, an EventComparator or a function of two events, orders events that have the same timestamp.
        """
        return PatternStream(input, _spec(pattern, comparator))

    @staticmethod
    def dynamic_pattern(
        input: DataStream[T], pattern: Pattern[Any], updates: DataStream[Any], comparator: Comparator[T] | None = None
    ) -> PatternStream[T]:
        """Match a pattern until the other stream brings the next one: a text, or a PatternUpdate.

        Every subtask gets every update. An update applies to events that are matched after it has arrived.
        """
        return PatternStream(input, _spec(pattern, comparator), updates)


@check_arguments
class PatternStream(Generic[T]):
    """A pattern on a stream. Its methods leave it unchanged and return the result."""

    def __init__(self, stream: DataStream[T], spec: PatternSpec, updates: DataStream[Any] | None = None) -> None:
        self._stream = stream
        self._spec = spec
        self._updates = updates

    def in_event_time(self) -> PatternStream[T]:
        """Match events in the order of their timestamps, once the watermark has reached them. This is the default."""
        return PatternStream(self._stream, replace(self._spec, event_time=True), self._updates)

    def in_processing_time(self) -> PatternStream[T]:
        """Match events in the order of their arrival, at the time of their arrival."""
        return PatternStream(self._stream, replace(self._spec, event_time=False), self._updates)

    def side_output_late_data(self, late_data_output_tag: OutputTag[T]) -> PatternStream[T]:
        """Send events that arrive behind the watermark to a side output instead of dropping them."""
        return PatternStream(self._stream, replace(self._spec, late_tag=late_data_output_tag), self._updates)

    def process(
        self, pattern_process_function: PatternProcessFunction[T, R], output_type: DeclaredType[R] | None = None
    ) -> DataStream[R]:
        """Apply a function to every match, and to timeouts if it is also a TimedOutPartialMatchHandler."""
        return self._then("Pattern Process", pattern_process_function, output_type, pattern_process_function)

    @overload
    def select(
        self,
        function: PatternSelectFunction[T, R] | Callable[[dict[str, list[T]]], R],
        /,
        *,
        output_type: DeclaredType[R] | None = None,
    ) -> DataStream[R]: ...

    @overload
    def select(
        self,
        tag: OutputTag[U],
        on_timeout: PatternTimeoutFunction[T, U] | Callable[[dict[str, list[T]], int], U],
        function: PatternSelectFunction[T, R] | Callable[[dict[str, list[T]]], R],
        /,
        *,
        output_type: DeclaredType[R] | None = None,
    ) -> DataStream[R]: ...

    def select(self, *functions: Any, output_type: DeclaredType[Any] | None = None) -> DataStream[Any]:
        """Emit one result for each match: `select(fn)`, or `select(timeout_tag, timeout_fn, fn)` for timeouts too."""
        kinds = PatternSelectFunction, PatternTimeoutFunction
        return self._then(
            "Pattern Select", _selecting("select", functions, kinds, flat=False), output_type, functions[-1]
        )

    @overload
    def flat_select(
        self,
        function: PatternFlatSelectFunction[T, R] | Callable[[dict[str, list[T]]], Iterable[R] | None],
        /,
        *,
        output_type: DeclaredType[R] | None = None,
    ) -> DataStream[R]: ...

    @overload
    def flat_select(
        self,
        tag: OutputTag[U],
        on_timeout: PatternFlatTimeoutFunction[T, U] | Callable[[dict[str, list[T]], int], Iterable[U] | None],
        function: PatternFlatSelectFunction[T, R] | Callable[[dict[str, list[T]]], Iterable[R] | None],
        /,
        *,
        output_type: DeclaredType[R] | None = None,
    ) -> DataStream[R]: ...

    def flat_select(self, *functions: Any, output_type: DeclaredType[Any] | None = None) -> DataStream[Any]:
        """Emit any number of results for each match. It is like `select`, with functions that yield."""
        kinds = PatternFlatSelectFunction, PatternFlatTimeoutFunction
        return self._then(
            "Pattern Flat Select", _selecting("flat_select", functions, kinds, flat=True), output_type, functions[-1]
        )

    def _then(
        self, name: str, function: PatternProcessFunction[T, R], declared: DeclaredType[R] | None, written: Any
    ) -> DataStream[R]:
        output_type = declared_type(declared)
        results = Results(written, many=name == "Pattern Flat Select")
        keyed: KeyedStream[Any, T] = (
            self._stream if isinstance(self._stream, KeyedStream) else KeyedStream(self._stream, one_key)
        )
        if self._updates is None:
            stream = keyed.apply_operator(
                name, PatternOperator(self._spec, function, keyed.key_selector, output_type), output_type, results
            )
        else:
            dynamic = DynamicPatternOperator(self._spec, function, keyed.key_selector, output_type)
            updates = self._updates.assign_timestamps_and_watermarks(_TIMELESS).broadcast()
            stream = add_two_input_operator(keyed, updates, f"Dynamic {name}", dynamic, output_type, results)
        stream._node.description = f"{name} of {self._spec.pattern}"
        return stream if keyed is self._stream else stream.force_non_parallel()


class _NoDelay(WatermarkGenerator):
    """Generates no delay. Patterns have no time of their own, so they do not hold back the time of the events."""

    def on_event(self, event: Any, event_timestamp: int, output: Any) -> None:
        pass

    def on_periodic_emit(self, output: Any) -> None:
        output.emit_watermark(Watermark(MAX_TIMESTAMP))


_TIMELESS = WatermarkStrategy.for_generator(lambda _: _NoDelay())


def _spec(pattern: Pattern, comparator: Comparator | None) -> PatternSpec:
    compile_pattern(pattern)
    return PatternSpec(pattern, comparator=comparator)


def _selecting(method: str, functions: tuple[Any, ...], kinds: tuple[type, type], flat: bool) -> Selecting:
    select_kind, timeout_kind = kinds
    if len(functions) == 1:
        check_function(functions[0], select_kind, f"PatternStream.{method}", "functions")
        return Selecting(functions[0], flat)
    if len(functions) != 3:
        raise TypeError(
            f"{method} takes a function, or a tag, a function for timeouts and a function: not {len(functions)} "
            "arguments"
        )
    tag, on_timeout, on_match = functions
    check_instance(tag, OutputTag, f"PatternStream.{method}", "functions")
    check_function(on_timeout, timeout_kind, f"PatternStream.{method}", "functions")
    check_function(on_match, select_kind, f"PatternStream.{method}", "functions")
    return SelectingWithTimeouts(on_match, flat, tag, on_timeout)


__all__ = ["CEP", "PatternStream"]
