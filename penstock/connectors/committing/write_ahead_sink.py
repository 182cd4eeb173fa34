"""Sinks into systems without transactions: records wait in checkpoints and are sent once their checkpoint is complete.

Delivery: exactly once, except for a crash after the records of a checkpoint were sent and before this was recorded:
these records are sent once more. A store in which a repeated write does no harm then holds every record exactly once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from penstock.api.functions.contexts import RuntimeContext
from penstock.api.functions.source_functions import SinkFunction
from penstock.api.settings.values import check_kind
from penstock.base.arguments import check_arguments
from penstock.base.storage import Storage
from penstock.common.serializer import DeclaredTypeSerializer
from penstock.common.typeinfo import TypeInformation
from penstock.connectors.committing.prepared_records import MARKERS_KEPT
from penstock.connectors.jdbc.database import Database
from penstock.connectors.jdbc.jdbc_options import JdbcConnectionOptions
from penstock.connectors.retrying import Retries
from penstock.connectors.source_api import Committer, Sink, SinkWriter, WriterContext
from penstock.errors import AlreadyThere
from penstock.persisted import persisted

if TYPE_CHECKING:
    from sqlalchemy import Column, ColumnElement, Connection, Table

__all__ = ["CheckpointCommitter", "DatabaseCheckpointCommitter", "FileCheckpointCommitter", "GenericWriteAheadSink"]


class CheckpointCommitter(ABC):
    """Records, outside the job, the checkpoints whose records have been sent.

    The checkpoint ids that it gets are not the job's numbers, which repeat when a job goes back to an older savepoint.
    They are made from time and number, so that they grow and never repeat for one subtask. A committer should compare
    them exactly and remember the last few of each subtask.
    """

    job_id = ""
    operator_id = ""

    def set_job_id(self, id: str) -> None:
        """Set the first part of the name under which commits are recorded."""
        self.job_id = id

    def set_operator_id(self, id: str) -> None:
        """Set the second part of the name: the uid of the sink."""
        self.operator_id = id

    def create_resource(self) -> None:  # noqa: B027 - many need none
        """Create the place where commits are recorded, unless it exists. Every subtask calls it before `open`."""

    def open(self) -> None:  # noqa: B027
        """Connect."""

    def close(self) -> None:  # noqa: B027
        """Disconnect."""

    @abstractmethod
    def commit_checkpoint(self, subtask_idx: int, checkpoint_id: int) -> None:
        """Record durably that the records of a checkpoint have been sent."""

    @abstractmethod
    def is_checkpoint_committed(self, subtask_idx: int, checkpoint_id: int) -> bool:
        """Return True if `commit_checkpoint` was called."""


class GenericWriteAheadSink(Sink):
    """Keeps records until their checkpoint is complete. A subclass then sends them.

    The checkpoint holds the records, so they must fit into memory.
    """

    retries = Retries()
    """Attempts to send the last records at the end of a job, when there is no next checkpoint to wait for."""

    @check_arguments
    def __init__(
        self,
        committer: CheckpointCommitter,
        type_info: TypeInformation | DeclaredTypeSerializer | None = None,
        job_id: str | None = None,
    ) -> None:
        """Let the committer record its commits under the name `job_id`: by default, the id of the job.

        The type may also be given by its serialiser, as in Java.
        """
        check_kind(CheckpointCommitter, committer)
        if isinstance(type_info, DeclaredTypeSerializer):
            type_info = type_info.type_info
        if type_info is not None and not isinstance(type_info, TypeInformation):
            raise TypeError(f"expected type information such as Types.INT(), not {type_info!r}")
        self.committer = committer
        self.type_info = type_info
        self.job_id = job_id
        self._log: _Log | None = None

    @abstractmethod
    def send_values(self, values: Iterable[Any], checkpoint_id: int | None, timestamp: int | None) -> bool:
        """Send the records of a checkpoint. Return True if that succeeded.

        If not, they are sent again after the next checkpoint, before its records. `checkpoint_id` and `timestamp` are
        None at the end of a job without checkpoints.
        """

    def open(self, runtime_context: RuntimeContext) -> None:
        """Prepare for sending. Called once before the first `send_values`."""

    def close(self) -> None:
        """Release resources. Called at the end, even after a failure."""

    def _get_log(self) -> _Log:
        self._log = self._log or _Log(self)
        return self._log

    def create_writer(self, context: WriterContext, restored: list[Any]) -> SinkWriter:
        log = self._get_log()
        log.open(context.runtime)
        return _Writer(log, context)

    def create_committer(self) -> Committer:
        return _Committer(self._get_log())


@persisted
@dataclass(frozen=True)
class _Section:
    """The records of one subtask for one checkpoint."""

    job: str
    operator: str
    subtask: int
    commit_id: int
    records: list[Any]
    checkpoint_id: int | None
    timestamp: int | None

    @property
    def key(self) -> tuple[str, str, int, int]:
        return self.job, self.operator, self.subtask, self.commit_id


class _NotSent(Exception):
    """Raised if `send_values` returned False."""


@dataclass
class _Log:
    """The records that have not been sent, in order. The writer and the committer of one subtask share it."""

    sink: GenericWriteAheadSink
    waiting: dict[Any, _Section] = field(default_factory=dict)
    complete: set[Any] = field(default_factory=set)
    """Keys of sections whose checkpoint is complete."""
    doubtful: set[Any] = field(default_factory=set)
    """Keys of sections that may have been sent already."""
    is_open: bool = False
    ended: bool = False
    committer_for: tuple[str, str] | None = None

    def open(self, context: RuntimeContext) -> None:
        self.is_open = True
        self.sink.open(context)
        self.send()

    def add(self, section: _Section) -> None:
        self.waiting[section.key] = section

    def mark_complete(self, sections: Iterable[_Section]) -> None:
        """Note that the checkpoint of these sections is complete. Unknown sections come from an earlier attempt."""
        for section in sections:
            if section.key not in self.waiting:
                self.waiting[section.key] = section
                self.doubtful.add(section.key)
            self.complete.add(section.key)
        if not self.is_open:
            return
        if self.ended:
            what = f"sending the last records with {type(self.sink).__name__}.send_values"
            self.sink.retries.call(self._send_all, what, lambda error: isinstance(error, _NotSent))
        else:
            self.send()

    def _send_all(self) -> None:
        if not self.send():
            raise _NotSent("it returned False")

    def send(self) -> bool:
        """Send complete sections in order, up to the first failure. Return True if there was none."""
        for key, section in list(self.waiting.items()):
            if key not in self.complete:
                break
            if not self._send(section):
                return False
            del self.waiting[key]
            self.complete.discard(key)
            self.doubtful.discard(key)
        return True

    def _send(self, section: _Section) -> bool:
        committer = self._committer(section)
        if section.key in self.doubtful and committer.is_checkpoint_committed(section.subtask, section.commit_id):
            return True
        if not self.sink.send_values(section.records, section.checkpoint_id, section.timestamp):
            return False
        committer.commit_checkpoint(section.subtask, section.commit_id)
        return True

    def _committer(self, section: _Section) -> CheckpointCommitter:
        """Return the committer, open under the section's name.

        After a savepoint this can be the name of another job.
        """
        committer, name = self.sink.committer, (section.job, section.operator)
        if self.committer_for != name:
            if self.committer_for is not None:
                committer.close()
            committer.set_job_id(section.job)
            committer.set_operator_id(section.operator)
            committer.create_resource()
            committer.open()
            self.committer_for = name
        return committer

    def close(self) -> None:
        if self.is_open:
            self.is_open = False
            try:
                if self.committer_for is not None:
                    self.sink.committer.close()
            finally:
                self.sink.close()


class _Writer(SinkWriter):
    def __init__(self, log: _Log, context: WriterContext) -> None:
        self._log = log
        self._context = context
        self._records: list[Any] = []
        self._last_id = 0

    def write(self, value: Any, context: SinkFunction.Context) -> None:
        declared = self._log.sink.type_info
        self._records.append(value if declared is None else declared.fit([value])[0])

    def write_all(self, values: list[Any], timestamps: list[int | None] | None, context: SinkFunction.Context) -> bool:
        declared = self._log.sink.type_info
        self._records.extend(values if declared is None else declared.fit(values))
        return True

    def flush(self, end_of_input: bool) -> None:
        self._log.ended = self._log.ended or end_of_input

    def prepare_commit(self) -> list[_Section]:
        """Return every section that has not been sent, so that each checkpoint alone holds all of them, in order."""
        if self._records:
            records, self._records = self._records, []
            self._log.add(self._section(records))
        return list(self._log.waiting.values())

    def _section(self, records: list[Any]) -> _Section:
        runtime, time = self._context.runtime, self.checkpoint_timestamp
        moment = self._context.now if time is None else time
        self._last_id = max(self._last_id + 1, (moment << 21) + (self.checkpoint_id or 0) % (1 << 21))
        return _Section(
            self._log.sink.job_id or runtime.get_job_id(),
            self._context.uid,
            runtime.get_index_of_this_subtask(),
            self._last_id,
            records,
            self.checkpoint_id,
            time,
        )

    def close(self) -> None:
        self._log.close()


class _Committer(Committer):
    def __init__(self, log: _Log) -> None:
        self._log = log

    def commit(self, committables: list[_Section]) -> None:
        self._log.mark_complete(committables)

    def close(self) -> None:
        self._log.close()


# --- committers ---
@check_arguments
class FileCheckpointCommitter(CheckpointCommitter):
    """Records each checkpoint as an empty file, in a folder at any fsspec URL. The last few files are kept."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._folders: dict[int, tuple[Storage, list[int]]] = {}

    def commit_checkpoint(self, subtask_idx: int, checkpoint_id: int) -> None:
        storage, known = self._folder(subtask_idx)
        with suppress(AlreadyThere):
            storage.create(str(checkpoint_id), b"sent\n")
        known.append(checkpoint_id)
        while len(known) > MARKERS_KEPT:
            storage.delete(str(known.pop(0)))

    def is_checkpoint_committed(self, subtask_idx: int, checkpoint_id: int) -> bool:
        storage, _ = self._folder(subtask_idx)
        return storage.exists(str(checkpoint_id))

    def _folder(self, subtask_idx: int) -> tuple[Storage, list[int]]:
        if subtask_idx not in self._folders:
            parts = (
                self.url.rstrip("/"),
                quote(self.job_id, safe=""),
                quote(self.operator_id, safe=""),
                str(subtask_idx),
            )
            storage = Storage("/".join(parts))
            self._folders[subtask_idx] = storage, sorted(int(name) for name in storage.names() if name.isdigit())
        return self._folders[subtask_idx]

    def close(self) -> None:
        self._folders.clear()


