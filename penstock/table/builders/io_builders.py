"""Builders of sources, sinks, and operators that process rows one by one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from penstock.datastream.data_stream import DataStream
from penstock.engine.operators.sources.source_operator import SourceOperator
from penstock.graph.partitioning import Global
from penstock.graph.transformations import StreamRef, Transformation
from penstock.table.builders.builder import Build, Builder
from penstock.table.logical.rex import Literal
from penstock.table.operators.base.output_form import OutputForm
from penstock.table.operators.base.records import FromRecords
from penstock.table.operators.io.calc import Calc
from penstock.table.operators.io.changelog_rows import ChangesAsRows, RowsAsChanges
from penstock.table.operators.io.changes import Renamed, WithKinds
from penstock.table.operators.io.constraints import ConstraintEnforcer
from penstock.table.operators.io.expand import ExpandOperator
from penstock.table.operators.io.moving_filter import MovingFilter
from penstock.table.operators.io.normalise import ChangelogNormalize
from penstock.table.operators.io.row_conversions import BatchesSource, FromValues, ToRows, values_batch
from penstock.table.operators.io.sink_materializer import (
    CompactingMaterializer,
    SinkMaterializer,
    SinkShuffle,
    WatermarkTimestamps,
)
from penstock.table.operators.window.watermark import WatermarkOperator
from penstock.table.physical import io_nodes as nodes
from penstock.table.physical.physical_node import PhysicalNode
from penstock.table.types.arrow_forms import arrow_schema


# --- sources ---
def build_values(builder: Builder, node: nodes.Values) -> DataStream:
    """Build a source of literal rows."""
    relation = node.relation
    rows = [tuple(_plain(value) for value in row) for row in relation.rows]
    source = BatchesSource(values_batch(relation.columns, rows))
    made = Transformation("Values", SourceOperator(source), kind="source", non_parallel=True)
    made.uid = builder.uid(relation, "Values")
    return DataStream(builder.env, [StreamRef(made)])


def _plain(value: object) -> object:
    return value.value if isinstance(value, Literal) else value


def build_spark_sql(builder: Builder, node: nodes.SparkSQL) -> DataStream:
    """Return the stream of rows that Spark SQL computes."""
    stream: DataStream = node.stream
    return stream


def build_stream_scan(builder: Builder, node: nodes.DataStreamScan) -> DataStream:
    """Build the conversion of a DataStream."""
    scan = node.relation
    operator = FromValues(scan.columns, scan.metadata, scan.changelog, scan.primary_key, node.versions)
    return builder.then(scan.stream, scan, "Table From Stream", operator)


def build_scan(builder: Builder, node: nodes.TableSourceScan) -> DataStream:
    """Build the source of a table."""
    scan = node.relation
    stream = node.connector.source(builder.env, node.table)
    operator = FromRecords(scan.columns, (), scan.changelog, node.table.key, node.versions)
    return builder.then(stream, scan, "Table Source", operator)


def build_normalize(builder: Builder, node: nodes.ChangelogNormalize, input: DataStream) -> DataStream:
    """Build the conversion of upserts to a changelog."""
    operator = ChangelogNormalize(node.key, builder.form(node), node.ttl, node.every_version, node.dated_deletions)
    return builder.then_by_key(input, node.key, node.relation, "Changelog Normalize", operator)


def build_watermark(builder: Builder, node: nodes.WatermarkAssigner, input: DataStream) -> DataStream:
    """Build a source of watermarks, unless those of the input pass."""
    relation, settings = node.relation, builder.settings
    if relation.expr is None:
        return input
    interval = settings.duration("pipeline.auto-watermark-interval")
    idle_timeout = settings.duration("table.exec.source.idle-timeout") or None
    operator = WatermarkOperator(
        builder.form(node), relation.rowtime, relation.expr, interval, settings.zone, idle_timeout
    )
    return builder.then(input, relation, "Watermark", operator)


# --- rows ---
def build_calc(builder: Builder, node: nodes.Calc, input: DataStream) -> DataStream:
    """Build a filter and projection."""
    operator = Calc(node.relation.exprs, node.condition, builder.form(node), node.changelog, builder.settings.zone)
    return builder.then(input, node.relation, "Calc", operator)


def build_moving_filter(builder: Builder, node: nodes.MovingFilter, input: DataStream) -> DataStream:
    """Build a filter that makes upserts of changes."""
    form = OutputForm(node.schema)  # upserts may delete a key that was never inserted
    operator = MovingFilter(node.condition, form, builder.settings.zone)
    return builder.then(input, node.relation, "Moving Filter", operator)


def build_expand(builder: Builder, node: nodes.Expand, input: DataStream) -> DataStream:
    """Build the operator of grouping sets."""
    operator = ExpandOperator(node.relation.keys, node.relation.sets, builder.form(node), node.changelog)
    return builder.then(input, node.relation, "Expand", operator)


def build_renamed(builder: Builder, node: nodes.Renamed, input: DataStream) -> DataStream:
    """Build the renaming of columns."""
    return builder.then(input, node.relation, "Renamed", Renamed(builder.form(node)))


def build_with_kinds(builder: Builder, node: nodes.WithKinds, input: DataStream) -> DataStream:
    """Build the operator that makes a changelog of inserts."""
    return builder.then(input, node.relation, "With Kinds", WithKinds(builder.form(node)))


def build_union(builder: Builder, node: nodes.Union, *inputs: DataStream) -> DataStream:
    """Build UNION ALL."""
    refs = [ref for input in inputs for ref in input.input_refs()]
    return DataStream(builder.env, _keep_changes_in_order(refs) if node.changelog else refs)


def _keep_changes_in_order(refs: Sequence[StreamRef]) -> list[StreamRef]:
    """Return the streams of a union. Rows of a stream with a lower parallelism than others all go to one subtask.

    They would be spread over the subtasks otherwise, so that the changes of a key could overtake each other.
    """
    own = {(ref.node.parallelism, ref.node.non_parallel) for ref in refs if ref.partitioning is None}
    if len(own) < 2:
        return list(refs)
    return [
        replace(ref, partitioning=Global())
        if ref.partitioning is None and (ref.node.non_parallel or ref.node.parallelism is not None)
        else ref
        for ref in refs
    ]


def build_to_changelog(builder: Builder, node: nodes.ToChangelog, input: DataStream) -> DataStream:
    """Build TO_CHANGELOG."""
    operator = ChangesAsRows(dict(node.relation.codes), builder.form(node), node.inputs[0].changelog)
    return builder.then(input, node.relation, "To Changelog", operator)


def build_from_changelog(builder: Builder, node: nodes.FromChangelog, input: DataStream) -> DataStream:
    """Build FROM_CHANGELOG."""
    operator = RowsAsChanges(node.relation.op, dict(node.relation.kinds), builder.form(node))
    return builder.then(input, node.relation, "From Changelog", operator)


# --- sinks ---
def _written_form(builder: Builder, node: PhysicalNode) -> OutputForm:
    """Return the form in which rows reach a sink. Columns have the names of the sink's table."""
    return builder.form_of(node.relation, arrow_schema(node.relation.columns, node.changelog))


