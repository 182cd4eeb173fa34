"""A database reached through SQLAlchemy: connections, repeated transactions, and errors as Penstock's classes."""

from __future__ import annotations

import hashlib
import re
import struct
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import parse_qsl, unquote

from penstock.base.libraries import optional_library
from penstock.connectors.jdbc.jdbc_options import JdbcConnectionOptions
from penstock.connectors.retrying import Retries
from penstock.errors import AccessDenied, ConnectorError, MissingDependency, NotFound, SchemaMismatch

if TYPE_CHECKING:
    from sqlalchemy import URL, Column, Connection, Engine, Table
    from sqlalchemy.exc import DBAPIError

T = TypeVar("T")
SQLITE_PATIENCE = 10.0
"""Longest time, in seconds, that SQLite waits for another writer before it reports that the database is locked."""

_PSYCOPG_NAMES = {"ApplicationName": "application_name", "connectTimeout": "connect_timeout", "sslfactory": ""}
"""PostgreSQL's own names of parameters of the JDBC driver. An empty name drops the parameter."""

_BY_STATE: list[tuple[str, type[ConnectorError]]] = [
    ("28", AccessDenied),
    ("42501", AccessDenied),
    ("3D", NotFound),
    ("3F", NotFound),
    ("42P01", NotFound),
    ("42703", SchemaMismatch),
    ("42804", SchemaMismatch),
    ("42846", SchemaMismatch),
    ("42601", ConnectorError),
    ("22", SchemaMismatch),
    ("23502", SchemaMismatch),
    ("23514", SchemaMismatch),
]
"""Error classes by the beginning of the SQLSTATE."""

_BY_TEXT: list[tuple[str, type[ConnectorError]]] = [
    (r"password authentication failed|no password supplied|no pg_hba\.conf entry", AccessDenied),
    (r"role .* does not exist|permission denied|readonly database", AccessDenied),
    (r"database .* does not exist|no such table|unable to open database file", NotFound),
    (r"has no column|no such column|datatype mismatch|values for \d+ columns|not a database", SchemaMismatch),
    (r"NOT NULL constraint|CHECK constraint|cannot store|type '.*' is not supported|cannot adapt", SchemaMismatch),
    (r"too large to convert|number of bindings|Incorrect number|ON CONFLICT clause does not match", SchemaMismatch),
]
"""Error classes by message, for errors without a SQLSTATE.

These are the errors of SQLite, and those of PostgreSQL while it accepts no connections.
"""

_PASSING_STATES = ("08", "40", "53", "55P03", "57P")
_PASSING_TEXT = re.compile(r"database (table )?is locked|database is busy", re.IGNORECASE)


class _Away(Exception):
    """Raised if the database cannot be reached, or is busy. Another attempt may succeed."""


class Database:
    """One database, as one writer, committer or reader uses it. It connects on first use."""

    def __init__(self, options: JdbcConnectionOptions, retries: Retries, connections: int = 1) -> None:
        self.options = options
        self._retries = retries
        self._connections = connections
        self._engine: Engine | None = None

    @property
    def engine(self) -> Engine:
        if self._engine is None:
            self._engine = _engine(self.options, self._connections)
        return self._engine

    def run(self, action: Callable[[Connection], T], what: str) -> T:
        """Run an action in one transaction. Run the whole action again if the connection was lost."""

        def transaction() -> T:
            with self.engine.begin() as connection:
                return action(connection)

        return self.retry(transaction, what, self.close)

    def retry(self, action: Callable[[], T], what: str, between: Callable[[], None]) -> T:
        """Run an action that may be repeated, and translate its errors."""
        require_sqlalchemy()
        from sqlalchemy.exc import DBAPIError

        def attempt() -> T:
            try:
                return action()
            except DBAPIError as error:
                if _passes(error):
                    raise _Away(_text(error)) from error
                raise self._in_our_words(error, what) from error

        named = f"{what} {self.options.display_url}"
        return self._retries.call(attempt, named, lambda error: isinstance(error, _Away), between)

    def _in_our_words(self, error: DBAPIError, what: str) -> ConnectorError:
        return _kind(error)(f"{what} {self.options.display_url} failed: {_text(error)}")

    def close(self) -> None:
        if self._engine is not None:
            self._engine.dispose()

    # --- tables of our own ---
    def own_table(self, full_name: str, columns: Callable[[], list[Column[Any]]]) -> Table:
        """Return a table, created if it does not exist.

        `columns` is called once SQLAlchemy is known to be installed.
        """
        require_sqlalchemy()
        import sqlalchemy

        schema, _, name = full_name.rpartition(".")
        table = sqlalchemy.Table(name, sqlalchemy.MetaData(), *columns(), schema=schema or None)
        self._make(table)
        return table

    def _make(self, table: Table) -> None:
        """Create a table unless it exists. Several subtasks may try at the same time, and all of them succeed."""
        from sqlalchemy.schema import CreateTable

        if self._has(table):
            return
        try:
            self.run(
                lambda connection: connection.execute(CreateTable(table, if_not_exists=True)), "creating a table in"
            )
        except ConnectorError:
            if not self._has(table):
                raise

    def _has(self, table: Table) -> bool:
        import sqlalchemy

        def look(connection: Connection) -> bool:
            return sqlalchemy.inspect(connection).has_table(table.name, table.schema)

        return self.run(look, "connecting to")


def require_sqlalchemy() -> None:
    """Raise an error with advice if SQLAlchemy is not installed."""
    optional_library("sqlalchemy", "databases need SQLAlchemy", "sql")


