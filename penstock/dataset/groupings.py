"""Groups of the elements of a set with equal keys, and aggregations of fields."""

from __future__ import annotations

from typing import Any, Self

from penstock.dataset.data_set import DataSet
from penstock.dataset.operators.group_operators import CombiningGroups, ElementSort, FirstOfGroup, GroupElements
from penstock.dataset.plan.checks import check_count, check_function, check_positions, check_type
from penstock.dataset.plan.enums import Aggregations, Order
from penstock.dataset.plan.folds import Aggregate, Extreme
from penstock.dataset.plan.keys import Key, key_of_fields
from penstock.dataset.plan.sorting import Sorts, custom, sort_of, with_sort
from penstock.errors import ProgramError
from penstock.graph.partitioning import Custom


class AggregateOperator(DataSet):
    """Tuples with aggregated fields."""

    def __init__(
        self,
        origin: DataSet,
        key: Key | None,
        how: Custom | None,
        before: Aggregate,
        aggregation: Aggregations,
        field: int,
    ) -> None:
        check_type("aggregate", "aggregation", aggregation, Aggregations)
        check_positions(aggregation.value, (field,))
        self._origin, self._key, self._how = origin, key, how
        self._aggregate = before.with_field(aggregation, field, origin.kind)
        super().__init__(origin.env, origin.reduced(self._aggregate, "", key, how).refs, origin.kind)

    def and_(self, aggregation: Aggregations, field: int) -> AggregateOperator:
        """Aggregate another field as well. A later aggregation of the same field replaces an earlier one."""
        return AggregateOperator(self._origin, self._key, self._how, self._aggregate, aggregation, field)

    def and_sum(self, field: int) -> AggregateOperator:
        """Add up a further field."""
        return self.and_(Aggregations.SUM, field)

    def and_min(self, field: int) -> AggregateOperator:
        """Find the least value of a further field."""
        return self.and_(Aggregations.MIN, field)

    def and_max(self, field: int) -> AggregateOperator:
        """Find the greatest value of a further field."""
        return self.and_(Aggregations.MAX, field)


def aggregate_field(
    origin: DataSet, key: Key | None, how: Custom | None, aggregation: Aggregations, field: int
) -> AggregateOperator:
    """Aggregate one field of the elements of each group."""
    return AggregateOperator(origin, key, how, Aggregate(), aggregation, field)


class Grouping:
    """The elements of a set in groups with equal keys."""

    def __init__(self, origin: DataSet, key: Key, sorts: Sorts = (), how: Custom | None = None) -> None:
        self._origin, self._key, self._sorts, self._how = origin, key, sorts, how

    @property
    def _sort(self) -> ElementSort:
        if not self._sorts:
            return ElementSort(self._key.selector)
        return ElementSort(self._key.selector, *sort_of(self._sorts))

    def with_partitioner(self, partitioner: Any) -> Self:
        """Choose the tasks of groups by a partitioner, instead of by a hash of the key."""
        how = custom("with_partitioner", partitioner, self._key)
        return type(self)(self._origin, self._key, self._sorts, how)

    def sort_group(self, field: Any, order: Order) -> SortedGrouping:
        """Sort the elements of each group. A further sort_group decides between equal ones."""
        found = key_of_fields((field,), self._origin.kind, "sort_group")
        if found.is_selector and not self._key.is_selector:
            raise ProgramError("sort_group takes fields after group_by with fields, not a function")
        if self._key.is_selector and not found.is_selector:
            raise ProgramError("sort_group takes a function after group_by with a function, and not fields")
        sorts = with_sort(self._sorts, found, order, "sort_group")
        return SortedGrouping(self._origin, self._key, sorts, self._how)

    def reduce_group(self, reducer: Any) -> DataSet:
        """Turn each group into any number of results."""
        return self._origin.reduce_groups(reducer, self._key, self._sort, self._how)

    def combine_group(self, combiner: Any) -> DataSet:
        """Turn the parts of each group, where they are, into fewer elements."""
        check_function("combine_group", combiner, "combine")
        if not self._sorts:
            return self._origin.add("CombineGroup", CombiningGroups(combiner, "combine", self._key.selector))
        return self._origin.add("CombineGroup", GroupElements(combiner, "combine", self._sort))

    def first(self, n: int) -> DataSet:
        """Keep `n` elements of each group."""
        check_count("first", "n", n)
        operator = FirstOfGroup(n, self._sort)
        found = self._origin.exchanged("First", operator, self._key, self._how)
        found.kind = self._origin.kind
        return found


class SortedGrouping(Grouping):
    """Groups whose elements are sorted."""


class UnsortedGrouping(Grouping):
    """Groups whose elements have no defined order."""

    def reduce(self, reducer: Any) -> DataSet:
        """Combine the elements of each group into one."""
        check_function("reduce", reducer, "reduce")
        return self._origin.reduced(reducer, "reduce", self._key, self._how)

    def aggregate(self, aggregation: Aggregations, field: int) -> AggregateOperator:
        """Aggregate one field of the tuples of each group."""
        return aggregate_field(self._origin, self._key, self._how, aggregation, field)

    def sum(self, field: int) -> AggregateOperator:
        """Add up one field."""
        return self.aggregate(Aggregations.SUM, field)

    def min(self, field: int) -> AggregateOperator:
        """Find the least value of one field."""
        return self.aggregate(Aggregations.MIN, field)

    def max(self, field: int) -> AggregateOperator:
        """Find the greatest value of one field."""
        return self.aggregate(Aggregations.MAX, field)

    def min_by(self, *fields: int) -> DataSet:
        """Keep the tuple with the smallest values in the given fields, for each group."""
        return self._origin.reduced(Extreme(fields, self._origin.kind, False), "", self._key, self._how)

    def max_by(self, *fields: int) -> DataSet:
        """Keep the tuple with the greatest fields of each group."""
        return self._origin.reduced(Extreme(fields, self._origin.kind, True), "", self._key, self._how)
