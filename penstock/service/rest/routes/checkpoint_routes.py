"""Routes of checkpoints and savepoints, and of the asynchronous operations on jobs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query
from pydantic import Field

from penstock.engine.checkpoint.checkpoint_history import CheckpointRecord
from penstock.service.rest.answers import checkpoints
from penstock.service.rest.answers.exception_answers import cause_of_error
from penstock.service.rest.job_backend import SavepointOrder
from penstock.service.rest.replies import Answer, bad_request, not_found
from penstock.service.rest.request_context import (
    Body,
    Context,
    JobId,
    OwnTriggerId,
    RequestContext,
    TriggerId,
    VertexId,
    body_of,
    body_schema,
)

router = APIRouter(tags=["checkpoints and savepoints"])

_SAVEPOINTS, _CHECKPOINTS, _DISPOSALS, _RESCALINGS = "savepoint", "checkpoint", "disposal", "rescaling"
Number = Annotated[int, Path(ge=0)]


# --- statistics ---
History = Annotated[int, Query(ge=0, le=10_000, description="The number of newest checkpoints to list. Not in Flink.")]


@router.get("/jobs/{job_id}/checkpoints")
def statistics(context: Context, job_id: JobId, history: History = checkpoints.HISTORY) -> Answer:
    """Return counts, sizes, durations, the latest checkpoint of each kind, and the newest ten."""
    return Answer(checkpoints.statistics(context.job(job_id), history))


@router.get("/jobs/{job_id}/checkpoints/config")
def config(context: Context, job_id: JobId) -> Answer:
    """Return the checkpointing settings of the job."""
    return Answer(checkpoints.config(context.job(job_id)))


@router.get("/jobs/{job_id}/checkpoints/details/{number}")
def details(context: Context, job_id: JobId, number: Number) -> Answer:
    """Return one checkpoint, with its figures for each vertex."""
    return Answer(checkpoints.checkpoint_details(context.job(job_id), _checkpoint(context, job_id, number)))


def _checkpoint(context: RequestContext, job_id: str, number: int) -> CheckpointRecord:
    found = checkpoints.find(context.job(job_id), number)
    if found is None:
        raise not_found(f"Could not find checkpointing statistics for checkpoint {number}.")
    return found


@router.get("/jobs/{job_id}/checkpoints/details/{number}/subtasks/{vertex_id}")
def details_of_vertex(context: Context, job_id: JobId, number: Number, vertex_id: VertexId) -> Answer:
    """Return one checkpoint, with the contribution of each subtask of a vertex."""
    _, vertex = context.vertex(job_id, vertex_id)
    return Answer(checkpoints.subtasks(_checkpoint(context, job_id, number), vertex))


# --- operations ---
class TriggerBody(Body):
    """The body of an order. An order with an id of its own runs once, however often it is sent."""

    trigger_id: OwnTriggerId | None = Field(None, alias="triggerId")


def _start_operation(
    context: RequestContext, kind: str, scope: str, order: TriggerBody, work: Callable[[], Any], status: int = 202
) -> Answer:
    return Answer({"request-id": context.operations.start(kind, scope, order.trigger_id, work)}, status)


def _outcome(context: RequestContext, kind: str, scope: str, trigger: str) -> Answer:
    """Return the state of an operation. A failed operation is completed too, and its result is the cause."""
    operation = context.operations.find(kind, scope, trigger)
    if operation is None:
        raise not_found(
            f"There is no {kind} operation with triggerId={trigger}" + (f" for job {scope}." if scope else ".")
        )
    if not operation.done.is_set():
        return Answer({"status": {"id": "IN_PROGRESS"}, "operation": None})
    error = operation.error
    result = operation.result if error is None else {"failure-cause": cause_of_error(error)}
    return Answer({"status": {"id": "COMPLETED"}, "operation": result})


# --- savepoints ---
Format = Literal["CANONICAL", "NATIVE"]


class SavepointBody(TriggerBody):
    """An order to take a savepoint."""

    target_directory: str | None = Field(None, alias="target-directory")
    cancel_job: bool | None = Field(None, alias="cancel-job")
    format_type: Format | None = Field(None, alias="formatType")


class StopBody(TriggerBody):
    """An order to stop a job with a savepoint."""

    target_directory: str | None = Field(None, alias="targetDirectory")
    drain: bool | None = None
    format_type: Format | None = Field(None, alias="formatType")


@router.post("/jobs/{job_id}/savepoints", status_code=202, openapi_extra=body_schema(SavepointBody))
def take_savepoint(context: Context, job_id: JobId, body: Annotated[SavepointBody, body_of(SavepointBody)]) -> Answer:
    """Take a savepoint. With `cancel-job`, cancel the job once the savepoint is complete."""
    order = SavepointOrder(body.target_directory, cancel=bool(body.cancel_job))
    return _start_operation(
        context, _SAVEPOINTS, job_id, body, lambda: {"location": context.jobs.savepoint(job_id, order)}
    )


@router.post("/jobs/{job_id}/stop", status_code=202, openapi_extra=body_schema(StopBody))
def stop(context: Context, job_id: JobId, body: Annotated[StopBody, body_of(StopBody)]) -> Answer:
    """Finish the job with a savepoint. With `drain`, windows and timers fire before it."""
    order = SavepointOrder(body.target_directory, stop=True, drain=bool(body.drain))
    return _start_operation(
        context, _SAVEPOINTS, job_id, body, lambda: {"location": context.jobs.savepoint(job_id, order)}
    )


@router.get("/jobs/{job_id}/savepoints/{trigger_id}")
def savepoint_outcome(context: Context, job_id: JobId, trigger_id: TriggerId) -> Answer:
    """Return the state of a savepoint or a stop."""
    return _outcome(context, _SAVEPOINTS, job_id, trigger_id)


class DisposalBody(TriggerBody):
    """An order to delete a savepoint."""

    savepoint_path: str | None = Field(None, alias="savepoint-path")


@router.post("/savepoint-disposal", openapi_extra=body_schema(DisposalBody))
def dispose(context: Context, body: Annotated[DisposalBody, body_of(DisposalBody)]) -> Answer:
    """Delete a savepoint."""
    path = body.savepoint_path
    if not path:
        raise bad_request("the field savepoint-path must not be omitted or be null")

    def work() -> dict[str, Any]:
        context.jobs.dispose(path)
        return {}

    return _start_operation(context, _DISPOSALS, "", body, work, 200)


@router.get("/savepoint-disposal/{trigger_id}")
def disposal_outcome(context: Context, trigger_id: TriggerId) -> Answer:
    """Return the state of a disposal."""
    return _outcome(context, _DISPOSALS, "", trigger_id)


# --- checkpoints on demand ---
class CheckpointBody(TriggerBody):
    """An order to take a checkpoint."""

    checkpoint_type: Literal["CONFIGURED", "FULL", "INCREMENTAL"] | None = Field(None, alias="checkpointType")


@router.post("/jobs/{job_id}/checkpoints", status_code=202, openapi_extra=body_schema(CheckpointBody))
def take_checkpoint(
    context: Context, job_id: JobId, body: Annotated[CheckpointBody, body_of(CheckpointBody)]
) -> Answer:
    """Take a checkpoint now."""
    full = body.checkpoint_type == "FULL"
    return _start_operation(
        context, _CHECKPOINTS, job_id, body, lambda: {"checkpointId": context.jobs.checkpoint(job_id, full)}
    )


@router.get("/jobs/{job_id}/checkpoints/{trigger_id}")
def checkpoint_outcome(context: Context, job_id: JobId, trigger_id: TriggerId) -> Answer:
    """Return the state of a checkpoint that was ordered."""
    return _outcome(context, _CHECKPOINTS, job_id, trigger_id)


# --- rescaling ---
class RescalingBody(TriggerBody):
    """An order to change the parallelism of a job."""

    parallelism: int | None = Field(None, ge=1, le=32768)


@router.post("/jobs/{job_id}/rescaling", status_code=202, openapi_extra=body_schema(RescalingBody))
def rescale(context: Context, job_id: JobId, body: Annotated[RescalingBody, body_of(RescalingBody)]) -> Answer:
    """Continue the job with another parallelism. Not in Flink."""
    return _start_rescaling(context, job_id, body, body.parallelism)


@router.patch("/jobs/{job_id}/rescaling", status_code=202)
def rescale_by_patch(
    context: Context, job_id: JobId, parallelism: Annotated[int | None, Query(ge=1, le=32768)] = None
) -> Answer:
    """Continue the job with another parallelism, in the form that Flink had before it disabled this path."""
    return _start_rescaling(context, job_id, TriggerBody.model_validate({}), parallelism)


def _start_rescaling(context: RequestContext, job_id: str, order: TriggerBody, parallelism: int | None) -> Answer:
    if parallelism is None:
        raise bad_request("the field parallelism must not be omitted or be null")

    def work() -> dict[str, Any]:
        context.jobs.rescale(job_id, parallelism)
        return {}

    return _start_operation(context, _RESCALINGS, job_id, order, work)


@router.get("/jobs/{job_id}/rescaling/{trigger_id}")
def rescaling_outcome(context: Context, job_id: JobId, trigger_id: TriggerId) -> Answer:
    """Return the state of a change of parallelism."""
    return _outcome(context, _RESCALINGS, job_id, trigger_id)
