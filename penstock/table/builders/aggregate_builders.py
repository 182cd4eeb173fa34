"""Builders of aggregates over groups and over windows."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.datastream.data_stream import DataStream
from penstock.engine.operators.operator import Operator
from penstock.table.builders.builder import Build, Builder
from penstock.table.logical.kinds import WindowKind
from penstock.table.operators.aggregate.functions.user_aggregates import UserAggregate
from penstock.table.operators.aggregate.group_aggregate import GroupAggregate, LocalAggregate, part_schema
from penstock.table.operators.aggregate.table_aggregate import TableAggregate, WindowTableAggregate
from penstock.table.operators.base.output_form import OutputForm
from penstock.table.operators.window.count_windows import CountWindows
from penstock.table.operators.window.local_slices import LocalSlices
from penstock.table.operators.window.session_aggregate import SessionAggregate
from penstock.table.operators.window.shared_slices import SharedSliceAggregate
from penstock.table.operators.window.slice_aggregate import SliceAggregate
from penstock.table.operators.window.slices import SliceTableOperator, Slicing, same_times
from penstock.table.operators.window.window_aggregate import WindowAggregate
from penstock.table.operators.window.window_assignment import SessionTableOperator, WindowSpec, WindowTableOperator
from penstock.table.physical import aggregate_nodes as nodes

WINDOW_BY_WINDOW = "Window Aggregate"
IN_SLICES = "Sliced Window Aggregate"
IN_SHARED_SLICES = "Shared Window Aggregate"
IN_SESSIONS = "Session Window Aggregate"
"""Names of operators. Their states differ, so their uids must differ too, and uids follow from names."""


# --- groups ---
def build_local(builder: Builder, node: nodes.LocalGroupAggregate, input: DataStream) -> DataStream:
    """Build the first phase of an aggregate."""
    operator = LocalAggregate(node.relation.keys, node.folds, node.signed, _part_form(node))
    return _build_first_phase(builder, node, input, operator)


def build_local_slices(builder: Builder, node: nodes.LocalSliceAggregate, input: DataStream) -> DataStream:
    """Build the first phase of an aggregate in slices."""
    operator = LocalSlices(node.relation.keys, node.windows, node.folds, node.signed, _part_form(node))
    return _build_first_phase(builder, node, input, operator)


def _part_form(node: nodes.LocalGroupAggregate) -> OutputForm:
    """Return the form of the first phase's output: keys, then parts."""
    schema = node.inputs[0].schema
    return OutputForm(part_schema([schema.field(key) for key in node.relation.keys], node.folds, node.signed))


def _build_first_phase(
    builder: Builder, node: nodes.LocalGroupAggregate, input: DataStream, operator: Operator
) -> DataStream:
    stream = builder.then(input, node.relation, "Local Group Aggregate", operator)
    for ref in stream.refs:  # a DataFrame has no refs
        ref.node.is_numbered = False  # a plan with a parallelism of 1 lacks this operator
    return stream


def build_group_aggregate(builder: Builder, node: nodes.GroupAggregate, input: DataStream) -> DataStream:
    """Build GROUP BY without windows."""
    keys = node.relation.keys
    operator = GroupAggregate(keys, node.folds, node.signed, builder.form(node), node.ttl, node.parts_come)
    own = tuple(range(len(keys))) if node.parts_come else keys
    return builder.then_by_key(input, own, node.relation, "Group Aggregate", operator)


def build_table_aggregate(builder: Builder, node: nodes.GroupTableAggregate, input: DataStream) -> DataStream:
    """Build flat_aggregate over groups."""
    relation = node.relation
    types = [relation.input.columns[index].type for index in relation.call.args]
    results = [column.type for column in relation.columns[len(relation.keys) :]]
    signed = node.inputs[0].changelog
    operator = TableAggregate(relation.keys, relation.call, (types, results), signed, builder.form(node), node.ttl)
    return builder.then_by_key(input, relation.keys, relation, "Table Aggregate", operator)


# --- window tables ---
def build_window_table(builder: Builder, node: nodes.WindowTableFunction, input: DataStream) -> DataStream:
    """Build TUMBLE, HOP or CUMULATE."""
    relation = node.relation
    spec = WindowSpec(relation.kind, relation.size, relation.slide, relation.offset)
    operator = WindowTableOperator(spec, node.time, builder.form(node), node.changelog, builder.settings.zone)
    return builder.then(input, relation, "Window Table", operator)


def build_session_table(builder: Builder, node: nodes.SessionTableFunction, input: DataStream) -> DataStream:
    """Build SESSION."""
    relation, zone = node.relation, builder.settings.zone
    operator = SessionTableOperator(
        relation.partition, relation.size, node.time, builder.form(node), node.changelog, zone
    )
    return builder.then_by_key(input, relation.partition, relation, "Session Table", operator)


