"""Lookups in a database that do not hold up the stream."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from penstock.api.settings.values import at_least
from penstock.base.arguments import check_arguments
from penstock.common.typeinfo import TypeInformation
from penstock.connectors.jdbc.database import Database
from penstock.connectors.jdbc.jdbc_options import JdbcConnectionOptions
from penstock.connectors.jdbc.jdbc_rows import RowMaker
from penstock.connectors.jdbc.jdbc_statements import Sql, bindable
from penstock.connectors.retrying import Retries

if TYPE_CHECKING:
    from sqlalchemy import Connection


class JdbcLookup:
    """Runs one query again and again, several times at once. It is for use in an AsyncFunction.

    It is plain data until the first lookup, and can be made when the program is built.
    """

    @check_arguments
    def __init__(
        self,
        connection_options: JdbcConnectionOptions,
        query: str,
        type_info: TypeInformation | None = None,
        *,
        capacity: int = 8,
        max_retries: int = 3,
    ) -> None:
        """Use `capacity` connections, and so run at most this many lookups at the same time."""
        self._options = connection_options
        self._sql = Sql.parse(query)
        self._rows = RowMaker(type_info)
        self._capacity = at_least("capacity", capacity, 1)
        self._retries = Retries(at_least("max_retries", max_retries, 0) + 1)
        self._database: Database | None = None
        self._threads: ThreadPoolExecutor | None = None

    async def lookup(self, *parameters: Any) -> list[Any]:
        """Return the rows of the query with its `?` filled with the parameters."""
        self._get_database()
        if self._threads is None:
            self._threads = ThreadPoolExecutor(self._capacity, thread_name_prefix="jdbc-lookup")
        return await asyncio.get_running_loop().run_in_executor(self._threads, self.lookup_now, *parameters)

    def lookup_now(self, *parameters: Any) -> list[Any]:
        """Do as `lookup` does, but block until the rows are there."""
        if len(parameters) != self._sql.placeholders:
            raise ValueError(f"the query has {self._sql.placeholders} parameters, not {len(parameters)}")
        return self._get_database().run(lambda connection: self._ask(connection, parameters), "looking up in")

    def _get_database(self) -> Database:
        """Return the database, made before threads could make it twice."""
        if self._database is None:
            self._database = Database(self._options, self._retries, self._capacity)
            self._database.engine  # noqa: B018
        return self._database

    def _ask(self, connection: Connection, parameters: tuple[Any, ...]) -> list[Any]:
        (bound,) = bindable([parameters], connection.dialect.name)
        result = connection.exec_driver_sql(self._sql.render(connection.dialect.paramstyle), bound)
        return self._rows.of([tuple(row) for row in result], list(result.keys()))

    def close(self) -> None:
        """Wait for the running lookups, then close the connections. A later lookup opens new ones."""
        if self._threads is not None:
            self._threads.shutdown(wait=True)
        if self._database is not None:
            self._database.close()
        self._threads = self._database = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_database": None, "_threads": None}
