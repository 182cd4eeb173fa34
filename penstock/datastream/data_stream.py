"""DataStream: a program calls its methods, each of which adds a transformation to the environment's graph."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Generic, Self, overload

from penstock.api.functions.collectors import Collector, required_parameters, with_collector
from penstock.api.functions.element_functions import (
    FilterBatchesFunction,
    FilterFunction,
    FlatMapFunction,
    KeySelector,
    MapBatchesFunction,
    MapFunction,
    OutputSelector,
    Partitioner,
)
from penstock.api.functions.key_selectors import FieldsOfKey, Key
from penstock.api.functions.key_selectors import key_selector as as_key_selector
from penstock.api.functions.process_functions import ProcessFunction
from penstock.api.functions.source_functions import SinkFunction
from penstock.api.output_tag import OutputTag
from penstock.api.state.descriptors import MapStateDescriptor
from penstock.api.time_characteristic import TimeCharacteristic
from penstock.api.windows.assigners import (
    CountSlidingWindowAssigner,
    CountTumblingWindowAssigner,
    SlidingEventTimeWindows,
    SlidingProcessingTimeWindows,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
)
from penstock.api.windows.windows import CountWindow, TimeWindow, WindowAssigner
from penstock.base.arguments import check_arguments
from penstock.base.lazy_names import lazy_names
from penstock.base.type_variables import A, B, C, D, K, R, T_co, U, Unknown, W
from penstock.common.execution_config import ExecutionConfig
from penstock.common.python_types import type_of_class
from penstock.common.time import LengthOfTime
from penstock.common.type_information import DeclaredType, declared_type
from penstock.common.typeinfo import RowTypeInfo, TupleTypeInfo, TypeInformation
from penstock.common.types import Row
from penstock.common.watermark_strategy import WatermarkStrategy
from penstock.connectors.committing.two_phase_sink import TwoPhaseCommitSinkFunction, as_sink
from penstock.connectors.source_api import Sink, SupportsPreprocessing
from penstock.datastream.builders.annotations import Results, check_annotation
from penstock.datastream.builders.argument_checks import result_types, results_of
from penstock.datastream.builders.operator_settings import Settings
from penstock.datastream.builders.plan_displays import ShowsStream
from penstock.engine.operators.functions.batch_functions import BatchForm, FilterBatchesOperator, MapBatchesOperator
from penstock.engine.operators.functions.map_and_filter import (
    FilterOperator,
    FlatMapOperator,
    MapOperator,
    SplitOperator,
)
from penstock.engine.operators.functions.process_operators import ProcessOperator
from penstock.engine.operators.functions.projection import Projection
from penstock.engine.operators.operator import Operator
from penstock.engine.operators.sinks.committing import CommittingSink
from penstock.engine.operators.sinks.sink_operators import DiscardingSink, FunctionSink, PrintSink
from penstock.engine.operators.watermarks import TimestampsAndWatermarksOperator
from penstock.errors import UnsupportedOperation
from penstock.graph.partitioning import Broadcast, Custom, Forward, Global, Partitioning, Rebalance, Rescale, Shuffle
from penstock.graph.transformations import Chaining, StreamRef, Transformation
from penstock.service.launch.collected_results import CloseableIterator

if TYPE_CHECKING:
    from penstock.datastream.builders.connected_streams import (
        BroadcastConnectedStream,
        BroadcastStream,
        ConnectedStreams,
    )
    from penstock.datastream.builders.iterative_stream import IterativeStream
    from penstock.datastream.builders.joined_streams import CoGroupedStreams, JoinedStreams
    from penstock.datastream.builders.keyed_stream import KeyedStream
    from penstock.datastream.builders.windowed_stream import AllWindowedStream
    from penstock.datastream.stream_execution_environment import StreamExecutionEnvironment


@check_arguments
class DataStream(ShowsStream, Settings, Generic[T_co]):
    """A stream of records of one type."""

    def __init__(
        self,
        environment: StreamExecutionEnvironment,
        refs: Sequence[StreamRef],
        type_info: TypeInformation[T_co] | None = None,
        annotated: TypeInformation[T_co] | None = None,
    ) -> None:
        """Take the declared type of the records, and the type that annotations state if none was declared."""
        self._environment = environment
        self.refs = tuple(refs)
        self._type = type_info
        self._annotated = annotated
        self._results = Results(None)

    @property
    def _node(self) -> Transformation:  # type: ignore[override]
        if len(self.refs) != 1:
            raise UnsupportedOperation(
                "a union is no operator of its own: set this on its inputs or on what follows it"
            )
        return self.refs[0].node

    # --- what a stream is ---
    def get_type(self) -> TypeInformation[T_co] | None:
        """Return the declared type, or else the type that the function's return annotation states, or else None."""
        return self._annotated if self._type is None else self._type

    def get_execution_environment(self) -> StreamExecutionEnvironment:
        """Return the environment that this stream belongs to."""
        return self._environment

    def get_execution_config(self) -> ExecutionConfig:
        """Return the execution settings of the environment."""
        return self._environment.get_config()

    def returns(self, type_info: DeclaredType[R]) -> DataStream[R]:
        """Declare the type of the operator's results, if its method was given none. Values are checked against it."""
        stream: DataStream[Any] = self
        declared = declared_type(type_info)
        check_annotation(self._node.name, self._results, declared)
        self._node.operator.output_type = stream._type = declared
        return stream

    def force_non_parallel(self) -> Self:
        """Fix the parallelism at 1."""
        self._node.parallelism = 1
        self._node.non_parallel = True
        return self

    def start_new_chain(self) -> Self:
        """Begin a chain with this operator."""
        self._node.chaining = Chaining.HEAD
        return self

    def set_buffer_timeout(self, timeout_millis: int) -> Self:
        """Accept the setting of a program. Only the environment's buffer timeout, which paces epochs, has an effect."""
        if timeout_millis < -1:
            raise ValueError(f"a buffer timeout is at least -1, not {timeout_millis}")
        self._node.buffer_timeout = timeout_millis
        return self

    def cache(self) -> Self:
        """Raise an error: a stream is computed only for the job that reads it."""
        raise UnsupportedOperation("cache() is not available: write the stream to a sink and read it from there")

    # --- one record at a time ---
    # The forms for tuples keep type checkers from taking a constant in a tuple for a type of its own. Functions whose
    # result is unknown have a form too, so that they are not taken for functions that return tuples.
    @overload
    def map(
        self, func: MapFunction[T_co, Any] | Callable[[T_co], Any], output_type: RowTypeInfo
    ) -> DataStream[Row]: ...

    @overload
    def map(self, func: MapFunction[T_co, R], output_type: DeclaredType[R] | None = None) -> DataStream[R]: ...

    @overload
    def map(
        self, func: Callable[[T_co], Unknown], output_type: TupleTypeInfo[Any] | None = None
    ) -> DataStream[Any]: ...

    @overload
    def map(
        self, func: Callable[[T_co], tuple[A, B]], output_type: TupleTypeInfo[Any] | None = None
    ) -> DataStream[tuple[A, B]]: ...

    @overload
    def map(
        self, func: Callable[[T_co], tuple[A, B, C]], output_type: TupleTypeInfo[Any] | None = None
    ) -> DataStream[tuple[A, B, C]]: ...

    @overload
    def map(
        self, func: Callable[[T_co], tuple[A, B, C, D]], output_type: TupleTypeInfo[Any] | None = None
    ) -> DataStream[tuple[A, B, C, D]]: ...

    @overload
    def map(
        self, func: MapFunction[T_co, R] | Callable[[T_co], R], output_type: DeclaredType[R] | None = None
    ) -> DataStream[R]: ...

    def map(
        self, func: MapFunction[T_co, Any] | Callable[[T_co], Any], output_type: DeclaredType[Any] | None = None
    ) -> DataStream[Any]:
        """Turn each record into exactly one other."""
        declared = declared_type(output_type)
        return self.apply_operator("Map", MapOperator(func, declared, self._keys_for(func)), declared)

    @overload
    def flat_map(
        self,
        func: FlatMapFunction[T_co, Any] | Callable[[T_co], Iterable[Any] | None],
        output_type: RowTypeInfo,
    ) -> DataStream[Row]: ...

    @overload
    def flat_map(
        self,
        func: FlatMapFunction[T_co, R] | Callable[[T_co], Iterable[R] | None],
        output_type: DeclaredType[R] | None = None,
    ) -> DataStream[R]: ...

    @overload
    def flat_map(
        self, func: Callable[[T_co, Collector[R]], Iterable[R] | None], output_type: DeclaredType[R] | None = None
    ) -> DataStream[R]: ...

    def flat_map(
        self,
        func: FlatMapFunction[T_co, Any] | Callable[..., Iterable[Any] | None],
        output_type: DeclaredType[Any] | None = None,
    ) -> DataStream[Any]:
        """Turn each record into any number of records: `func` yields them, returns an iterable or returns None.

        It may also take a collector: `func(value, out)`.
        """
        if not isinstance(func, FlatMapFunction) and required_parameters(func) == 2:
            func = with_collector(func, 1)
        declared = declared_type(output_type)
        return self.apply_operator("Flat Map", FlatMapOperator(func, declared, self._keys_for(func)), declared)

    def filter(self, func: FilterFunction[T_co] | Callable[[T_co], object]) -> DataStream[T_co]:
        """Keep the records for which `func` is true."""
        return self._keep_type("Filter", FilterOperator(func, None, self._keys_for(func)))

    # --- a batch of records at a time ---
    def map_batches(
        self,
        func: MapBatchesFunction | Callable[[Any], Any],
        output_type: RowTypeInfo | None = None,
        *,
        as_pandas: bool = False,
        event_time: str | None = None,
    ) -> DataStream[Row]:
        """Replace each batch of rows with the result of `func`: a pyarrow.RecordBatch, or an iterable of batches.

        `func` gets a pyarrow.RecordBatch, or a pandas.DataFrame. The sizes of batches are not defined. Results with as
        many rows as the batch keep their timestamps, row by row; otherwise all get the latest of the batch.
        `event_time` names one more column, in which `func` gets timestamps and from which the timestamps of its results
        are taken.
        """
        form = BatchForm(self._type, as_pandas, event_time)
        return self.apply_operator("Map Batches", MapBatchesOperator(func, form, output_type), output_type)

    def filter_batches(
        self,
        func: FilterBatchesFunction | Callable[[Any], Any],
        *,
        as_pandas: bool = False,
        event_time: str | None = None,
    ) -> DataStream[T_co]:
        """Keep the rows for which `func` has true: it gets a batch and returns one boolean for each of its rows.

        The batch is the same as in `map_batches`. Rows keep their timestamps.
        """
        form = BatchForm(self._type, as_pandas, event_time)
        return self._keep_type("Filter Batches", FilterBatchesOperator(func, form))

    def process(self, func: ProcessFunction[T_co, R], output_type: DeclaredType[R] | None = None) -> DataStream[R]:
        """Apply the most general operator, with access to timestamps and side outputs."""
        declared = declared_type(output_type)
        return self.apply_operator("Process", ProcessOperator(func, declared), declared)

    def project(self, *field_indexes: int) -> DataStream[Any]:
        """Keep the chosen fields of tuples or rows, in the given order."""
        if not field_indexes:
            raise ValueError("project needs at least one field index")
        projection = Projection(field_indexes, self._type)
        return self.apply_operator(
            "Projection", MapOperator(projection, projection.output_type), projection.output_type
        )

    def split(self, output_selector: OutputSelector[T_co] | Callable[[T_co], str | Sequence[str]]) -> SplitStream[T_co]:
        """Name the outputs to which each record belongs. `select` reads them."""
        stream = self._keep_type("Split", SplitOperator(output_selector))
        return SplitStream(self._environment, stream.refs, self._type, self._annotated)

    def get_side_output(self, output_tag: OutputTag[R]) -> DataStream[R]:
        """Return the records that this operator emitted to a side output."""
        ref = StreamRef(self._node, output_tag.tag_id)
        return DataStream(self._environment, [ref], output_tag.type_info)

    def assign_timestamps_and_watermarks(self, watermark_strategy: WatermarkStrategy[T_co]) -> DataStream[T_co]:
        """Give records their event time and the stream its watermarks, by a strategy or an assigner of Flink 1.x."""
        strategy = watermark_strategy
        stream = self._keep_type("Timestamps/Watermarks", TimestampsAndWatermarksOperator(strategy))
        if strategy.alignment is not None:
            stream._node.alignment = (strategy.alignment.group, strategy.alignment.max_drift_ms)
        return stream

    def assign_ascending_timestamps(self, extractor: Callable[[T_co], int]) -> DataStream[T_co]:
        """Assign timestamps that never go back, as in Flink 1.x. `extractor` returns the time of a record."""
        strategy: WatermarkStrategy[T_co] = WatermarkStrategy.for_monotonous_timestamps()
        strategy = strategy.with_timestamp_assigner(extractor)
        return self.assign_timestamps_and_watermarks(strategy)

    # --- several streams ---
    def union(self, *streams: DataStream[U]) -> DataStream[T_co | U]:
        """Merge this stream with others of the same type. Their records come in no particular order between streams."""
        refs = list(self.refs)
        for stream in streams:
            if stream._environment is not self._environment:
                raise UnsupportedOperation("streams of different environments cannot be joined into one job")
            refs.extend(stream.refs)
        type_info: TypeInformation[Any] | None = self._type
        annotated: TypeInformation[Any] | None = self._annotated
        agree = all(stream.get_type() == annotated for stream in streams)
        return DataStream(self._environment, refs, type_info, annotated if agree else None)

    @overload
    def connect(self, ds: DataStream[U]) -> ConnectedStreams[T_co, U]: ...

    @overload
    def connect(self, ds: BroadcastStream[U]) -> BroadcastConnectedStream[T_co, U]: ...

    def connect(
        self, ds: DataStream[U] | BroadcastStream[U]
    ) -> ConnectedStreams[T_co, U] | BroadcastConnectedStream[T_co, U]:
        """Connect two streams of different types for one function, or a stream and a broadcast one."""
        from penstock.datastream.builders.connected_streams import (
            BroadcastConnectedStream,
            BroadcastStream,
            ConnectedStreams,
        )

        if isinstance(ds, BroadcastStream):
            return BroadcastConnectedStream(self, ds, ds.broadcast_state_descriptors)
        return ConnectedStreams(self, ds)

    def join(self, other_stream: DataStream[U]) -> JoinedStreams[T_co, U]:
        """Join elements with equal keys in common windows: .where(k).equal_to(k).window(w).apply(f)."""
        from penstock.datastream.builders.joined_streams import JoinedStreams

        return JoinedStreams(self, other_stream)

    def co_group(self, other_stream: DataStream[U]) -> CoGroupedStreams[T_co, U]:
        """Group elements with equal keys in common windows: .where(k).equal_to(k).window(w).apply(f)."""
        from penstock.datastream.builders.joined_streams import CoGroupedStreams

        return CoGroupedStreams(self, other_stream)

    def iterate(self, max_wait_time: LengthOfTime = 0) -> IterativeStream[T_co]:
        """Begin a loop: the stream that `close_with` gets returns here, one epoch later.

        A loop ends when its input has ended, no record is under way, and none has returned for `max_wait_time`.
        """
        from penstock.datastream.builders.iterative_stream import IterativeStream

        return IterativeStream(self, max_wait_time)

    # --- windows over the whole stream ---
    def window_all(self, window_assigner: WindowAssigner[T_co, W]) -> AllWindowedStream[T_co, W]:
        """Cut the whole stream into windows, in one subtask."""
        from penstock.datastream.builders.keyed_stream import KeyedStream
        from penstock.datastream.builders.windowed_stream import AllWindowedStream, one_key

        plain: DataStream[T_co] = self._origin if isinstance(self, KeyedStream) else self
        return AllWindowedStream(KeyedStream(plain, one_key), window_assigner)

    def time_window_all(
        self, size: LengthOfTime, slide: LengthOfTime | None = None
    ) -> AllWindowedStream[T_co, TimeWindow]:
        """Cut records into windows, as in Flink 1.x, by the environment's notion of time: by default, event time."""
        return self.window_all(time_assigner(self._environment, size, slide))

    def count_window_all(self, size: int, slide: int = 0) -> AllWindowedStream[T_co, CountWindow]:
        """Cut records into windows of `size`, which start every `slide` records."""
        return self.window_all(CountSlidingWindowAssigner(size, slide) if slide else CountTumblingWindowAssigner(size))

    @overload
    def key_by(
        self, key_selector: FieldsOfKey, key_type: DeclaredType[K] | FieldsOfKey | None = None, *more: FieldsOfKey
    ) -> KeyedStream[Any, T_co]: ...

    @overload
    def key_by(
        self, key_selector: KeySelector[T_co, K] | Callable[[T_co], K], key_type: DeclaredType[K] | None = None
    ) -> KeyedStream[K, T_co]: ...

    def key_by(
        self, key_selector: Key, key_type: TypeInformation[Any] | Key | None = None, *more: Key
    ) -> KeyedStream[Any, T_co]:
        """Partition by a key: a function, a KeySelector, a field position, name or path, or several of these."""
        from penstock.datastream.builders.keyed_stream import KeyedStream

        plain: DataStream[T_co] = self._origin if isinstance(self, KeyedStream) else self
        if key_type is None or isinstance(key_type, TypeInformation):
            return KeyedStream(plain, as_key_selector(key_selector, *more), key_type)
        if (declared := type_of_class(key_type)) is not None:
            return KeyedStream(plain, as_key_selector(key_selector, *more), declared)
        return KeyedStream(plain, as_key_selector(key_selector, key_type, *more))

    # --- how records are distributed ---
    def shuffle(self) -> DataStream[T_co]:
        """Send each record to a random subtask."""
        return self._partition(Shuffle())

    def rebalance(self) -> DataStream[T_co]:
        """Send records to all subtasks in turn."""
        return self._partition(Rebalance())

    def rescale(self) -> DataStream[T_co]:
        """Send records to some subtasks in turn, so that each upstream subtask serves its own share."""
        return self._partition(Rescale())

    def global_(self) -> DataStream[T_co]:
        """Send all records to the first subtask."""
        return self._partition(Global())

    def forward(self) -> DataStream[T_co]:
        """Send each record to the subtask of the same index."""
        return self._partition(Forward())

    @overload
    def broadcast(self) -> DataStream[T_co]: ...

    @overload
    def broadcast(
        self,
        broadcast_state_descriptor: MapStateDescriptor[Any, Any],
        *other_broadcast_state_descriptors: MapStateDescriptor[Any, Any],
    ) -> BroadcastStream[T_co]: ...

    def broadcast(
        self,
        broadcast_state_descriptor: MapStateDescriptor[Any, Any] | None = None,
        *other_broadcast_state_descriptors: MapStateDescriptor[Any, Any],
    ) -> DataStream[T_co] | BroadcastStream[T_co]:
        """Send a copy to every subtask. With descriptors, the result fills broadcast state when it is connected."""
        from penstock.datastream.builders.connected_streams import BroadcastStream

        stream = self._partition(Broadcast())
        if broadcast_state_descriptor is None:
            return stream
        return BroadcastStream(stream, [broadcast_state_descriptor, *other_broadcast_state_descriptors])

    @overload
    def partition_custom(
        self,
        partitioner: Partitioner[K] | Callable[[K, int], int],
        key_selector: KeySelector[T_co, K] | Callable[[T_co], K],
    ) -> DataStream[T_co]: ...

    @overload
    def partition_custom(
        self, partitioner: Partitioner[Any] | Callable[[Any, int], int], key_selector: FieldsOfKey
    ) -> DataStream[T_co]: ...

    def partition_custom(
        self, partitioner: Partitioner[Any] | Callable[[Any, int], int], key_selector: Key
    ) -> DataStream[T_co]:
        """Send each record to the subtask that partitioner(key, number of subtasks) chooses."""
        return self._partition(Custom(partitioner, as_key_selector(key_selector)))

    # --- the end of a stream ---
    def print(self, sink_identifier: str | None = None) -> DataStreamSink:
        """Print on the driver, with the identifier and the subtask's number before each record."""
        return self._sink("Print to Std. Out", PrintSink(sink_identifier or "", self._type))

    def add_sink(
        self, sink_func: SinkFunction[T_co] | TwoPhaseCommitSinkFunction | Sink[T_co] | Callable[[T_co], object]
    ) -> DataStreamSink:
        """Call a SinkFunction, or a plain function, for every record. Sink connectors are accepted too."""
        if isinstance(sink_func, Sink):
            return self.sink_to(sink_func)
        if isinstance(sink_func, TwoPhaseCommitSinkFunction):
            return self.sink_to(as_sink(sink_func))
        return self._sink("Sink", FunctionSink(sink_func, None, self._keys_for(sink_func)))

    def sink_to(self, sink: Sink[T_co]) -> DataStreamSink:
        """Write to a sink connector."""
        stream: DataStream[Any] = self
        if isinstance(sink, SupportsPreprocessing) and (transformer := sink.get_transformer()) is not None:
            stream = transformer.apply(self)
        return stream._sink("Sink", CommittingSink(sink, stream._type), kind="committing sink")

    def transform(self, operator_name: str, operator: Sink[T_co]) -> DataStreamSink:
        """Give a write-ahead sink its name, as in Flink 1.x.

        Functions are applied with process() and similar methods.
        """
        sink = self.sink_to(operator)
        sink.name(operator_name)
        return sink

    def discard(self) -> DataStreamSink:
        """Read the stream and keep nothing, to run it for its side effects or to measure it."""
        return self._sink("Discard", DiscardingSink())

    @overload
    def execute_and_collect(
        self, job_execution_name: str | None = None, limit: None = None
    ) -> CloseableIterator[T_co]: ...

    @overload
    def execute_and_collect(self, job_execution_name: str | None = None, *, limit: int) -> list[T_co]: ...

    @overload
    def execute_and_collect(self, job_execution_name: str | None, limit: int) -> list[T_co]: ...

    def execute_and_collect(
        self, job_execution_name: str | None = None, limit: int | None = None
    ) -> CloseableIterator[T_co] | list[T_co]:
        """Run the job and iterate over this stream's records while it runs.

        With a limit, return a list of that many.
        """
        results = self._environment.collect(self, job_execution_name)
        return results if limit is None else results.take(limit)

    # --- making streams ---
    def _keys_for(self, func: Any) -> Callable[[Any], Any] | None:
        """Return the key selector that `func` needs for keyed state; a plain stream has none."""
        return None

    def input_refs(self) -> tuple[StreamRef, ...]:
        """Return the streams that an operator on this one reads: for other parts of Penstock, not for programs."""
        return self.refs

    def apply_operator(
        self, name: str, operator: Operator, type_info: TypeInformation[R] | None, results: Results | None = None
    ) -> DataStream[R]:
        """Add an operator to this stream, and return the stream of its results.

        `results` holds the function that returns the results. It can be omitted if the operator has one function only.
        """
        results = results_of(operator) if results is None else results
        types = result_types(name, operator, type_info, results)
        node = self._environment.add_node(Transformation(name, operator, [self.input_refs()]))
        stream: DataStream[R] = DataStream(self._environment, [StreamRef(node)], *types)
        stream._results = results
        return stream

    def _keep_type(self, name: str, operator: Operator) -> DataStream[T_co]:
        """Add an operator whose results have the type of its input."""
        stream = self.apply_operator(name, operator, self._type)
        stream._annotated = self._annotated or stream._annotated
        return stream

    def _sink(self, name: str, operator: Operator, kind: str = "sink") -> DataStreamSink:
        node = self._environment.add_node(Transformation(name, operator, [self.input_refs()], kind=kind))
        return DataStreamSink(node)

    def _partition(self, partitioning: Partitioning) -> DataStream[T_co]:
        refs = [StreamRef(ref.node, ref.tag, partitioning) for ref in self.refs]
        return DataStream(self._environment, refs, self._type, self._annotated)


