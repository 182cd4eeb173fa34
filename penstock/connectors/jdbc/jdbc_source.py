"""Reading a query in parts, each in the order of a key. After a failure a part continues after the last key read."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from penstock.api.settings.values import at_least
from penstock.base.arguments import check_arguments
from penstock.common.typeinfo import TypeInformation
from penstock.connectors.jdbc.database import Database
from penstock.connectors.jdbc.jdbc_options import JdbcConnectionOptions
from penstock.connectors.jdbc.jdbc_rows import RowMaker
from penstock.connectors.jdbc.jdbc_statements import Sql, bindable
from penstock.connectors.retrying import Retries
from penstock.connectors.source_api import (
    ReaderContext,
    Source,
    SourceReader,
    SplitEnumerator,
    SplitReader,
    SplitsInTurn,
)
from penstock.errors import SchemaMismatch, TypeMismatch
from penstock.persisted import persisted

if TYPE_CHECKING:
    from sqlalchemy import Connection, CursorResult, Dialect

Key = tuple[Any, ...]


@check_arguments
class JdbcNumericBetweenParametersProvider:
    """Cuts a range of whole numbers, both ends included, for a query with `BETWEEN ? AND ?`."""

    def __init__(self, min_val: int, max_val: int) -> None:
        if min_val > max_val:
            raise ValueError(f"the range from {min_val} to {max_val} is empty")
        self._min, self._max = min_val, max_val
        self._parts = 1

    def of_batch_num(self, batch_num: int) -> JdbcNumericBetweenParametersProvider:
        """Cut the range into this many parts, as equal as possible; never into more parts than there are numbers."""
        if batch_num < 1:
            raise ValueError(f"a range has at least one part, not {batch_num}")
        self._parts = min(batch_num, self._max - self._min + 1)
        return self

    def of_batch_size(self, batch_size: int) -> JdbcNumericBetweenParametersProvider:
        """Cut the range into parts of at most this many numbers."""
        if batch_size < 1:
            raise ValueError(f"a part has at least one number, not {batch_size}")
        return self.of_batch_num(-(-(self._max - self._min + 1) // batch_size))

    def get_parameter_values(self) -> list[tuple[int, int]]:
        """Return the first and the last number of each part."""
        count = self._max - self._min + 1
        starts = [self._min + count * part // self._parts for part in range(self._parts + 1)]
        return [(start, end - 1) for start, end in pairwise(starts)]


@persisted
@dataclass(frozen=True)
class JdbcSplit:
    """A part of a query, and the position up to which it has been read."""

    number: int
    parameters: tuple[Any, ...] = ()
    between: tuple[int, int] | None = None
    """Range of keys; only rows within it are read."""
    after: Key | None = None
    """Last key that was read; only rows with a greater key are read."""

    @property
    def split_id(self) -> str:
        """Name of the part within its source."""
        return f"part-{self.number}"


@check_arguments
@dataclass(frozen=True)
class JdbcSource(Source):
    """The rows of a query, each once.

    `key` names a column of the query's result, or several. It is never null, and differs in all rows of one part. Rows
    come in its order. After a failure reading continues after the last row, so that each row is read once even if
    others were added or deleted meanwhile.

    The query is read in parts: one for each tuple of `parameters`, which fill its `?`; or in `partitions` ranges of its
    key, which then is one column of whole numbers. Subtasks read parts side by side, each through a cursor in the
    database, `fetch_size` rows at a time.
    """

    connection_options: JdbcConnectionOptions
    query: str
    type_info: TypeInformation | None = None
    key: str | Sequence[str] = field(kw_only=True)
    parameters: Sequence[Sequence[Any]] | JdbcNumericBetweenParametersProvider | None = field(
        default=None, kw_only=True
    )
    partitions: int = field(default=1, kw_only=True)
    fetch_size: int = field(default=1000, kw_only=True)
    max_retries: int = field(default=3, kw_only=True)

    def __post_init__(self) -> None:
        if not isinstance(self.connection_options, JdbcConnectionOptions):
            raise TypeError(f"connection_options must be JdbcConnectionOptions, not {self.connection_options!r}")
        at_least("partitions", self.partitions, 1)
        at_least("fetch_size", self.fetch_size, 1)
        at_least("max_retries", self.max_retries, 0)
        if not self.keys or not all(isinstance(name, str) and name for name in self.keys):
            raise ValueError(f"the key is the name of a column, or several, not {self.key!r}")
        places = Sql.parse(self.query).placeholders
        wrong = [values for values in self._parameter_values() if len(values) != places]
        if wrong:
            raise ValueError(f"the query has {places} parameters, and {wrong[0]!r} has another number of values")
        if self.partitions > 1 and (self.parameters is not None or len(self.keys) > 1):
            raise ValueError("partitions are ranges of a key of one column, for a query without parameters")

    @property
    def keys(self) -> tuple[str, ...]:
        """Names of the key's columns."""
        return (self.key,) if isinstance(self.key, str) else tuple(self.key)

    def _parameter_values(self) -> list[tuple[Any, ...]]:
        given = self.parameters
        if isinstance(given, JdbcNumericBetweenParametersProvider):
            return list(given.get_parameter_values())
        return [()] if given is None else [tuple(values) for values in given]

    def create_enumerator(self) -> SplitEnumerator:
        return _Parts(self)

    def create_reader(self, context: ReaderContext) -> SourceReader:
        return _PartsInTurn(self, context)

    def get_produced_type(self) -> TypeInformation | None:
        return self.type_info

    def database(self) -> Database:
        """Return access to the database, which connects on first use."""
        return Database(self.connection_options, Retries(self.max_retries + 1))


