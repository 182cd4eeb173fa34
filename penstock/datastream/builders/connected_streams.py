"""Two streams for one function: ConnectedStreams, and a stream beside a broadcast one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, overload

from penstock.api.functions.element_functions import CoFlatMapFunction, CoMapFunction, KeySelector
from penstock.api.functions.key_selectors import FieldsOfKey, Key
from penstock.api.functions.process_functions import (
    BroadcastProcessFunction,
    CoProcessFunction,
    KeyedBroadcastProcessFunction,
    KeyedCoProcessFunction,
)
from penstock.api.state.descriptors import MapStateDescriptor
from penstock.base.arguments import check_arguments
from penstock.base.type_variables import A, B, K, R
from penstock.common.type_information import DeclaredType, declared_type
from penstock.common.typeinfo import TypeInformation
from penstock.datastream.builders.annotations import Results
from penstock.datastream.builders.argument_checks import check_instance, result_types, results_of
from penstock.datastream.builders.keyed_stream import KeyedStream
from penstock.datastream.data_stream import DataStream
from penstock.engine.operators.functions.process_operators import (
    BroadcastProcessOperator,
    CoFlatMapOperator,
    CoMapOperator,
    CoProcessOperator,
)
from penstock.engine.operators.functions.process_operators import KeySelector as KeyOf
from penstock.engine.operators.operator import Operator
from penstock.errors import UnsupportedOperation
from penstock.graph.transformations import StreamRef, Transformation


@check_arguments
class ConnectedStreams(Generic[A, B]):
    """Two streams, of one type each, that one function reads. If both are keyed, they share its state."""

    def __init__(self, stream1: DataStream[A], stream2: DataStream[B]) -> None:
        if stream1.get_execution_environment() is not stream2.get_execution_environment():
            raise UnsupportedOperation("streams of different environments cannot be joined into one job")
        self.stream1 = stream1
        self.stream2 = stream2

    @overload
    def key_by(
        self, key_selector1: FieldsOfKey, key_selector2: FieldsOfKey, key_type: DeclaredType[Any] | None = None
    ) -> ConnectedStreams[A, B]: ...

    @overload
    def key_by(
        self,
        key_selector1: KeySelector[A, K] | Callable[[A], K],
        key_selector2: KeySelector[B, K] | Callable[[B], K],
        key_type: DeclaredType[K] | None = None,
    ) -> ConnectedStreams[A, B]: ...

    def key_by(
        self, key_selector1: Key, key_selector2: Key, key_type: DeclaredType[Any] | None = None
    ) -> ConnectedStreams[A, B]:
        """Partition both streams by key, so that elements with equal keys share state."""
        declared: Any = key_type
        first: Any = key_selector1
        second: Any = key_selector2
        return ConnectedStreams(self.stream1.key_by(first, declared), self.stream2.key_by(second, declared))

    def map(self, func: CoMapFunction[A, B, R], output_type: DeclaredType[R] | None = None) -> DataStream[R]:
        """Apply map1 to records of the first stream, and map2 to those of the second."""
        declared = declared_type(output_type)
        return self._then("Co-Map", CoMapOperator(func, ("map1", "map2"), declared, self._selectors()), declared)

    def flat_map(self, func: CoFlatMapFunction[A, B, R], output_type: DeclaredType[R] | None = None) -> DataStream[R]:
        """Apply flat_map1 to records of the first stream, and flat_map2 to those of the second."""
        declared = declared_type(output_type)
        operator = CoFlatMapOperator(func, ("flat_map1", "flat_map2"), declared, self._selectors())
        return self._then("Co-Flat Map", operator, declared)

    def process(
        self,
        func: CoProcessFunction[A, B, R] | KeyedCoProcessFunction[Any, A, B, R],
        output_type: DeclaredType[R] | None = None,
    ) -> DataStream[R]:
        """Apply process_element1 and process_element2, with timers if both streams are keyed."""
        kind = KeyedCoProcessFunction if self._selectors() else CoProcessFunction
        if not isinstance(func, CoProcessFunction):
            check_instance(func, kind, "ConnectedStreams.process without keys", "func")
        methods = ("process_element1", "process_element2")
        declared = declared_type(output_type)
        return self._then("Co-Process", CoProcessOperator(func, methods, declared, self._selectors()), declared)

    def _selectors(self) -> tuple[KeyOf, KeyOf] | None:
        if isinstance(self.stream1, KeyedStream) and isinstance(self.stream2, KeyedStream):
            return self.stream1.key_selector, self.stream2.key_selector
        return None

    def _then(self, name: str, operator: Operator, type_info: TypeInformation[R] | None) -> DataStream[R]:
        return add_two_input_operator(self.stream1, self.stream2, name, operator, type_info)


@check_arguments
class BroadcastStream(Generic[B]):
    """A stream that every subtask gets a copy of, to fill broadcast state."""

    def __init__(
        self, input_stream: DataStream[B], broadcast_state_descriptors: Sequence[MapStateDescriptor[Any, Any]]
    ) -> None:
        self.input_stream = input_stream
        self.broadcast_state_descriptors = list(broadcast_state_descriptors)


@check_arguments
class BroadcastConnectedStream(Generic[A, B]):
    """A stream, keyed or not, beside a broadcast one."""

    def __init__(
        self,
        non_broadcast_stream: DataStream[A],
        broadcast_stream: BroadcastStream[B],
        broadcast_state_descriptors: Sequence[MapStateDescriptor[Any, Any]],
    ) -> None:
        self.non_broadcast_stream = non_broadcast_stream
        self.broadcast_stream = broadcast_stream
        self.broadcast_state_descriptors = list(broadcast_state_descriptors)

    def process(
        self,
        func: BroadcastProcessFunction[A, B, R] | KeyedBroadcastProcessFunction[Any, A, B, R],
        output_type: DeclaredType[R] | None = None,
    ) -> DataStream[R]:
        """Apply process_element to the stream, and process_broadcast_element to the broadcast records."""
        stream = self.non_broadcast_stream
        selector: Callable[[Any], Any] | None = None
        if isinstance(stream, KeyedStream):
            selector = stream.key_selector
            check_instance(func, KeyedBroadcastProcessFunction, "BroadcastConnectedStream.process with keys", "func")
        else:
            check_instance(func, BroadcastProcessFunction, "BroadcastConnectedStream.process without keys", "func")
        declared = declared_type(output_type)
        operator = BroadcastProcessOperator(func, declared, selector)
        return add_two_input_operator(
            stream, self.broadcast_stream.input_stream, "Broadcast Process", operator, declared
        )


def add_two_input_operator(
    first: DataStream[Any],
    second: DataStream[Any],
    name: str,
    operator: Operator,
    type_info: TypeInformation[R] | None,
    results: Results | None = None,
) -> DataStream[R]:
    """Add an operator that reads two streams, and return the stream of its results."""
    environment = first.get_execution_environment()
    results = results_of(operator) if results is None else results
    types = result_types(name, operator, type_info, results)
    node = environment.add_node(Transformation(name, operator, [first.input_refs(), second.input_refs()]))
    stream: DataStream[R] = DataStream(environment, [StreamRef(node)], *types)
    stream._results = results
    return stream


__all__ = ["BroadcastConnectedStream", "BroadcastStream", "ConnectedStreams"]