@check_arguments
class DatabaseCheckpointCommitter(CheckpointCommitter):
    """Records commits in a table of PostgreSQL or SQLite, and keeps the last few.

    It creates the table if it does not exist.
    """

    def __init__(self, connection_options: JdbcConnectionOptions, table: str = "penstock_checkpoints") -> None:
        self.connection_options = connection_options
        self.table = table
        self._database: Database | None = None
        self._rows: Table | None = None

    def open(self) -> None:
        self._database = Database(self.connection_options, Retries())
        self._rows = self._database.own_table(self.table, _checkpoint_columns)

    def close(self) -> None:
        if self._database is not None:
            self._database.close()
        self._database = self._rows = None

    def commit_checkpoint(self, subtask_idx: int, checkpoint_id: int) -> None:
        import sqlalchemy

        database, rows = self._database_and_rows()
        mine = self._mine(rows, subtask_idx)
        names = {"job": self.job_id, "operator": self.operator_id, "subtask": subtask_idx}
        last = sqlalchemy.select(rows.c.checkpoint).where(mine).order_by(rows.c.checkpoint.desc())

        def note(connection: Connection) -> None:
            this = sqlalchemy.and_(mine, rows.c.checkpoint == checkpoint_id)
            connection.execute(sqlalchemy.delete(rows).where(this))
            connection.execute(sqlalchemy.insert(rows).values(**names, checkpoint=checkpoint_id))
            oldest = connection.execute(last.limit(1).offset(MARKERS_KEPT - 1)).scalar()
            if oldest is not None:
                connection.execute(sqlalchemy.delete(rows).where(mine, rows.c.checkpoint < oldest))

        database.run(note, "committing to")

    def is_checkpoint_committed(self, subtask_idx: int, checkpoint_id: int) -> bool:
        import sqlalchemy

        database, rows = self._database_and_rows()
        this = sqlalchemy.and_(self._mine(rows, subtask_idx), rows.c.checkpoint == checkpoint_id)
        query = sqlalchemy.select(rows.c.checkpoint).where(this)
        return database.run(lambda connection: connection.execute(query).first() is not None, "reading from")

    def _database_and_rows(self) -> tuple[Database, Table]:
        assert self._database is not None and self._rows is not None, "it is used after open()"
        return self._database, self._rows

    def _mine(self, rows: Table, subtask_idx: int) -> ColumnElement[bool]:
        import sqlalchemy

        who = rows.c.job == self.job_id, rows.c.operator == self.operator_id, rows.c.subtask == subtask_idx
        return sqlalchemy.and_(*who)


def _checkpoint_columns() -> list[Column[Any]]:
    from sqlalchemy import BigInteger, Column, Integer, String

    return [
        Column("job", String(200), primary_key=True),
        Column("operator", String(200), primary_key=True),
        Column("subtask", Integer, primary_key=True),
        Column("checkpoint", BigInteger, primary_key=True),
    ]
