"""Routes of the vertices of a job and their subtasks."""

from __future__ import annotations

from fastapi import APIRouter

from penstock.service.rest.answers import vertices
from penstock.service.rest.answers.metrics import aggregate_metrics, by_subtask, list_metrics, subtask_metrics
from penstock.service.rest.answers.subtask_states import Subtask, subtasks
from penstock.service.rest.replies import Answer, bad_request, not_found
from penstock.service.rest.request_context import (
    Context,
    Index,
    JobId,
    RequestContext,
    VertexId,
    Wanted,
    find_vertex,
    split_list,
)
from penstock.service.rest.routes.job_routes import aggregates

router = APIRouter(prefix="/jobs/{job_id}/vertices/{vertex_id}", tags=["vertices"])


@router.get("")
def details(context: Context, job_id: JobId, vertex_id: VertexId) -> Answer:
    """Return a vertex and its subtasks."""
    return Answer(vertices.vertex_details(*context.vertex(job_id, vertex_id)))


@router.get("/subtasktimes")
def times(context: Context, job_id: JobId, vertex_id: VertexId) -> Answer:
    """Return the times at which each subtask entered its states."""
    return Answer(vertices.subtask_times(*context.vertex(job_id, vertex_id)))


@router.get("/taskmanagers")
def hosts(context: Context, job_id: JobId, vertex_id: VertexId) -> Answer:
    """Return the subtasks, grouped by machine."""
    return Answer(vertices.hosts(*context.vertex(job_id, vertex_id)))


@router.get("/accumulators")
def accumulators(context: Context, job_id: JobId, vertex_id: VertexId) -> Answer:
    """Return the accumulators of the vertex."""
    return Answer(vertices.vertex_accumulators(*context.vertex(job_id, vertex_id)))


@router.get("/watermarks")
def watermarks(context: Context, job_id: JobId, vertex_id: VertexId) -> Answer:
    """Return the input watermark of each subtask."""
    return Answer(vertices.watermarks(*context.vertex(job_id, vertex_id)))


@router.get("/backpressure")
def back_pressure(context: Context, job_id: JobId, vertex_id: VertexId) -> Answer:
    """Return the share of time that subtasks had to wait for the subtasks behind them."""
    record = context.job(job_id)
    return Answer(vertices.back_pressure(record, find_vertex(record, vertex_id)))


# --- metrics: an unknown job or vertex has none ---
def _metrics(context: RequestContext, job_id: str, vertex_id: str) -> dict[int, dict[str, object]]:
    record = context.job_if_known(job_id)
    vertex = find_vertex(record, vertex_id) if record is not None else None
    return subtask_metrics(record, vertex) if record is not None and vertex is not None and not record.ended else {}


@router.get("/metrics")
def metrics(context: Context, job_id: JobId, vertex_id: VertexId, wanted: Wanted) -> Answer:
    """Return the names of metrics, each after the number of its subtask, or with `get` their values."""
    return Answer(list_metrics(by_subtask(_metrics(context, job_id, vertex_id)), wanted))


@router.get("/jm-operator-metrics")
def coordinator_metrics(context: Context, job_id: JobId, vertex_id: VertexId) -> Answer:
    """Return the metrics of the driver's part of a source. The list is always empty."""
    return Answer([])


@router.get("/subtasks/metrics")
def metrics_of_all(
    context: Context,
    job_id: JobId,
    vertex_id: VertexId,
    wanted: Wanted,
    agg: str | None = None,
    subtasks: str | None = None,
) -> Answer:
    """Return the names of metrics, or with `get` aggregates over all subtasks or over those under `subtasks`."""
    how, chosen = aggregates(agg), _chosen(subtasks)
    found = _metrics(context, job_id, vertex_id)
    some = [metrics for index, metrics in found.items() if not chosen or any(index in part for part in chosen)]
    return Answer(aggregate_metrics(some, wanted, how))


def _chosen(text: str | None) -> list[range]:
    """Return the ranges of subtasks in a text such as `0-3,7`."""
    ranges = []
    for part in split_list(text):
        first, dash, last = part.partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()):
            raise bad_request(f"subtasks are numbers or ranges such as 0-3, not {part!r}")
        ranges.append(range(int(first), int(last or first) + 1))
    return ranges


# --- subtasks ---
@router.get("/subtasks/accumulators")
def accumulators_of_all(context: Context, job_id: JobId, vertex_id: VertexId) -> Answer:
    """Return the accumulators of each subtask."""
    return Answer(vertices.subtask_accumulators(*context.vertex(job_id, vertex_id)))


@router.get("/subtasks/{index}")
def subtask(context: Context, job_id: JobId, vertex_id: VertexId, index: Index) -> Answer:
    """Return the newest attempt of a subtask."""
    _, vertex = context.vertex(job_id, vertex_id)
    return Answer(vertices.subtask(vertex, _subtask(context, job_id, vertex_id, index)))


def _subtask(context: RequestContext, job_id: str, vertex_id: str, index: int) -> Subtask:
    record, vertex = context.vertex(job_id, vertex_id)
    if index >= vertex.parallelism:
        raise not_found(f"Vertex {vertex_id} has no subtask {index}; it has {vertex.parallelism} subtasks.")
    return subtasks(record, vertex)[index]


@router.get("/subtasks/{index}/metrics")
def metrics_of_one(context: Context, job_id: JobId, vertex_id: VertexId, index: Index, wanted: Wanted) -> Answer:
    """Return the names of metrics, or with `get` their values."""
    return Answer(list_metrics(_metrics(context, job_id, vertex_id).get(index, {}), wanted))


@router.get("/subtasks/{index}/attempts/{attempt}")
def attempt(context: Context, job_id: JobId, vertex_id: VertexId, index: Index, attempt: Index) -> Answer:
    """Return an attempt of a subtask. Only the newest attempt is known; earlier ones leave only their failures."""
    task = _subtask(context, job_id, vertex_id, index)
    if attempt != task.attempt:
        raise not_found(f"Attempt {attempt} is not known; the newest attempt is {task.attempt}.")
    return Answer(vertices.subtask(context.vertex(job_id, vertex_id)[1], task))
