"""Rules for leaves, Calcs, unions, changelogs and watermarks."""

from __future__ import annotations

import warnings
from dataclasses import replace

from penstock.errors import TableException
from penstock.table import connectors
from penstock.table.connectors import Connector, Declared
from penstock.table.logical.nodes import (
    Columns,
    Expand,
    FromChangelog,
    Insert,
    Relation,
    Scan,
    SetOperation,
    StreamScan,
    ToChangelog,
    Values,
    Watermark,
    walk_plan,
)
from penstock.table.logical.optimised_nodes import Calc
from penstock.table.options.job_options import CDC_DUPLICATES
from penstock.table.physical import io_nodes as nodes
from penstock.table.physical.physical_node import PhysicalNode
from penstock.table.rules.calcs import is_repeatable
from penstock.table.rules.implementation.chooser import Chooser, Rule
from penstock.table.rules.implementation.query_settings import QuerySettings
from penstock.table.rules.upsert_keys import smallest_key
from penstock.table.types.arrow_forms import arrow_schema
from penstock.table.types.data_types import LocalZonedTimestampType, TimestampType


# --- sources ---
def choose_values(chooser: Chooser, relation: Values) -> PhysicalNode:
    """Choose the node of literal rows."""
    return nodes.Values(relation, (), False)


def choose_stream_scan(chooser: Chooser, relation: StreamScan) -> PhysicalNode:
    """Choose the nodes of a DataStream."""
    if chooser.settings.batch and relation.changelog:
        raise TableException(
            "Querying a table in batch mode is currently only possible for INSERT-only table sources. But the source "
            f"for table '{relation.name}' produces other changelog messages than just INSERT."
        )
    key = _key_to_normalise(chooser.settings, relation, relation.primary_key, relation.name)
    versions = relation.every_version or key != relation.upsert_key
    return _normalise(chooser, nodes.DataStreamScan(relation, (), relation.changelog, versions), key)


def choose_scan(chooser: Chooser, relation: Scan) -> PhysicalNode:
    """Choose the nodes of a table of a connector."""
    name = ".".join(relation.path)
    connector, declared = declare(chooser.settings, relation, relation.metadata)
    warn_of_nanoseconds(name, declared.columns)
    key = _key_to_normalise(chooser.settings, relation, declared.key, name)
    versions = relation.every_version or key != relation.upsert_key
    table = replace(declared, pruning=relation.pruning)
    return _normalise(chooser, nodes.TableSourceScan(relation, (), relation.changelog, connector, table, versions), key)


def declare(
    settings: QuerySettings, relation: Scan | Insert, metadata: tuple[tuple[int, str], ...]
) -> tuple[Connector, Declared]:
    """Return the connector of a table, and the table as its relation reads or writes it."""
    name, entry = ".".join(relation.path), relation.table
    declared = connectors.declare_table(
        name,
        entry.options,
        relation.columns,
        metadata,
        entry.schema.primary_key,
        entry.partition_keys,
        settings.batch,
    )
    return connectors.connector(name, entry.options), declared


def warn_of_nanoseconds(table: str, columns: Columns) -> None:
    """Warn of columns whose types have more digits than microseconds."""
    cut = [
        f"{column.name} {column.type.as_sql()}"
        for column in columns
        if isinstance(column.type, TimestampType | LocalZonedTimestampType) and column.type.precision > 6
    ]
    if cut:
        named = ", ".join(cut)
        text = f"table {table}: moments have microseconds, and further digits of these columns are cut off: {named}"
        warnings.warn(text, stacklevel=2)


def _key_to_normalise(
    settings: QuerySettings, relation: Scan | StreamScan, key: tuple[int, ...], name: str
) -> tuple[int, ...] | None:
    """Return the key for the normalisation of a source, or None.

    Upserts are normalised, and sources that may repeat changes.
    """
    wanted = settings.word(CDC_DUPLICATES, "false") == "TRUE"
    if relation.upsert_key is not None or not relation.changelog or settings.batch or not wanted:
        return relation.upsert_key
    if not key:
        raise TableException(
            f"'{CDC_DUPLICATES}' is enabled, which requires that changelog sources define a PRIMARY KEY, and table "
            f"'{name}' has none"
        )
    return key


