"""WindowedStream and AllWindowedStream: a stream cut into windows, to which functions are applied."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Generic, Self, TypeAlias, overload

from penstock.api.functions.element_functions import AggregateFunction, FoldFunction, ReduceFunction
from penstock.api.functions.folding import FoldAggregate
from penstock.api.functions.window_functions import (
    AllWindowFunction,
    ProcessAllWindowFunction,
    ProcessWindowFunction,
    WindowFunction,
)
from penstock.api.output_tag import OutputTag
from penstock.api.windows.evictors import Evictor
from penstock.api.windows.windows import MergingWindowAssigner, Trigger, WindowAssigner
from penstock.base.arguments import check_arguments
from penstock.base.type_variables import ACC, K_co, R, T_co, V, W
from penstock.common.time import LengthOfTime, to_millis
from penstock.common.type_information import DeclaredType, declared_type
from penstock.common.typeinfo import TypeInformation
from penstock.datastream.builders.annotations import Results
from penstock.datastream.builders.argument_checks import check_function, check_instance, result_type_of
from penstock.datastream.builders.keyed_stream import FoldsFields, KeyedStream
from penstock.datastream.data_stream import DataStream
from penstock.engine.windows.pane_contents import Aggregated, Buffered, Contents, Evicting, Reduced
from penstock.engine.windows.window_evaluation import (
    ApplyAllEvaluation,
    ApplyEvaluation,
    Evaluation,
    ProcessAllEvaluation,
    ProcessEvaluation,
)
from penstock.engine.windows.window_operator import WindowOperator, WindowSpec
from penstock.errors import UnsupportedOperation

if TYPE_CHECKING:
    from penstock.datastream.stream_execution_environment import StreamExecutionEnvironment


WindowFunctions: TypeAlias = (
    ProcessWindowFunction[Any, Any, Any, Any]
    | ProcessAllWindowFunction[Any, Any, Any]
    | WindowFunction[Any, Any, Any, Any]
    | AllWindowFunction[Any, Any, Any]
    | Callable[..., Any]
)


@check_arguments
class _Windowed(FoldsFields[T_co], Generic[K_co, T_co, W]):
    """The common part of windows with and without keys."""

    _for_process: tuple[type, type[Evaluation]]
    """Class of the functions that `process` takes, and the evaluation of such functions."""
    _for_apply: tuple[type, type[Evaluation]]
    """The same for `apply`."""

    def __init__(self, keyed_stream: KeyedStream[K_co, T_co], window_assigner: WindowAssigner[T_co, W]) -> None:
        self._stream = keyed_stream
        self._assigner = window_assigner
        self._trigger: Trigger[T_co, W] = window_assigner.get_default_trigger(keyed_stream.get_execution_environment())
        self._evictor: Evictor | None = None
        self._lateness = 0
        self._late_tag: OutputTag[Any] | None = None

    def trigger(self, trigger: Trigger[T_co, W]) -> Self:
        """Set the trigger of evaluations, instead of the assigner's default."""
        if isinstance(self._assigner, MergingWindowAssigner) and not trigger.can_merge():
            raise UnsupportedOperation(
                f"{self._assigner} merges windows, and {type(trigger).__name__} cannot: use one whose can_merge() "
                "is true"
            )
        self._trigger = trigger
        return self

    def evictor(self, evictor: Evictor) -> Self:
        """Set the evictor, which removes elements before or after an evaluation. Until then, all elements are kept."""
        self._evictor = evictor
        return self

    def allowed_lateness(self, time_ms: LengthOfTime) -> Self:
        """Set how long after its end a window is kept for late elements, each of which evaluates it again."""
        lateness = to_millis(time_ms)
        if lateness < 0:
            raise ValueError(f"the allowed lateness must not be negative, but is {lateness} ms")
        if lateness > 0 and not self._assigner.is_event_time():
            raise UnsupportedOperation(
                f"{self._assigner} has no late elements: allowed_lateness is for event-time windows"
            )
        self._lateness = lateness
        return self

    def side_output_late_data(self, output_tag: OutputTag[T_co]) -> Self:
        """Send elements that are too late for every window to a side output instead of dropping them."""
        self._late_tag = output_tag
        return self

    def get_execution_environment(self) -> StreamExecutionEnvironment:
        return self._stream.get_execution_environment()

    def get_input_type(self) -> TypeInformation[T_co] | None:
        return self._stream.get_type()

    # --- making the operator ---
    def _process(self, function: Any, output_type: DeclaredType[R] | None) -> DataStream[R]:
        kind, evaluation = self._for_process
        check_instance(function, kind, f"{type(self).__name__}.process", "process_window_function")
        return self.apply_evaluation(
            "Window Process", Buffered(), evaluation(function), declared_type(output_type), Results(function)
        )

    def _apply(self, function: Any, output_type: DeclaredType[R] | None) -> DataStream[R]:
        kind, evaluation = self._for_apply
        check_function(function, kind, f"{type(self).__name__}.apply", "window_function")
        results = Results(function, many=True)
        return self.apply_evaluation(
            "Window Apply", Buffered(), evaluation(function), declared_type(output_type), results
        )

    def _reduce(self, function: Any, window_function: Any, output_type: DeclaredType[Any] | None) -> DataStream[Any]:
        check = output_type is not None
        declared: TypeInformation[Any] | None = declared_type(output_type)
        if not check and window_function is None:
            declared = self._stream._type
        evaluation, results = self._evaluation(window_function), _results(function, window_function)
        stream = self.apply_evaluation("Window Reduce", Reduced(function), evaluation, declared, results, check)
        if window_function is None:
            stream._annotated = self._stream._annotated or stream._annotated
        return stream

    def _fold_panes(
        self, fold: FoldAggregate, window_function: Any, output_type: DeclaredType[Any] | None
    ) -> DataStream[Any]:
        if isinstance(self._assigner, MergingWindowAssigner):
            raise UnsupportedOperation(f"{self._assigner} merges windows, and folds cannot merge: use aggregate()")
        return self._aggregate(fold, window_function, output_type)

    def _aggregate(
        self, function: AggregateFunction[Any, Any, Any], window_function: Any, output_type: DeclaredType[Any] | None
    ) -> DataStream[Any]:
        evaluation, results = self._evaluation(window_function), _results(function, window_function)
        declared = declared_type(output_type)
        return self.apply_evaluation("Window Aggregate", Aggregated(function), evaluation, declared, results)

    def _evaluation(self, function: Any) -> Evaluation:
        """Return the evaluation of a reduced or aggregated pane with a window function, or without one."""
        if function is None:
            return Evaluation()
        kind, evaluation = self._for_process
        if isinstance(function, kind):
            return evaluation(function)
        kind, evaluation = self._for_apply
        check_function(function, kind, f"reduce or aggregate of {type(self).__name__}", "window_function")
        return evaluation(function)

    def _fold(self, name: str, function: Callable[[Any, Any], Any]) -> DataStream[T_co]:
        declared, results = self._stream._type, Results(function)
        stream = self.apply_evaluation(f"Window {name}", Reduced(function), Evaluation(), declared, results, False)
        stream._annotated = self._stream._annotated
        return stream

    def apply_evaluation(
        self,
        name: str,
        contents: Contents,
        evaluation: Evaluation,
        output_type: TypeInformation[R] | None,
        results: Results,
        check: bool = True,
    ) -> DataStream[R]:
        """Add the window operator, and return the stream of its results: those of the function in `results`."""
        output_type = result_type_of(evaluation.function) if output_type is None else output_type
        spec = WindowSpec(
            assigner=self._assigner,
            trigger=self._trigger,
            contents=contents if self._evictor is None else Evicting(contents),
            evaluation=evaluation,
            evictor=self._evictor,
            allowed_lateness=self._lateness,
            late_tag=self._late_tag,
        )
        operator = WindowOperator(spec, self._stream.key_selector, output_type if check else None)
        stream = self._stream.apply_operator(name, operator, output_type, results)
        stream._node.description = f"{name} over {self._assigner!r}"
        return self._place(stream)

    def _place(self, stream: DataStream[R]) -> DataStream[R]:
        """Return the results, with the parallelism that windows of this kind need."""
        return stream


