"""Routes of applications. Every job is one application with the same id."""

from __future__ import annotations

from fastapi import APIRouter

from penstock.service.rest.answers import applications
from penstock.service.rest.answers.exception_answers import application_exceptions
from penstock.service.rest.replies import Answer
from penstock.service.rest.request_context import Context, JobId
from penstock.service.rest.routes.job_routes import cancel_job

router = APIRouter(prefix="/applications", tags=["applications"])


@router.get("/overview")
def overview(context: Context) -> Answer:
    """Return a line for each application."""
    return Answer(applications.applications(context.jobs.records()))


@router.get("/{job_id}")
def details(context: Context, job_id: JobId) -> Answer:
    """Return an application and its job."""
    return Answer(applications.application(context.job(job_id)))


@router.get("/{job_id}/exceptions")
def exceptions(context: Context, job_id: JobId) -> Answer:
    """Return the failure that ended the application, if it failed."""
    return Answer(application_exceptions(context.job(job_id)))


@router.post("/{job_id}/cancel", status_code=202)
def cancel(context: Context, job_id: JobId) -> Answer:
    """Cancel the application's job."""
    return cancel_job(context, job_id)
