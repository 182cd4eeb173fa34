"""Rules for sinks, and for what stands before a sink that holds one row of each key."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from penstock.errors import TableException, ValidationException
from penstock.table.connectors import Connector, Declared
from penstock.table.logical.nodes import PROCTIME, ROWTIME, Insert, Join, Relation, Scan, StreamScan, Watermark
from penstock.table.operators.io.constraints import LENGTHS, NESTED, NOT_NULL, Rules
from penstock.table.options.job_options import KEYED_SHUFFLE, REQUIRE_ON_CONFLICT, UPSERT_MATERIALIZE
from penstock.table.physical import io_nodes as nodes
from penstock.table.physical.physical_node import PhysicalNode
from penstock.table.rules.implementation.choose_io import declare
from penstock.table.rules.implementation.chooser import Chooser, Rule
from penstock.table.rules.implementation.query_settings import QuerySettings
from penstock.table.rules.unique_keys import unique_keys
from penstock.table.rules.upsert_keys import smallest_key, upsert_keys

WAITING = ("ERROR", "NOTHING")
"""Strategies that wait for the watermark before they decide."""


def choose_insert(chooser: Chooser, relation: Insert) -> PhysicalNode:
    """Choose the nodes of a sink. A sink that only appends refuses changelogs."""
    input, name = chooser.choose(relation.input), ".".join(relation.path)
    connector, declared = declare(chooser.settings, relation, _metadata(relation))
    _check_written(name, relation, connector)
    table = replace(declared, overwrite=relation.overwrite)
    if input.changelog and not connector.takes_changes(table):
        raise TableException(
            f"Table sink '{name}' doesn't support consuming update and delete changes: its connector "
            f"'{connector.name}' takes inserts alone, and the query changes rows that it has given"
        )
    input = _with_sink_key(chooser, relation, _enforce_constraints(chooser, relation, input), connector, table)
    upserts = input.changelog and connector.wants_rows and connector.is_upsert_sink(table, input.changelog)
    return nodes.Sink(relation, (input,), input.changelog, connector, table, table.key if upserts else ())


def _metadata(relation: Insert) -> tuple[tuple[int, str], ...]:
    """Return the metadata columns, which are written beside the record."""
    keys = {column.name: column.metadata_key for column in relation.table.schema.columns}
    return tuple((index, key) for index, column in enumerate(relation.columns) if (key := keys.get(column.name)))


def _check_written(name: str, relation: Insert, connector: Connector) -> None:
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


# --- constraints ---
def _enforce_constraints(chooser: Chooser, relation: Insert, input: PhysicalNode) -> PhysicalNode:
    """Return a node that enforces the constraints of the table, if any can be broken."""
    rules = _rules(chooser.settings)
    if not any(rules.concern(column.type) for column in relation.columns):
        return input
    return nodes.ConstraintEnforcer(relation, (input,), input.changelog, rules)


def _rules(settings: QuerySettings) -> Rules:
    rules = Rules(
        settings.word(NOT_NULL, "ERROR") == "DROP", settings.word(LENGTHS, "IGNORE"), settings.word(NESTED, "IGNORE")
    )
    if rules.lengths == "TRIM_PAD" and rules.nested == "ROWS_AND_COLLECTIONS":
        raise ValidationException(
            f"'{LENGTHS}' = 'TRIM_PAD' cannot be combined with '{NESTED}' = 'ROWS_AND_COLLECTIONS', as values in "
            "arrays and maps are not cut or padded: use ROWS, or ERROR for lengths"
        )
    return rules


# --- keys ---
def _with_sink_key(
    chooser: Chooser, relation: Insert, input: PhysicalNode, connector: Connector, table: Declared
) -> PhysicalNode:
    """Return the input of a sink. A sink with one row of each key gets at most one row of a key at any moment."""
    settings, upserting = chooser.settings, connector.is_upsert_sink(table, input.changelog)
    _check_clause(settings, relation, upserting, connector)
    if settings.batch or not upserting or not table.key:
        return input
    if _materializes(settings, relation, input, table):
        return _materialize(settings, relation, input, table)
    forced = settings.word(KEYED_SHUFFLE, "AUTO") == "FORCE"
    return nodes.SinkShuffle(relation, (input,), input.changelog, table.key) if forced else input


def _check_clause(settings: QuerySettings, relation: Insert, upserting: bool, connector: Connector) -> None:
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
    if relation.conflict in WAITING and without and not settings.batch:
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


def _materializes(settings: QuerySettings, relation: Insert, input: PhysicalNode, table: Declared) -> bool:
    """Return True if a key of the sink can get a second row before the first one is retracted.

    Refuse a query without ON CONFLICT if rows with different keys of the query may have the same key of the sink.
    """
    choice = settings.word(UPSERT_MATERIALIZE, "AUTO")
    if choice != "AUTO":
        return choice == "FORCE"
    if not input.changelog and relation.conflict == "DEDUPLICATE":
        return False
    own = upsert_keys(relation.input)
    if any(key <= set(table.key) for key in own):
        return False
    if any(key <= set(table.key) for key in unique_keys(relation.input)):
        return True  # a key has one row, but its changes may overtake each other
    if not relation.conflict and settings.word(REQUIRE_ON_CONFLICT, "true") == "TRUE":
        _refuse_conflict(relation, own, table)
    return True


def _refuse_conflict(relation: Insert, own: Iterable[Iterable[int]], table: Declared) -> None:
    found = ", ".join(nodes.names_of(relation, tuple(sorted(key))) for key in own) or "none"
    raise ValidationException(
        "The query has an upsert key that differs from the primary key of the sink table "
        f"'{'.'.join(relation.path)}'. Primary key: {nodes.names_of(relation, table.key)}, upsert key: {found}. This "
        "can lead to non-deterministic results when multiple records with different upsert keys map to the same "
        "primary key. Please specify an ON CONFLICT clause to define how conflicts should be handled: "
        "ON CONFLICT DO DEDUPLICATE (update to the latest record, state intensive, since we need to keep the "
        "entire history), or ON CONFLICT DO ERROR (fail on conflict), or ON CONFLICT DO NOTHING (keep first "
        "record)."
    )


def _materialize(settings: QuerySettings, relation: Insert, input: PhysicalNode, table: Declared) -> PhysicalNode:
    """Return the node that chooses the row of each key."""
    key, upsert_key, ttl = table.key, smallest_key(relation.input), settings.ttl
    if relation.conflict not in WAITING:
        return nodes.SinkMaterializer(relation, (input,), True, key, upsert_key, ttl)
    stamped = nodes.WatermarkTimestamps(relation, (input,), input.changelog)
    fails = relation.conflict == "ERROR"
    return nodes.CompactingSinkMaterializer(relation, (stamped,), True, key, upsert_key, ttl, fails)


RULES: dict[type, Rule] = {Insert: choose_insert}
