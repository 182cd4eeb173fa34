"""Statements for records: tuples through the user's query, objects through a query made from their class."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from penstock.api.settings.values import check_kind
from penstock.base.arguments import check_arguments
from penstock.common.types import Row
from penstock.connectors.cassandra.cassandra_client import Connection, ConsistencyLevel, driver
from penstock.errors import TypeMismatch


@check_arguments
class MapperOptions:
    """The options for saving objects. Each method sets one option and returns the same object."""

    def __init__(self) -> None:
        self._ttl: int | None = None
        self._timestamp: int | None = None
        self._consistency_level: ConsistencyLevel | None = None
        self._tracing = False
        self._save_null_fields = True
        self._if_not_exists = False

    def ttl(self, ttl: int) -> MapperOptions:
        """Set the time, in seconds, after which a saved row expires."""
        if ttl < 0:
            raise ValueError(f"a time to live is at least 0 seconds, not {ttl!r}")
        self._ttl = ttl
        return self

    def timestamp(self, timestamp: int) -> MapperOptions:
        """Set the time of every write, in microseconds."""
        self._timestamp = timestamp
        return self

    def consistency_level(self, cl: ConsistencyLevel) -> MapperOptions:
        """Set the consistency level of each write: the replicas that must answer it."""
        self._consistency_level = check_kind(ConsistencyLevel, cl)
        return self

    def tracing(self, enabled: bool) -> MapperOptions:
        """Choose whether Cassandra traces each write."""
        self._tracing = enabled
        return self

    def save_null_fields(self, enabled: bool) -> MapperOptions:
        """Choose whether a field that is None is written as null. If not, its column stays unchanged."""
        self._save_null_fields = enabled
        return self

    def if_not_exists(self, enabled: bool) -> MapperOptions:
        """Choose whether an existing row stays as it is."""
        self._if_not_exists = enabled
        return self


def check_options(options: MapperOptions) -> None:
    """Refuse options that Cassandra does not accept together."""
    if options._if_not_exists and options._timestamp is not None:
        raise ValueError("Cassandra does not allow a timestamp together with if_not_exists")


class Statements(ABC):
    """Makes a statement for a record."""

    trace = False

    @abstractmethod
    def bind(self, record: Any) -> Any: ...


class QueryStatements(Statements):
    """Fills the placeholders of a query with the fields of a record, by position."""

    def __init__(self, connection: Connection, query: str, ignore_nulls: bool) -> None:
        self._prepared = connection.prepare(query)
        self._names = [column.name for column in self._prepared.column_metadata or ()]
        self._unset = driver("cassandra.query").UNSET_VALUE if ignore_nulls else None

    def bind(self, record: Any) -> Any:
        values = self._values(record)
        if len(values) != len(self._names):
            names = ", ".join(self._names)
            raise TypeMismatch(f"the query takes {len(self._names)} values ({names}), the record has {len(values)}")
        return _bind(self._prepared, [self._unset if value is None else value for value in values])

    def _values(self, record: Any) -> list[Any]:
        if isinstance(record, (tuple, list, Row)):
            return list(record)
        if isinstance(record, dict):
            missing = [name for name in self._names if name not in record]
            if missing:
                raise TypeMismatch(f"the record has no field {missing[0]!r}, only {sorted(map(str, record))}")
            return [record[name] for name in self._names]
        raise TypeMismatch(
            f"a query is for tuples, rows and dicts, not for {type(record).__name__}; objects are saved without a query"
        )


class ObjectStatements(Statements):
    """Saves objects: those of a dataclass with `__table__` (and `__keyspace__`), or of a cqlengine model."""

    def __init__(self, connection: Connection, options: MapperOptions, ignore_nulls: bool) -> None:
        self._connection = connection
        self._options = options
        self.trace = options._tracing
        ignores = ignore_nulls or not options._save_null_fields
        self._unset = driver("cassandra.query").UNSET_VALUE if ignores else None
        self._known: dict[type, tuple[Any, Callable[[Any], list[Any]]]] = {}

    def bind(self, record: Any) -> Any:
        kind = type(record)
        if kind not in self._known:
            table, columns, values = mapping_of(kind)
            self._known[kind] = self._connection.prepare(insert_into(table, columns, self._options)), values
        prepared, values = self._known[kind]
        bound = _bind(prepared, [self._unset if value is None else value for value in values(record)])
        if self._options._consistency_level is not None:
            bound.consistency_level = getattr(driver().ConsistencyLevel, self._options._consistency_level.name)
        return bound


def _bind(prepared: Any, values: list[Any]) -> Any:
    try:
        return prepared.bind(values)
    except (TypeError, ValueError, AttributeError) as error:
        # Each column type of the driver fails in its own way on a value of another kind.
        raise TypeMismatch(f"Cassandra cannot store this record: {error}") from error


def insert_into(table: str, columns: list[str], options: MapperOptions) -> str:
    """Return the statement that saves one object."""
    names, marks = ", ".join(map(quote, columns)), ", ".join("?" for _ in columns)
    unless = " IF NOT EXISTS" if options._if_not_exists else ""
    using = [f"TTL {options._ttl}"] if options._ttl is not None else []
    using += [f"TIMESTAMP {options._timestamp}"] if options._timestamp is not None else []
    return f"INSERT INTO {table} ({names}) VALUES ({marks}){unless}{' USING ' + ' AND '.join(using) if using else ''}"


def mapping_of(kind: type) -> tuple[str, list[str], Callable[[Any], list[Any]]]:
    """Return the table of a class, its columns, and a function that gets their values from an object."""
    if hasattr(kind, "column_family_name") and hasattr(kind, "_columns"):
        columns = list(kind._columns.items())
        return (
            str(kind.column_family_name()),
            [column.db_field_name for _, column in columns],
            lambda record: [column.to_database(getattr(record, name)) for name, column in columns],
        )
    table = getattr(kind, "__table__", None)
    if not dataclasses.is_dataclass(kind) or table is None:
        raise TypeMismatch(
            f"{kind.__name__} is neither a dataclass with __table__ nor a cqlengine model; other records need a query"
        )
    fields = dataclasses.fields(kind)
    key_space = getattr(kind, "__keyspace__", None)
    return (
        f"{quote(key_space)}.{quote(table)}" if key_space else quote(table),
        [str(field.metadata.get("column", field.name)) for field in fields],
        lambda record: [getattr(record, field.name) for field in fields],
    )


def quote(name: str) -> str:
    """Quote a name, which keeps its capitals, even if it is a word of CQL."""
    return '"' + name.replace('"', '""') + '"'
