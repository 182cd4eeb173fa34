"""Failures of a job's attempts and of operations, in Flink's form."""

from __future__ import annotations

import traceback
from collections.abc import Mapping, Sequence

from penstock.common.secrets import conceal
from penstock.engine.job.job_record import JobRecord, SlotRecord, VertexRecord
from penstock.engine.job.job_view import FailureView
from penstock.errors import PenstockError
from penstock.service.rest.answers.flink_numbers import Json
from penstock.service.rest.job_backend import Refused, UnknownJob
from penstock.service.rest.throwable import serialize_throwable

MOST_EXCEPTIONS = 20
"""Default number of entries of the history, as in Flink."""
GAVE_UP = "penstock.errors.JobError"
"""The exception name for the end of a job that was not restarted."""


def exceptions(record: JobRecord, most: int = MOST_EXCEPTIONS, labels: Mapping[str, str] | None = None) -> Json:
    """Return the history of failures, newest first. Failures have no labels, so a filter by label finds nothing."""
    failures = [] if labels else list(reversed(record.failures))
    shown = [_entry(record, failure, number) for number, failure in enumerate(failures[: max(0, most)])]
    return {"exceptionHistory": {"entries": shown, "truncated": len(shown) < len(failures)}}


def application_exceptions(record: JobRecord) -> Json:
    """Return the failure that ended an application."""
    ended = record.failures[-1:] if record.status == "FAILED" else ()
    entries = [{**_failure_fields(failure), "jobId": record.job_id} for failure in ended]
    for entry in entries:
        del entry["failureLabels"]
    return {"exceptionHistory": {"entries": entries}}


def _entry(record: JobRecord, failure: FailureView, number: int) -> Json:
    """Return one entry of the history.

    As in Flink, a failure that ended its job is wrapped: the cause is among the concurrent exceptions.
    """
    cause = {**_failure_fields(failure), **_place(record, failure)}
    if number > 0 or record.status != "FAILED":
        return {**cause, "concurrentExceptions": []}
    text = f"{GAVE_UP}: the job was not started again (restart strategy: {record.settings.restart_strategy})\n"
    return {
        "exceptionName": GAVE_UP,
        "stacktrace": text + f"Caused by: {cause['stacktrace']}",
        "timestamp": failure.when,
        "failureLabels": {},
        "concurrentExceptions": [cause],
    }


def _failure_fields(failure: FailureView) -> Json:
    return {
        "exceptionName": kind_of(failure),
        "stacktrace": stack_trace_of(failure),
        "timestamp": failure.when,
        "failureLabels": {},
    }


def kind_of(failure: FailureView) -> str:
    """Return the class of the exception. For a failed function it is the class in the last line of the traceback."""
    raised = failure.traceback.rstrip().rpartition("\n")[2].partition(":")[0].strip()
    return raised if raised and all(part.isidentifier() for part in raised.split(".")) else failure.kind or "Exception"


def stack_trace_of(failure: FailureView) -> str:
    """Return message and traceback. If the message contains the traceback already, it is not repeated."""
    is_told = failure.traceback.strip() in failure.message
    text = failure.message if is_told else "\n".join(part for part in (failure.message, failure.traceback) if part)
    return conceal(f"{failure.kind or 'Exception'}: {text}")


def _place(record: JobRecord, failure: FailureView) -> Json:
    vertex = _vertex_of(record.vertices, failure.uid)
    if vertex is None:
        return {}
    index = failure.slot or 0
    place = _place_of(record.slots, index)
    return {
        "taskName": f"{vertex.name or vertex.id} ({index + 1}/{vertex.parallelism}) - execution #{failure.attempt}",
        "endpoint": place or None,
        "taskManagerId": place or None,
    }


def _vertex_of(vertices: Sequence[VertexRecord], uid: str) -> VertexRecord | None:
    return next((vertex for vertex in vertices if any(uid == operator.uid for operator in vertex.operators)), None)


def _place_of(slots: Sequence[SlotRecord], index: int) -> str:
    return next((slot.place for slot in slots if slot.slot == index), "")


# --- causes, in the form that Flink's command line reads ---
def cause_of(record: JobRecord) -> Json:
    """Return the cause of the final failure of a job."""
    if not record.failures:
        return _cause(GAVE_UP, "the reason is not known", f"{GAVE_UP}: the reason is unknown")
    last = record.failures[-1]
    return _cause(kind_of(last), conceal(last.message), stack_trace_of(last))


def cause_of_error(error: BaseException) -> Json:
    """Return the cause of a failed operation. Only an unexpected error has a traceback through Penstock's code."""
    kind, message = f"{type(error).__module__}.{type(error).__qualname__}", conceal(str(error))
    if isinstance(error, (PenstockError, Refused, UnknownJob)):
        return _cause(kind, message, f"{kind}: {message}")
    return _cause(kind, message, conceal("".join(traceback.format_exception(error))))


def _cause(kind: str, message: str, stack_trace: str) -> Json:
    return {
        "class": kind,
        "stack-trace": stack_trace,
        "serialized-throwable": serialize_throwable(kind, message, stack_trace),
    }
