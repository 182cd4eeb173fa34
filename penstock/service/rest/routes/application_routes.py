"""Applications: every job is one, with the same id."""

from __future__ import annotations

from fastapi import APIRouter

from penstock.service.rest.answers import applications
from penstock.service.rest.answers.exception_answers import application_exceptions
from penstock.service.rest.replies import Answer
from penstock.service.rest.request_context import AtDesk, JobId
from penstock.service.rest.routes.job_routes import cancelled

router = APIRouter(prefix="/applications", tags=["applications"])


@router.get("/overview")
def overview(desk: AtDesk) -> Answer:
    """A line for each application."""
    return Answer(applications.applications(desk.jobs.records()))


@router.get("/{job_id}")
def details(desk: AtDesk, job_id: JobId) -> Answer:
    """An application and its job."""
    return Answer(applications.application(desk.job(job_id)))


@router.get("/{job_id}/exceptions")
def exceptions(desk: AtDesk, job_id: JobId) -> Answer:
    """What ended the application, if it failed."""
    return Answer(application_exceptions(desk.job(job_id)))


@router.post("/{job_id}/cancel", status_code=202)
def cancel(desk: AtDesk, job_id: JobId) -> Answer:
    """Cancel the application's job."""
    return cancelled(desk, job_id)