class _Parts(SplitEnumerator):
    """Cuts the query into parts once."""

    def __init__(self, source: JdbcSource) -> None:
        self._source = source

    def discover(self) -> Sequence[JdbcSplit]:
        source = self._source
        if source.partitions == 1:
            return [JdbcSplit(number, values) for number, values in enumerate(source._parameter_values())]
        first, last = self._ends()
        if first is None:
            return []
        if type(first) is not int or type(last) is not int:
            raise SchemaMismatch(
                f"partitions need a key of whole numbers, but '{source.keys[0]}' has the first value {first!r}"
            )
        ranges = JdbcNumericBetweenParametersProvider(first, last).of_batch_num(source.partitions)
        return [JdbcSplit(number, (), ends) for number, ends in enumerate(ranges.get_parameter_values())]

    def _ends(self) -> tuple[Any, Any]:
        database, source = self._source.database(), self._source

        def ask(connection: Connection) -> tuple[Any, Any]:
            key = connection.dialect.identifier_preparer.quote(source.keys[0])
            asked = _wrap(source.query, f"MIN({key}), MAX({key})")
            row = connection.exec_driver_sql(asked.render(connection.dialect.paramstyle)).one()
            return row[0], row[1]

        try:
            return database.run(ask, "reading from")
        finally:
            database.close()


class _PartsInTurn(SplitsInTurn):
    def __init__(self, source: JdbcSource, context: ReaderContext) -> None:
        self._database = source.database()
        super().__init__(lambda split: _PartReader(source, self._database, split, context))

    def close(self) -> None:
        super().close()
        self._database.close()


