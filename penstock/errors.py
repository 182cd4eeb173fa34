"""Everything Penstock raises on purpose.

PenstockError
├── ProgramError                 the program cannot be run as written; raised while it is built or at execute()
│   ├── InvalidArgument          a method was given something of the wrong type; it is a TypeError, too
│   ├── InvalidParallelism
│   ├── DuplicateUid
│   ├── NothingToExecute
│   ├── NotSerializable          a function captured an object that cannot be pickled
│   ├── StateMigrationException  saved state cannot become what the program now declares
│   ├── MalformedPatternException  a pattern whose parts contradict each other
│   ├── TableException           a query that is understood, but cannot be run, or not in this mode
│   │   └── ArithmeticException  a query divides by zero
│   ├── ValidationException      a query or table that makes no sense: unknown names, types that do not fit
│   │   └── CodeGenException     a valid call that cannot be computed
│   ├── SqlParserException       a text that is not SQL
│   └── UnsupportedOperation     the API has the name, this combination has no meaning
├── ConfigurationError           the machine or the session is not fit to run it
│   ├── JavaMissing
│   ├── JobRunning               another driver runs the job, and was not to be displaced
│   └── NotEnoughSlots           the job's slots have not started in time
├── StorageError                 a file system said no, for good or too often
│   └── AlreadyThere             a file that must not be overwritten exists
├── SnapshotError                a checkpoint or savepoint cannot be read or used
│   ├── NoSuchSnapshot
│   ├── CorruptSnapshot          torn, truncated, changed or missing files
│   ├── UnknownFormat            written by a newer version
│   └── StateNotRestored         it holds state for which the program has no operator, or does not fit its shape
├── RecordError                  a record cannot be processed; a job that meets one fails
│   ├── UnsupportedKey
│   ├── TypeMismatch
│   ├── MissingTimestamp
│   └── UndecodableRecord       what a source read is not what its format says
├── ConnectorError               a system outside failed too often, or said no
│   ├── MissingDependency        the package that the connector needs is not installed
│   ├── NotFound                 a topic, table, queue or file does not exist, or no longer
│   ├── AccessDenied             wrong credentials, or too few rights
│   ├── OffsetOutOfRange         a position that the outside system no longer has
│   └── SchemaMismatch           columns or values of the outside system do not have the expected form
├── QueryError                   queryable state cannot be looked up
│   ├── UnknownJob
│   ├── UnknownState             no state has this queryable name
│   ├── UnknownKey               there is nothing for this key, or it has expired
│   ├── StateUnavailable         the job restarts, has ended or cannot be reached
│   └── QueryTimeout
├── ContextError                 a function used its context in a way its stream does not allow
│   ├── KeyedStateRequired
│   └── TimersRequireKeys
└── JobError                     a job ran and did not succeed
    ├── ExecutionException       what waiting for a job raises in Flink
    │   └── JobFailed            a user function or an operator raised; holds operator, uid, record, traceback
    ├── SlotLost                 a slot's process is gone, and its state with it
    ├── CheckpointFailed         more checkpoints failed in a row than are tolerated, or a savepoint did
    ├── JobDisplaced             another driver has taken over the job
    ├── JobSuspended             the job was stopped here to go on later from its last checkpoint
    └── JobCancelled
"""

from __future__ import annotations

from functools import cache


class PenstockError(Exception):
    """Base of every error that Penstock raises on purpose."""


class ProgramError(PenstockError):
    """The program cannot be run as written."""


class InvalidArgument(ProgramError, TypeError):
    """A method was given an argument of the wrong type. The message names the allowed types."""

    def __init__(self, message: str, *, method: str = "", argument: str = "") -> None:
        super().__init__(message)
        self.method = method
        self.argument = argument


class InvalidParallelism(ProgramError, ValueError):
    """A parallelism or max parallelism outside what is allowed."""


class DuplicateUid(ProgramError):
    """Two operators claim the same uid, so their state could not be told apart."""


class NothingToExecute(ProgramError):
    """execute() was called, and no operator has been defined since the last time."""


class NotSerializable(ProgramError):
    """A function cannot be shipped to the slots."""


class StateMigrationException(ProgramError):
    """Saved state cannot become what the program now declares."""


class MalformedPatternException(ProgramError):
    """A pattern whose parts contradict each other, or that could never match."""


class TableException(ProgramError):
    """A query that is understood, but cannot be run, or not in this mode."""


class ValidationException(ProgramError):
    """A query or a table that makes no sense: unknown names, types that do not fit, options that are missing."""


class ArithmeticException(TableException):
    """A query divides by zero."""


