"""The service as a whole: overview, configuration, and the process that answers."""

from __future__ import annotations

from fastapi import APIRouter, Response

from penstock.metrics.process_metrics import process_metrics
from penstock.service.rest.answers import machines
from penstock.service.rest.answers.metrics import cluster_metrics, listed
from penstock.service.rest.logs import served, served_by_name
from penstock.service.rest.replies import Answer, PlainText
from penstock.service.rest.request_context import AtDesk, Desk, JobId, Wanted

router = APIRouter(tags=["cluster"])


@router.get("/overview")
def overview(desk: AtDesk) -> Answer:
    """Machines, slots, and how many jobs there are in which state."""
    return Answer(machines.overview(desk.jobs.records(), desk.jobs.task_managers()))


@router.get("/config")
def config(desk: AtDesk) -> Answer:
    """What a dashboard needs to know."""
    return Answer(machines.web_config(desk.settings))


@router.get("/datasets")
def datasets(desk: AtDesk) -> Answer:
    """Cached data sets of Flink's Table API, of which there are none here."""
    return Answer({"dataSets": []})


# --- the job manager: the process that answers ---
@router.get("/jobmanager/config")
def options(desk: AtDesk) -> Answer:
    """The options of the process that answers, without secrets."""
    return Answer(machines.key_values(_configuration(desk)))


def _configuration(desk: Desk) -> dict[str, str]:
    settings = desk.settings
    known = {"rest.bind-address": settings.bind_address, "web.submit.enable": str(settings.submit).lower()}
    return known | dict(desk.jobs.configuration())


@router.get("/jobmanager/environment")
def environment(desk: AtDesk) -> Answer:
    """The Python that answers, in the words that Flink has for a Java machine."""
    return Answer(machines.environment())


@router.get("/jobmanager/metrics")
def metrics(desk: AtDesk, wanted: Wanted) -> Answer:
    """Names of metrics, or with `get` their values."""
    running = machines.running(desk.jobs.records())
    return Answer(listed(cluster_metrics(running, desk.jobs.task_managers(), process_metrics()), wanted))


@router.get("/jobmanager/thread-dump")
def threads(desk: AtDesk) -> Answer:
    """Where the threads of the process are."""
    return Answer(machines.threads(desk.jobs.threads()))


@router.get("/jobmanager/logs")
def logs(desk: AtDesk) -> Answer:
    """The files that the process has written."""
    return Answer(machines.log_files(desk.jobs.logs()))


@router.get("/jobmanager/logs/{name}", response_class=PlainText)
def log_by_name(desk: AtDesk, name: str, offset: int = 0) -> Response:
    """One of these files."""
    return served_by_name(desk.jobs.logs(), name, offset)


@router.get("/jobmanager/log", response_class=PlainText)
def log(desk: AtDesk, offset: int = 0) -> Response:
    """The log."""
    return served(desk.jobs.logs(), False, offset)


@router.get("/jobmanager/stdout", response_class=PlainText)
def stdout(desk: AtDesk, offset: int = 0) -> Response:
    """The standard output."""
    return served(desk.jobs.logs(), True, offset)


# --- the same, as seen from a job or an application ---
@router.get("/jobs/{job_id}/jobmanager/config")
def options_of_job(desk: AtDesk, job_id: JobId) -> Answer:
    """The options with which the job was started, over those of the process that answers; without secrets."""
    record = desk.job_if_known(job_id)
    own = dict(record.settings.configuration) if record is not None else {}
    return Answer(machines.key_values(_configuration(desk) | own))


@router.get("/jobs/{job_id}/jobmanager/environment")
def environment_of_job(desk: AtDesk, job_id: JobId) -> Answer:
    """The Python that answers."""
    return Answer(machines.environment())


@router.get("/applications/{job_id}/jobmanager/config")
def options_of_application(desk: AtDesk, job_id: JobId) -> Answer:
    """As for the job with the same id."""
    return options_of_job(desk, job_id)
