"""Builders of leaves, Calcs, unions and watermarks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from penstock.datastream.data_stream import DataStream
from penstock.engine.operators.sources.source_operator import SourceOperator
from penstock.errors import TableException
from penstock.graph.partitioning import Global
from penstock.graph.transformations import StreamRef, Transformation
from penstock.table import connectors
from penstock.table.builders.builder import Build, Builder, label_of
from penstock.table.builders.physical import Physical
from penstock.table.logical.nodes import (
    FromChangelog,
    Relation,
    Scan,
    SetOperation,
    StreamScan,
    ToChangelog,
    Values,
    Watermark,
    walk_plan,
)
from penstock.table.logical.rex import Literal
from penstock.table.operators.io.calc import Calc as CalcOperator
from penstock.table.operators.io.changelog_rows import ChangesAsRows, RowsAsChanges
from penstock.table.operators.io.changes import Renamed, WithKinds
from penstock.table.operators.io.moving_filter import MovingFilter
from penstock.table.operators.io.normalise import ChangelogNormalize
from penstock.table.operators.io.row_conversions import BatchesSource, FromValues, values_batch
from penstock.table.operators.window.watermark import WatermarkOperator
from penstock.table.options.job_options import CDC_DUPLICATES
from penstock.table.physical.physical_nodes import Calc
from penstock.table.rules.calcs import is_repeatable
from penstock.table.rules.upsert_keys import smallest_key
from penstock.table.types.arrow_forms import arrow_schema


def values(builder: Builder, relation: Values) -> Physical:
    """Build a source of literal rows."""
    rows = [tuple(_plain(value) for value in row) for row in relation.rows]
    source = BatchesSource(values_batch(relation.columns, rows))
    node = Transformation("Values", SourceOperator(source), kind="source", non_parallel=True)
    node.uid = builder.uid(relation, "Values")
    stream = DataStream(builder.env, [StreamRef(node)])
    return Physical(stream, relation.columns, False, label_of(relation, "Values"))


def _plain(value: object) -> object:
    return value.value if isinstance(value, Literal) else value


def stream_scan(builder: Builder, relation: StreamScan) -> Physical:
    """Build a scan of a DataStream."""
    if builder.batch and relation.changelog:
        raise TableException(
            "Querying a table in batch mode is currently only possible for INSERT-only table sources. But the source "
            f"for table '{relation.name}' produces other changelog messages than just INSERT."
        )
    operator = FromValues(relation.columns, relation.metadata, relation.changelog)
    key = key_to_normalise(builder, relation, relation.primary_key, relation.name)
    operator.key, operator.versions = relation.primary_key, relation.every_version or key != relation.upsert_key
    source = Physical(relation.stream, relation.columns, False)
    stream = builder.then(source, relation, "Table From Stream", operator)
    label = label_of(relation, "DataStreamScan")
    physical = Physical(stream, relation.columns, relation.changelog, label, (), key)
    return normalise(builder, relation, physical)


def key_to_normalise(
    builder: Builder, relation: Scan | StreamScan, key: tuple[int, ...], name: str
) -> tuple[int, ...] | None:
    """Return the key for the normalisation of a source, or None.

    Upserts are normalised, and sources that may repeat changes.
    """
    wanted = builder.config.get(CDC_DUPLICATES, "false").strip().lower() == "true"
    if relation.upsert_key is not None or not relation.changelog or builder.batch or not wanted:
        return relation.upsert_key
    if not key:
        raise TableException(
            f"'{CDC_DUPLICATES}' is enabled, which requires that changelog sources define a PRIMARY KEY, and table "
            f"'{name}' has none"
        )
    return key


def normalise(builder: Builder, relation: Relation, input: Physical) -> Physical:
    """Convert a source of upserts to a full changelog. Return other inputs unchanged."""
    if input.upsert_key is None or not input.changelog:
        return input
    changelog = not builder.batch
    schema = arrow_schema(input.columns, changelog)
    operator = ChangelogNormalize(input.upsert_key, schema, builder.ttl)
    operator.every_version = any(getattr(part, "every_version", False) for part in walk_plan(relation))
    operator.dated_deletions = any(getattr(part, "dated_deletions", False) for part in walk_plan(relation))
    stream = builder.then_by_key(input, input.upsert_key, relation, "Changelog Normalize", operator)
    label = f"ChangelogNormalize(key={list(input.upsert_key)})"
    return Physical(stream, input.columns, changelog, label, (input,), input.upsert_key)


def calc(builder: Builder, relation: Calc) -> Physical:
    """Build a filter and projection."""
    input, condition = builder.build(relation.input), relation.condition
    key = smallest_key(relation.input) if input.changelog else None
    if key is not None and condition is not None and not is_repeatable(condition):
        input, condition = _filter_by_key(builder, relation, input, key), None
    schema = arrow_schema(relation.columns, input.changelog)
    operator = CalcOperator(relation.exprs, condition, schema, input.changelog)
    operator.zone = builder.zone
    stream = builder.then(input, relation, "Calc", operator)
    return Physical(stream, relation.columns, input.changelog, label_of(relation, "Calc"), (input,))


def _filter_by_key(builder: Builder, relation: Calc, input: Physical, key: tuple[int, ...]) -> Physical:
    """Build a filter for upserts whose condition may have another value when a row is retracted."""
    assert relation.condition is not None
    operator = MovingFilter(relation.condition, input.schema)
    operator.zone = builder.zone
    stream = builder.then(input, relation, "Moving Filter", operator)
    operator.upsert_keys = ()  # upserts may delete a key that was never inserted
    label = f"MovingFilter(where=[{relation.condition}])"
    marked = Physical(stream, input.columns, True, label, (input,), key)
    return normalise(builder, relation, marked)


def union_all(builder: Builder, relation: SetOperation) -> Physical:
    """Build UNION ALL. If one part is a changelog, all parts become changelogs."""
    parts = [builder.build(part) for part in relation.parts]
    changelog = any(part.changelog for part in parts)
    named = [_rename(builder, part, relation) for part in parts]
    streams = [as_changelog(builder, part, relation) if changelog else part for part in named]
    refs = [ref for part in streams for ref in part.stream.input_refs()]
    whole = DataStream(builder.env, _keep_changes_in_order(refs) if changelog else refs)
    return Physical(whole, relation.columns, changelog, label_of(relation, "Union"), tuple(parts))


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


def _rename(builder: Builder, input: Physical, relation: Relation) -> Physical:
    """Rename the columns of a part of a union to those of the whole."""
    schema = arrow_schema(relation.columns, input.changelog)
    if schema.equals(input.schema):
        return input
    stream = builder.then(input, relation, "Renamed", Renamed(schema))
    return Physical(stream, relation.columns, input.changelog, input.label, input.inputs, input.upsert_key)


def as_changelog(builder: Builder, input: Physical, relation: Relation) -> Physical:
    """Return an input as a changelog: add the kinds if it has none."""
    if input.changelog:
        return input
    operator = WithKinds(arrow_schema(input.columns, True))
    stream = builder.then(input, relation, "With Kinds", operator)
    return Physical(stream, input.columns, True, input.label, input.inputs, input.upsert_key)


def to_changelog(builder: Builder, relation: ToChangelog) -> Physical:
    """Build TO_CHANGELOG."""
    input = builder.build(relation.input)
    operator = ChangesAsRows(dict(relation.codes), arrow_schema(relation.columns), input.changelog)
    stream = builder.then(input, relation, "To Changelog", operator)
    return Physical(stream, relation.columns, False, label_of(relation, "ToChangelog"), (input,))


def from_changelog(builder: Builder, relation: FromChangelog) -> Physical:
    """Build FROM_CHANGELOG."""
    input = builder.build(relation.input)
    if input.changelog:
        raise TableException(
            "FROM_CHANGELOG doesn't support consuming update and delete changes: its table has to have inserts alone"
        )
    operator = RowsAsChanges(relation.op, dict(relation.kinds), arrow_schema(relation.columns, True))
    stream = builder.then(input, relation, "From Changelog", operator)
    return Physical(stream, relation.columns, True, label_of(relation, "FromChangelog"), (input,))


def watermark(builder: Builder, relation: Watermark) -> Physical:
    """Build a watermark assigner. The watermarks of SOURCE_WATERMARK() come from the source."""
    input = builder.build(relation.input)
    stream = input.stream
    if relation.expr is None:
        _check_source_watermark(relation.input)
    else:
        interval = builder.duration("pipeline.auto-watermark-interval")
        schema = arrow_schema(relation.columns, input.changelog)
        operator = WatermarkOperator(schema, relation.rowtime, relation.expr, interval, builder.zone)
        operator.idle_timeout = builder.duration("table.exec.source.idle-timeout") or None
        stream = builder.then(input, relation, "Watermark", operator)
    label = label_of(relation, "WatermarkAssigner")
    return Physical(stream, relation.columns, input.changelog, label, (input,), input.upsert_key)


def _check_source_watermark(relation: Relation) -> None:
    """Refuse SOURCE_WATERMARK() for a connector without watermarks. Streams have watermarks of their own."""
    for below in relation.inputs():
        _check_source_watermark(below)
    if isinstance(relation, Scan):
        path, options = ".".join(relation.path), relation.table.options
        if connectors.connector(path, options).sends_watermarks:
            return
        raise TableException(
            f"table {path} declares SOURCE_WATERMARK(), and the connector '{options.get('connector')}' sends no "
            "watermarks of its own: write an expression, such as WATERMARK FOR ts AS ts - INTERVAL '5' SECOND"
        )


BUILDERS: dict[type, Build] = {
    Values: values,
    StreamScan: stream_scan,
    Calc: calc,
    ToChangelog: to_changelog,
    FromChangelog: from_changelog,
    Watermark: watermark,
}
