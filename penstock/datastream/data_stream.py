"""DataStream: a program calls its methods, each of which adds a transformation to the environment's graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from penstock.api.functions.collectors import required_parameters, with_collector
from penstock.api.functions.element_functions import (
    FilterBatchesFunction,
    FilterFunction,
    FlatMapFunction,
    MapBatchesFunction,
    MapFunction,
    OutputSelector,
    Partitioner,
)
from penstock.api.functions.key_selectors import Key
from penstock.api.functions.key_selectors import key_selector as as_key_selector
from penstock.api.functions.process_functions import ProcessFunction
from penstock.api.functions.source_functions import SinkFunction
from penstock.api.output_tag import OutputTag
from penstock.api.slot_sharing_group import SlotSharingGroup
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
from penstock.api.windows.windows import WindowAssigner
from penstock.base.arguments import check_arguments
from penstock.base.lazy_names import lazy_names
from penstock.common.execution_config import ExecutionConfig, check_max_parallelism, check_parallelism
from penstock.common.python_types import type_of_class
from penstock.common.time import LengthOfTime
from penstock.common.typeinfo import RowTypeInfo, TypeInformation
from penstock.common.watermark_strategy import WatermarkStrategy
from penstock.connectors.committing.two_phase_sink import TwoPhaseCommitSinkFunction, as_sink
from penstock.connectors.source_api import Sink, SupportsPreprocessing
from penstock.datastream.builders.argument_checks import result_type_of
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
    from penstock.datastream.builders.joined_streams import CoGroupedStreams, JoinedStreams
    from penstock.datastream.builders.keyed_stream import KeyedStream
    from penstock.datastream.builders.windowed_stream import AllWindowedStream
    from penstock.datastream.stream_execution_environment import StreamExecutionEnvironment


@check_arguments
class Settings:
    """The settings of a stream's operator, shared by streams and sinks."""

    _node: Transformation

    def name(self, name: str) -> Any:
        """Set the operator's name in plans, logs and errors."""
        self._node.name = name
        return self

    def get_name(self) -> str:
        """Return the operator's name."""
        return self._node.name

    def uid(self, uid: str) -> Any:
        """Set the operator's identity across versions of the program, by which its state is found."""
        if not uid:
            raise ValueError("a uid must not be empty")
        self._node.uid = uid
        return self

    def set_uid_hash(self, uid_hash: str) -> Any:
        """Set the identity that an earlier version generated, to take over its state."""
        self._node.uid_hash = uid_hash
        return self

    def set_description(self, description: str) -> Any:
        """Set a text for plans that is longer than the name."""
        self._node.description = description
        return self

    def set_parallelism(self, parallelism: int) -> Any:
        """Set the number of subtasks of this operator."""
        check_parallelism(parallelism, self._node.max_parallelism or -1)
        if self._node.non_parallel and parallelism != 1:
            raise UnsupportedOperation(
                f"{self._node.name} has no parallel form: its parallelism is 1, not {parallelism}"
            )
        self._node.parallelism = parallelism
        return self

    def set_max_parallelism(self, max_parallelism: int) -> Any:
        """Set the number of key groups: the most subtasks to which the operator can be scaled with its state."""
        check_max_parallelism(max_parallelism)
        self._node.max_parallelism = max_parallelism
        return self

    def disable_chaining(self) -> Any:
        """Do not chain this operator with its neighbours."""
        self._node.chaining = Chaining.NEVER
        return self

    def slot_sharing_group(self, slot_sharing_group: str | SlotSharingGroup) -> Any:
        """Set the name of a group of operators. Operators of different groups are not chained."""
        group = slot_sharing_group
        self._node.slot_sharing_group = group.get_name() if isinstance(group, SlotSharingGroup) else group
        return self


