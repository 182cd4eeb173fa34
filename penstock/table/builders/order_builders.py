"""Builders of operators that depend on an order of rows: Top-N, deduplication, ORDER BY, LIMIT, OVER."""

from __future__ import annotations

from penstock.datastream.data_stream import DataStream
from penstock.table.builders.builder import Build, Builder
from penstock.table.operators.over.over_aggregate import StreamingOver
from penstock.table.operators.over.over_partitions import ChangingOver, OverAtEnd
from penstock.table.operators.rank.deduplicate import KeepFirst, KeepLast
from penstock.table.operators.rank.limit import Limit
from penstock.table.operators.rank.sort import SortAtEnd, TemporalSort
from penstock.table.operators.rank.top_n import TopN
from penstock.table.operators.window.window_top_n import WindowTopN
from penstock.table.physical import order_nodes as nodes


# --- ranks ---
def build_rank(builder: Builder, node: nodes.Rank, input: DataStream) -> DataStream:
    """Build Top-N of each partition."""
    operator = TopN(node.relation.partition, node.spec, builder.form(node), node.ttl)
    return builder.then_by_key(input, node.relation.partition, node.relation, "Rank", operator)


def build_window_rank(builder: Builder, node: nodes.WindowRank, input: DataStream) -> DataStream:
    """Build Top-N of each window."""
    operator = WindowTopN(node.keys, node.bounds, node.end, node.spec, node.time, builder.form(node))
    return builder.then_by_key(input, node.keys, node.relation, "Window Rank", operator)


def build_deduplicate(builder: Builder, node: nodes.Deduplicate, input: DataStream) -> DataStream:
    """Build a deduplication."""
    relation = node.relation
    kind = KeepLast if relation.keep_last else KeepFirst
    operator = kind(
        relation.partition, node.time, builder.form(node), relation.rank_column, node.ttl, relation.every_version
    )
    return builder.then_by_key(input, relation.partition, relation, "Deduplicate", operator)


# --- order ---
def build_sort_limit(builder: Builder, node: nodes.SortLimit, input: DataStream) -> DataStream:
    """Build ORDER BY with LIMIT over changes."""
    operator = TopN((), node.spec, builder.form(node), node.ttl)
    return builder.then_by_key(input, (), node.relation, "Sort Limit", operator)


def build_limit(builder: Builder, node: nodes.Limit, input: DataStream) -> DataStream:
    """Build LIMIT of rows that stay."""
    operator = Limit(node.relation.offset, node.limit, builder.form(node))
    return builder.then_by_key(input, (), node.relation, "Limit", operator)


def build_sort_at_end(builder: Builder, node: nodes.SortAtEnd, input: DataStream) -> DataStream:
    """Build ORDER BY over all rows."""
    relation = node.relation
    operator = SortAtEnd(relation.keys, relation.offset, relation.limit, builder.form(node))
    return builder.then_by_key(input, (), relation, "Sort", operator)


def build_temporal_sort(builder: Builder, node: nodes.TemporalSort, input: DataStream) -> DataStream:
    """Build ORDER BY time. By processing time, rows are in order already."""
    if node.time is None:
        return input
    operator = TemporalSort(node.time, node.relation.keys[1:], builder.form(node))
    return builder.then_by_key(input, (), node.relation, "Temporal Sort", operator)


# --- OVER ---
def build_over_at_end(builder: Builder, node: nodes.OverAtEnd, input: DataStream) -> DataStream:
    """Build a window over all rows of a partition."""
    operator = OverAtEnd(node.window, node.inputs[0].columns, builder.form(node))
    return builder.then_by_key(input, node.window.partition, node.relation, "Over Aggregate", operator)


def build_over(builder: Builder, node: nodes.OverAggregate, input: DataStream) -> DataStream:
    """Build a window in order of time."""
    operator = StreamingOver(node.window, node.time, node.inputs[0].columns, builder.form(node), node.ttl)
    return builder.then_by_key(input, node.window.partition, node.relation, "Over Aggregate", operator)


def build_changing_over(builder: Builder, node: nodes.ChangingOver, input: DataStream) -> DataStream:
    """Build a window in another order than time."""
    below = node.inputs[0]
    operator = ChangingOver(node.window, below.columns, below.changelog, builder.form(node), node.ttl)
    return builder.then_by_key(input, node.window.partition, node.relation, "Over Aggregate", operator)


BUILDERS: dict[type, Build] = {
    nodes.Rank: build_rank,
    nodes.WindowRank: build_window_rank,
    nodes.Deduplicate: build_deduplicate,
    nodes.SortLimit: build_sort_limit,
    nodes.Limit: build_limit,
    nodes.SortAtEnd: build_sort_at_end,
    nodes.TemporalSort: build_temporal_sort,
    nodes.OverAtEnd: build_over_at_end,
    nodes.OverAggregate: build_over,
    nodes.ChangingOver: build_changing_over,
}
