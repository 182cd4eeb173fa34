"""Builders of joins and set operations."""

from __future__ import annotations

from penstock.datastream.data_stream import DataStream
from penstock.table.builders.builder import Build, Builder
from penstock.table.logical.kinds import JoinKind
from penstock.table.operators.io.set_operation import SetOperationOperator
from penstock.table.operators.join.append_join import AppendJoin
from penstock.table.operators.join.interval_join_operator import IntervalJoin
from penstock.table.operators.join.lookup_join import LookupJoin
from penstock.table.operators.join.materialized_lookup import MaterializedLookupJoin
from penstock.table.operators.join.regular_join import Join
from penstock.table.operators.join.temporal_join import TemporalJoin
from penstock.table.operators.window.window_join import WindowJoin
from penstock.table.physical import join_nodes as nodes


def build_append_join(builder: Builder, node: nodes.AppendJoin, left: DataStream, right: DataStream) -> DataStream:
    """Build an inner join of inputs that only grow."""
    operator = AppendJoin(node.spec, builder.form(node))
    return builder.two_inputs((left, right), node.spec.keys, node.relation, "Join", operator)


def build_join(builder: Builder, node: nodes.Join, left: DataStream, right: DataStream) -> DataStream:
    """Build a regular join."""
    operator = Join(node.spec, builder.form(node), node.ttl)
    return builder.two_inputs((left, right), node.spec.keys, node.relation, "Join", operator)


def build_interval_join(builder: Builder, node: nodes.IntervalJoin, left: DataStream, right: DataStream) -> DataStream:
    """Build an interval join."""
    operator = IntervalJoin(node.spec, node.interval, builder.form(node))
    return builder.two_inputs((left, right), node.spec.keys, node.relation, "Interval Join", operator)


def build_window_join(builder: Builder, node: nodes.WindowJoin, left: DataStream, right: DataStream) -> DataStream:
    """Build a window join."""
    operator = WindowJoin(node.spec, node.bounds, node.time, builder.form(node))
    return builder.two_inputs((left, right), node.spec.keys, node.relation, "Window Join", operator)


def build_temporal_join(builder: Builder, node: nodes.TemporalJoin, left: DataStream, right: DataStream) -> DataStream:
    """Build a join with versions."""
    operator = TemporalJoin(node.spec, node.times, builder.form(node), node.ttl)
    return builder.two_inputs((left, right), node.spec.keys, node.relation, "Temporal Join", operator)


def build_lookup_join(builder: Builder, node: nodes.LookupJoin, input: DataStream) -> DataStream:
    """Build a lookup join."""
    return builder.then(input, node.relation, "Lookup Join", _lookup_operator(builder, node))


def build_materialized_lookup(builder: Builder, node: nodes.MaterializedLookupJoin, input: DataStream) -> DataStream:
    """Build a lookup join that keeps its output."""
    operator = MaterializedLookupJoin(_lookup_operator(builder, node), node.kept_by, node.ttl)
    return builder.then_by_key(input, node.kept_by, node.relation, "Materialized Lookup Join", operator)


def _lookup_operator(builder: Builder, node: nodes.LookupJoin) -> LookupJoin:
    return LookupJoin(
        node.lookup,
        node.keys,
        node.relation.left.columns,
        node.right,
        node.condition,
        node.relation.kind == JoinKind.LEFT,
        builder.form(node),
        node.changelog,
        builder.settings.zone,
    )


def build_set_operation(builder: Builder, node: nodes.SetOperation, left: DataStream, right: DataStream) -> DataStream:
    """Build INTERSECT or EXCEPT."""
    relation, width = node.relation, len(node.columns)
    changelogs = node.inputs[0].changelog, node.inputs[1].changelog
    operator = SetOperationOperator(relation.kind, relation.all, builder.form(node), changelogs, width, node.ttl)
    keys = range(width), range(width)
    return builder.two_inputs((left, right), keys, relation, relation.details().title(), operator)


BUILDERS: dict[type, Build] = {
    nodes.AppendJoin: build_append_join,
    nodes.Join: build_join,
    nodes.IntervalJoin: build_interval_join,
    nodes.WindowJoin: build_window_join,
    nodes.TemporalJoin: build_temporal_join,
    nodes.LookupJoin: build_lookup_join,
    nodes.MaterializedLookupJoin: build_materialized_lookup,
    nodes.SetOperation: build_set_operation,
}
