"""Routes of jobs: lists, details, state, metrics, logs and cancellation."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request, Response

from penstock.service.reporters.job_metrics import job_metrics
from penstock.service.rest.answers import exception_answers as failures
from penstock.service.rest.answers import jobs
from penstock.service.rest.answers.activity_answers import activities as all_activities
from penstock.service.rest.answers.activity_answers import activity as activity_answer
from penstock.service.rest.answers.flink_numbers import AGGREGATES
from penstock.service.rest.answers.marker_latency import latencies
from penstock.service.rest.answers.metrics import aggregate_metrics, latency_metrics, list_metrics
from penstock.service.rest.logs import serve_log
from penstock.service.rest.replies import Answer, PlainText, Rejected, bad_request, not_found
from penstock.service.rest.request_context import Context, JobId, RequestContext, Wanted, split_list

router = APIRouter(tags=["jobs"])


# --- all jobs ---
@router.get("/jobs")
def ids(context: Context) -> Answer:
    """Return the ids and the status of all jobs."""
    return Answer(jobs.job_ids(context.jobs.records()))


@router.get("/jobs/overview")
def overview(context: Context) -> Answer:
    """Return a line for each job."""
    return Answer(jobs.jobs_overview(context.jobs.records()))


@router.get("/jobs/activity")
def activities(context: Context) -> Answer:
    """Return the load and the input rate of running jobs. Not in Flink."""
    return Answer(all_activities(context.jobs.records()))


@router.get("/jobs/metrics")
def all_metrics(
    context: Context, wanted: Wanted, agg: str | None = None, jobs: Annotated[str | None, Query()] = None
) -> Answer:
    """Return the names of metrics, or with `get` aggregates over all jobs or over those under `jobs`."""
    chosen = {job.lower() for job in split_list(jobs)}
    records = [record for record in context.jobs.records() if not chosen or record.job_id in chosen]
    return Answer(aggregate_metrics([job_metrics(record) for record in records], wanted, aggregates(agg)))


def aggregates(text: str | None) -> list[str]:
    """Return the names of the aggregates that a client asks for, by default all. Raise a 400 error for others."""
    chosen = [name.lower() for name in split_list(text)] or list(AGGREGATES)
    unknown = [name for name in chosen if name not in AGGREGATES]
    if unknown:
        raise bad_request(f"there is no aggregate {unknown[0]!r}; allowed are {', '.join(AGGREGATES)}")
    return chosen


# --- one job ---
@router.get("/jobs/{job_id}")
def details(context: Context, job_id: JobId) -> Answer:
    """Return the job, its vertices and its plan."""
    return Answer(jobs.job_details(context.job(job_id)))


@router.get("/jobs/{job_id}/status")
def status(context: Context, job_id: JobId) -> Answer:
    """Return the status of the job."""
    return Answer({"status": context.job(job_id).status})


@router.get("/jobs/{job_id}/plan")
def plan(context: Context, job_id: JobId) -> Answer:
    """Return the graph of vertices."""
    return Answer({"plan": jobs.plan(context.job(job_id))})


@router.get("/jobs/{job_id}/config")
def config(context: Context, job_id: JobId) -> Answer:
    """Return restart strategy, parallelism and global job parameters."""
    return Answer(jobs.job_config(context.job(job_id)))


@router.get("/jobs/{job_id}/accumulators")
def accumulators(context: Context, job_id: JobId) -> Answer:
    """Return the accumulators of the job."""
    return Answer(jobs.accumulators(context.job(job_id)))


Most = Annotated[int, Query(alias="maxExceptions", ge=0)]
Labels = Annotated[str | None, Query(alias="failureLabelFilter")]


@router.get("/jobs/{job_id}/exceptions")
def exceptions(context: Context, job_id: JobId, most: Most = failures.MOST_EXCEPTIONS, labels: Labels = None) -> Answer:
    """Return the failures of attempts, newest first."""
    wanted = dict(part.partition(":")[::2] for part in split_list(labels))
    return Answer(failures.exceptions(context.job(job_id), most, wanted))


@router.get("/jobs/{job_id}/execution-result")
def result(context: Context, job_id: JobId) -> Answer:
    """Return the result of the job, or IN_PROGRESS while it runs."""
    return Answer(jobs.execution_result(context.job(job_id)))


@router.get("/jobs/{job_id}/metrics")
def metrics(context: Context, job_id: JobId, wanted: Wanted) -> Answer:
    """Return the names of metrics, or with `get` their values."""
    record = context.job_if_known(job_id)
    return Answer(
        list_metrics({**job_metrics(record), **latency_metrics(record)}, wanted) if record is not None else []
    )


@router.get("/jobs/{job_id}/activity")
def activity(context: Context, request: Request, job_id: JobId, history: bool = False) -> Answer:
    """Return the present activity of the job's vertices, and with `history` their recent activity. Not in Flink."""
    told = activity_answer(context.job(job_id))
    return Answer({**told, "history": request.app.state.history.answer(job_id)} if history else told)


@router.get("/jobs/{job_id}/latency")
def latency(context: Context, job_id: JobId) -> Answer:
    """Return the latency of markers from each source to each operator, if the job sends any. Not in Flink."""
    return Answer(latencies(context.job(job_id)))


@router.get("/jobs/{job_id}/log", response_class=PlainText)
def log(context: Context, job_id: JobId, offset: int = 0) -> Response:
    """Return the log of the job's driver, from an offset on. Not in Flink."""
    return serve_log(context.jobs.logs(context.job(job_id).job_id), False, offset)


@router.get("/jobs/{job_id}/stdout", response_class=PlainText)
def stdout(context: Context, job_id: JobId, offset: int = 0) -> Response:
    """Return the standard output of the job's driver, from an offset on. Not in Flink."""
    return serve_log(context.jobs.logs(context.job(job_id).job_id), True, offset)


# --- the end of a job ---
@router.patch("/jobs/{job_id}", status_code=202)
def cancel(context: Context, job_id: JobId, mode: Literal["cancel", "stop"] = "cancel") -> Response:
    """Cancel the job."""
    if mode == "stop":
        raise Rejected(308, 'The mode "stop" no longer exists: POST to /jobs/:jobid/stop, or use "cancel".')
    return cancel_job(context, job_id)


@router.get("/jobs/{job_id}/yarn-cancel", status_code=202)
def cancel_by_get(context: Context, job_id: JobId) -> Response:
    """Cancel the job. The button of Flink's dashboard uses this path."""
    if not context.settings.cancel:
        raise not_found("This server does not allow web pages to cancel jobs: web.cancel.enable is false.")
    return cancel_job(context, job_id)


def cancel_job(context: RequestContext, job_id: str) -> Answer:
    """Cancel a job. A cancelled job may be cancelled again; a job that has finished or failed is a 409 error."""
    record = context.job(job_id)
    if record.status in ("FINISHED", "FAILED"):
        raise Rejected(409, f"Job cancellation failed because the job has ended: it has {record.status.lower()}.")
    if record.status != "CANCELED":
        context.jobs.cancel(job_id)
    return Answer({}, 202)
