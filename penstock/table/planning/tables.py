"""Builders of what is read from tables and written to them."""

from __future__ import annotations

from dataclasses import replace

from penstock.errors import TableException, ValidationException
from penstock.table import connectors
from penstock.table.arrow import arrow_schema
from penstock.table.options import NOT_NULL
from penstock.table.plan.nodes import ROWTIME, Insert, Scan
from penstock.table.planning.builder import Build, Builder, label_of
from penstock.table.planning.physical import Physical
from penstock.table.planning.scans import normalised
from penstock.table.runtime.constraints import NotNull
from penstock.table.runtime.records import FromRecords
from penstock.table.runtime.scans import ToRows


def scan(builder: Builder, relation: Scan) -> Physical:
    """A table that has a connector."""
    name, entry = ".".join(relation.path), relation.table
    declared = connectors.declared(
        name,
        entry.options,
        relation.columns,
        relation.metadata,
        entry.schema.primary_key,
        entry.partition_keys,
        builder.batch,
    )
    declared = replace(declared, pruning=relation.pruning)
    stream = connectors.connector(name, entry.options).source(builder.env, declared)
    source = Physical(stream, relation.columns, False)
    operator = FromRecords(relation.columns, (), relation.changelog)
    made = builder.then(source, relation, "Table Source", operator)
    label = label_of(relation, "TableSourceScan")
    physical = Physical(made, relation.columns, relation.changelog, label, (), relation.upsert_key)
    return normalised(builder, relation, physical)


def insert(builder: Builder, relation: Insert) -> Physical:
    """A query that goes into a table. A table that only grows refuses updates."""
    input = builder.build(relation.input)
    name, entry = ".".join(relation.path), relation.table
    declared = connectors.declared(
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
    input = _without_nulls(builder, relation, input)
    stream = input.stream
    if connector.wants_rows:
        operator = ToRows(relation.columns, input.changelog)
        stream = builder.then(input, relation, "Rows", operator)
    connector.sink(stream, declared, input.changelog)
    return Physical(stream, relation.columns, input.changelog, label_of(relation, "Sink"), (input,))


def _metadata(relation: Insert) -> tuple[tuple[int, str], ...]:
    """The columns that are written beside the record and not into it."""
    keys = {column.name: column.metadata_key for column in relation.table.schema.columns}
    return tuple((index, key) for index, column in enumerate(relation.columns) if (key := keys.get(column.name)))


def _without_nulls(builder: Builder, relation: Insert, input: Physical) -> Physical:
    """The rows, of which none has NULL where the table allows none."""
    required = [index for index, column in enumerate(relation.columns) if not column.type._nullable]
    if not required:
        return input
    schema = arrow_schema(relation.columns, input.changelog)
    drops = builder.config.get(NOT_NULL, "ERROR").strip().upper() == "DROP"
    operator = NotNull(required, schema, input.changelog, drops)
    stream = builder.then(input, relation, "Constraint Enforcer", operator)
    return replace(input, stream=stream)


def _check_written(name: str, relation: Insert, connector: connectors.Connector) -> None:
    """Refuse what a connector cannot write, and a row with two times."""
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
