"""The functions that users write and the contexts that they get, under the names of PyFlink's module."""

from typing import TypeVar

from penstock.api.functions.async_functions import (
    AsyncFunction,
    AsyncFunctionDescriptor,
    AsyncRetryPredicate,
    AsyncRetryStrategy,
    ResultFuture,
)
from penstock.api.functions.checkpointed_functions import (
    CheckpointedFunction,
    CheckpointListener,
    FunctionInitializationContext,
    FunctionSnapshotContext,
    ListCheckpointed,
)
from penstock.api.functions.collectors import Collector
from penstock.api.functions.contexts import DistributedCache, KeyedStateStore, RuntimeContext, TimerService
from penstock.api.functions.element_functions import (
    AggregateFunction,
    CoFlatMapFunction,
    CoGroupFunction,
    CoMapFunction,
    FilterBatchesFunction,
    FilterFunction,
    FlatJoinFunction,
    FlatMapFunction,
    FoldFunction,
    Function,
    JoinFunction,
    KeySelector,
    MapBatchesFunction,
    MapFunction,
    OutputSelector,
    Partitioner,
    ReduceFunction,
    RichAggregateFunction,
    RichCoFlatMapFunction,
    RichCoGroupFunction,
    RichCoMapFunction,
    RichFilterFunction,
    RichFlatJoinFunction,
    RichFlatMapFunction,
    RichJoinFunction,
    RichMapFunction,
    RichReduceFunction,
)
from penstock.api.functions.process_functions import (
    BaseBroadcastProcessFunction,
    BroadcastProcessFunction,
    CoProcessFunction,
    KeyedBroadcastProcessFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    ProcessFunction,
    ProcessJoinFunction,
)
from penstock.api.functions.source_functions import (
    ParallelSourceFunction,
    RichParallelSourceFunction,
    RichSinkFunction,
    RichSourceFunction,
    SinkFunction,
    SourceContext,
    SourceFunction,
)
from penstock.api.functions.window_functions import (
    AllWindowFunction,
    ProcessAllWindowFunction,
    ProcessWindowFunction,
    WindowFunction,
)

W = TypeVar("W")
IN = TypeVar("IN")
IN1 = TypeVar("IN1")
IN2 = TypeVar("IN2")
OUT = TypeVar("OUT")
KEY = TypeVar("KEY")
"""Type variables for the hints of programs that import them from here, as from PyFlink's module."""

__all__ = [
    "AggregateFunction",
    "AllWindowFunction",
    "AsyncFunction",
    "AsyncFunctionDescriptor",
    "AsyncRetryPredicate",
    "AsyncRetryStrategy",
    "BaseBroadcastProcessFunction",
    "BroadcastProcessFunction",
    "CheckpointListener",
    "CheckpointedFunction",
    "CoFlatMapFunction",
    "CoGroupFunction",
    "CoMapFunction",
    "CoProcessFunction",
    "Collector",
    "DistributedCache",
    "FilterBatchesFunction",
    "FilterFunction",
    "FlatJoinFunction",
    "FlatMapFunction",
    "FoldFunction",
    "Function",
    "FunctionInitializationContext",
    "FunctionSnapshotContext",
    "JoinFunction",
    "KeySelector",
    "KeyedBroadcastProcessFunction",
    "KeyedCoProcessFunction",
    "KeyedProcessFunction",
    "KeyedStateStore",
    "ListCheckpointed",
    "MapBatchesFunction",
    "MapFunction",
    "OutputSelector",
    "ParallelSourceFunction",
    "Partitioner",
    "ProcessAllWindowFunction",
    "ProcessFunction",
    "ProcessJoinFunction",
    "ProcessWindowFunction",
    "ReduceFunction",
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
    "RuntimeContext",
    "SinkFunction",
    "SourceContext",
    "SourceFunction",
    "TimerService",
    "WindowFunction",
]
