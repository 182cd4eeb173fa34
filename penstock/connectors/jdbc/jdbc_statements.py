"""The SQL of a sink: the placeholders of any statement, and upserts in the database's dialect."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from penstock.common.time import Instant
from penstock.common.types import Row, RowKind

if TYPE_CHECKING:
    from sqlalchemy import Connection, TableClause

Values = tuple[Any, ...]

_TOKEN = re.compile(
    r"""
      (?<![\w$]) [eE] '(?: [^'\\] | \\. | '' )* (?:'|\Z)   # PostgreSQL's text with backslashes
    | ' [^']* (?:'|\Z) | " [^"]* (?:"|\Z) | ` [^`]* (?:`|\Z)
    | -- [^\n]*
    | /\* (?: [^*] | \*(?!/) )* (?:\*/|\Z)
    | (?<![\w$]) \$ (?P<tag> (?:[^\W\d]\w*)? ) \$ .*? (?: \$(?P=tag)\$ | \Z )   # PostgreSQL's dollar quotes
    | (?P<escaped> \?\? )
    | (?P<placeholder> \? )
    """,
    re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True)
class Sql:
    """A statement cut at its placeholders. It has one piece more than placeholders."""

    pieces: tuple[str, ...]

    @staticmethod
    def parse(text: str) -> Sql:
        """Find the `?` outside quotes and comments. `??` stands for a question mark, which some operators contain."""
        if not isinstance(text, str) or not text.strip():
            raise ValueError(f"expected an SQL statement, not {text!r}")
        pieces, piece, end = [], "", 0
        for token in _TOKEN.finditer(text):
            piece += text[end : token.start()]
            end = token.end()
            if token["placeholder"]:
                pieces.append(piece)
                piece = ""
            else:
                piece += "?" if token["escaped"] else token[0]
        return Sql((*pieces, piece + text[end:]))

    @property
    def placeholders(self) -> int:
        """Number of placeholders."""
        return len(self.pieces) - 1

    def render(self, paramstyle: str) -> str:
        """Return the statement in the form that a driver with this style of parameters needs."""
        if paramstyle in ("format", "pyformat"):
            return "%s".join(piece.replace("%", "%%") for piece in self.pieces)
        if paramstyle == "qmark":
            return "?".join(self.pieces)
        mark = {"numeric": ":{}", "named": ":{}", "numeric_dollar": "${}"}[paramstyle]
        numbered = (mark.format(number) + piece for number, piece in enumerate(self.pieces[1:], start=1))
        return self.pieces[0] + "".join(numbered)


class Statement(ABC):
    """The action that a sink takes with its records, as plain data."""

    @property
    @abstractmethod
    def width(self) -> int:
        """Number of fields that a record needs."""

    @abstractmethod
    def record(self, value: Any) -> Any:
        """Return the part of a value that is kept until it is written, as plain data."""

    @abstractmethod
    def execute(self, connection: Connection, records: Sequence[Any]) -> None:
        """Write records within the transaction of a connection."""


@dataclass(frozen=True)
class UserStatement(Statement):
    """A statement that the user wrote, executed once for each record."""

    sql: Sql

    @property
    def width(self) -> int:
        return self.sql.placeholders

    def record(self, value: Any) -> Values:
        return tuple(value)

    def execute(self, connection: Connection, records: Sequence[Values]) -> None:
        statement = self.sql.render(connection.dialect.paramstyle)
        connection.exec_driver_sql(statement, list(bindable(records, connection.dialect.name)))


@dataclass(frozen=True)
class Upsert(Statement):
    """Keeps the last record of each key in a table. A row of kind DELETE deletes its key."""

    table: str
    columns: tuple[str, ...]
    key_columns: tuple[str, ...]

    def __post_init__(self) -> None:
        if not self.table or not self.columns:
            raise ValueError("an upsert needs a table and its columns")
        if not self.key_columns or not set(self.key_columns) <= set(self.columns):
            raise ValueError(f"the key columns {self.key_columns} must be some of the columns {self.columns}")
        if len(set(self.columns)) < len(self.columns):
            raise ValueError(f"columns must differ: {self.columns}")

    @property
    def width(self) -> int:
        return len(self.columns)

    def record(self, value: Any) -> tuple[RowKind, Values]:
        return value.get_row_kind() if isinstance(value, Row) else RowKind.INSERT, tuple(value)

    def execute(self, connection: Connection, records: Sequence[tuple[RowKind, Values]]) -> None:
        present, gone = self._last_of_each_key(records)
        if present:
            self._put(connection, bindable(present, connection.dialect.name))
        if gone:
            self._delete(connection, bindable(gone, connection.dialect.name))

    def _table(self) -> TableClause:
        import sqlalchemy

        schema, _, name = self.table.rpartition(".")
        return sqlalchemy.table(name, *map(sqlalchemy.column, self.columns), schema=schema or None)

    def _put(self, connection: Connection, rows: Iterable[Values]) -> None:
        from sqlalchemy.dialects import postgresql, sqlite

        insert = (postgresql.insert if connection.dialect.name == "postgresql" else sqlite.insert)(self._table())
        keys = list(self.key_columns)
        rest = {column: insert.excluded[column] for column in self.columns if column not in keys}
        if rest:
            statement = insert.on_conflict_do_update(index_elements=keys, set_=rest)
        else:
            statement = insert.on_conflict_do_nothing(index_elements=keys)
        connection.execute(statement, [dict(zip(self.columns, row, strict=True)) for row in rows])

    def _delete(self, connection: Connection, rows: Iterable[Values]) -> None:
        import sqlalchemy

        table = self._table()
        tests = [table.c[name] == sqlalchemy.bindparam(f"key_{name}") for name in self.key_columns]
        places = {f"key_{name}": self.columns.index(name) for name in self.key_columns}
        keys = [{name: row[place] for name, place in places.items()} for row in rows]
        connection.execute(sqlalchemy.delete(table).where(*tests), keys)

    def _last_of_each_key(self, records: Iterable[tuple[RowKind, Values]]) -> tuple[list[Values], list[Values]]:
        places = [self.columns.index(name) for name in self.key_columns]
        last: dict[Values, tuple[RowKind, Values]] = {}
        for kind, values in records:
            if kind is not RowKind.UPDATE_BEFORE:
                key = tuple(values[place] for place in places)
                last.pop(key, None)
                last[key] = (kind, values)
        present = [values for kind, values in last.values() if kind is not RowKind.DELETE]
        return present, [values for kind, values in last.values() if kind is RowKind.DELETE]


def bindable(rows: Iterable[Values], dialect: str) -> Iterable[Values]:
    """Convert values to the types of the drivers. SQLite gets decimals and times as text that sorts correctly."""
    convert = _for_sqlite if dialect == "sqlite" else _for_others
    return (tuple(map(convert, row)) for row in rows)


def _for_others(value: Any) -> Any:
    return _moment(value) if isinstance(value, Instant) else value


def _for_sqlite(value: Any) -> Any:
    if value is None or isinstance(value, (str, int, float, bytes)):
        return value
    if isinstance(value, Instant):
        value = _moment(value)
    if isinstance(value, datetime):
        return value.isoformat(" ")
    if isinstance(value, (date, time)):
        return value.isoformat()
    return str(value) if isinstance(value, Decimal) else value


def _moment(value: Instant) -> datetime:
    return datetime.fromtimestamp(value.seconds, UTC).replace(microsecond=value.nanos // 1000)
