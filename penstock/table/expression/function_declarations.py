"""Functions of the user: what is subclassed, and udf, udtf, udaf and udtaf, which make functions usable in queries."""

from __future__ import annotations

import functools
import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Protocol, Self, TypeAlias, TypeVar, overload

from penstock.base.arguments import check_arguments
from penstock.base.type_variables import P, R
from penstock.errors import ValidationException
from penstock.table.types.data_types import DataType, MapType, RowType

if TYPE_CHECKING:
    from penstock.metrics import MetricGroup
    from penstock.table.expression.expression import Expression

__all__ = [
    "AggregateFunction",
    "AsyncScalarFunction",
    "FunctionContext",
    "ImperativeAggregateFunction",
    "ScalarFunction",
    "TableAggregateFunction",
    "TableFunction",
    "UserDefinedFunction",
    "udaf",
    "udf",
    "udtaf",
    "udtf",
]

T = TypeVar("T")
ACC = TypeVar("ACC")


class FunctionContext:
    """The surroundings of a running function: metrics, parameters of the job, and its subtask."""

    def __init__(
        self,
        base_metric_group: MetricGroup | None = None,
        job_parameters: dict[str, str] | None = None,
        task_name: str = "",
        task_name_with_subtasks: str = "",
        number_of_parallel_subtasks: int = 1,
        max_number_of_parallel_subtasks: int = 1,
        index_of_this_subtask: int = 0,
        attempt_number: int = 0,
    ) -> None:
        self._metrics, self._parameters = base_metric_group, job_parameters or {}
        self._task_name, self._task_name_with_subtasks = task_name, task_name_with_subtasks
        self._parallelism, self._max_parallelism = number_of_parallel_subtasks, max_number_of_parallel_subtasks
        self._index, self._attempt = index_of_this_subtask, attempt_number

    def get_metric_group(self) -> MetricGroup:
        """Return the group in which the function registers metrics. Raise RuntimeError outside a job."""
        if self._metrics is None:
            raise RuntimeError("there are no metrics here: the function runs outside a job")
        return self._metrics

    def get_job_parameter(self, key: str, default_value: str) -> str:
        """Return a parameter of the job, from `pipeline.global-job-parameters`."""
        return self._parameters.get(key, default_value)

    def get_task_name(self) -> str:
        """Return the name of the task."""
        return self._task_name

    def get_task_name_with_subtasks(self) -> str:
        """Return the name of the task with the number of this subtask."""
        return self._task_name_with_subtasks

    def get_number_of_parallel_subtasks(self) -> int:
        """Return the parallelism of the task."""
        return self._parallelism

    def get_max_number_of_parallel_subtasks(self) -> int:
        """Return the maximum parallelism of the task."""
        return self._max_parallelism

    def get_index_of_this_subtask(self) -> int:
        """Return the number of this subtask, from 0."""
        return self._index

    def get_attempt_number(self) -> int:
        """Return the number of restarts before this attempt."""
        return self._attempt


class UserDefinedFunction(ABC):  # noqa: B024
    """The base of all user-defined functions. `open` is called once before the first row, `close` after the last."""

    def open(self, function_context: FunctionContext) -> None:  # noqa: B027
        """Prepare the function."""

    def close(self) -> None:  # noqa: B027
        """Release the resources of the function."""

    def is_deterministic(self) -> bool:
        """Return True if equal arguments always give equal results."""
        return True


class ScalarFunction(UserDefinedFunction):
    """A function that returns one value for the values of a row."""

    @abstractmethod
    def eval(self, *args: Any, **kwargs: Any) -> Any:
        """Return the value."""


class AsyncScalarFunction(UserDefinedFunction):
    """A function that returns one value for the values of a row, and may wait for it. Rows wait at the same time."""

    @abstractmethod
    async def eval(self, *args: Any, **kwargs: Any) -> Any:
        """Return the value."""


class TableFunction(UserDefinedFunction):
    """A function that yields any number of rows for the values of a row."""

    @abstractmethod
    def eval(self, *args: Any, **kwargs: Any) -> Any:
        """Yield the rows: Rows, tuples, or single values."""