def _engine(options: JdbcConnectionOptions, connections: int) -> Engine:
    require_sqlalchemy()
    import sqlalchemy
    from sqlalchemy.exc import ArgumentError, NoSuchModuleError
    from sqlalchemy.pool import NullPool

    settings: dict[str, Any] = {"pool_size": connections, "max_overflow": 0}
    if options.dialect == "sqlite":
        # A kept connection keeps a file open, and making a new one costs next to nothing.
        settings = {"poolclass": NullPool, "connect_args": {"timeout": SQLITE_PATIENCE}}
    try:
        return sqlalchemy.create_engine(database_url(options), **settings)
    except ImportError as error:
        extra = 'pip install "penstock[postgres]"' if options.dialect == "postgresql" else "install it"
        raise MissingDependency(f"the driver for {options.display_url} is missing ({error}): {extra}") from None
    except NoSuchModuleError as error:
        raise MissingDependency(f"SQLAlchemy does not know databases such as {options.display_url}: {error}") from None
    except ArgumentError as error:
        raise ConnectorError(f"'{options.display_url}' cannot be used: {error}") from None


def database_url(options: JdbcConnectionOptions) -> URL:
    """Return the URL in SQLAlchemy's form."""
    from sqlalchemy.engine import URL, make_url

    text = options.url.removeprefix("jdbc:")
    if options.url.startswith("jdbc:sqlite:"):
        return URL.create("sqlite", database=text.removeprefix("sqlite:"))
    if options.dialect == "postgresql" and options.url.startswith("jdbc:"):
        url = _postgres_url(text)
    else:
        url = make_url(text)
    if url.drivername in ("postgresql", "postgres"):
        url = url.set(drivername="postgresql+psycopg")
    if options.user_name is not None:
        url = url.set(username=options.user_name)
    if options.password is not None:
        url = url.set(password=options.password)
    return url


def _postgres_url(text: str) -> URL:
    """Parse `postgresql://host:port/database?user=…`, as Java's driver writes it. Host and port are optional."""
    from sqlalchemy.engine import URL

    found = re.fullmatch(r"postgresql:(?://([^/?]*)/?)?([^?]*)(?:\?(.*))?", text)
    assert found is not None, text
    address, database = found[1] or "", unquote(found[2])
    query: dict[str, str] = dict(parse_qsl(found[3] or ""))
    host, _, port = address.rpartition(":") if re.search(r":\d+$", address) else (address, "", "")
    user, password, schema = (query.pop(name, None) for name in ("user", "password", "currentSchema"))
    if query.pop("ssl", "false").lower() == "true":
        query.setdefault("sslmode", "require")
    if schema is not None:
        query["options"] = f"-csearch_path={schema}"
    renamed = {_PSYCOPG_NAMES.get(name, name): value for name, value in query.items()}
    renamed.pop("", None)
    return URL.create(
        "postgresql",
        username=user,
        password=password,
        host=host.strip("[]") or "localhost",
        port=int(port) if port else None,
        database=database or user,
        query=renamed,
    )


_END_HOLDER = """SELECT pg_terminate_backend(pid) FROM pg_locks
    WHERE locktype = 'advisory' AND classid = :high AND objid = :low AND objsubid = 2 AND pid <> pg_backend_pid()
    AND granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"""
_LOOK_SECONDS = 0.05


def take_turn(connection: Connection, name: str, seconds: float, check_right: Callable[[], None]) -> None:
    """Wait until no other transaction has the turn with this name, and keep the turn until this transaction ends.

    A process that was stopped within its transaction keeps the turn. After `seconds`, `check_right` raises an error
    unless the caller may go on in that process's place. If it may, the other session is ended.
    """
    import sqlalchemy

    if connection.dialect.name != "postgresql":
        return
    digest = hashlib.blake2b(name.encode(), digest_size=8).digest()
    high, low = (part & 0x7FFFFFFF for part in struct.unpack("<II", digest))
    lock = sqlalchemy.select(sqlalchemy.func.pg_try_advisory_xact_lock(high, low))
    patience = time.monotonic() + seconds
    while not connection.execute(lock).scalar_one():
        if time.monotonic() > patience:
            check_right()
            connection.execute(sqlalchemy.text(_END_HOLDER), {"high": high, "low": low})
        time.sleep(_LOOK_SECONDS)


# --- errors ---
def _text(error: DBAPIError) -> str:
    return " ".join(str(error.orig).split())


def _state(error: DBAPIError) -> str | None:
    return getattr(error.orig, "sqlstate", None)


def _passes(error: DBAPIError) -> bool:
    """Return True if the action may succeed a little later."""
    from sqlalchemy.exc import InterfaceError, OperationalError

    state = _state(error)
    if state is not None:
        return state.startswith(_PASSING_STATES)
    if error.connection_invalidated or _PASSING_TEXT.search(_text(error)):
        return True
    # An error without a state comes from SQLite, which reports everything this way, or from a connection that failed.
    return (
        isinstance(error, (OperationalError, InterfaceError)) and not _is_sqlite(error) and _kind_by_text(error) is None
    )


def _is_sqlite(error: DBAPIError) -> bool:
    return type(error.orig).__module__.startswith("sqlite3")


def _kind_by_text(error: DBAPIError) -> type[ConnectorError] | None:
    text = _text(error)
    return next((kind for pattern, kind in _BY_TEXT if re.search(pattern, text, re.IGNORECASE)), None)


def _kind(error: DBAPIError) -> type[ConnectorError]:
    state = _state(error)
    if state is not None:
        return next((kind for beginning, kind in _BY_STATE if state.startswith(beginning)), ConnectorError)
    return _kind_by_text(error) or ConnectorError
