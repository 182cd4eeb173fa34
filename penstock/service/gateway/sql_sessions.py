"""Sessions and their operations. An operation runs in its own thread, and its result is fetched page by page."""

from __future__ import annotations

import logging
import threading
import time
import traceback
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from penstock.common.configuration import Configuration
from penstock.common.types import Row
from penstock.errors import PenstockError
from penstock.table.api.results import TableResult
from penstock.table.catalogs.resolved_schema import ResolvedSchema
from penstock.table.environment_settings import EnvironmentSettings
from penstock.table.environments.stream_environment import StreamTableEnvironment
from penstock.table.result_kind import ResultKind
from penstock.table.types.data_types import DataTypes

log = logging.getLogger("penstock.gateway")

PAGE = 5_000
"""Greatest number of rows of a page."""
AHEAD = 100_000
"""Greatest number of unfetched rows. With more, the query waits."""
OPERATIONS = 1_000
"""Greatest number of operations that a session may have at once."""


class Unknown(PenstockError):
    """Raised if the session, operation or page does not exist."""


class TooMany(PenstockError):
    """Raised if there are too many sessions or operations for another one."""


@dataclass
class Page:
    """Some rows of a result, and True if no page follows."""

    rows: list[Row]
    last: bool


class Operation:
    """A submitted statement: pending, running, finished, or ended otherwise."""

    def __init__(self, work: Callable[[Operation], None]) -> None:
        self.handle = str(uuid.uuid4())
        self.status = "PENDING"
        self.error: str | None = None
        self.schema: ResolvedSchema | None = None
        self.zone = "UTC"
        self.is_query = False
        self.kind = ResultKind.SUCCESS
        self.job_id: str | None = None
        self._work = work
        self._changed = threading.Condition()
        self._rows: list[Row] = []
        self._ended = False
        self._token = 0
        self._page: Page | None = None
        """Page of the previous token, which can be requested again."""
        self._cancel: Callable[[], None] | None = None
        self._thread = threading.Thread(target=self._run, name=f"sql-{self.handle[:8]}", daemon=True)

    def start(self) -> Operation:
        """Start the operation's thread, and return the operation."""
        self._thread.start()
        return self

    def _run(self) -> None:
        self._become("RUNNING")
        try:
            self._work(self)
        except BaseException as error:  # every error is for the client, not for this thread
            if self.status not in {"CANCELED", "CLOSED"}:
                self.error = "".join(traceback.format_exception_only(error)).strip()
                log.info("operation %s failed: %s", self.handle, self.error)
                self._become("ERROR")
        else:
            if self.status == "RUNNING":
                self._become("FINISHED")
        finally:
            with self._changed:
                self._ended = True
                self._changed.notify_all()

    def _become(self, status: str) -> None:
        with self._changed:
            self.status = status
            self._changed.notify_all()

    # --- the side of the work ---
    def describe(self, result: TableResult, is_query: bool) -> None:
        """Set the schema and the kind of the result."""
        job = result.get_job_client()
        with self._changed:
            self.schema, self.zone = result.get_resolved_schema(), result.zone
            self.kind = result.get_result_kind()
            self.is_query = is_query
            self.job_id = None if job is None else str(job.get_job_id())
            self._changed.notify_all()

    def on_cancel(self, cancel: Callable[[], None]) -> None:
        """Set the function that ends the work when the operation is cancelled."""
        self._cancel = cancel

    def put(self, row: Row) -> bool:
        """Keep a row for the client. Wait while there are too many. Return False if no more rows are wanted."""
        with self._changed:
            while len(self._rows) >= AHEAD and self.status == "RUNNING":
                self._changed.wait(1)
            self._rows.append(row)
            self._changed.notify_all()
            return self.status == "RUNNING"

    # --- the side of the client ---
    def page(self, token: int, patience: float = 0.1) -> Page | None:
        """Return the rows of a page, or None if they are not available yet. The previous page stays available."""
        with self._changed:
            if self.error is not None:
                raise PenstockError(self.error)
            if token == self._token - 1 and self._page is not None:
                return self._page
            if token != self._token:
                raise Unknown(f"page {token} is no longer or not yet available; the next page is {self._token}")
            if self.schema is None or not (self._rows or self._ended):
                self._changed.wait(patience)
            if self.error is not None:
                raise PenstockError(self.error)
            if self.schema is None:
                return None
            rows, self._rows = self._rows[:PAGE], self._rows[PAGE:]
            self._page = Page(rows, last=not rows and self._ended)
            self._token += 0 if self._page.last else 1
            self._changed.notify_all()
            return self._page

    def cancel(self, status: str = "CANCELED") -> None:
        """End the operation, whatever it does."""
        with self._changed:
            ended = self.status in {"FINISHED", "ERROR", "CANCELED", "CLOSED"} and status == "CANCELED"
            if not ended:
                self.status = status
            self._changed.notify_all()
        if self._cancel is not None:
            self._cancel()

    def wait(self, seconds: float) -> None:
        """Wait at most this long for the end of the operation."""
        self._thread.join(seconds)


