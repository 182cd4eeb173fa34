"""Window joins and co-groups: two streams, matched by key within windows."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Generic, Self, overload

from penstock.api.functions.element_functions import CoGroupFunction, FlatJoinFunction, JoinFunction, KeySelector
from penstock.api.functions.key_selectors import FieldsOfKey, Key
from penstock.api.functions.key_selectors import key_selector as as_key_selector
from penstock.api.output_tag import OutputTag
from penstock.api.windows.evictors import Evictor
from penstock.api.windows.windows import Trigger, WindowAssigner
from penstock.base.arguments import check_arguments
from penstock.base.type_variables import A, B, K, M, R
from penstock.common.time import LengthOfTime
from penstock.common.type_information import DeclaredType, declared_type
from penstock.common.typeinfo import TypeInformation
from penstock.datastream.builders.annotations import Results
from penstock.datastream.builders.keyed_stream import KeyedStream
from penstock.datastream.builders.windowed_stream import WindowedStream
from penstock.datastream.data_stream import DataStream
from penstock.engine.operators.functions.map_and_filter import MapOperator
from penstock.engine.windows.pane_contents import Buffered
from penstock.engine.windows.window_evaluation import Evaluation
from penstock.engine.windows.window_joins import CoGroupEvaluation, JoinEvaluation, Tagged, TaggedKey
from penstock.errors import UnsupportedOperation


@check_arguments
class JoinedStreams(Generic[A, B]):
    """`a.join(b)`. The next step, `where`, sets the key of the first stream."""

    def __init__(self, first: DataStream[A], second: DataStream[B]) -> None:
        self._streams = (first, second)

    @overload
    def where(
        self, key_selector: FieldsOfKey, key_type: DeclaredType[K] | None = None
    ) -> Where[A, B, Any, JoinWindow[A, B]]: ...

    @overload
    def where(
        self, key_selector: KeySelector[A, K] | Callable[[A], K], key_type: DeclaredType[K] | None = None
    ) -> Where[A, B, K, JoinWindow[A, B]]: ...

    def where(self, key_selector: Key, key_type: DeclaredType[Any] | None = None) -> Where[A, B, Any, JoinWindow[A, B]]:
        """Set the key of the first stream."""
        return Where(self._streams, as_key_selector(key_selector), declared_type(key_type), JoinWindow)


@check_arguments
class CoGroupedStreams(Generic[A, B]):
    """`a.co_group(b)`. The next step, `where`, sets the key of the first stream."""

    def __init__(self, first: DataStream[A], second: DataStream[B]) -> None:
        self._streams = (first, second)

    @overload
    def where(
        self, key_selector: FieldsOfKey, key_type: DeclaredType[K] | None = None
    ) -> Where[A, B, Any, CoGroupWindow[A, B]]: ...

    @overload
    def where(
        self, key_selector: KeySelector[A, K] | Callable[[A], K], key_type: DeclaredType[K] | None = None
    ) -> Where[A, B, K, CoGroupWindow[A, B]]: ...

    def where(
        self, key_selector: Key, key_type: DeclaredType[Any] | None = None
    ) -> Where[A, B, Any, CoGroupWindow[A, B]]:
        """Set the key of the first stream."""
        return Where(self._streams, as_key_selector(key_selector), declared_type(key_type), CoGroupWindow)


@check_arguments
class Where(Generic[A, B, K, M]):
    """A join with its first key. The next step, `equal_to`, sets the key of the second stream."""

    def __init__(
        self,
        streams: tuple[DataStream[A], DataStream[B]],
        selector: Callable[[A], K],
        key_type: TypeInformation[K] | None,
        windowed: type[M],
    ) -> None:
        self._streams = streams
        self._selector = selector
        self._key_type = key_type
        self._windowed = windowed

    @overload
    def equal_to(self, key_selector: FieldsOfKey, key_type: DeclaredType[K] | None = None) -> EqualTo[A, B, M]: ...

    @overload
    def equal_to(
        self, key_selector: KeySelector[B, K] | Callable[[B], K], key_type: DeclaredType[K] | None = None
    ) -> EqualTo[A, B, M]: ...

    def equal_to(self, key_selector: Key, key_type: DeclaredType[Any] | None = None) -> EqualTo[A, B, M]:
        """Set the key of the second stream. Its type must be that of the first key."""
        if self._key_type is not None and key_type is not None and self._key_type != key_type:
            raise UnsupportedOperation(
                f"the keys of a join must be of one type, and {self._key_type} is never equal to {key_type}"
            )
        return EqualTo(self._streams, (self._selector, as_key_selector(key_selector)), self._windowed)


@check_arguments
class EqualTo(Generic[A, B, M]):
    """A join with both keys. The next step, `window`, sets the windows in which elements are matched."""

    def __init__(
        self,
        streams: tuple[DataStream[A], DataStream[B]],
        selectors: tuple[Callable[[A], Any], Callable[[B], Any]],
        windowed: type[M],
    ) -> None:
        self._streams = streams
        self._selectors = selectors
        self._windowed = windowed

    def window(self, window_assigner: WindowAssigner[Any, Any]) -> M:
        """Set the windows in which elements of both streams are matched."""
        first, second = (_tag(stream, side) for side, stream in enumerate(self._streams))
        keyed: KeyedStream[Any, Any] = KeyedStream(first.union(second), TaggedKey(self._selectors))
        return self._windowed(WindowedStream(keyed, window_assigner))


def _tag(stream: DataStream[Any], side: int) -> DataStream[Any]:
    """Return the elements of a stream as (side, value)."""
    return stream.apply_operator("Tag", MapOperator(Tagged(side)), None)


@check_arguments
class MatchWindow:
    """Two streams in windows, with the settings of any window."""

    def __init__(self, windowed: WindowedStream[Any, Any, Any]) -> None:
        self._windowed = windowed

    def trigger(self, trigger: Trigger[Any, Any]) -> Self:
        """Set the trigger of evaluations, instead of the assigner's default."""
        self._windowed.trigger(trigger)
        return self

    def evictor(self, evictor: Evictor) -> Self:
        """Set an evictor. It gets elements as (side, value): 0 for the first stream, 1 for the second."""
        self._windowed.evictor(evictor)
        return self

    def allowed_lateness(self, time_ms: LengthOfTime) -> Self:
        """Set how long after its end a window is kept for late elements."""
        self._windowed.allowed_lateness(time_ms)
        return self

    def side_output_late_data(self, output_tag: OutputTag[Any]) -> Self:
        """Send late elements to a side output, as (side, value)."""
        self._windowed.side_output_late_data(output_tag)
        return self

    def _apply(
        self, name: str, evaluation: Evaluation, output_type: DeclaredType[R] | None, many: bool
    ) -> DataStream[R]:
        results = Results(evaluation.function, many)
        return self._windowed.apply_evaluation(name, Buffered(), evaluation, declared_type(output_type), results)