def build_constraints(builder: Builder, node: nodes.ConstraintEnforcer, input: DataStream) -> DataStream:
    """Build the operator that enforces the constraints of a table."""
    columns = node.relation.columns
    kinds = [(column.name, column.type) for column in columns]
    operator = ConstraintEnforcer(kinds, _written_form(builder, node), node.changelog, node.rules)
    return builder.then(input, node.relation, "Constraint Enforcer", operator)


def build_watermark_timestamps(builder: Builder, node: nodes.WatermarkTimestamps, input: DataStream) -> DataStream:
    """Build the operator that gives rows the current watermark."""
    operator = WatermarkTimestamps(_written_form(builder, node))
    return builder.then(input, node.relation, "Watermark Timestamps", operator)


def build_materializer(builder: Builder, node: nodes.SinkMaterializer, input: DataStream) -> DataStream:
    """Build the operator that chooses the youngest row of each key."""
    form, signed = _written_form(builder, node), node.inputs[0].changelog
    operator = SinkMaterializer(node.key, node.upsert_key, form, signed, node.ttl)
    return builder.then_by_key(input, node.key, node.relation, "Sink Materializer", operator)


def build_compacting(builder: Builder, node: nodes.CompactingSinkMaterializer, input: DataStream) -> DataStream:
    """Build the operator that waits for the watermark, and then chooses the row of each key."""
    form, signed = _written_form(builder, node), node.inputs[0].changelog
    operator = CompactingMaterializer(node.key, node.upsert_key, form, signed, node.ttl, node.fails)
    return builder.then_by_key(input, node.key, node.relation, "Compacting Sink Materializer", operator)


def build_sink_shuffle(builder: Builder, node: nodes.SinkShuffle, input: DataStream) -> DataStream:
    """Build the partitioning by the key of a sink."""
    operator = SinkShuffle(node.key, _written_form(builder, node), node.changelog)
    return builder.then_by_key(input, node.key, node.relation, "Sink Shuffle", operator)


def build_sink(builder: Builder, node: nodes.Sink, stream: DataStream) -> DataStream:
    """Build the sink of a query."""
    if node.connector.wants_rows:
        operator = ToRows(node.columns, node.changelog, key=node.upsert_key)
        stream = builder.then(stream, node.relation, "Rows", operator)
    known = len(builder.env.sinks)
    node.connector.sink(stream, node.table, node.changelog)
    _keep_in_order(builder.env.sinks[known:], stream._node)
    return stream


def _keep_in_order(sinks: Sequence[Transformation], rows: Transformation) -> None:
    """Give sinks the parallelism of the query unless they have their own, so that rows keep their order."""
    nodes = list(sinks)
    while nodes:
        node = nodes.pop()
        if node is not rows:
            if node.parallelism is None:
                node.parallelism, node.non_parallel = rows.parallelism, node.non_parallel or rows.non_parallel
            nodes += node.upstream()


BUILDERS: dict[type, Build] = {
    nodes.Values: build_values,
    nodes.SparkSQL: build_spark_sql,
    nodes.DataStreamScan: build_stream_scan,
    nodes.TableSourceScan: build_scan,
    nodes.ChangelogNormalize: build_normalize,
    nodes.WatermarkAssigner: build_watermark,
    nodes.Calc: build_calc,
    nodes.MovingFilter: build_moving_filter,
    nodes.Expand: build_expand,
    nodes.Renamed: build_renamed,
    nodes.WithKinds: build_with_kinds,
    nodes.Union: build_union,
    nodes.ToChangelog: build_to_changelog,
    nodes.FromChangelog: build_from_changelog,
    nodes.ConstraintEnforcer: build_constraints,
    nodes.WatermarkTimestamps: build_watermark_timestamps,
    nodes.SinkMaterializer: build_materializer,
    nodes.CompactingSinkMaterializer: build_compacting,
    nodes.SinkShuffle: build_sink_shuffle,
    nodes.Sink: build_sink,
}