@check_arguments
class WindowedStream(_Windowed[K_co, T_co, W]):
    """A keyed stream in windows. `apply` also takes a function of (key, window, elements)."""

    _for_process = ProcessWindowFunction, ProcessEvaluation
    _for_apply = WindowFunction, ApplyEvaluation

    # --- all elements of a pane ---
    def process(
        self,
        process_window_function: ProcessWindowFunction[T_co, R, K_co, W],
        output_type: DeclaredType[R] | None = None,
    ) -> DataStream[R]:
        """Apply a ProcessWindowFunction to all elements of a pane."""
        return self._process(process_window_function, output_type)

    def apply(
        self,
        window_function: WindowFunction[T_co, R, K_co, W] | Callable[[K_co, W, Iterable[T_co]], Iterable[R] | None],
        output_type: DeclaredType[R] | None = None,
    ) -> DataStream[R]:
        """Apply a WindowFunction to all elements of a pane."""
        return self._apply(window_function, output_type)

    # --- one value per pane ---
    @overload
    def reduce(
        self,
        reduce_function: ReduceFunction[T_co] | Callable[[T_co, T_co], T_co],
        window_function: None = None,
        output_type: DeclaredType[Any] | None = None,
    ) -> DataStream[T_co]: ...

    @overload
    def reduce(
        self,
        reduce_function: ReduceFunction[T_co] | Callable[[T_co, T_co], T_co],
        window_function: ProcessWindowFunction[T_co, R, K_co, W]
        | WindowFunction[T_co, R, K_co, W]
        | Callable[[K_co, W, Iterable[T_co]], Iterable[R] | None],
        output_type: DeclaredType[R] | None = None,
    ) -> DataStream[R]: ...

    def reduce(
        self,
        reduce_function: ReduceFunction[T_co] | Callable[[T_co, T_co], T_co],
        window_function: WindowFunctions | None = None,
        output_type: DeclaredType[Any] | None = None,
    ) -> DataStream[Any]:
        """Reduce each pane to one value as records arrive. A window function gets this value."""
        return self._reduce(reduce_function, window_function, output_type)

    @overload
    def fold(
        self,
        initial_value: ACC,
        fold_function: FoldFunction[T_co, ACC] | Callable[[ACC, T_co], ACC],
        window_function: None = None,
        output_type: DeclaredType[ACC] | None = None,
    ) -> DataStream[ACC]: ...

    @overload
    def fold(
        self,
        initial_value: ACC,
        fold_function: FoldFunction[T_co, ACC] | Callable[[ACC, T_co], ACC],
        window_function: ProcessWindowFunction[ACC, R, K_co, W]
        | WindowFunction[ACC, R, K_co, W]
        | Callable[[K_co, W, Iterable[ACC]], Iterable[R] | None],
        output_type: DeclaredType[R] | None = None,
    ) -> DataStream[R]: ...

    def fold(
        self,
        initial_value: ACC,
        fold_function: FoldFunction[T_co, ACC] | Callable[[ACC, T_co], ACC],
        window_function: WindowFunctions | None = None,
        output_type: DeclaredType[Any] | None = None,
    ) -> DataStream[Any]:
        """Fold each pane into one accumulator, from `initial_value` on, as in Flink 1.x. A window function gets it."""
        return self._fold_panes(FoldAggregate(initial_value, fold_function), window_function, output_type)

    @overload
    def aggregate(
        self,
        aggregate_function: AggregateFunction[T_co, ACC, R],
        window_function: None = None,
        accumulator_type: DeclaredType[ACC] | None = None,
        output_type: DeclaredType[R] | None = None,
    ) -> DataStream[R]: ...

    @overload
    def aggregate(
        self,
        aggregate_function: AggregateFunction[T_co, ACC, V],
        window_function: ProcessWindowFunction[V, R, K_co, W]
        | WindowFunction[V, R, K_co, W]
        | Callable[[K_co, W, Iterable[V]], Iterable[R] | None],
        accumulator_type: DeclaredType[ACC] | None = None,
        output_type: DeclaredType[R] | None = None,
    ) -> DataStream[R]: ...

    def aggregate(
        self,
        aggregate_function: AggregateFunction[T_co, Any, Any],
        window_function: WindowFunctions | None = None,
        accumulator_type: DeclaredType[Any] | None = None,
        output_type: DeclaredType[Any] | None = None,
    ) -> DataStream[Any]:
        """Aggregate each pane into one accumulator. A window function gets its result."""
        return self._aggregate(aggregate_function, window_function, output_type)


