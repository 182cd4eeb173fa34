"""Functions that fold elements of a group: aggregations of fields, and choices by fields."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import add, itemgetter
from typing import Any

from penstock.dataset.plan.element_kinds import Kind, TupleKind, check_position, describe
from penstock.dataset.plan.enums import Aggregations
from penstock.errors import TypeMismatch

_FOLDS: dict[Aggregations, Callable[[Any, Any], Any]] = {
    Aggregations.SUM: add,
    Aggregations.MIN: min,
    Aggregations.MAX: max,
}
_NUMBERS = (int, float)


class Aggregate:
    """Aggregates some fields of tuples. The other fields are those of one of the elements."""

    def __init__(self) -> None:
        self._folds: dict[int, Aggregations] = {}

    def with_field(self, aggregation: Aggregations, position: int, kind: Kind) -> Aggregate:
        """Return a copy that also aggregates this field. An earlier aggregation of the field is replaced."""
        method = aggregation.value
        if kind is not None:
            if not isinstance(kind, TupleKind):
                raise TypeMismatch(f"{method} needs tuples, but the elements are of type {describe(kind)}")
            check_position(kind, position, method)
            field = kind.fields[position]
            if aggregation is Aggregations.SUM and field is not None and field not in _NUMBERS:
                raise TypeMismatch(f"sum adds numbers, but field {position} is of type {describe(field)}")
        copy = Aggregate()
        copy._folds = {**self._folds, position: aggregation}
        return copy

    def __call__(self, first: Any, second: Any) -> Any:
        fields = list(second)
        for position, aggregation in self._folds.items():
            if aggregation is Aggregations.SUM and not isinstance(first[position], _NUMBERS):
                raise TypeMismatch(f"sum adds numbers, and field {position} of {first!r} is none")
            fields[position] = _FOLDS[aggregation](first[position], second[position])
        return tuple(fields)


class Extreme:
    """Keeps the element whose fields are the least or the greatest; the earlier one of two that are equal."""

    def __init__(self, positions: Sequence[int], kind: Kind, is_greatest: bool) -> None:
        method = "max_by" if is_greatest else "min_by"
        if not positions:
            raise TypeMismatch(f"{method} needs at least one position")
        if kind is not None:
            if not isinstance(kind, TupleKind):
                raise TypeMismatch(f"{method} needs tuples, but the elements are of type {describe(kind)}")
            for position in positions:
                check_position(kind, position, method)
        self._fields = itemgetter(*positions)
        self._is_greatest = is_greatest

    def __call__(self, first: Any, second: Any) -> Any:
        mine, other = self._fields(first), self._fields(second)
        return second if (other > mine if self._is_greatest else other < mine) else first


def keep_first(first: Any, second: Any) -> Any:
    """Return the first of two equal elements."""
    return first