class ImperativeAggregateFunction(UserDefinedFunction, Generic[T, ACC]):
    """A function with an accumulator for each group."""

    @abstractmethod
    def create_accumulator(self) -> ACC:
        """Return an empty accumulator."""

    @abstractmethod
    def accumulate(self, accumulator: ACC, /, *args: Any, **kwargs: Any) -> None:
        """Add a row to an accumulator."""

    def retract(self, accumulator: ACC, /, *args: Any, **kwargs: Any) -> None:
        """Remove a row from an accumulator. It is needed if the input has updates."""
        raise RuntimeError(f"{type(self).__name__} cannot retract rows: it has no method retract")

    def merge(self, accumulator: ACC, accumulators: Iterable[ACC], /) -> None:
        """Merge other accumulators into one. It is needed for session windows."""
        raise RuntimeError(f"{type(self).__name__} cannot merge accumulators: it has no method merge")

    def get_result_type(self) -> DataType | str:
        """Return the type of the result, if udaf does not declare it."""
        raise RuntimeError(f"{type(self).__name__} has no result type: give one to udaf, or override get_result_type")

    def get_accumulator_type(self) -> DataType | str:
        """Return the type of the accumulator, if udaf does not declare it."""
        raise RuntimeError(f"{type(self).__name__} has no accumulator type")


class AggregateFunction(ImperativeAggregateFunction[T, ACC]):
    """A function that returns one value for a group of rows."""

    @abstractmethod
    def get_value(self, accumulator: ACC, /) -> T:
        """Return the value of the group so far."""


class TableAggregateFunction(ImperativeAggregateFunction[T, ACC]):
    """A function that yields any number of rows for a group of rows."""

    @abstractmethod
    def emit_value(self, accumulator: ACC, /) -> Iterable[T]:
        """Yield the rows of the group so far."""


@dataclass(frozen=True)
class AsyncOptions:
    """The way in which calls of an asynchronous function wait. Times are seconds."""

    repetitions: int = 3
    """Number of times that a call which failed is repeated."""
    delay: float = 0.1
    """Pause before a call is repeated."""
    timeout: float = 180
    """Time for all calls for one row, with their pauses; 0 for no limit."""
    capacity: int = 10
    """Number of rows that wait at the same time."""


class UserDefinedFunctionWrapper(Generic[P, R]):
    """A user-defined function with its types: the result of udf, udtf, udaf and udtaf. A call makes an expression.

    Type checkers know the signature of the Python function, which `callable` returns.
    """

    def __init__(
        self,
        function: Any,
        kind: str,
        input_types: Any = None,
        result_type: Any = None,
        accumulator_type: Any = None,
        deterministic: bool | None = None,
        name: str | None = None,
        func_type: str = "general",
    ) -> None:
        if inspect.isclass(function) and issubclass(function, UserDefinedFunction):
            function = function()
        if not isinstance(function, UserDefinedFunction) and not callable(function):
            raise TypeError(f"{function!r} is not a function: give a function or an object of a function class")
        self.function, self.kind = function, kind
        self.name = name or str(getattr(function, "__name__", type(function).__name__))
        self.vectorised: str | None = None if func_type == "general" else func_type
        self.deterministic = _deterministic(function, deterministic, self.name)
        self.input_types = _input_types(input_types)
        self._result, self._accumulator = result_type, accumulator_type
        self.alias_names: tuple[str, ...] = ()
        self.takes_row = False
        """Whether it is called with a whole row, as Table.map does."""
        self.async_options = AsyncOptions()
        if self.asynchronous and self.vectorised is not None:
            raise ValueError(
                f"the function {self.name} has func_type='{func_type}': Async scalar functions do not support pandas "
                "func_type. Please use func_type='general' (default) for async functions."
            )
        if kind == "aggregate" and self.vectorised is not None and isinstance(result_type, MapType):
            raise TypeError(
                f"the function {self.name}: Invalid returnType: Pandas UDAF doesn't support DataType type MAP currently"
            )

    @property
    def _name(self) -> str:
        """The name, under PyFlink's name of the attribute."""
        return self.name

    @property
    def _deterministic(self) -> bool:
        """True if equal arguments give equal results, under PyFlink's name of the attribute."""
        return self.deterministic

    @functools.cached_property
    def result_type(self) -> DataType:
        """The type of a value. A table function has a ROW."""
        declared = self._result
        if declared is None and isinstance(self.function, ImperativeAggregateFunction):
            declared = self.function.get_result_type()
        if declared is None:
            raise ValidationException(f"the function {self.name} has no result type")
        if self.kind in {"table", "table_aggregate"}:
            return _row_type(declared)
        return data_type_of(declared)

    @property
    def result_types(self) -> list[DataType]:
        """The types of the columns of a table function."""
        kind = self.result_type
        return kind.field_types() if isinstance(kind, RowType) else [kind]

    @functools.cached_property
    def accumulator_type(self) -> DataType | None:
        """The type of the accumulator; None if it is not declared."""
        declared = self._accumulator
        if declared is None and self.vectorised is None and isinstance(self.function, ImperativeAggregateFunction):
            declared = self.function.get_accumulator_type()
        return None if declared is None else data_type_of(declared)

    @property
    def asynchronous(self) -> bool:
        """True if the function is a coroutine function."""
        return inspect.iscoroutinefunction(self.callable())

    def callable(self) -> Callable[P, R]:
        """Return the Python function that takes the values of a row, for scalar and table functions."""
        evaluate: Callable[P, R] = getattr(self.function, "eval", self.function)
        return evaluate

    def open(self, context: FunctionContext) -> None:
        """Open the function."""
        if isinstance(self.function, UserDefinedFunction):
            self.function.open(context)

    def close(self) -> None:
        """Close the function."""
        if isinstance(self.function, UserDefinedFunction):
            self.function.close()

    def alias(self, *alias_names: str) -> Self:
        """Set the names of the result's columns, and return this function."""
        self.alias_names = alias_names
        return self

    def __call__(self, *args: Any) -> Expression:
        from penstock.table.expression.expression_functions import call

        return call(self, *args)

    def __repr__(self) -> str:
        return f"<{self.kind} function {self.name}>"


