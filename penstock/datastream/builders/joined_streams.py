"""Window joins and co-groups: two streams, matched by key within windows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from penstock.api.functions.element_functions import CoGroupFunction, FlatJoinFunction, JoinFunction
from penstock.api.functions.key_selectors import Key
from penstock.api.functions.key_selectors import key_selector as as_key_selector
from penstock.api.output_tag import OutputTag
from penstock.api.windows.evictors import Evictor
from penstock.api.windows.windows import Trigger, WindowAssigner
from penstock.base.arguments import check_arguments
from penstock.common.time import LengthOfTime
from penstock.common.typeinfo import TypeInformation
from penstock.datastream.builders.keyed_stream import KeyedStream
from penstock.datastream.builders.windowed_stream import WindowedStream
from penstock.datastream.data_stream import DataStream
from penstock.engine.operators.functions.map_and_filter import MapOperator
from penstock.engine.windows.pane_contents import Buffered
from penstock.engine.windows.window_evaluation import Evaluation
from penstock.engine.windows.window_joins import CoGroupEvaluation, JoinEvaluation, Tagged, TaggedKey
from penstock.errors import UnsupportedOperation


@check_arguments
class JoinedStreams:
    """`a.join(b)`. The next step, `where`, sets the key of the first stream."""

    def __init__(self, first: DataStream, second: DataStream) -> None:
        self._streams = (first, second)

    def where(self, key_selector: Key, key_type: TypeInformation | None = None) -> Where:
        """Set the key of the first stream."""
        return Where(self._streams, as_key_selector(key_selector), key_type, JoinWindow)


@check_arguments
class CoGroupedStreams(JoinedStreams):
    """`a.co_group(b)`. The next step, `where`, sets the key of the first stream."""

    def where(self, key_selector: Key, key_type: TypeInformation | None = None) -> Where:
        return Where(self._streams, as_key_selector(key_selector), key_type, CoGroupWindow)


@check_arguments
class Where:
    """A join with its first key. The next step, `equal_to`, sets the key of the second stream."""

    def __init__(
        self,
        streams: tuple[DataStream, DataStream],
        selector: Callable[[Any], Any],
        key_type: TypeInformation | None,
        windowed: type[_MatchWindow],
    ) -> None:
        self._streams = streams
        self._selector = selector
        self._key_type = key_type
        self._windowed = windowed

    def equal_to(self, key_selector: Key, key_type: TypeInformation | None = None) -> EqualTo:
        """Set the key of the second stream. Its type must be that of the first key."""
        if self._key_type is not None and key_type is not None and self._key_type != key_type:
            raise UnsupportedOperation(
                f"the keys of a join must be of one type, and {self._key_type} is never equal to {key_type}"
            )
        return EqualTo(self._streams, (self._selector, as_key_selector(key_selector)), self._windowed)


@check_arguments
class EqualTo:
    """A join with both keys. The next step, `window`, sets the windows in which elements are matched."""

    def __init__(
        self,
        streams: tuple[DataStream, DataStream],
        selectors: tuple[Callable[[Any], Any], Callable[[Any], Any]],
        windowed: type[_MatchWindow],
    ) -> None:
        self._streams = streams
        self._selectors = selectors
        self._windowed = windowed

    def window(self, window_assigner: WindowAssigner[Any, Any]) -> Any:
        """Set the windows in which elements of both streams are matched."""
        first, second = (
            stream.apply_operator("Tag", MapOperator(Tagged(side)), None) for side, stream in enumerate(self._streams)
        )
        keyed = KeyedStream(first.union(second), TaggedKey(self._selectors))
        return self._windowed(WindowedStream(keyed, window_assigner))


@check_arguments
class _MatchWindow:
    """Two streams in windows, with the settings of any window."""

    def __init__(self, windowed: WindowedStream) -> None:
        self._windowed = windowed

    def trigger(self, trigger: Trigger[Any, Any]) -> Any:
        """Set the trigger of evaluations, instead of the assigner's default."""
        self._windowed.trigger(trigger)
        return self

    def evictor(self, evictor: Evictor) -> Any:
        """Set an evictor. It gets elements as (side, value): 0 for the first stream, 1 for the second."""
        self._windowed.evictor(evictor)
        return self

    def allowed_lateness(self, time_ms: LengthOfTime) -> Any:
        """Set how long after its end a window is kept for late elements."""
        self._windowed.allowed_lateness(time_ms)
        return self

    def side_output_late_data(self, output_tag: OutputTag) -> Any:
        """Send late elements to a side output, as (side, value)."""
        self._windowed.side_output_late_data(output_tag)
        return self

    def _apply(self, name: str, evaluation: Evaluation, output_type: TypeInformation | None) -> DataStream:
        return self._windowed.apply_evaluation(name, Buffered(), evaluation, output_type)


@check_arguments
class JoinWindow(_MatchWindow):
    """Every pair of elements with equal keys in a common window."""

    def apply(
        self,
        function: JoinFunction | FlatJoinFunction | Callable[[Any, Any], Any],
        output_type: TypeInformation | None = None,
    ) -> DataStream:
        """Call function(left, right) for every pair. A JoinFunction gives one result, a FlatJoinFunction any number."""
        return self._apply("Window Join", JoinEvaluation(function), output_type)


@check_arguments
class CoGroupWindow(_MatchWindow):
    """All elements of both sides with one key in a common window, even if one side has none."""

    def apply(
        self,
        function: CoGroupFunction | Callable[[list[Any], list[Any]], Any],
        output_type: TypeInformation | None = None,
    ) -> DataStream:
        """Call function(lefts, rights) for every key and window. It yields any number of results."""
        return self._apply("Window Co-Group", CoGroupEvaluation(function), output_type)


__all__ = ["CoGroupedStreams", "JoinedStreams"]
