"""The DataStream API under PyFlink's names.

Names are resolved when they are first used (PEP 562): a worker that only needs a state descriptor must not import the
builders, which import the runtime that the worker is about to start.
"""

from typing import TYPE_CHECKING

from penstock.base.lazy_names import lazy_names

if TYPE_CHECKING:
    from penstock.datastream.async_data_stream import AsyncDataStream
    from penstock.datastream.builders.connected_streams import (
        BroadcastConnectedStream,
        BroadcastStream,
        ConnectedStreams,
    )
    from penstock.datastream.builders.joined_streams import CoGroupedStreams, JoinedStreams
    from penstock.datastream.builders.keyed_stream import KeyedStream
    from penstock.datastream.builders.queryable_state_stream import QueryableStateStream
    from penstock.datastream.builders.windowed_stream import AllWindowedStream, WindowedStream
    from penstock.datastream.checkpoint_config import (
        CheckpointConfig,
        ExternalizedCheckpointCleanup,
        ExternalizedCheckpointRetention,
    )
    from penstock.datastream.checkpoint_storage import (
        CheckpointStorage,
        CustomCheckpointStorage,
        FileSystemCheckpointStorage,
        JobManagerCheckpointStorage,
    )
    from penstock.datastream.checkpointing_mode import CheckpointingMode
    from penstock.datastream.data_stream import CloseableIterator, DataStream, DataStreamSink, SplitStream
    from penstock.datastream.execution_mode import RuntimeExecutionMode
    from penstock.datastream.functions import (
        AggregateFunction,
        AllWindowFunction,
        AsyncFunction,
        AsyncFunctionDescriptor,
        AsyncRetryPredicate,
        AsyncRetryStrategy,
        BaseBroadcastProcessFunction,
        BroadcastProcessFunction,
        CheckpointedFunction,
        CheckpointListener,
        CoFlatMapFunction,
        CoGroupFunction,
        Collector,
        CoMapFunction,
        CoProcessFunction,
        DistributedCache,
        FilterBatchesFunction,
        FilterFunction,
        FlatJoinFunction,
        FlatMapFunction,
        FoldFunction,
        Function,
        FunctionInitializationContext,
        FunctionSnapshotContext,
        JoinFunction,
        KeyedBroadcastProcessFunction,
        KeyedCoProcessFunction,
        KeyedProcessFunction,
        KeyedStateStore,
        KeySelector,
        ListCheckpointed,
        MapBatchesFunction,
        MapFunction,
        OutputSelector,
        ParallelSourceFunction,
        Partitioner,
        ProcessAllWindowFunction,
        ProcessFunction,
        ProcessJoinFunction,
        ProcessWindowFunction,
        ReduceFunction,
        ResultFuture,
        RichAggregateFunction,
        RichCoFlatMapFunction,
        RichCoGroupFunction,
        RichCoMapFunction,
        RichFilterFunction,
        RichFlatJoinFunction,
        RichFlatMapFunction,
        RichJoinFunction,
        RichMapFunction,
        RichParallelSourceFunction,
        RichReduceFunction,
        RichSinkFunction,
        RichSourceFunction,
        RuntimeContext,
        SinkFunction,
        SourceContext,
        SourceFunction,
        TimerService,
        WindowFunction,
    )
    from penstock.datastream.output_tag import OutputTag
    from penstock.datastream.slot_sharing_group import MemorySize, SlotSharingGroup
    from penstock.datastream.state import (
        AggregatingState,
        AggregatingStateDescriptor,
        AppendingState,
        BroadcastState,
        FoldingState,
        FoldingStateDescriptor,
        ListState,
        ListStateDescriptor,
        MapState,
        MapStateDescriptor,
        MergingState,
        OperatorStateStore,
        ReadOnlyBroadcastState,
        ReducingState,
        ReducingStateDescriptor,
        State,
        StateDescriptor,
        StateTtlConfig,
        ValueState,
        ValueStateDescriptor,
    )
    from penstock.datastream.state_backend import (
        CustomStateBackend,
        EmbeddedRocksDBStateBackend,
        FsStateBackend,
        HashMapStateBackend,
        MemoryStateBackend,
        PredefinedOptions,
        RocksDBStateBackend,
        StateBackend,
    )
    from penstock.datastream.stream_execution_environment import StreamExecutionEnvironment
    from penstock.datastream.time_characteristic import TimeCharacteristic
    from penstock.datastream.time_domain import TimeDomain
    from penstock.datastream.window import (
        CountWindow,
        Evictor,
        GlobalWindow,
        MergingWindowAssigner,
        TimeWindow,
        Trigger,
        TriggerResult,
        Window,
        WindowAssigner,
    )

