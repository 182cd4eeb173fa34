"""The fold of Flink 1.x: a start value, and a function that adds one element after another."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

from penstock.api.functions.element_functions import AggregateFunction, FoldFunction
from penstock.base.arguments import is_function
from penstock.errors import UnsupportedOperation


class FoldAggregate(AggregateFunction[Any, Any, Any]):
    """A fold as an AggregateFunction whose accumulator is also its result."""

    def __init__(self, initial_value: Any, fold_function: FoldFunction | Callable[[Any, Any], Any]) -> None:
        if not (isinstance(fold_function, FoldFunction) or is_function(fold_function)):
            raise TypeError(f"fold takes a FoldFunction or a function of (accumulator, value), not {fold_function!r}")
        self._initial_value = initial_value
        self._fold = fold_function.fold if isinstance(fold_function, FoldFunction) else fold_function

    def create_accumulator(self) -> Any:
        return deepcopy(self._initial_value)

    def add(self, value: Any, accumulator: Any) -> Any:
        return self._fold(accumulator, value)

    def get_result(self, accumulator: Any) -> Any:
        return accumulator

    def merge(self, acc_a: Any, acc_b: Any) -> Any:
        raise UnsupportedOperation("folds cannot be merged, and these windows merge: use an AggregateFunction")


class RollingFold:
    """A fold as the function of `map_with_state`: each element returns the accumulator so far.

    The function receives a copy of the accumulator, because its former result has been emitted.
    """

    def __init__(self, aggregate: FoldAggregate) -> None:
        self._aggregate = aggregate

    def __call__(self, value: Any, held: tuple[Any] | None) -> tuple[Any, tuple[Any]]:
        accumulator = self._aggregate.create_accumulator() if held is None else deepcopy(held[0])
        folded = self._aggregate.add(value, accumulator)
        return folded, (folded,)
