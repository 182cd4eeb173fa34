"""The base of the operators of DataSet programs: functions, broadcast sets, accumulators, output in steps."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from penstock.dataset.accumulators import Accumulator, DoubleCounter, Histogram, IntCounter, LongCounter
from penstock.dataset.functions import RichFunction
from penstock.engine.operators.batch.external_sort import ExternalSort
from penstock.engine.operators.functions.slot_contexts import SlotRuntimeContext
from penstock.engine.operators.operator import Operator, OperatorContext
from penstock.engine.records.elements import Chunk, Timestamps, Values
from penstock.engine.records.failures import USER_ERRORS
from penstock.errors import ContextError, TypeMismatch

if TYPE_CHECKING:
    from penstock.dataset.iterations.place import Place

A = TypeVar("A", bound=Accumulator)
STEP_RECORDS = 1024
"""Number of results after which the output of an operator can be taken away."""
ACCUMULATORS = "accumulators"
"""The side output for the accumulators of a task."""


class DataSetRuntimeContext(SlotRuntimeContext):
    """The context of a function in one task: its place, its broadcast sets and its accumulators."""

    def __init__(self, context: OperatorContext, sets: dict[str, list[Any]], iteration: Place | None = None) -> None:
        super().__init__(context, None, "in a DataSet program, which has none")
        self._sets = sets
        self._iteration = iteration
        self.accumulators: dict[str, Accumulator] = {}

    def get_broadcast_variable(self, name: str) -> list[Any]:
        """Return all elements of a broadcast set."""
        if name not in self._sets:
            raise ContextError(
                f"{self.get_task_name()} has no broadcast set '{name}'; it has: {', '.join(self._sets) or 'none'}. "
                "Add it with with_broadcast_set(data, name)"
            )
        return self._sets[name]

    def has_broadcast_variable(self, name: str) -> bool:
        """Return True if there is a broadcast set with this name."""
        return name in self._sets

    def get_broadcast_variable_with_initializer(self, name: str, initializer: Any) -> Any:
        """Return the result of a function applied to a broadcast set."""
        initialize = getattr(initializer, "initialize_broadcast_variable", initializer)
        return initialize(self.get_broadcast_variable(name))

    # --- iterations ---
    def get_superstep_number(self) -> int:
        """Return the number of the superstep, from 1 on."""
        return self._place().number

    def get_iteration_aggregator(self, name: str) -> Any:
        """Return the aggregator of this superstep."""
        aggregators = self._place().aggregators
        if name not in aggregators:
            raise ContextError(
                f"the iteration has no aggregator '{name}'; it has: {', '.join(aggregators) or 'none'}. Add it with "
                "register_aggregator(name, aggregator)"
            )
        return aggregators[name]

    def get_previous_iteration_aggregate(self, name: str) -> Any:
        """Return the aggregate of the superstep before, over all tasks; None in the first superstep."""
        self.get_iteration_aggregator(name)
        return self._place().previous.get(name)

    def _place(self) -> Place:
        if self._iteration is None:
            raise ContextError(f"{self.get_task_name()} is not part of an iteration")
        return self._iteration

    # --- accumulators ---
    def add_accumulator(self, name: str, accumulator: Accumulator) -> None:
        """Add an accumulator under a name that this function does not use yet."""
        if not isinstance(accumulator, Accumulator):
            raise TypeMismatch(f"the accumulator '{name}' must be an Accumulator, not {accumulator!r}")
        if name in self.accumulators:
            raise ContextError(f"an accumulator '{name}' exists already")
        self.accumulators[name] = accumulator

    def get_accumulator(self, name: str) -> Accumulator | None:
        """Return an accumulator; None if this function has none with this name."""
        return self.accumulators.get(name)

    def get_int_counter(self, name: str) -> IntCounter:
        """Return the counter with this name, which is made when it is first asked for."""
        return self._accumulator(name, IntCounter)

    def get_long_counter(self, name: str) -> LongCounter:
        """Return the counter with this name, which is made when it is first asked for."""
        return self._accumulator(name, LongCounter)

    def get_double_counter(self, name: str) -> DoubleCounter:
        """Return the counter with this name, which is made when it is first asked for."""
        return self._accumulator(name, DoubleCounter)

    def get_histogram(self, name: str) -> Histogram:
        """Return the histogram with this name, which is made when it is first asked for."""
        return self._accumulator(name, Histogram)

    def _accumulator(self, name: str, kind: type[A]) -> A:
        found = self.accumulators.setdefault(name, kind())
        if not isinstance(found, kind):
            raise ContextError(f"the accumulator '{name}' is a {type(found).__name__}, not a {kind.__name__}")
        return found


class DataSetOperator(Operator):
    """Base of the operators around one function of the program.

    The first inputs are the broadcast sets. While one of them is incomplete, the elements of the other inputs wait on
    disk; without broadcast sets they are processed as they come.
    """

    main_inputs = 1
    iteration: Place | None = None
    """The iteration that the operator belongs to, within a superstep."""

    def __init__(self, function: Any = None, method: str = "") -> None:
        super().__init__()
        self.function = function
        self.method = method
        self.sets: list[str] = []
        """Names of the broadcast sets, in the order of the inputs."""

    # --- life ---
    def open(self, context: OperatorContext) -> None:
        super().open(context)
        self._values: dict[str, list[Any]] = {name: [] for name in self.sets}
        self._ready: Values = []
        self._is_open = False
        self.runtime_context = DataSetRuntimeContext(context, self._values, self.iteration)
        self._waiting = ExternalSort(_no_order, context.sort_memory, context.spill_folder) if self.sets else None
        if self._waiting is None:
            self._begin()

    def _begin(self) -> None:
        """Open the function, when its broadcast sets are complete."""
        try:
            if isinstance(self.function, RichFunction):
                self.function.set_runtime_context(self.runtime_context)
                self._is_open = True
                self.function.open(self.runtime_context)
            self.begin()
        except USER_ERRORS as error:
            raise self.failure(error, []) from error

    def close(self) -> None:
        if getattr(self, "_waiting", None) is not None:
            self._waiting.close()  # type: ignore[union-attr]
        if getattr(self, "_is_open", False):
            self._is_open = False
            self.function.close()

    def begin(self) -> None:
        """Prepare for the first element. The function is open."""

    # --- input ---
    def inputs(self) -> Sequence[Callable[[Chunk], None]]:
        sets = [partial(self._gather, name) for name in self.sets]
        return [*sets, *(partial(self._receive, index) for index in range(self.main_inputs))]

    def _gather(self, name: str, chunk: Chunk) -> None:
        self._values[name].extend(chunk.values)

    def _receive(self, index: int, chunk: Chunk) -> None:
        if self._waiting is not None:
            self._waiting.add([None] * len(chunk.values), index, chunk.values, None)
        else:
            self.process(index, chunk.values)

    def process(self, index: int, values: Values) -> None:
        """Process elements of one of the inputs."""
        raise TypeError(f"{type(self).__name__} has no input {index}")

    def records(self, values: Values, timestamps: Timestamps) -> None:
        self._receive(0, Chunk(values))

    def watermark(self, timestamp: int) -> None:
        """Ignore watermarks, which a DataSet program does not have."""

    # --- the end ---
    def finish(self) -> Iterator[None]:
        """Process the waiting elements, emit the remaining results, and send the accumulators."""
        if self._waiting is not None:
            self._begin()
            for piece in self._waiting.pieces():
                for index, values, _ in piece.by_input():
                    self.process(index, values)
                yield
            self._waiting.close()
        for results in self.rest():
            yield from self.emit_in_steps(results)
        self.send()
        self._send_accumulators()

    def rest(self) -> Iterator[Iterable[Any] | None]:
        """Yield the results that depend on all elements. Called after the last element."""
        return iter(())

    def _send_accumulators(self) -> None:
        receiver = self.context.side_outputs.get(ACCUMULATORS)
        if receiver is not None and self.runtime_context.accumulators:
            receiver.chunk(Chunk(list(self.runtime_context.accumulators.items())))

    # --- output ---
    def give(self, results: Iterable[Any] | None) -> None:
        """Emit results of a function. Raise an error if one of them is None."""
        if results is not None:
            self._ready += results
        if len(self._ready) >= STEP_RECORDS:
            self.send()

    def emit_in_steps(self, results: Iterable[Any] | None) -> Iterator[None]:
        """Emit results in steps, so that the output of each step can leave before the next one."""
        try:
            for result in results or ():
                self._ready.append(result)
                if len(self._ready) >= STEP_RECORDS:
                    self.send()
                    yield
        except USER_ERRORS as error:
            raise self.failure(error, []) from error

    def send(self) -> None:
        """Emit what is ready."""
        ready, self._ready = self._ready, []
        if any(value is None for value in ready):
            raise self.failure(TypeMismatch(f"{self.context.name} returned None, which cannot be an element"), [])
        if ready:
            self.emit(ready, None)

    # --- the function ---
    def call(self) -> Callable[..., Any]:
        """Return the method of the function object, or the plain function."""
        return bound(self.function, self.method)


def bound(function: Any, method: str) -> Callable[..., Any]:
    """Return the method of a function object, or the function itself if it is a plain one."""
    found = getattr(function, method, None) if method else None
    return found if callable(found) and not isinstance(function, type) else function  # type: ignore[no-any-return]


def _no_order(key: Any) -> int:
    return 0
