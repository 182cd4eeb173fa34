"""Two streams for one function: ConnectedStreams, and a stream beside a broadcast one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from penstock.api.functions.element_functions import CoFlatMapFunction, CoMapFunction
from penstock.api.functions.key_selectors import Key
from penstock.api.functions.process_functions import (
    BroadcastProcessFunction,
    CoProcessFunction,
    KeyedBroadcastProcessFunction,
    KeyedCoProcessFunction,
)
from penstock.api.state.descriptors import MapStateDescriptor
from penstock.base.arguments import check_arguments
from penstock.common.typeinfo import TypeInformation
from penstock.datastream.builders.argument_checks import check_instance, result_type_of
from penstock.datastream.builders.keyed_stream import KeyedStream
from penstock.datastream.data_stream import DataStream
from penstock.engine.operators.functions.process_operators import (
    BroadcastProcessOperator,
    CoFlatMapOperator,
    CoMapOperator,
    CoProcessOperator,
    KeySelector,
)
from penstock.engine.operators.operator import Operator
from penstock.errors import UnsupportedOperation
from penstock.graph.transformations import StreamRef, Transformation


@check_arguments
class ConnectedStreams:
    """Two streams, of one type each, that one function reads. If both are keyed, they share its state."""

    def __init__(self, stream1: DataStream, stream2: DataStream) -> None:
        if stream1.get_execution_environment() is not stream2.get_execution_environment():
            raise UnsupportedOperation("streams of different environments cannot be joined into one job")
        self.stream1 = stream1
        self.stream2 = stream2

    def key_by(
        self, key_selector1: Key, key_selector2: Key, key_type: TypeInformation | None = None
    ) -> ConnectedStreams:
        """Partition both streams by key, so that elements with equal keys share state."""
        return ConnectedStreams(
            self.stream1.key_by(key_selector1, key_type), self.stream2.key_by(key_selector2, key_type)
        )

    def map(self, func: CoMapFunction, output_type: TypeInformation | None = None) -> DataStream:
        """Apply map1 to records of the first stream, and map2 to those of the second."""
        return self._then("Co-Map", CoMapOperator(func, ("map1", "map2"), output_type, self._selectors()), output_type)

    def flat_map(self, func: CoFlatMapFunction, output_type: TypeInformation | None = None) -> DataStream:
        """Apply flat_map1 to records of the first stream, and flat_map2 to those of the second."""
        operator = CoFlatMapOperator(func, ("flat_map1", "flat_map2"), output_type, self._selectors())
        return self._then("Co-Flat Map", operator, output_type)

    def process(
        self, func: CoProcessFunction | KeyedCoProcessFunction, output_type: TypeInformation | None = None
    ) -> DataStream:
        """Apply process_element1 and process_element2, with timers if both streams are keyed."""
        kind = KeyedCoProcessFunction if self._selectors() else CoProcessFunction
        if not isinstance(func, CoProcessFunction):
            check_instance(func, kind, "ConnectedStreams.process without keys", "func")
        methods = ("process_element1", "process_element2")
        return self._then("Co-Process", CoProcessOperator(func, methods, output_type, self._selectors()), output_type)

    def _selectors(self) -> tuple[KeySelector, KeySelector] | None:
        if isinstance(self.stream1, KeyedStream) and isinstance(self.stream2, KeyedStream):
            return self.stream1.key_selector, self.stream2.key_selector
        return None

    def _then(self, name: str, operator: Operator, type_info: TypeInformation | None) -> DataStream:
        return add_two_input_operator(self.stream1, self.stream2, name, operator, type_info)


@check_arguments
class BroadcastStream:
    """A stream that every subtask gets a copy of, to fill broadcast state."""

    def __init__(self, input_stream: DataStream, broadcast_state_descriptors: Sequence[MapStateDescriptor]) -> None:
        self.input_stream = input_stream
        self.broadcast_state_descriptors = list(broadcast_state_descriptors)


@check_arguments
class BroadcastConnectedStream:
    """A stream, keyed or not, beside a broadcast one."""

    def __init__(
        self,
        non_broadcast_stream: DataStream,
        broadcast_stream: BroadcastStream,
        broadcast_state_descriptors: Sequence[MapStateDescriptor],
    ) -> None:
        self.non_broadcast_stream = non_broadcast_stream
        self.broadcast_stream = broadcast_stream
        self.broadcast_state_descriptors = list(broadcast_state_descriptors)

    def process(
        self,
        func: BroadcastProcessFunction[Any, Any, Any] | KeyedBroadcastProcessFunction[Any, Any, Any, Any],
        output_type: TypeInformation | None = None,
    ) -> DataStream:
        """Apply process_element to the stream, and process_broadcast_element to the broadcast records."""
        stream = self.non_broadcast_stream
        selector: Callable[[Any], Any] | None = None
        if isinstance(stream, KeyedStream):
            selector = stream.key_selector
            check_instance(func, KeyedBroadcastProcessFunction, "BroadcastConnectedStream.process with keys", "func")
        else:
            check_instance(func, BroadcastProcessFunction, "BroadcastConnectedStream.process without keys", "func")
        operator = BroadcastProcessOperator(func, output_type, selector)
        return add_two_input_operator(
            stream, self.broadcast_stream.input_stream, "Broadcast Process", operator, output_type
        )


def add_two_input_operator(
    first: DataStream, second: DataStream, name: str, operator: Operator, type_info: TypeInformation | None
) -> DataStream:
    """Add an operator that reads two streams, and return the stream of its results."""
    environment = first.get_execution_environment()
    if type_info is None and (type_info := result_type_of(getattr(operator, "function", None))) is not None:
        operator.output_type = type_info
    node = environment._add(Transformation(name, operator, [first._input_refs(), second._input_refs()]))
    return DataStream(environment, [StreamRef(node)], type_info)


__all__ = ["BroadcastConnectedStream", "BroadcastStream", "ConnectedStreams"]