class CodeGenException(ValidationException):
    """A valid call that cannot be computed, such as a cast of a text to an array."""


class SqlParserException(ProgramError):
    """A text that is not SQL; the message has line and column."""


class UnsupportedOperation(ProgramError):
    """The API has this name, but the combination asked for has no meaning."""


class ConfigurationError(PenstockError):
    """The machine, the session or an option is not fit to run the job."""


class JavaMissing(ConfigurationError):
    """No Java, or one too old for Spark."""


class JobRunning(ConfigurationError):
    """Another driver runs the job, and the option execution.takeover is not set."""


class NotEnoughSlots(ConfigurationError):
    """Spark did not start as many tasks at once as the job has slots."""


class StorageError(PenstockError):
    """A file system refused a call, or failed at it too often."""

    lasting = False
    """True if another attempt would fail the same way, as without space or permission."""


class AlreadyThere(StorageError):
    """A file that must not be overwritten already exists."""

    lasting = True


class SnapshotError(PenstockError):
    """A checkpoint or savepoint cannot be read or used."""


class NoSuchSnapshot(SnapshotError):
    """No checkpoint or savepoint exists where one was expected."""


class CorruptSnapshot(SnapshotError):
    """A file of a checkpoint or savepoint is missing, torn, truncated or changed."""


class UnknownFormat(SnapshotError):
    """A checkpoint or savepoint was written by a newer version."""


class StateNotRestored(SnapshotError):
    """A checkpoint or savepoint holds state that the program has no place for."""


class RecordError(PenstockError):
    """A record that the job cannot process."""


class UnsupportedKey(RecordError):
    """A key whose type has no stable hash, or that cannot be hashed at all."""


class TypeMismatch(RecordError):
    """A value that does not fit the type declared for it."""


class MissingTimestamp(RecordError):
    """An event-time operator met a record without a timestamp."""


class UndecodableRecord(RecordError):
    """A source read data that does not have the expected format."""


class ConnectorError(PenstockError):
    """An external system failed too often, or refused a request."""


class MissingDependency(ConnectorError):
    """The package that a connector needs is not installed."""


class NotFound(ConnectorError):
    """A topic, table, queue or file does not exist, or no longer exists."""


class AccessDenied(ConnectorError):
    """Wrong credentials, or too few rights."""


class OffsetOutOfRange(ConnectorError):
    """A position that the outside system no longer has."""


class SchemaMismatch(ConnectorError):
    """Columns or values of the outside system do not have the expected form."""


class QueryError(PenstockError):
    """Queryable state cannot be looked up."""


class UnknownJob(QueryError):
    """No job with this id has queryable state at this server."""


class UnknownState(QueryError):
    """No state of the job has this queryable name."""


class UnknownKey(QueryError):
    """The state holds no value for this key, or the value has expired."""


class StateUnavailable(QueryError):
    """The job restarts, has ended or cannot be reached."""


class QueryTimeout(QueryError):
    """No answer came in time."""


class ContextError(PenstockError):
    """A function asked its context for something that its stream does not have."""


class KeyedStateRequired(ContextError):
    """Keyed state was asked for outside a keyed stream."""


class TimersRequireKeys(ContextError):
    """A timer was asked for on a stream without keys."""


class JobError(PenstockError):
    """A job ran and did not succeed."""


class ExecutionException(JobError):
    """A job failed while a program waited for its end."""


class JobFailed(ExecutionException):
    """A function or operator raised. The message shows the user's own traceback and nothing of the machinery."""

    slot: int | None = None
    """Number of the slot that failed, or None for a part of an operator that lives on the driver."""

    def __init__(self, message: str, *, operator: str = "", uid: str = "", record: str = "", cause: str = "") -> None:
        super().__init__(message)
        self.operator = operator
        self.uid = uid
        self.record = record
        self.cause = cause


class SlotLost(JobError):
    """The process of a slot is gone, and with it the state that lived there."""


class CheckpointFailed(JobError):
    """A savepoint failed, or more checkpoints in a row than are tolerated."""


class JobDisplaced(JobError):
    """Another driver has taken over the job. This driver has ended, and changed nothing after it learned of that."""


class JobSuspended(JobError):
    """The job was suspended and keeps its checkpoints. A driver that starts later continues from the last one."""


class JobCancelled(JobError):
    """The job was cancelled before it ended."""


@cache
def job_failed_as(kind: type[PenstockError]) -> type[JobFailed]:
    """Return a JobFailed class that is also `kind`, for a job that fails on an error with its own class."""
    return type(kind.__name__, (JobFailed, kind), {"__doc__": kind.__doc__})