def wrapper_of(function: Any) -> UserDefinedFunctionWrapper | None:
    """Return the wrapper of a user-defined function; None for a plain function, which has no types."""
    if isinstance(function, UserDefinedFunctionWrapper):
        return function
    kinds: list[tuple[type, str]] = [
        (TableAggregateFunction, "table_aggregate"),
        (AggregateFunction, "aggregate"),
        (TableFunction, "table"),
        (UserDefinedFunction, "scalar"),
    ]
    found = next((kind for base, kind in kinds if isinstance(function, base)), None)
    return None if found is None else UserDefinedFunctionWrapper(function, found)


def data_type_of(declared: DataType | str) -> DataType:
    """Return a type that is given as such or in SQL."""
    if isinstance(declared, DataType):
        return declared
    if isinstance(declared, str):
        from penstock.table.sql.parse.type_parser import parse_type

        return parse_type(declared)
    raise TypeError(f"a type is a DataType or text such as 'BIGINT', not {declared!r}")


def _row_type(declared: Any) -> DataType:
    """Return the columns of a table function, which are given as a ROW, one type, or several."""
    if isinstance(declared, DataType | str):
        kind = data_type_of(declared)
        return kind if isinstance(kind, RowType) else RowType([("f0", kind)])
    return RowType((f"f{index}", data_type_of(kind)) for index, kind in enumerate(declared))


def _input_types(declared: Any) -> list[DataType] | None:
    if declared is None:
        return None
    if isinstance(declared, RowType):
        return declared.field_types()
    if isinstance(declared, DataType | str):
        return [data_type_of(declared)]
    return [data_type_of(kind) for kind in declared]


def _deterministic(function: Any, declared: bool | None, name: str) -> bool:
    if not isinstance(function, UserDefinedFunction):
        return True if declared is None else declared
    if declared is not None and declared != function.is_deterministic():
        raise ValueError(
            f"the function {name} is declared deterministic={declared}, but its is_deterministic says otherwise"
        )
    return function.is_deterministic()


def _decorate(f: Any, *declared: Any) -> Any:
    """Return the wrapper of a function, or without one a decorator; `declared` is as in the wrapper."""
    func_type = declared[-1]
    if func_type not in {"general", "pandas", "arrow"}:
        raise ValueError(f"the func_type of a function is general, pandas or arrow, not {func_type}")

    def make(function: Any) -> UserDefinedFunctionWrapper:
        return UserDefinedFunctionWrapper(function, *declared)

    return make if f is None else make(f)


Types = DataType | str | Sequence[DataType | str] | None
Declarable: TypeAlias = Callable[..., Any] | UserDefinedFunction
"""The objects that can be declared: plain functions, and objects of a function class."""
DeclarableClass: TypeAlias = UserDefinedFunction | type[UserDefinedFunction]
"""An object of a function class, or the class itself."""


class _Declares(Protocol):
    """The decorator that udf and its like return if they are given no function."""

    @overload
    def __call__(self, f: DeclarableClass) -> UserDefinedFunctionWrapper[..., Any]: ...

    @overload
    def __call__(self, f: Callable[P, R]) -> UserDefinedFunctionWrapper[P, R]: ...


@overload
def udf(
    f: DeclarableClass,
    input_types: Types = None,
    result_type: DataType | str | None = None,
    deterministic: bool | None = None,
    name: str | None = None,
    func_type: str = "general",
) -> UserDefinedFunctionWrapper[..., Any]: ...