def build_slice_table(builder: Builder, node: nodes.SliceTable, input: DataStream) -> DataStream:
    """Build the slices that replace a window table."""
    relation = node.relation
    slicing = Slicing(relation.kind, relation.size, relation.slide, relation.offset)
    end_of = same_times if relation.kind == WindowKind.SESSION else slicing.slice_ends
    operator = SliceTableOperator(end_of, node.time, builder.form(node), node.changelog, builder.settings.zone)
    return builder.then(input, relation, "Slice Table", operator)


# --- windows ---
def build_window_aggregate(builder: Builder, node: nodes.WindowAggregate, input: DataStream) -> DataStream:
    """Build an aggregate of each window by itself."""
    keys = node.relation.keys
    operator = WindowAggregate(keys, node.windows, node.folds, node.signed, builder.form(node), node.parts_come)
    own = node.windows.plain if node.parts_come else _plain_keys(node)
    return builder.then_by_key(input, own, node.relation, WINDOW_BY_WINDOW, operator)


def build_slice_aggregate(builder: Builder, node: nodes.SliceAggregate, input: DataStream) -> DataStream:
    """Build an aggregate in slices."""
    operator = SliceAggregate(
        node.relation.keys, node.windows, node.slicing, node.folds, node.signed, builder.form(node), node.parts_come
    )
    own = node.windows.plain if node.parts_come else _plain_keys(node)
    name = WINDOW_BY_WINDOW if node.slicing.given else IN_SLICES
    return builder.then_by_key(input, own, node.relation, name, operator)


def build_shared_slices(builder: Builder, node: nodes.SharedSliceAggregate, input: DataStream) -> DataStream:
    """Build an aggregate that merges the accumulators of slices."""
    operator = SharedSliceAggregate(node.relation.keys, node.windows, node.slicing, node.folds, builder.form(node))
    return builder.then_by_key(input, _plain_keys(node), node.relation, IN_SHARED_SLICES, operator)


def build_sessions(builder: Builder, node: nodes.SessionAggregate, input: DataStream) -> DataStream:
    """Build an aggregate over sessions."""
    operator = SessionAggregate(node.relation.keys, node.windows, node.gap, node.folds, node.signed, builder.form(node))
    return builder.then_by_key(input, _plain_keys(node), node.relation, IN_SESSIONS, operator)


def _plain_keys(node: nodes.WindowNode) -> Sequence[int]:
    """Return the columns of the input that are keys and do not belong to the window."""
    return [node.relation.keys[position] for position in node.windows.plain]


def build_count_windows(builder: Builder, node: nodes.CountWindowAggregate, input: DataStream) -> DataStream:
    """Build windows of a number of rows."""
    relation = node.relation
    sizes = relation.size, relation.slide or relation.size
    operator = CountWindows(relation.keys, sizes, node.folds, builder.form(node))
    return builder.then_by_key(input, relation.keys, relation, "Count Windows", operator)


def build_window_table_aggregate(builder: Builder, node: nodes.WindowTableAggregate, input: DataStream) -> DataStream:
    """Build flat_aggregate over windows."""
    relation = node.relation
    width, count = len(relation.input.columns), len(relation.keys)
    keys = (*relation.keys, width - 3, width - 2, width - 1)
    made = len(relation.columns) - count - len(relation.properties)
    results = [column.type for column in relation.columns[count : count + made]]
    properties = [{"start": 0, "end": 1}.get(name, 2) for name in relation.properties]
    fold = UserAggregate(relation.call, [relation.input.columns[index].type for index in relation.call.args])
    signed = node.inputs[0].changelog
    operator = WindowTableAggregate(keys, node.windows, fold, (results, properties), signed, builder.form(node))
    return builder.then_by_key(input, relation.keys, relation, "Window Table Aggregate", operator)


BUILDERS: dict[type, Build] = {
    nodes.LocalGroupAggregate: build_local,
    nodes.LocalSliceAggregate: build_local_slices,
    nodes.GroupAggregate: build_group_aggregate,
    nodes.GroupTableAggregate: build_table_aggregate,
    nodes.WindowTableFunction: build_window_table,
    nodes.SessionTableFunction: build_session_table,
    nodes.SliceTable: build_slice_table,
    nodes.WindowAggregate: build_window_aggregate,
    nodes.SliceAggregate: build_slice_aggregate,
    nodes.SharedSliceAggregate: build_shared_slices,
    nodes.SessionAggregate: build_sessions,
    nodes.CountWindowAggregate: build_count_windows,
    nodes.WindowTableAggregate: build_window_table_aggregate,
}