@check_arguments
class JoinWindow(MatchWindow, Generic[A, B]):
    """Every pair of elements with equal keys in a common window."""

    @overload
    def apply(
        self, function: FlatJoinFunction[A, B, R], output_type: DeclaredType[R] | None = None
    ) -> DataStream[R]: ...

    @overload
    def apply(
        self, function: JoinFunction[A, B, R] | Callable[[A, B], R], output_type: DeclaredType[R] | None = None
    ) -> DataStream[R]: ...

    def apply(
        self,
        function: JoinFunction[A, B, Any] | FlatJoinFunction[A, B, Any] | Callable[[A, B], Any],
        output_type: DeclaredType[Any] | None = None,
    ) -> DataStream[Any]:
        """Call function(left, right) for every pair. A JoinFunction gives one result, a FlatJoinFunction any number."""
        return self._apply("Window Join", JoinEvaluation(function), output_type, many=False)


@check_arguments
class CoGroupWindow(MatchWindow, Generic[A, B]):
    """All elements of both sides with one key in a common window, even if one side has none."""

    def apply(
        self,
        function: CoGroupFunction[A, B, R] | Callable[[list[A], list[B]], Iterable[R] | None],
        output_type: DeclaredType[R] | None = None,
    ) -> DataStream[R]:
        """Call function(lefts, rights) for every key and window. It yields any number of results."""
        return self._apply("Window Co-Group", CoGroupEvaluation(function), output_type, many=True)


__all__ = ["CoGroupedStreams", "JoinedStreams"]