@check_arguments
class SplitStream(DataStream[T_co]):
    """A stream whose records have named outputs."""

    def select(self, *output_names: str) -> DataStream[T_co]:
        """Return the records that belong to any of the named outputs, each of them once."""
        if not output_names:
            raise ValueError("select needs at least one output name")
        ref = StreamRef(self._node, self._node.operator.add_selection(output_names))
        return DataStream(self._environment, [ref], self._type, self._annotated)


@check_arguments
class DataStreamSink(Settings):
    """The end of a stream."""

    def __init__(self, node: Transformation) -> None:
        self._node = node


def time_assigner(
    environment: StreamExecutionEnvironment, size: LengthOfTime, slide: LengthOfTime | None
) -> WindowAssigner[Any, TimeWindow]:
    """Return the assigner of time_window: by processing time if the environment's time characteristic says so."""
    if environment.get_stream_time_characteristic() is TimeCharacteristic.ProcessingTime:
        if slide is None:
            return TumblingProcessingTimeWindows.of(size)
        return SlidingProcessingTimeWindows.of(size, slide)
    return TumblingEventTimeWindows.of(size) if slide is None else SlidingEventTimeWindows.of(size, slide)


# The other stream classes have modules of their own. They can be imported from here, as from PyFlink's module.
__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "penstock.datastream.builders.keyed_stream": "KeyedStream",
        "penstock.datastream.builders.connected_streams": "BroadcastConnectedStream BroadcastStream ConnectedStreams",
        "penstock.datastream.builders.windowed_stream": "AllWindowedStream WindowedStream",
        "penstock.datastream.builders.joined_streams": "CoGroupedStreams JoinedStreams",
        "penstock.datastream.builders.interval_join": "IntervalJoin",
        "penstock.datastream.builders.iterative_stream": "ConnectedIterativeStreams IterativeStream",
    },
)

__all__ = ["CloseableIterator", "DataStream", "DataStreamSink", "SplitStream"]