__all__ = [
    "AggregateFunction",
    "AggregatingState",
    "AggregatingStateDescriptor",
    "AllWindowFunction",
    "AllWindowedStream",
    "AppendingState",
    "AsyncDataStream",
    "AsyncFunction",
    "AsyncFunctionDescriptor",
    "AsyncRetryPredicate",
    "AsyncRetryStrategy",
    "BaseBroadcastProcessFunction",
    "BroadcastConnectedStream",
    "BroadcastProcessFunction",
    "BroadcastState",
    "BroadcastStream",
    "CheckpointConfig",
    "CheckpointListener",
    "CheckpointStorage",
    "CheckpointedFunction",
    "CheckpointingMode",
    "CloseableIterator",
    "CoFlatMapFunction",
    "CoGroupFunction",
    "CoGroupedStreams",
    "CoMapFunction",
    "CoProcessFunction",
    "Collector",
    "ConnectedStreams",
    "CountWindow",
    "CustomCheckpointStorage",
    "CustomStateBackend",
    "DataStream",
    "DataStreamSink",
    "DistributedCache",
    "EmbeddedRocksDBStateBackend",
    "Evictor",
    "ExternalizedCheckpointCleanup",
    "ExternalizedCheckpointRetention",
    "FileSystemCheckpointStorage",
    "FilterBatchesFunction",
    "FilterFunction",
    "FlatJoinFunction",
    "FlatMapFunction",
    "FoldFunction",
    "FoldingState",
    "FoldingStateDescriptor",
    "FsStateBackend",
    "Function",
    "FunctionInitializationContext",
    "FunctionSnapshotContext",
    "GlobalWindow",
    "HashMapStateBackend",
    "JobManagerCheckpointStorage",
    "JoinFunction",
    "JoinedStreams",
    "KeySelector",
    "KeyedBroadcastProcessFunction",
    "KeyedCoProcessFunction",
    "KeyedProcessFunction",
    "KeyedStateStore",
    "KeyedStream",
    "ListCheckpointed",
    "ListState",
    "ListStateDescriptor",
    "MapBatchesFunction",
    "MapFunction",
    "MapState",
    "MapStateDescriptor",
    "MemorySize",
    "MemoryStateBackend",
    "MergingState",
    "MergingWindowAssigner",
    "OperatorStateStore",
    "OutputSelector",
    "OutputTag",
    "ParallelSourceFunction",
    "Partitioner",
    "PredefinedOptions",
    "ProcessAllWindowFunction",
    "ProcessFunction",
    "ProcessJoinFunction",
    "ProcessWindowFunction",
    "QueryableStateStream",
    "ReadOnlyBroadcastState",
    "ReduceFunction",
    "ReducingState",
    "ReducingStateDescriptor",
    "ResultFuture",
    "RichAggregateFunction",
    "RichCoFlatMapFunction",
    "RichCoGroupFunction",
    "RichCoMapFunction",
    "RichFilterFunction",
    "RichFlatJoinFunction",
    "RichFlatMapFunction",
    "RichJoinFunction",
    "RichMapFunction",
    "RichParallelSourceFunction",
    "RichReduceFunction",
    "RichSinkFunction",
    "RichSourceFunction",
    "RocksDBStateBackend",
    "RuntimeContext",
    "RuntimeExecutionMode",
    "SinkFunction",
    "SlotSharingGroup",
    "SourceContext",
    "SourceFunction",
    "SplitStream",
    "State",
    "StateBackend",
    "StateDescriptor",
    "StateTtlConfig",
    "StreamExecutionEnvironment",
    "TimeCharacteristic",
    "TimeDomain",
    "TimeWindow",
    "TimerService",
    "Trigger",
    "TriggerResult",
    "ValueState",
    "ValueStateDescriptor",
    "Window",
    "WindowAssigner",
    "WindowFunction",
    "WindowedStream",
]