class _PartReader(SplitReader):
    """Reads one part through a cursor. If a cursor would lock out writers, each page is a new query."""

    def __init__(self, source: JdbcSource, database: Database, split: JdbcSplit, context: ReaderContext) -> None:
        self._context = context
        self._source = source
        self._database = database
        self._split = split
        self._fetched_to = split.after
        self._page: list[tuple[Any, ...]] = []
        self._columns: list[str] = []
        self._places: list[int] = []
        self._exhausted = False
        self._rows = RowMaker(source.type_info)
        self._connection: Connection | None = None
        self._result: CursorResult[Any] | None = None

    def read(self, most: int) -> list[Any]:
        if not self._page and not self._exhausted:
            self._next_page()
        taken, self._page = self._page[:most], self._page[most:]
        if taken:
            self._split = replace(self._split, after=self._key(taken[-1]))
        self.finished = self._exhausted and not self._page
        return self._values(taken) if taken else []

    def _values(self, rows: list[tuple[Any, ...]]) -> list[Any]:
        """Convert rows.

        A row that does not fit the declared type is treated as the job's setting for bad records says.
        """
        try:
            return self._rows.of(rows, self._columns)
        except TypeMismatch:
            read = lambda row: self._rows.of([row], self._columns)[0]  # noqa: E731
            values, _ = self._context.decode(read, rows, lambda index: f"key {self._key(rows[index])} of the query")
            return values

    def _next_page(self) -> None:
        try:
            self._database.retry(self._fetch, "reading from", self._let_go)
        except BaseException:
            self._let_go()
            raise

    def _fetch(self) -> None:
        result = self._open()
        page = [tuple(row) for row in result.fetchmany(self._source.fetch_size)]
        self._check(page)
        if page:
            self._fetched_to = self._key(page[-1])
        self._page, self._exhausted = page, len(page) < self._source.fetch_size
        if self._exhausted or self._database.options.dialect == "sqlite":
            self._let_go()

    def _open(self) -> CursorResult[Any]:
        if self._result is None:
            size = self._source.fetch_size
            connection = self._database.engine.connect().execution_options(stream_results=True, max_row_buffer=size)
            self._connection = connection
            sql, values = self._query(connection.dialect)
            (bound,) = bindable([values], connection.dialect.name)
            self._result = connection.exec_driver_sql(sql.render(connection.dialect.paramstyle), bound)
            self._columns = list(self._result.keys())
            missing = [name for name in self._source.keys if name not in self._columns]
            if missing:
                raise SchemaMismatch(f"the query has the columns {self._columns}, but its key is {missing[0]!r}")
            self._places = [self._columns.index(name) for name in self._source.keys]
        return self._result

    def _query(self, dialect: Dialect) -> tuple[Sql, tuple[Any, ...]]:
        names = ", ".join(map(dialect.identifier_preparer.quote, self._source.keys))
        values, conditions = self._split.parameters, []
        if self._split.between is not None:
            conditions.append(f"{names} BETWEEN ? AND ?")
            values += self._split.between
        if self._fetched_to is not None:
            conditions.append(f"({names}) > ({', '.join('?' for _ in self._fetched_to)})")
            values += self._fetched_to
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        return _wrap(self._source.query, "*", f"{where} ORDER BY {names}"), values

    def _key(self, row: tuple[Any, ...]) -> Key:
        return tuple(row[place] for place in self._places)

    def _check(self, page: list[tuple[Any, ...]]) -> None:
        """Refuse a null or duplicate key, with which rows would be lost when reading continues after it."""
        keys = [self._key(row) for row in page]
        for before, key in pairwise([self._fetched_to, *keys]):
            if None in key:  # type: ignore[operator]
                raise SchemaMismatch(f"the key {self._source.keys} must not be null, but a row of the query has null")
            if before == key:
                raise SchemaMismatch(f"the key {self._source.keys} must be unique, but two rows have {key!r}")

    def position(self) -> JdbcSplit:
        return self._split

    def _let_go(self) -> None:
        connection, self._connection, self._result = self._connection, None, None
        if connection is not None:
            # A connection that was lost may fail to close.
            with suppress(Exception):
                connection.close()

    def close(self) -> None:
        self._let_go()


def _wrap(query: str, columns: str, rest: str = "") -> Sql:
    """Put a query around the user's query. The line break ends a comment at the end of the user's query."""
    return Sql.parse(f"SELECT {columns} FROM (\n{query.strip().rstrip(';')}\n) AS part{rest}")