@check_arguments
class AllWindowedStream(_Windowed[int, T_co, W]):
    """A stream without keys in windows, in one subtask. `apply` also takes a function of (window, elements)."""

    _for_process = ProcessAllWindowFunction, ProcessAllEvaluation
    _for_apply = AllWindowFunction, ApplyAllEvaluation

    # --- all elements of a pane ---
    def process(
        self, process_window_function: ProcessAllWindowFunction[T_co, R, W], output_type: DeclaredType[R] | None = None
    ) -> DataStream[R]:
        """Apply a ProcessAllWindowFunction to all elements of a pane."""
        return self._process(process_window_function, output_type)

    def apply(
        self,
        window_function: AllWindowFunction[T_co, R, W] | Callable[[W, Iterable[T_co]], Iterable[R] | None],
        output_type: DeclaredType[R] | None = None,
    ) -> DataStream[R]:
        """Apply an AllWindowFunction to all elements of a pane."""
        return self._apply(window_function, output_type)

    # --- one value per pane ---
    @overload
    def reduce(
        self,
        reduce_function: ReduceFunction[T_co] | Callable[[T_co, T_co], T_co],
        window_function: None = None,
        output_type: DeclaredType[Any] | None = None,
    ) -> DataStream[T_co]: ...

    @overload
    def reduce(
        self,
        reduce_function: ReduceFunction[T_co] | Callable[[T_co, T_co], T_co],
        window_function: ProcessAllWindowFunction[T_co, R, W]
        | AllWindowFunction[T_co, R, W]
        | Callable[[W, Iterable[T_co]], Iterable[R] | None],
        output_type: DeclaredType[R] | None = None,
    ) -> DataStream[R]: ...

    def reduce(
        self,
        reduce_function: ReduceFunction[T_co] | Callable[[T_co, T_co], T_co],
        window_function: WindowFunctions | None = None,
        output_type: DeclaredType[Any] | None = None,
    ) -> DataStream[Any]:
        """Reduce each pane to one value as records arrive. A window function gets this value."""
        return self._reduce(reduce_function, window_function, output_type)

    @overload
    def fold(
        self,
        initial_value: ACC,
        fold_function: FoldFunction[T_co, ACC] | Callable[[ACC, T_co], ACC],
        window_function: None = None,
        output_type: DeclaredType[ACC] | None = None,
    ) -> DataStream[ACC]: ...

    @overload
    def fold(
        self,
        initial_value: ACC,
        fold_function: FoldFunction[T_co, ACC] | Callable[[ACC, T_co], ACC],
        window_function: ProcessAllWindowFunction[ACC, R, W]
        | AllWindowFunction[ACC, R, W]
        | Callable[[W, Iterable[ACC]], Iterable[R] | None],
        output_type: DeclaredType[R] | None = None,
    ) -> DataStream[R]: ...

    def fold(
        self,
        initial_value: ACC,
        fold_function: FoldFunction[T_co, ACC] | Callable[[ACC, T_co], ACC],
        window_function: WindowFunctions | None = None,
        output_type: DeclaredType[Any] | None = None,
    ) -> DataStream[Any]:
        """Fold each pane into one accumulator, from `initial_value` on, as in Flink 1.x. A window function gets it."""
        return self._fold_panes(FoldAggregate(initial_value, fold_function), window_function, output_type)

    @overload
    def aggregate(
        self,
        aggregate_function: AggregateFunction[T_co, ACC, R],
        window_function: None = None,
        accumulator_type: DeclaredType[ACC] | None = None,
        output_type: DeclaredType[R] | None = None,
    ) -> DataStream[R]: ...

    @overload
    def aggregate(
        self,
        aggregate_function: AggregateFunction[T_co, ACC, V],
        window_function: ProcessAllWindowFunction[V, R, W]
        | AllWindowFunction[V, R, W]
        | Callable[[W, Iterable[V]], Iterable[R] | None],
        accumulator_type: DeclaredType[ACC] | None = None,
        output_type: DeclaredType[R] | None = None,
    ) -> DataStream[R]: ...

    def aggregate(
        self,
        aggregate_function: AggregateFunction[T_co, Any, Any],
        window_function: WindowFunctions | None = None,
        accumulator_type: DeclaredType[Any] | None = None,
        output_type: DeclaredType[Any] | None = None,
    ) -> DataStream[Any]:
        """Aggregate each pane into one accumulator. A window function gets its result."""
        return self._aggregate(aggregate_function, window_function, output_type)

    def _place(self, stream: DataStream[R]) -> DataStream[R]:
        return stream.force_non_parallel()


def _results(function: Any, window_function: Any) -> Results:
    """Return the function whose results a window emits: the window function, if there is one."""
    return Results(function) if window_function is None else Results(window_function, many=True)


def one_key(_: Any) -> int:
    """Return the one key of all elements of a stream without keys."""
    return 0


__all__ = ["AllWindowedStream", "WindowedStream"]