@check_arguments
class DataStream(Settings):
    """A stream of records of one type."""

    def __init__(
        self,
        environment: StreamExecutionEnvironment,
        refs: Sequence[StreamRef],
        type_info: TypeInformation | None = None,
    ) -> None:
        self._environment = environment
        self._refs = tuple(refs)
        self._type = type_info

    @property
    def _node(self) -> Transformation:  # type: ignore[override]
        if len(self._refs) != 1:
            raise UnsupportedOperation(
                "a union is no operator of its own: set this on its inputs or on what follows it"
            )
        return self._refs[0].node

    # --- what a stream is ---
    def get_type(self) -> TypeInformation | None:
        """Return the declared type; None if no type was declared."""
        return self._type

    def get_execution_environment(self) -> StreamExecutionEnvironment:
        """Return the environment that this stream belongs to."""
        return self._environment

    def get_execution_config(self) -> ExecutionConfig:
        """Return the execution settings of the environment."""
        return self._environment.get_config()

    def returns(self, type_info: TypeInformation) -> DataStream:
        """Declare the type of the operator's results, if its method was given none. Values are checked against it."""
        self._node.operator.output_type = type_info
        self._type = type_info
        return self

    def force_non_parallel(self) -> DataStream:
        """Fix the parallelism at 1."""
        self._node.parallelism = 1
        self._node.non_parallel = True
        return self

    def start_new_chain(self) -> DataStream:
        """Begin a chain with this operator."""
        self._node.chaining = Chaining.HEAD
        return self

    def set_buffer_timeout(self, timeout_millis: int) -> DataStream:
        """Accept the setting of a program. Only the environment's buffer timeout, which paces epochs, has an effect."""
        if timeout_millis < -1:
            raise ValueError(f"a buffer timeout is at least -1, not {timeout_millis}")
        self._node.buffer_timeout = timeout_millis
        return self

    def cache(self) -> DataStream:
        """Raise an error: a stream is computed only for the job that reads it."""
        raise UnsupportedOperation("cache() is not available: write the stream to a sink and read it from there")

    # --- one record at a time ---
    def map(self, func: MapFunction | Callable[[Any], Any], output_type: TypeInformation | None = None) -> DataStream:
        """Turn each record into exactly one other."""
        return self.apply_operator("Map", MapOperator(func, output_type, self._keys_for(func)), output_type)

    def flat_map(
        self, func: FlatMapFunction | Callable[[Any], Any], output_type: TypeInformation | None = None
    ) -> DataStream:
        """Turn each record into any number of records: `func` yields them, returns an iterable or returns None.

        It may also take a collector: `func(value, out)`.
        """
        if not isinstance(func, FlatMapFunction) and required_parameters(func) == 2:
            func = with_collector(func, 1)
        return self.apply_operator("Flat Map", FlatMapOperator(func, output_type, self._keys_for(func)), output_type)

    def filter(self, func: FilterFunction | Callable[[Any], bool]) -> DataStream:
        """Keep the records for which `func` is true."""
        return self.apply_operator("Filter", FilterOperator(func, None, self._keys_for(func)), self._type)

    # --- a batch of records at a time ---
    def map_batches(
        self,
        func: MapBatchesFunction | Callable[[Any], Any],
        output_type: RowTypeInfo | None = None,
        *,
        as_pandas: bool = False,
        event_time: str | None = None,
    ) -> DataStream:
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
    ) -> DataStream:
        """Keep the rows for which `func` has true: it gets a batch and returns one boolean for each of its rows.

        The batch is the same as in `map_batches`. Rows keep their timestamps.
        """
        form = BatchForm(self._type, as_pandas, event_time)
        return self.apply_operator("Filter Batches", FilterBatchesOperator(func, form), self._type)

    def process(self, func: ProcessFunction, output_type: TypeInformation | None = None) -> DataStream:
        """Apply the most general operator, with access to timestamps and side outputs."""
        return self.apply_operator("Process", ProcessOperator(func, output_type), output_type)

    def project(self, *field_indexes: int) -> DataStream:
        """Keep the chosen fields of tuples or rows, in the given order."""
        if not field_indexes:
            raise ValueError("project needs at least one field index")
        projection = Projection(field_indexes, self._type)
        return self.apply_operator(
            "Projection", MapOperator(projection, projection.output_type), projection.output_type
        )

    def split(self, output_selector: OutputSelector | Callable[[Any], str | Sequence[str]]) -> SplitStream:
        """Name the outputs to which each record belongs. `select` reads them."""
        stream = self.apply_operator("Split", SplitOperator(output_selector), self._type)
        return SplitStream(self._environment, stream._refs, self._type)

    def get_side_output(self, output_tag: OutputTag) -> DataStream:
        """Return the records that this operator emitted to a side output."""
        ref = StreamRef(self._node, output_tag.tag_id)
        return DataStream(self._environment, [ref], output_tag.type_info)

    def assign_timestamps_and_watermarks(self, watermark_strategy: WatermarkStrategy) -> DataStream:
        """Give records their event time and the stream its watermarks, by a strategy or an assigner of Flink 1.x."""
        strategy = watermark_strategy
        stream = self.apply_operator("Timestamps/Watermarks", TimestampsAndWatermarksOperator(strategy), self._type)
        if strategy.alignment is not None:
            stream._node.alignment = (strategy.alignment.group, strategy.alignment.max_drift_ms)
        return stream

    def assign_ascending_timestamps(self, extractor: Callable[[Any], int]) -> DataStream:
        """Assign timestamps that never go back, as in Flink 1.x. `extractor` returns the time of a record."""
        strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(extractor)
        return self.assign_timestamps_and_watermarks(strategy)

    # --- several streams ---
    def union(self, *streams: DataStream) -> DataStream:
        """Merge this stream with others of the same type. Their records come in no particular order between streams."""
        refs = list(self._refs)
        for stream in streams:
            if stream._environment is not self._environment:
                raise UnsupportedOperation("streams of different environments cannot be joined into one job")
            refs.extend(stream._refs)
        return DataStream(self._environment, refs, self._type)

    def connect(self, ds: DataStream | BroadcastStream) -> ConnectedStreams | BroadcastConnectedStream:
        """Connect two streams of different types for one function, or a stream and a broadcast one."""
        from penstock.datastream.builders.connected_streams import (
            BroadcastConnectedStream,
            BroadcastStream,
            ConnectedStreams,
        )

        if isinstance(ds, BroadcastStream):
            return BroadcastConnectedStream(self, ds, ds.broadcast_state_descriptors)
        return ConnectedStreams(self, ds)

    def join(self, other_stream: DataStream) -> JoinedStreams:
        """Join elements with equal keys in common windows: .where(k).equal_to(k).window(w).apply(f)."""
        from penstock.datastream.builders.joined_streams import JoinedStreams

        return JoinedStreams(self, other_stream)

    def co_group(self, other_stream: DataStream) -> CoGroupedStreams:
        """Group elements with equal keys in common windows: .where(k).equal_to(k).window(w).apply(f)."""
        from penstock.datastream.builders.joined_streams import CoGroupedStreams

        return CoGroupedStreams(self, other_stream)

    # --- windows over the whole stream ---
    def window_all(self, window_assigner: WindowAssigner[Any, Any]) -> AllWindowedStream:
        """Cut the whole stream into windows, in one subtask."""
        from penstock.datastream.builders.keyed_stream import KeyedStream
        from penstock.datastream.builders.windowed_stream import AllWindowedStream, one_key

        plain = self._origin if isinstance(self, KeyedStream) else self
        return AllWindowedStream(KeyedStream(plain, one_key), window_assigner)

    def time_window_all(self, size: LengthOfTime, slide: LengthOfTime | None = None) -> AllWindowedStream:
        """Cut records into windows, as in Flink 1.x, by the environment's notion of time: by default, event time."""
        return self.window_all(time_assigner(self._environment, size, slide))

    def count_window_all(self, size: int, slide: int = 0) -> AllWindowedStream:
        """Cut records into windows of `size`, which start every `slide` records."""
        return self.window_all(CountSlidingWindowAssigner(size, slide) if slide else CountTumblingWindowAssigner(size))

    def key_by(self, key_selector: Key, key_type: TypeInformation | Key | None = None, *more: Key) -> KeyedStream:
        """Partition by a key: a function, a KeySelector, a field position, name or path, or several of these."""
        from penstock.datastream.builders.keyed_stream import KeyedStream

        if key_type is None or isinstance(key_type, TypeInformation):
            return KeyedStream(self, as_key_selector(key_selector, *more), key_type)
        if (declared := type_of_class(key_type)) is not None:
            return KeyedStream(self, as_key_selector(key_selector, *more), declared)
        return KeyedStream(self, as_key_selector(key_selector, key_type, *more))

    # --- how records are distributed ---
    def shuffle(self) -> DataStream:
        """Send each record to a random subtask."""
        return self._partition(Shuffle())

    def rebalance(self) -> DataStream:
        """Send records to all subtasks in turn."""
        return self._partition(Rebalance())

    def rescale(self) -> DataStream:
        """Send records to some subtasks in turn, so that each upstream subtask serves its own share."""
        return self._partition(Rescale())

    def global_(self) -> DataStream:
        """Send all records to the first subtask."""
        return self._partition(Global())

    def forward(self) -> DataStream:
        """Send each record to the subtask of the same index."""
        return self._partition(Forward())

    def broadcast(
        self,
        broadcast_state_descriptor: MapStateDescriptor | None = None,
        *other_broadcast_state_descriptors: MapStateDescriptor,
    ) -> Any:
        """Send a copy to every subtask. With descriptors, the result fills broadcast state when it is connected."""
        from penstock.datastream.builders.connected_streams import BroadcastStream

        stream = self._partition(Broadcast())
        if broadcast_state_descriptor is None:
            return stream
        return BroadcastStream(stream, [broadcast_state_descriptor, *other_broadcast_state_descriptors])

    def partition_custom(self, partitioner: Partitioner | Callable[[Any, int], int], key_selector: Key) -> DataStream:
        """Send each record to the subtask that partitioner(key, number of subtasks) chooses."""
        return self._partition(Custom(partitioner, as_key_selector(key_selector)))

    # --- the end of a stream ---
    def print(self, sink_identifier: str | None = None) -> DataStreamSink:
        """Print on the driver, with the identifier and the subtask's number before each record."""
        return self._sink("Print to Std. Out", PrintSink(sink_identifier or "", self._type))

    def add_sink(
        self, sink_func: SinkFunction | TwoPhaseCommitSinkFunction | Sink | Callable[[Any], None]
    ) -> DataStreamSink:
        """Call a SinkFunction, or a plain function, for every record. Sink connectors are accepted too."""
        if isinstance(sink_func, Sink):
            return self.sink_to(sink_func)
        if isinstance(sink_func, TwoPhaseCommitSinkFunction):
            return self.sink_to(as_sink(sink_func))
        return self._sink("Sink", FunctionSink(sink_func, None, self._keys_for(sink_func)))

    def sink_to(self, sink: Sink) -> DataStreamSink:
        """Write to a sink connector."""
        stream = self
        if isinstance(sink, SupportsPreprocessing) and (transformer := sink.get_transformer()) is not None:
            stream = transformer.apply(self)
        return stream._sink("Sink", CommittingSink(sink, stream._type), kind="committing sink")

    def transform(self, operator_name: str, operator: Sink) -> DataStreamSink:
        """Give a write-ahead sink its name, as in Flink 1.x.

        Functions are applied with process() and similar methods.
        """
        sink = self.sink_to(operator)
        sink.name(operator_name)
        return sink

    def discard(self) -> DataStreamSink:
        """Read the stream and keep nothing, to run it for its side effects or to measure it."""
        return self._sink("Discard", DiscardingSink())

    def execute_and_collect(self, job_execution_name: str | None = None, limit: int | None = None) -> Any:
        """Run the job and iterate over this stream's records while it runs.

        With a limit, return a list of that many.
        """
        results = self._environment.collect(self, job_execution_name)
        return results if limit is None else results.take(limit)

    # --- making streams ---
    def _keys_for(self, func: Any) -> Callable[[Any], Any] | None:
        """Return the key selector that `func` needs for keyed state; a plain stream has none."""
        return None

    def _input_refs(self) -> tuple[StreamRef, ...]:
        return self._refs

    def apply_operator(self, name: str, operator: Operator, type_info: TypeInformation | None) -> DataStream:
        """Add an operator to this stream, and return the stream of its results."""
        if type_info is None and (type_info := result_type_of(getattr(operator, "function", None))) is not None:
            operator.output_type = type_info
        node = self._environment._add(Transformation(name, operator, [self._input_refs()]))
        return DataStream(self._environment, [StreamRef(node)], type_info)

    def _sink(self, name: str, operator: Operator, kind: str = "sink") -> DataStreamSink:
        node = self._environment._add(Transformation(name, operator, [self._input_refs()], kind=kind))
        return DataStreamSink(node)

    def _partition(self, partitioning: Partitioning) -> DataStream:
        refs = [StreamRef(ref.node, ref.tag, partitioning) for ref in self._refs]
        return DataStream(self._environment, refs, self._type)


@check_arguments
class SplitStream(DataStream):
    """A stream whose records have named outputs."""

    def select(self, *output_names: str) -> DataStream:
        """Return the records that belong to any of the named outputs, each of them once."""
        if not output_names:
            raise ValueError("select needs at least one output name")
        ref = StreamRef(self._node, self._node.operator.add_selection(output_names))
        return DataStream(self._environment, [ref], self._type)


@check_arguments
class DataStreamSink(Settings):
    """The end of a stream."""

    def __init__(self, node: Transformation) -> None:
        self._node = node


def time_assigner(
    environment: StreamExecutionEnvironment, size: LengthOfTime, slide: LengthOfTime | None
) -> WindowAssigner[Any, Any]:
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
    },
)

__all__ = ["CloseableIterator", "DataStream", "DataStreamSink", "SplitStream"]
