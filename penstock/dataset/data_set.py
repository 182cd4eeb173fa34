"""DataSet: bounded data, and transformations that give new data sets. A program runs only when it needs a result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Self

from penstock.dataset.functions import GroupCombineFunction, GroupReduceFunction
from penstock.dataset.operators.dataset_operator import DataSetOperator
from penstock.dataset.operators.group_operators import (
    CombiningGroups,
    CombiningReduce,
    ElementSort,
    GroupElements,
    PartitionElements,
    ReduceElements,
    SortedElements,
)
from penstock.dataset.operators.record_operators import (
    FilterElements,
    FirstElements,
    FlatMapElements,
    MapElements,
    RecordOperator,
)
from penstock.dataset.plan.checks import check_count, check_function, check_positions, check_type
from penstock.dataset.plan.element_kinds import Kind, describe, differ, pick_fields
from penstock.dataset.plan.enums import Aggregations, JoinHint, Order, WriteMode
from penstock.dataset.plan.folds import Extreme, keep_first
from penstock.dataset.plan.keys import Key, key_of_fields
from penstock.dataset.plan.sorting import Sorts, custom, sort_of, with_sort
from penstock.dataset.plan.steps import Ref, Refs, Step
from penstock.errors import TypeMismatch, UnsupportedOperation
from penstock.graph.partitioning import ByKey, Custom, Partitioning, Rebalance

if TYPE_CHECKING:
    from penstock.dataset.data_sink import DataSink
    from penstock.dataset.execution_environment import ExecutionEnvironment
    from penstock.dataset.groupings import AggregateOperator, UnsortedGrouping
    from penstock.dataset.iterations.closing import DeltaIteration, IterativeDataSet
    from penstock.dataset.pairs import CoGrouping, Cross, Join, OuterJoin


class DataSet:
    """A bounded set of elements. Each transformation gives another set."""

    def __init__(self, env: ExecutionEnvironment, refs: Refs, kind: Kind = None) -> None:
        self.env = env
        self.refs = refs
        """The steps whose elements are in the set."""
        self.kind = kind
        """Kind of the elements; None if it is unknown."""

    def get_execution_environment(self) -> ExecutionEnvironment:
        """Return the environment that the set belongs to."""
        return self.env

    def __repr__(self) -> str:
        names = ", ".join(ref.step.name for ref in self.refs)
        return f"<DataSet {names}, elements: {describe(self.kind)}>"

    # --- settings of the operator ---
    @property
    def step(self) -> Step:
        """The step that gives the elements."""
        if len(self.refs) != 1 or self.refs[0].partitioning is not None:
            raise UnsupportedOperation("a union is not an operator: change the settings of its inputs")
        return self.refs[0].step

    def name(self, name: str) -> Self:
        """Set the operator's name in plans, logs and errors."""
        check_type("name", "name", name, str)
        self.step.name = name
        return self

    def set_parallelism(self, parallelism: int) -> Self:
        """Set the number of tasks of this operator."""
        check_count("set_parallelism", "parallelism", parallelism)
        self.step.parallelism = parallelism
        return self

    def with_broadcast_set(self, data: DataSet, name: str) -> Self:
        """Give every task of this operator all elements of another set, as get_broadcast_variable(name)."""
        check_type("with_broadcast_set", "data", data, DataSet)
        check_type("with_broadcast_set", "name", name, str)
        if self.step.operator is None:
            raise UnsupportedOperation("a source has no function, so nothing could read the broadcast set")
        self.step.add_set(name, data.refs)
        return self

    # --- one element after the other ---
    def map(self, mapper: Any) -> DataSet:
        """Turn each element into another."""
        return self.add("Map", MapElements(check_function("map", mapper, "map"), "map"))

    def flat_map(self, flat_mapper: Any) -> DataSet:
        """Turn each element into any number of others."""
        return self.add("FlatMap", FlatMapElements(check_function("flat_map", flat_mapper, "flat_map"), "flat_map"))

    def filter(self, predicate: Any) -> DataSet:
        """Keep the elements for which a function returns true."""
        return self.add("Filter", FilterElements(check_function("filter", predicate, "filter"), "filter"), self.kind)

    def map_partition(self, function: Any) -> DataSet:
        """Turn the elements of each partition into any number of others."""
        check_function("map_partition", function, "map_partition")
        return self.add("MapPartition", PartitionElements(function, "map_partition", ElementSort(None)))

    def project(self, *positions: int) -> DataSet:
        """Keep some fields of tuples, in this order."""
        check_positions("project", positions)
        kind = pick_fields(self.kind, positions, "project")
        return self.add("Project", MapElements(lambda value: tuple([value[at] for at in positions])), kind)

    # --- the whole set ---
    def reduce(self, reducer: Any) -> DataSet:
        """Combine all elements into one."""
        return self.reduced(check_function("reduce", reducer, "reduce"), "reduce", None)

    def reduce_group(self, reducer: Any) -> DataSet:
        """Turn all elements, together, into any number of results."""
        return self.reduce_groups(reducer, None, ElementSort(None))

    def combine_group(self, combiner: Any) -> DataSet:
        """Turn the elements of each partition, in parts, into fewer."""
        check_function("combine_group", combiner, "combine")
        return self.add("CombineGroup", CombiningGroups(combiner, "combine", None))

    def first(self, n: int) -> DataSet:
        """Keep `n` elements."""
        check_count("first", "n", n)
        heads = self.add("First", FirstElements(n), self.kind)
        return heads.single("First", FirstElements(n), self.kind)

    def distinct(self, *keys: Any) -> DataSet:
        """Keep one element for each key, or of equal elements if there is no key."""
        key = key_of_fields(keys or ("*",), self.kind, "distinct")
        return self.reduced(keep_first, "", key)

    def aggregate(self, aggregation: Aggregations, field: int) -> AggregateOperator:
        """Aggregate one field of tuples. The other fields are those of one of the elements."""
        from penstock.dataset.groupings import aggregate_field

        return aggregate_field(self, None, None, aggregation, field)

    def sum(self, field: int) -> AggregateOperator:
        """Add up one field of tuples."""
        return self.aggregate(Aggregations.SUM, field)

    def min(self, field: int) -> AggregateOperator:
        """Find the least value of one field of tuples."""
        return self.aggregate(Aggregations.MIN, field)

    def max(self, field: int) -> AggregateOperator:
        """Find the greatest value of one field of tuples."""
        return self.aggregate(Aggregations.MAX, field)

    def min_by(self, *fields: int) -> DataSet:
        """Keep the tuple with the least fields."""
        return self.reduced(Extreme(fields, self.kind, False), "", None)

    def max_by(self, *fields: int) -> DataSet:
        """Keep the tuple with the greatest fields."""
        return self.reduced(Extreme(fields, self.kind, True), "", None)

    # --- groups and pairs ---
    def group_by(self, *keys: Any) -> UnsortedGrouping:
        """Group the elements by fields, or by one function."""
        from penstock.dataset.groupings import UnsortedGrouping

        return UnsortedGrouping(self, key_of_fields(keys, self.kind, "group_by"))

    def join(self, other: DataSet, strategy: JoinHint = JoinHint.OPTIMIZER_CHOOSES) -> Join:
        """Join with the elements of another set that have the same key: .where(...).equal_to(...)."""
        from penstock.dataset.pairs import Join

        return Join(self, other, strategy)

    def join_with_tiny(self, other: DataSet) -> Join:
        """Join with a set that is small enough to be sent to every task."""
        return self.join(other, JoinHint.BROADCAST_HASH_SECOND)

    def join_with_huge(self, other: DataSet) -> Join:
        """Join with a set so large that this one is sent to every task."""
        return self.join(other, JoinHint.BROADCAST_HASH_FIRST)

    def left_outer_join(self, other: DataSet, strategy: JoinHint = JoinHint.OPTIMIZER_CHOOSES) -> OuterJoin:
        """Join, and keep the elements of this set without a partner: its place is None."""
        from penstock.dataset.pairs import OuterJoin

        return OuterJoin(self, other, strategy, "left_outer_join", (True, False))

    def right_outer_join(self, other: DataSet, strategy: JoinHint = JoinHint.OPTIMIZER_CHOOSES) -> OuterJoin:
        """Join, and keep the elements of the other set without a partner: its place is None."""
        from penstock.dataset.pairs import OuterJoin

        return OuterJoin(self, other, strategy, "right_outer_join", (False, True))

    def full_outer_join(self, other: DataSet, strategy: JoinHint = JoinHint.OPTIMIZER_CHOOSES) -> OuterJoin:
        """Join, and keep the elements of both sets without a partner: its place is None."""
        from penstock.dataset.pairs import OuterJoin

        return OuterJoin(self, other, strategy, "full_outer_join", (True, True))

    def co_group(self, other: DataSet) -> CoGrouping:
        """Bring together the elements of both sets that have the same key."""
        from penstock.dataset.pairs import CoGrouping

        return CoGrouping(self, other)

    def cross(self, other: DataSet) -> Cross:
        """Combine every element with every element of another set."""
        from penstock.dataset.pairs import make_cross

        return make_cross(self, other, broadcasts_first=False)

    def cross_with_tiny(self, other: DataSet) -> Cross:
        """Combine with a set that is small enough to be sent to every task."""
        return self.cross(other)

    def cross_with_huge(self, other: DataSet) -> Cross:
        """Combine with a set so large that this one is sent to every task."""
        from penstock.dataset.pairs import make_cross

        return make_cross(self, other, broadcasts_first=True)

    def union(self, other: DataSet) -> DataSet:
        """Return the elements of both sets."""
        check_type("union", "other", other, DataSet)
        if differ(self.kind, other.kind):
            raise TypeMismatch(
                f"union: the elements of the sets are of type {describe(self.kind)} and {describe(other.kind)}"
            )
        return DataSet(self.env, (*self.refs, *other.refs), self.kind if self.kind == other.kind else None)

    # --- distribution ---
    def rebalance(self) -> DataSet:
        """Distribute the elements evenly."""
        return self.distribute("Rebalance", Rebalance())

    def partition_by_hash(self, *keys: Any) -> DataSet:
        """Bring elements with equal keys into one partition."""
        key = key_of_fields(keys, self.kind, "partition_by_hash")
        return self.distribute("HashPartition", ByKey(key.selector))

    def partition_by_range(self, *keys: Any) -> DataSet:
        """Bring elements with neighbouring keys into one partition. A sample of the keys decides on the limits."""
        from penstock.dataset.ranges import partition_by_range

        return partition_by_range(self, key_of_fields(keys, self.kind, "partition_by_range"))

    def partition_custom(self, partitioner: Any, key: Any) -> DataSet:
        """Bring each element into the partition that partitioner(key, number of partitions) chooses."""
        found = key_of_fields((key,), self.kind, "partition_custom")
        return self.distribute("CustomPartition", custom("partition_custom", partitioner, found))

    def sort_partition(self, key: Any, order: Order) -> SortedPartitions:
        """Sort the elements of each partition. A further sort_partition decides between equal ones."""
        return SortedPartitions(self, ()).sort_partition(key, order)

    # --- iterations ---
    def iterate(self, max_iterations: int) -> IterativeDataSet:
        """Begin a bulk iteration with these elements: close_with(result) ends its step."""
        from penstock.dataset.iterations.closing import IterativeDataSet

        return IterativeDataSet(self, max_iterations)

    def iterate_delta(self, workset: DataSet, max_iterations: int, *keys: Any) -> DeltaIteration:
        """Begin a delta iteration: this is the solution set, whose elements the keys identify."""
        from penstock.dataset.iterations.closing import DeltaIteration

        return DeltaIteration(self, workset, max_iterations, keys)

    # --- results ---
    def collect(self) -> list[Any]:
        """Run a job, and return the elements."""
        return self.env.collect(self)

    def count(self) -> int:
        """Run a job, and return the number of elements."""
        return self.env.count(self)

    def print(self) -> None:
        """Run a job, and print the elements here, as Java would write them."""
        self.env.print(self, to_error=False)

    def print_to_err(self) -> None:
        """Run a job, and print the elements on standard error."""
        self.env.print(self, to_error=True)

    def write_as_text(self, path: str, write_mode: WriteMode = WriteMode.NO_OVERWRITE) -> DataSink:
        """Write each element on a line, as Java would write it: one file, or a folder with a file for each task."""
        from penstock.dataset.data_sink import text_of_element

        return self.env.write(self, path, text_of_element, "\n", write_mode)

    def write_as_formatted_text(
        self, path: str, formatter: Callable[[Any], str], write_mode: WriteMode = WriteMode.NO_OVERWRITE
    ) -> DataSink:
        """Write the text of each element on a line."""
        check_function("write_as_formatted_text", formatter, "format")
        return self.env.write(self, path, getattr(formatter, "format", formatter), "\n", write_mode)

    def write_as_csv(
        self,
        path: str,
        row_delimiter: str | WriteMode = "\n",
        field_delimiter: str = ",",
        write_mode: WriteMode = WriteMode.NO_OVERWRITE,
    ) -> DataSink:
        """Write the fields of tuples, without quotes. The third argument may also be the WriteMode."""
        from penstock.dataset.data_sink import CsvLine

        if isinstance(row_delimiter, WriteMode):
            write_mode, row_delimiter = row_delimiter, "\n"
        check_type("write_as_csv", "row_delimiter", row_delimiter, str)
        check_type("write_as_csv", "field_delimiter", field_delimiter, str)
        pick_fields(self.kind, (), "write_as_csv")
        return self.env.write(self, path, CsvLine(field_delimiter), row_delimiter, write_mode)

    # --- for the builders ---
    def check_key(self, key: Key, method: str) -> None:
        """Raise an error if the set cannot be joined by this key."""

    def add(
        self,
        name: str,
        operator: DataSetOperator,
        kind: Kind = None,
        partitioning: Partitioning | None = None,
        parallelism: int | None = None,
        combiner: Step | None = None,
    ) -> DataSet:
        """Add an operator with this set as its input."""
        refs = self.refs if partitioning is None else tuple(Ref(ref.step, partitioning) for ref in self.refs)
        return DataSet(self.env, (Ref(Step(name, operator, (refs,), None, parallelism, combiner=combiner)),), kind)

    def single(self, name: str, operator: DataSetOperator, kind: Kind = None) -> DataSet:
        """Add an operator in one task, which gets all elements."""
        return self.add(name, operator, kind, Rebalance() if len(self.refs) > 1 else None, parallelism=1)

    def distribute(self, name: str, partitioning: Partitioning) -> DataSet:
        """Distribute the elements in another way."""
        return self.add(name, RecordOperator(), self.kind, partitioning)

    def exchanged(
        self, name: str, operator: DataSetOperator, key: Key | None, how: Partitioning | None = None, **more: Any
    ) -> DataSet:
        """Add an operator that gets the elements of a key in one task; without a key all of them."""
        if key is None:
            return self.add(name, operator, parallelism=1, **more)
        return self.add(name, operator, partitioning=how or ByKey(key.selector), **more)

    def reduced(self, function: Any, method: str, key: Key | None, how: Custom | None = None) -> DataSet:
        """Reduce each group to one element, first in the tasks that have its elements."""
        selector = None if key is None else key.selector
        combined = self.add("Combine", CombiningReduce(function, method, selector))
        operator = ReduceElements(function, method, ElementSort(itemgetter(0)))
        pair_key = None if key is None else Key(itemgetter(0), key.kinds)
        if how is not None:
            how = replace(how, selector=itemgetter(0))
        reduced = combined.exchanged("Reduce", operator, pair_key, how, combiner=combined.step)
        reduced.kind = self.kind
        return reduced

    def reduce_groups(
        self, function: Any, key: Key | None, sort: ElementSort, how: Partitioning | None = None
    ) -> DataSet:
        """Call a function for each group. If it is a combiner too, and groups are not sorted, it combines before."""
        check_function("reduce_group", function, "reduce")
        data, combiner = self, None
        if isinstance(function, GroupReduceFunction) and isinstance(function, GroupCombineFunction):
            selector = None if key is None else key.selector
            data = self.add("Combine", CombiningGroups(function, "combine", selector))
            combiner = data.step
        operator = GroupElements(function, "reduce", sort)
        return data.exchanged("GroupReduce", operator, key, how, combiner=combiner)


class SortedPartitions(DataSet):
    """A set whose partitions are sorted."""

    def __init__(self, origin: DataSet, sorts: Sorts) -> None:
        self._origin = origin
        self._sorts = sorts
        if sorts:
            selector, descends = sort_of(sorts)
            operator = SortedElements(None, "", ElementSort(None, selector, descends))
            made = origin.add("SortPartition", operator, origin.kind)
            super().__init__(origin.env, made.refs, origin.kind)

    def sort_partition(self, key: Any, order: Order) -> SortedPartitions:
        """Sort equal elements by a further key."""
        found = key_of_fields((key,), self._origin.kind, "sort_partition")
        return SortedPartitions(self._origin, with_sort(self._sorts, found, order, "sort_partition"))


__all__ = ["DataSet"]
