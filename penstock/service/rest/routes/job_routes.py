"""Jobs: what they are, how they are, and the order to end."""

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
from penstock.service.rest.answers.metrics import aggregated, latency_metrics, listed
from penstock.service.rest.logs import served
from penstock.service.rest.replies import Answer, PlainText, Rejected, malformed, missing
from penstock.service.rest.request_context import AtDesk, Desk, JobId, Wanted, split_list

router = APIRouter(tags=["jobs"])


# --- all jobs ---
@router.get("/jobs")
def ids(desk: AtDesk) -> Answer:
    """The ids of all jobs and their status."""
    return Answer(jobs.job_ids(desk.jobs.records()))


@router.get("/jobs/overview")
def overview(desk: AtDesk) -> Answer:
    """A line for each job."""
    return Answer(jobs.jobs_overview(desk.jobs.records()))


@router.get("/jobs/activity")
def activities(desk: AtDesk) -> Answer:
    """How busy the jobs that run are, and how much they take in. Not in Flink."""
    return Answer(all_activities(desk.jobs.records()))


@router.get("/jobs/metrics")
def all_metrics(
    desk: AtDesk, wanted: Wanted, agg: str | None = None, jobs: Annotated[str | None, Query()] = None
) -> Answer:
    """Names of metrics, or with `get` what the values of all jobs, or of those under `jobs`, amount to."""
    chosen = {job.lower() for job in split_list(jobs)}
    records = [record for record in desk.jobs.records() if not chosen or record.job_id in chosen]
    return Answer(aggregated([job_metrics(record) for record in records], wanted, aggregates(agg)))


def aggregates(text: str | None) -> list[str]:
    """Which aggregates a client wants; all, if it does not say."""
    chosen = [name.lower() for name in split_list(text)] or list(AGGREGATES)
    unknown = [name for name in chosen if name not in AGGREGATES]
    if unknown:
        raise malformed(f"there is no aggregate {unknown[0]!r}: there are {', '.join(AGGREGATES)}")
    return chosen


# --- one job ---
@router.get("/jobs/{job_id}")
def details(desk: AtDesk, job_id: JobId) -> Answer:
    """The job, its vertices and its plan."""
    return Answer(jobs.job_details(desk.job(job_id)))


@router.get("/jobs/{job_id}/status")
def status(desk: AtDesk, job_id: JobId) -> Answer:
    """The status alone."""
    return Answer({"status": desk.job(job_id).status})


@router.get("/jobs/{job_id}/plan")
def plan(desk: AtDesk, job_id: JobId) -> Answer:
    """The graph of vertices."""
    return Answer({"plan": jobs.plan(desk.job(job_id))})


@router.get("/jobs/{job_id}/config")
def config(desk: AtDesk, job_id: JobId) -> Answer:
    """Restart strategy, parallelism and global job parameters."""
    return Answer(jobs.job_config(desk.job(job_id)))


@router.get("/jobs/{job_id}/accumulators")
def accumulators(desk: AtDesk, job_id: JobId) -> Answer:
    """What the job has counted."""
    return Answer(jobs.accumulators(desk.job(job_id)))


Most = Annotated[int, Query(alias="maxExceptions", ge=0)]
Labels = Annotated[str | None, Query(alias="failureLabelFilter")]


@router.get("/jobs/{job_id}/exceptions")
def exceptions(desk: AtDesk, job_id: JobId, most: Most = failures.MOST_EXCEPTIONS, labels: Labels = None) -> Answer:
    """Why attempts failed, newest first."""
    wanted = dict(part.partition(":")[::2] for part in split_list(labels))
    return Answer(failures.exceptions(desk.job(job_id), most, wanted))


@router.get("/jobs/{job_id}/execution-result")
def result(desk: AtDesk, job_id: JobId) -> Answer:
    """How the job ended, once it has."""
    return Answer(jobs.execution_result(desk.job(job_id)))


@router.get("/jobs/{job_id}/metrics")
def metrics(desk: AtDesk, job_id: JobId, wanted: Wanted) -> Answer:
    """Names of metrics, or with `get` their values."""
    record = desk.job_if_known(job_id)
    return Answer(listed({**job_metrics(record), **latency_metrics(record)}, wanted) if record is not None else [])


@router.get("/jobs/{job_id}/activity")
def activity(desk: AtDesk, request: Request, job_id: JobId, history: bool = False) -> Answer:
    """What the vertices of the job are doing now, or with `history` have done of late. Not in Flink."""
    told = activity_answer(desk.job(job_id))
    return Answer({**told, "history": request.app.state.history.answer(job_id)} if history else told)


@router.get("/jobs/{job_id}/latency")
def latency(desk: AtDesk, job_id: JobId) -> Answer:
    """How long markers are on their way from each source to each operator, if the job sends any. Not in Flink."""
    return Answer(latencies(desk.job(job_id)))


@router.get("/jobs/{job_id}/log", response_class=PlainText)
def log(desk: AtDesk, job_id: JobId, offset: int = 0) -> Response:
    """The log of the job's driver, from an offset on. Not in Flink."""
    return served(desk.jobs.logs(desk.job(job_id).job_id), False, offset)


@router.get("/jobs/{job_id}/stdout", response_class=PlainText)
def stdout(desk: AtDesk, job_id: JobId, offset: int = 0) -> Response:
    """The standard output of the job's driver, from an offset on. Not in Flink."""
    return served(desk.jobs.logs(desk.job(job_id).job_id), True, offset)


# --- the end of a job ---
@router.patch("/jobs/{job_id}", status_code=202)
def cancel(desk: AtDesk, job_id: JobId, mode: Literal["cancel", "stop"] = "cancel") -> Response:
    """Cancel the job."""
    if mode == "stop":
        raise Rejected(308, 'The mode "stop" is no more: POST to /jobs/:jobid/stop, or use "cancel".')
    return cancelled(desk, job_id)


@router.get("/jobs/{job_id}/yarn-cancel", status_code=202)
def cancel_by_get(desk: AtDesk, job_id: JobId) -> Response:
    """Cancel the job, as the dashboard's button does it."""
    if not desk.settings.cancel:
        raise missing("The dashboard does not cancel jobs here: web.cancel.enable is false.")
    return cancelled(desk, job_id)


def cancelled(desk: Desk, job_id: str) -> Answer:
    """A job may be cancelled twice, but not once it has ended otherwise."""
    record = desk.job(job_id)
    if record.status in ("FINISHED", "FAILED"):
        raise Rejected(409, f"Job cancellation failed because the job is over: it has {record.status.lower()}.")
    if record.status != "CANCELED":
        desk.jobs.cancel(job_id)
    return Answer({}, 202)