@dataclass
class Session:
    """A client's environment and its operations."""

    name: str | None
    properties: dict[str, str]
    environment: StreamTableEnvironment
    handle: str = field(default_factory=lambda: str(uuid.uuid4()))
    operations: dict[str, Operation] = field(default_factory=dict)
    used: float = field(default_factory=time.monotonic)
    turn: threading.Lock = field(default_factory=threading.Lock)
    """Lock of the statements. They change the session, so they take turns. Queries return rows in parallel."""

    def submit(self, statement: str, options: Mapping[str, str]) -> Operation:
        """Start a statement, and return its operation."""
        if len(self.operations) >= OPERATIONS:
            raise TooMany(f"the session has {OPERATIONS} operations, its maximum; close some of them")
        operation = Operation(lambda this: self._run(this, statement, options))
        self.operations[operation.handle] = operation
        return operation.start()

    def _run(self, operation: Operation, statement: str, options: Mapping[str, str]) -> None:
        with self.turn:
            config = self.environment.get_config()
            before = {name: config.get(name, "") for name in options}
            for name, value in options.items():
                config.set(name, value)
            try:
                result = self.environment.execute_sql(statement)
            finally:
                for name, value in before.items():
                    config.set(name, value) if value else config.reset(name)
        job = result.get_job_client()
        is_query = job is not None and not result.is_insert()
        if job is not None and not is_query:
            result = TableResult.of(["job id"], [DataTypes.STRING()], [(str(job.get_job_id()),)])
        operation.describe(result, is_query)
        rows = result.collect()
        operation.on_cancel(rows.close)
        for row in rows:
            if not operation.put(row):
                return

    def configure(self, statement: str) -> None:
        """Run a statement that only changes the session, and wait for its end."""
        with self.turn:
            self.environment.execute_sql(statement)

    def close(self) -> None:
        """Close all operations of the session."""
        for operation in list(self.operations.values()):
            operation.cancel("CLOSED")


class Sessions:
    """All sessions. Sessions that were idle for too long are closed."""

    def __init__(self, options: Mapping[str, str], most: int = 1_000, idle_seconds: float = 600.0) -> None:
        self._options = dict(options)
        self._most = most
        self._idle = idle_seconds
        self._lock = threading.Lock()
        self._sessions: dict[str, Session] = {}

    def open(self, name: str | None, properties: Mapping[str, str]) -> Session:
        """Open a session. Its properties win over the gateway's options. Raise TooMany if there are too many."""
        self._close_idle()
        configuration = Configuration()
        for option, value in {**self._options, **properties}.items():
            configuration.set_string(option, str(value))
        settings = EnvironmentSettings.new_instance().with_configuration(configuration).build()
        session = Session(name, dict(properties), StreamTableEnvironment.create(environment_settings=settings))
        with self._lock:
            if len(self._sessions) >= self._most:
                raise TooMany(
                    f"there are {self._most} sessions, the maximum that sql-gateway.session.max-num "
                    "allows; close one of them"
                )
            self._sessions[session.handle] = session
        return session

    def get(self, handle: str) -> Session:
        """Return a session, and restart its idle time. Raise Unknown if there is no such session."""
        session = self._sessions.get(handle)
        if session is None:
            raise Unknown(f"there is no session {handle}")
        session.used = time.monotonic()
        return session

    def operation(self, session: str, operation: str) -> Operation:
        """Return an operation of a session. Raise Unknown if there is no such operation."""
        found = self.get(session).operations.get(operation)
        if found is None:
            raise Unknown(f"the session has no operation {operation}")
        return found

    def close(self, handle: str) -> None:
        """Close a session. Raise Unknown if there is no such session."""
        session = self.get(handle)
        with self._lock:
            self._sessions.pop(handle, None)
        session.close()

    def _close_idle(self) -> None:
        if self._idle <= 0:
            return
        limit = time.monotonic() - self._idle
        for handle, session in list(self._sessions.items()):
            if session.used < limit and not any(one.status == "RUNNING" for one in session.operations.values()):
                log.info("closing session %s, which was not used for %d s", handle, self._idle)
                self.close(handle)

    def shut(self) -> None:
        """Close all sessions."""
        for handle in list(self._sessions):
            self.close(handle)
