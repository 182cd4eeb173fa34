"""The connectors of tables, by the option 'connector'. Other packages register theirs as entry points."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points

from penstock.errors import ValidationException
from penstock.table.connectors.contract import Connector, Declared, Options
from penstock.table.connectors.legacy_options import current_options
from penstock.table.logical.nodes import Columns

__all__ = ["Connector", "Declared", "Options", "connector", "declared", "source_changes"]

ENTRY_POINTS = "penstock.table.connectors"
_BUILT_IN = {
    "datagen": "penstock.table.connectors.datagen:Datagen",
    "print": "penstock.table.connectors.print_table:Print",
    "blackhole": "penstock.table.connectors.print_table:Blackhole",
    "filesystem": "penstock.table.connectors.filesystem:FileSystem",
    "kafka": "penstock.table.connectors.kafka_table:Kafka",
    "upsert-kafka": "penstock.table.connectors.kafka_table:UpsertKafka",
    "jdbc": "penstock.table.connectors.jdbc_table:Jdbc",
    "elasticsearch-7": "penstock.table.connectors.elasticsearch_table:Elasticsearch",
}


@cache
def _others() -> dict[str, str]:
    return {point.name: point.value for point in entry_points(group=ENTRY_POINTS)}


def names() -> list[str]:
    """Return the names of all installed connectors."""
    return sorted({*_BUILT_IN, *_others()})


def connector(table: str, options: Mapping[str, str]) -> Connector:
    """Return the connector of a table."""
    name = current_options(table, options).get("connector")
    if not name:
        raise ValidationException(f"table {table} has no option 'connector'; there are: {', '.join(names())}")
    place = _BUILT_IN.get(name) or _others().get(name)
    if place is None:
        close = get_close_matches(name, names(), 1)
        meant = f"; did you mean '{close[0]}'?" if close else ""
        known = ", ".join(names())
        raise ValidationException(f"table {table}: there is no connector '{name}'{meant}; there are: {known}")
    module, _, attribute = place.partition(":")
    made: Connector = getattr(import_module(module), attribute)()
    return made


def source_changes(options: Mapping[str, str]) -> tuple[bool, bool]:
    """Return two booleans: True if a table sends more than inserts, and True if these are upserts.

    Return False twice if the connector is missing. The error for that comes when the table is read or written.
    """
    name = options.get("connector")
    if not name or (name not in _BUILT_IN and name not in _others()):
        return False, False
    return connector("", options).changes(options)


def declare_table(
    name: str,
    options: Mapping[str, str],
    columns: Columns,
    metadata: tuple[tuple[int, str], ...] = (),
    primary_key: tuple[str, ...] = (),
    partition_keys: tuple[str, ...] = (),
    batch: bool = False,
) -> Declared:
    """Return a table in the form that its connector gets."""
    places = {column.name: index for index, column in enumerate(columns)}
    key = tuple(places[part] for part in primary_key if part in places)
    return Declared(
        name, Options(name, dict(current_options(name, options))), columns, metadata, key, partition_keys, batch
    )
