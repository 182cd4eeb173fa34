"""Routes that observe a running job: flame graphs of its vertices, and the levels of its loggers."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from penstock.service.rest.answers.flame_graph_tree import (
    DISABLED,
    NOT_YET,
    TERMINATED,
    Kind,
    flame_graph,
    without_graph,
)
from penstock.service.rest.replies import Answer, bad_request, not_found
from penstock.service.rest.request_context import Body, Context, JobId, VertexId, body_of, body_schema

router = APIRouter(prefix="/jobs/{job_id}", tags=["watching"])
Type = Annotated[str, Query(alias="type", description="FULL, ON_CPU or OFF_CPU.")]
SubtaskIndex = Annotated[int | None, Query(alias="subtaskindex", ge=0)]


@router.get("/vertices/{vertex_id}/flamegraph")
def flamegraph(
    context: Context, job_id: JobId, vertex_id: VertexId, kind: Type = "FULL", subtask: SubtaskIndex = None
) -> Answer:
    """Return the flame graph of a vertex. The first request starts the sampling: ask again a little later."""
    record, vertex = context.vertex(job_id, vertex_id)
    chosen = _kind(kind)
    if subtask is not None and subtask >= vertex.parallelism:
        raise not_found(f"Vertex {vertex_id} has no subtask {subtask}; it has {vertex.parallelism} subtasks.")
    if not context.settings.flame.enabled:
        return Answer(without_graph(DISABLED))
    if record.ended is not None:
        return Answer(without_graph(TERMINATED))
    profile = context.flames.of(job_id)
    if profile is None:
        return Answer(without_graph(NOT_YET))
    return Answer(flame_graph(profile.seen, vertex, chosen, subtask, profile.ended))


def _kind(text: str) -> Kind:
    try:
        return Kind[text.upper()]
    except KeyError:
        raise bad_request(
            f"there is no flame graph of type {text!r}; allowed are {', '.join(Kind.__members__)}"
        ) from None


# --- levels of loggers; not in Flink ---
class LevelsBody(Body):
    """Levels by the names of loggers. With an empty level, a logger takes the level of its parent."""

    levels: dict[str, str] = {}


@router.get("/log-levels")
def log_levels(context: Context, job_id: JobId) -> Answer:
    """Return the levels that were set for loggers. Not in Flink."""
    return Answer({"levels": dict(context.jobs.log_levels(context.job(job_id).job_id))})


@router.patch("/log-levels", openapi_extra=body_schema(LevelsBody))
def set_log_levels(context: Context, job_id: JobId, body: Annotated[LevelsBody, body_of(LevelsBody)]) -> Answer:
    """Set the levels of loggers in the driver and all slots while the job runs. Not in Flink."""
    context.jobs.set_log_levels(context.job(job_id).job_id, body.levels)
    return log_levels(context, job_id)
