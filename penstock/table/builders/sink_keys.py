"""The operators before a sink that holds one row of each key, if the query has another key."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from penstock.errors import ValidationException
from penstock.table.builders.builder import Builder
from penstock.table.builders.physical import Physical
from penstock.table.connectors import Connector, Declared
from penstock.table.logical.nodes import PROCTIME, Insert, Join, Relation, Scan, StreamScan, Watermark
from penstock.table.operators.io.sink_materializer import (
    CompactingMaterializer,
    SinkMaterializer,
    SinkShuffle,
    WatermarkTimestamps,
)
from penstock.table.options.job_options import KEYED_SHUFFLE, REQUIRE_ON_CONFLICT, UPSERT_MATERIALIZE
from penstock.table.rules.unique_keys import unique_keys
from penstock.table.rules.upsert_keys import smallest_key, upsert_keys
from penstock.table.types.arrow_forms import arrow_schema

WAITING = ("ERROR", "NOTHING")
"""Strategies that wait for the watermark before they decide."""


def with_sink_key(
    builder: Builder, relation: Insert, input: Physical, connector: Connector, table: Declared
) -> Physical:
    """Return the input of a sink. A sink with one row of each key gets at most one row of a key at any moment."""
    upserting = connector.is_upsert_sink(table, input.changelog)
    _check_clause(builder, relation, input, upserting, connector)
    if builder.batch or not upserting or not table.key:
        return input
    if _materializes(builder, relation, input, table):
        return _materialize(builder, relation, input, table)
    return _shuffle(builder, relation, input, table)


def _check_clause(builder: Builder, relation: Insert, input: Physical, upserting: bool, connector: Connector) -> None:
    """Refuse ON CONFLICT where it has no meaning, or cannot be decided."""
    if not relation.conflict:
        return
    name = ".".join(relation.path)
    if not upserting:
        raise ValidationException(
            "ON CONFLICT clause is only allowed for upsert sinks, which hold one row of each primary key. The sink "
            f"'{name}' is none: its connector is '{connector.name}'"
            + ("" if relation.table.schema.primary_key else ", and it has no PRIMARY KEY")
        )
    without = sorted(set(_without_watermark(relation.input)))
    if relation.conflict in WAITING and without and not builder.batch:
        raise ValidationException(
            f"ON CONFLICT DO {relation.conflict} requires all source tables to define watermarks, but the following "
            f"source(s) do not: {', '.join(without)}. Please add a WATERMARK declaration to these tables."
        )


def _without_watermark(relation: Relation) -> Iterator[str]:
    """Yield the sources that declare no watermark. A table that is looked up sends none."""
    if isinstance(relation, Scan):
        yield ".".join(relation.path)
    elif isinstance(relation, StreamScan):
        yield relation.name
    elif isinstance(relation, Join) and relation.temporal is not None and _looks_up(relation, relation.temporal):
        yield from _without_watermark(relation.left)
    elif not isinstance(relation, Watermark):
        for part in relation.inputs():
            yield from _without_watermark(part)


def _looks_up(relation: Join, time: int) -> bool:
    return relation.left.columns[time].time == PROCTIME


def _materializes(builder: Builder, relation: Insert, input: Physical, table: Declared) -> bool:
    """Return True if a key of the sink can get a second row before the first one is retracted.

    Refuse a query without ON CONFLICT whose rows of several keys have one key of the sink.
    """
    choice = builder.config.get(UPSERT_MATERIALIZE, "AUTO").strip().upper()
    if choice != "AUTO":
        return choice == "FORCE"
    if not input.changelog and relation.conflict == "DEDUPLICATE":
        return False
    own = upsert_keys(relation.input)
    if any(key <= set(table.key) for key in own):
        return False
    if any(key <= set(table.key) for key in unique_keys(relation.input)):
        return True  # a key has one row, but its changes may overtake each other
    if not relation.conflict and builder.config.get(REQUIRE_ON_CONFLICT, "true").strip().lower() == "true":
        names = [column.name for column in relation.columns]
        found = ", ".join(_list_names(names, sorted(key)) for key in own) or "none"
        raise ValidationException(
            "The query has an upsert key that differs from the primary key of the sink table "
            f"'{'.'.join(relation.path)}'. Primary key: {_list_names(names, table.key)}, upsert key: {found}. This can "
            "lead to non-deterministic results when multiple records with different upsert keys map to the same "
            "primary key. Please specify an ON CONFLICT clause to define how conflicts should be handled: "
            "ON CONFLICT DO DEDUPLICATE (update to the latest record, state intensive, since we need to keep the "
            "entire history), or ON CONFLICT DO ERROR (fail on conflict), or ON CONFLICT DO NOTHING (keep first "
            "record)."
        )
    return True


def _list_names(names: list[str], positions: list[int] | tuple[int, ...]) -> str:
    return "[" + ", ".join(names[position] for position in positions) + "]"


def _materialize(builder: Builder, relation: Insert, input: Physical, table: Declared) -> Physical:
    """Build the operator that chooses the row of each key."""
    schema = arrow_schema(relation.columns, True)
    given = (table.key, smallest_key(relation.input), schema, input.changelog, builder.ttl)
    if relation.conflict in WAITING:
        stamps = WatermarkTimestamps(arrow_schema(relation.columns, input.changelog))
        input = replace(input, stream=builder.then(input, relation, "Watermark Timestamps", stamps))
        waiting = CompactingMaterializer(*given)
        waiting.fails = relation.conflict == "ERROR"
        stream = builder.then_by_key(input, table.key, relation, "Compacting Sink Materializer", waiting)
    else:
        stream = builder.then_by_key(input, table.key, relation, "Sink Materializer", SinkMaterializer(*given))
    label = f"SinkMaterializer(pk={_list_names([column.name for column in relation.columns], table.key)})"
    return Physical(stream, relation.columns, True, label, (input,))


def _shuffle(builder: Builder, relation: Insert, input: Physical, table: Declared) -> Physical:
    """Partition rows by the key of the sink if the options say so."""
    if builder.config.get(KEYED_SHUFFLE, "AUTO").strip().upper() != "FORCE":
        return input
    operator = SinkShuffle(table.key, arrow_schema(relation.columns, input.changelog), input.changelog)
    stream = builder.then_by_key(input, table.key, relation, "Sink Shuffle", operator)
    return replace(input, stream=stream)