def _normalise(chooser: Chooser, input: PhysicalNode, key: tuple[int, ...] | None) -> PhysicalNode:
    """Return a node that makes a full changelog of upserts. Return other inputs unchanged."""
    if key is None or not input.changelog:
        return input
    settings, parts = chooser.settings, list(walk_plan(input.relation))
    every_version = any(getattr(part, "every_version", False) for part in parts)
    dated_deletions = any(getattr(part, "dated_deletions", False) for part in parts)
    return nodes.ChangelogNormalize(
        input.relation, (input,), not settings.batch, key, settings.ttl, every_version, dated_deletions
    )


def choose_watermark(chooser: Chooser, relation: Watermark) -> PhysicalNode:
    """Choose the node of a watermark. The watermarks of SOURCE_WATERMARK() come from the source."""
    input = chooser.choose(relation.input)
    if relation.expr is None:
        _check_source_watermark(relation.input)
    return nodes.WatermarkAssigner(relation, (input,), input.changelog)


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


# --- rows ---
def choose_calc(chooser: Chooser, relation: Calc) -> PhysicalNode:
    """Choose the nodes of a filter and projection.

    Changes are filtered by key if the condition may have another value when a row is retracted.
    """
    input, condition = chooser.choose(relation.input), relation.condition
    key = smallest_key(relation.input) if input.changelog else None
    if key is not None and condition is not None and not is_repeatable(condition):
        input = _normalise(chooser, nodes.MovingFilter(relation, (input,), True, condition), key)
        condition = None
    return nodes.Calc(relation, (input,), input.changelog, condition)


def choose_expand(chooser: Chooser, relation: Expand) -> PhysicalNode:
    """Choose the node of grouping sets."""
    input = chooser.choose(relation.input)
    return nodes.Expand(relation, (input,), input.changelog)


def choose_union(chooser: Chooser, relation: SetOperation) -> PhysicalNode:
    """Choose the nodes of UNION ALL. If one part is a changelog, all parts become changelogs."""
    parts = [chooser.choose(part) for part in relation.parts]
    changelog = any(part.changelog for part in parts)
    named = [_rename(part, relation) for part in parts]
    inputs = [_with_kinds(part, relation) if changelog and not part.changelog else part for part in named]
    return nodes.Union(relation, tuple(inputs), changelog)


def _rename(input: PhysicalNode, relation: Relation) -> PhysicalNode:
    """Return a part of a union under the columns of the whole."""
    same = arrow_schema(relation.columns, input.changelog).equals(input.schema)
    return input if same else nodes.Renamed(relation, (input,), input.changelog)


def _with_kinds(input: PhysicalNode, relation: Relation) -> PhysicalNode:
    return nodes.WithKinds(relation, (input,), True)


# --- changelogs ---
def choose_to_changelog(chooser: Chooser, relation: ToChangelog) -> PhysicalNode:
    """Choose the node of TO_CHANGELOG."""
    return nodes.ToChangelog(relation, (chooser.choose(relation.input),), False)


def choose_from_changelog(chooser: Chooser, relation: FromChangelog) -> PhysicalNode:
    """Choose the node of FROM_CHANGELOG."""
    input = chooser.choose(relation.input)
    if input.changelog:
        raise TableException(
            "FROM_CHANGELOG doesn't support consuming update and delete changes: its table has to have inserts alone"
        )
    return nodes.FromChangelog(relation, (input,), True)


RULES: dict[type, Rule] = {
    Values: choose_values,
    StreamScan: choose_stream_scan,
    Scan: choose_scan,
    Watermark: choose_watermark,
    Calc: choose_calc,
    Expand: choose_expand,
    ToChangelog: choose_to_changelog,
    FromChangelog: choose_from_changelog,
}
