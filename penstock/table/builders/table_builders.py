"""Builders of table sources and sinks."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace

from penstock.errors import TableException, ValidationException
from penstock.graph.transformations import Transformation
from penstock.table import connectors
from penstock.table.builders.builder import Build, Builder, label_of
from penstock.table.builders.leaf_builders import key_to_normalise, normalise
from penstock.table.builders.physical import Physical
from penstock.table.builders.sink_keys import with_sink_key
from penstock.table.logical.nodes import ROWTIME, Columns, Insert, Scan
from penstock.table.operators.base.records import FromRecords
from penstock.table.operators.io.constraints import LENGTHS, NESTED, NOT_NULL, ConstraintEnforcer, Rules
from penstock.table.operators.io.row_conversions import ToRows
from penstock.table.types.arrow_forms import arrow_schema
from penstock.table.types.data_types import LocalZonedTimestampType, TimestampType


def scan(builder: Builder, relation: Scan) -> Physical:
    """Build the source of a table with a connector."""
    name, entry = ".".join(relation.path), relation.table
    declared = connectors.declare_table(
        name,
        entry.options,
        relation.columns,
        relation.metadata,
        entry.schema.primary_key,
        entry.partition_keys,
        builder.batch,
    )
    warn_of_nanoseconds(name, declared.columns)
    declared = replace(declared, pruning=relation.pruning)
    stream = connectors.connector(name, entry.options).source(builder.env, declared)
    source = Physical(stream, relation.columns, False)
    operator = FromRecords(relation.columns, (), relation.changelog)
    key = key_to_normalise(builder, relation, declared.key, name)
    operator.key, operator.versions = declared.key, relation.every_version or key != relation.upsert_key
    made = builder.then(source, relation, "Table Source", operator)
    label = label_of(relation, "TableSourceScan")
    physical = Physical(made, relation.columns, relation.changelog, label, (), key)
    return normalise(builder, relation, physical)


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


def insert(builder: Builder, relation: Insert) -> Physical:
    """Build the sink of a query. A sink that only appends refuses changelogs."""
    input = builder.build(relation.input)
    name, entry = ".".join(relation.path), relation.table
    declared = connectors.declare_table(
        name,
        entry.options,
        relation.columns,
        _metadata(relation),
        entry.schema.primary_key,
        entry.partition_keys,
        builder.batch,
    )
    connector = connectors.connector(name, entry.options)
    _check_written(name, relation, connector)
    declared = replace(declared, overwrite=relation.overwrite)
    if input.changelog and not connector.takes_changes(declared):
        raise TableException(
            f"Table sink '{name}' doesn't support consuming update and delete changes: its connector "
            f"'{connector.name}' takes inserts alone, and the query changes rows that it has given"
        )
    input = with_sink_key(builder, relation, _enforce_constraints(builder, relation, input), connector, declared)
    stream, upserts = input.stream, False
    if connector.wants_rows:
        operator = ToRows(relation.columns, input.changelog)
        upserts = connector.is_upsert_sink(declared, input.changelog)
        if input.changelog and upserts:
            operator.key = declared.key
        stream = builder.then(input, relation, "Rows", operator)
    known = len(builder.env.sinks)
    connector.sink(stream, declared, input.changelog)
    _keep_in_order(builder.env.sinks[known:], stream._node)
    return Physical(stream, relation.columns, input.changelog, label_of(relation, "Sink"), (input,))


def _keep_in_order(sinks: Sequence[Transformation], rows: Transformation) -> None:
    """Give sinks the parallelism of the query unless they have their own, so that rows keep their order."""
    nodes = list(sinks)
    while nodes:
        node = nodes.pop()
        if node is not rows:
            if node.parallelism is None:
                node.parallelism, node.non_parallel = rows.parallelism, node.non_parallel or rows.non_parallel
            nodes += node.upstream()


def _metadata(relation: Insert) -> tuple[tuple[int, str], ...]:
    """Return the metadata columns, which are written beside the record."""
    keys = {column.name: column.metadata_key for column in relation.table.schema.columns}
    return tuple((index, key) for index, column in enumerate(relation.columns) if (key := keys.get(column.name)))


def _enforce_constraints(builder: Builder, relation: Insert, input: Physical) -> Physical:
    """Build the operator that enforces the constraints of the table, if any can be broken."""
    rules = _rules(builder)
    if not any(rules.concern(column.type) for column in relation.columns):
        return input
    schema = arrow_schema(relation.columns, input.changelog)
    kinds = [(column.name, column.type) for column in relation.columns]
    operator = ConstraintEnforcer(kinds, schema, input.changelog, rules)
    stream = builder.then(input, relation, "Constraint Enforcer", operator)
    return replace(input, stream=stream)


def _rules(builder: Builder) -> Rules:
    def word(key: str, default: str) -> str:
        return builder.config.get(key, default).strip().upper()

    rules = Rules(word(NOT_NULL, "ERROR") == "DROP", word(LENGTHS, "IGNORE"), word(NESTED, "IGNORE"))
    if rules.lengths == "TRIM_PAD" and rules.nested == "ROWS_AND_COLLECTIONS":
        raise ValidationException(
            f"'{LENGTHS}' = 'TRIM_PAD' cannot be combined with '{NESTED}' = 'ROWS_AND_COLLECTIONS', as values in "
            "arrays and maps are not cut or padded: use ROWS, or ERROR for lengths"
        )
    return rules


def _check_written(name: str, relation: Insert, connector: connectors.Connector) -> None:
    """Refuse a write that the connector does not support, and rows with two event times."""
    times = [column.name for column in relation.input.columns if column.time == ROWTIME]
    if len(times) > 1:
        raise TableException(
            f"the query has more than one rowtime attribute, {', '.join(times)}, and writes into {name}, whose rows "
            "have one time: CAST all others AS TIMESTAMP(3)"
        )
    if relation.overwrite and not connector.overwrites:
        raise ValidationException(
            f"INSERT OVERWRITE {name}: its connector '{connector.name}' adds rows, and cannot replace what is there"
        )
    kept = [one.name for one in relation.table.schema.columns if one.metadata_key is not None and not one.virtual]
    if kept and not connector.writes_metadata:
        raise ValidationException(
            f"table {name} declares metadata columns that are written, {', '.join(kept)}, and its connector "
            f"'{connector.name}' only reads metadata: declare them VIRTUAL"
        )


BUILDERS: dict[type, Build] = {Scan: scan, Insert: insert}
