"""Operators with two inputs, sorted by key: joins and co-groups."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

from penstock.dataset.operators.group_operators import ElementSort, SortingOperator
from penstock.engine.records.elements import Values

FIRST, SECOND = 0, 1


class SortMergeJoin(SortingOperator):
    """Joins elements of two inputs with equal keys.

    For each key, the elements of the second input are held in memory while those of the first are read one by one.
    """

    def __init__(
        self,
        function: Any,
        method: str,
        sorts: tuple[ElementSort, ElementSort],
        keeps: tuple[bool, bool] = (False, False),
        is_flat: bool = False,
    ) -> None:
        """Create the operator.

        `keeps` has a flag for each side: True if elements without a partner are joined with None. `is_flat` is True if
        the function returns any number of results.
        """
        # The second side is the first input, so that it comes first within a key.
        super().__init__(function, method, sorts[SECOND], sorts[FIRST])
        self.keeps = keeps
        self.is_flat = is_flat

    def group_results(self, elements: Iterator[tuple[int, Values]]) -> Iterable[Any]:
        results = self._pairs(elements)
        return chain.from_iterable(result or () for result in results) if self.is_flat else results

    def _pairs(self, elements: Iterator[tuple[int, Values]]) -> Iterator[Any]:
        call = self.call()
        partners: list[Any] = []
        had_first = False
        for side, values in elements:
            if side == 0:
                partners += values
                continue
            had_first = True
            others = partners or ([None] if self.keeps[FIRST] else [])
            for value in values:
                for other in others:
                    yield call(value, other)
        if not had_first and self.keeps[SECOND]:
            for other in partners:
                yield call(None, other)


class CoGroupElements(SortingOperator):
    """Calls the function once for each key, with the elements of both sides."""

    def group_results(self, elements: Iterator[tuple[int, Values]]) -> Iterable[Any] | None:
        sides: tuple[list[Any], list[Any]] = ([], [])
        for side, values in elements:
            sides[side].extend(values)
        return self.call()(*sides)  # type: ignore[no-any-return]


class ProjectedPair:
    """The function of a join or a cross that picks fields of both sides."""

    def __init__(self, fields: tuple[tuple[int, int | None], ...]) -> None:
        """Create the function. A field is (side, position); without a position it is the whole element."""
        self.fields = fields

    def __call__(self, first: Any, second: Any) -> tuple[Any, ...]:
        sides = first, second
        return tuple(sides[side] if at is None else sides[side][at] for side, at in self.fields)