_NAMES_BY_MODULE = {
    ".async_data_stream": "AsyncDataStream",
    ".checkpoint_config": "CheckpointConfig ExternalizedCheckpointCleanup ExternalizedCheckpointRetention",
    ".checkpoint_storage": """
        CheckpointStorage CustomCheckpointStorage FileSystemCheckpointStorage JobManagerCheckpointStorage
    """,
    ".checkpointing_mode": "CheckpointingMode",
    "penstock.datastream.builders.connected_streams": "BroadcastConnectedStream BroadcastStream ConnectedStreams",
    ".data_stream": "CloseableIterator DataStream DataStreamSink SplitStream",
    "penstock.datastream.builders.keyed_stream": "KeyedStream",
    "penstock.datastream.builders.queryable_state_stream": "QueryableStateStream",
    "penstock.datastream.builders.joined_streams": "CoGroupedStreams JoinedStreams",
    "penstock.datastream.builders.windowed_stream": "AllWindowedStream WindowedStream",
    ".execution_mode": "RuntimeExecutionMode",
    ".functions": """
        AggregateFunction AllWindowFunction AsyncFunction AsyncFunctionDescriptor AsyncRetryPredicate
        AsyncRetryStrategy BaseBroadcastProcessFunction BroadcastProcessFunction ResultFuture CheckpointListener
        CheckpointedFunction FunctionInitializationContext FunctionSnapshotContext ListCheckpointed CoFlatMapFunction
        CoGroupFunction Collector CoMapFunction CoProcessFunction DistributedCache FilterBatchesFunction FilterFunction
        FlatJoinFunction FlatMapFunction FoldFunction Function JoinFunction KeySelector KeyedBroadcastProcessFunction
        KeyedCoProcessFunction KeyedProcessFunction KeyedStateStore MapBatchesFunction MapFunction OutputSelector
        ParallelSourceFunction Partitioner ProcessAllWindowFunction ProcessFunction ProcessJoinFunction
        ProcessWindowFunction ReduceFunction RichAggregateFunction RichCoFlatMapFunction RichCoGroupFunction
        RichCoMapFunction RichFilterFunction RichFlatJoinFunction RichFlatMapFunction RichJoinFunction RichMapFunction
        RichParallelSourceFunction RichReduceFunction RichSinkFunction RichSourceFunction RuntimeContext SinkFunction
        SourceContext SourceFunction TimerService WindowFunction
    """,
    ".output_tag": "OutputTag",
    ".slot_sharing_group": "MemorySize SlotSharingGroup",
    ".state": """
        AggregatingState AggregatingStateDescriptor AppendingState BroadcastState FoldingState FoldingStateDescriptor
        ListState ListStateDescriptor MapState MapStateDescriptor MergingState OperatorStateStore
        ReadOnlyBroadcastState ReducingState ReducingStateDescriptor State StateDescriptor StateTtlConfig
        ValueState ValueStateDescriptor
    """,
    ".state_backend": """
        CustomStateBackend EmbeddedRocksDBStateBackend FsStateBackend HashMapStateBackend MemoryStateBackend
        PredefinedOptions RocksDBStateBackend StateBackend
    """,
    ".stream_execution_environment": "StreamExecutionEnvironment",
    ".time_characteristic": "TimeCharacteristic",
    ".time_domain": "TimeDomain",
    ".window": """
        CountWindow Evictor GlobalWindow MergingWindowAssigner TimeWindow Trigger TriggerResult Window WindowAssigner
    """,
}

if not TYPE_CHECKING:  # a type checker that saw it would let any misspelt name pass
    __getattr__, __dir__ = lazy_names(__name__, _NAMES_BY_MODULE)