@overload
def udf(
    f: Callable[P, R],
    input_types: Types = None,
    result_type: DataType | str | None = None,
    deterministic: bool | None = None,
    name: str | None = None,
    func_type: str = "general",
) -> UserDefinedFunctionWrapper[P, R]: ...


@overload
def udf(
    f: None = None,
    input_types: Types = None,
    result_type: DataType | str | None = None,
    deterministic: bool | None = None,
    name: str | None = None,
    func_type: str = "general",
) -> _Declares: ...


@check_arguments
def udf(
    f: Declarable | None = None,
    input_types: Types = None,
    result_type: DataType | str | None = None,
    deterministic: bool | None = None,
    name: str | None = None,
    func_type: str = "general",
) -> Any:
    """Declare a scalar function. With func_type "pandas" or "arrow" it takes and returns whole columns."""
    return _decorate(f, "scalar", input_types, result_type, None, deterministic, name, func_type)


@overload
def udtf(
    f: DeclarableClass,
    input_types: Types = None,
    result_types: Types = None,
    deterministic: bool | None = None,
    name: str | None = None,
) -> UserDefinedFunctionWrapper[..., Any]: ...


@overload
def udtf(
    f: Callable[P, R],
    input_types: Types = None,
    result_types: Types = None,
    deterministic: bool | None = None,
    name: str | None = None,
) -> UserDefinedFunctionWrapper[P, R]: ...


@overload
def udtf(
    f: None = None,
    input_types: Types = None,
    result_types: Types = None,
    deterministic: bool | None = None,
    name: str | None = None,
) -> _Declares: ...


@check_arguments
def udtf(
    f: Declarable | None = None,
    input_types: Types = None,
    result_types: Types = None,
    deterministic: bool | None = None,
    name: str | None = None,
) -> Any:
    """Declare a table function."""
    return _decorate(f, "table", input_types, result_types, None, deterministic, name, "general")


@overload
def udaf(
    f: DeclarableClass,
    input_types: Types = None,
    result_type: DataType | str | None = None,
    accumulator_type: DataType | str | None = None,
    deterministic: bool | None = None,
    name: str | None = None,
    func_type: str = "general",
) -> UserDefinedFunctionWrapper[..., Any]: ...


@overload
def udaf(
    f: Callable[P, R],
    input_types: Types = None,
    result_type: DataType | str | None = None,
    accumulator_type: DataType | str | None = None,
    deterministic: bool | None = None,
    name: str | None = None,
    func_type: str = "general",
) -> UserDefinedFunctionWrapper[P, R]: ...


@overload
def udaf(
    f: None = None,
    input_types: Types = None,
    result_type: DataType | str | None = None,
    accumulator_type: DataType | str | None = None,
    deterministic: bool | None = None,
    name: str | None = None,
    func_type: str = "general",
) -> _Declares: ...


@check_arguments
def udaf(
    f: Declarable | None = None,
    input_types: Types = None,
    result_type: DataType | str | None = None,
    accumulator_type: DataType | str | None = None,
    deterministic: bool | None = None,
    name: str | None = None,
    func_type: str = "general",
) -> Any:
    """Declare an aggregate function. With func_type "pandas" it is a plain function from columns to a value."""
    return _decorate(f, "aggregate", input_types, result_type, accumulator_type, deterministic, name, func_type)


@overload
def udtaf(
    f: DeclarableClass,
    input_types: Types = None,
    result_type: DataType | str | None = None,
    accumulator_type: DataType | str | None = None,
    deterministic: bool | None = None,
    name: str | None = None,
    func_type: str = "general",
) -> UserDefinedFunctionWrapper[..., Any]: ...


@overload
def udtaf(
    f: Callable[P, R],
    input_types: Types = None,
    result_type: DataType | str | None = None,
    accumulator_type: DataType | str | None = None,
    deterministic: bool | None = None,
    name: str | None = None,
    func_type: str = "general",
) -> UserDefinedFunctionWrapper[P, R]: ...


@overload
def udtaf(
    f: None = None,
    input_types: Types = None,
    result_type: DataType | str | None = None,
    accumulator_type: DataType | str | None = None,
    deterministic: bool | None = None,
    name: str | None = None,
    func_type: str = "general",
) -> _Declares: ...


@check_arguments
def udtaf(
    f: Declarable | None = None,
    input_types: Types = None,
    result_type: DataType | str | None = None,
    accumulator_type: DataType | str | None = None,
    deterministic: bool | None = None,
    name: str | None = None,
    func_type: str = "general",
) -> Any:
    """Declare a table aggregate function."""
    return _decorate(f, "table_aggregate", input_types, result_type, accumulator_type, deterministic, name, func_type)
