"""Routes of the service as a whole: overview, configuration, and the answering process."""

from __future__ import annotations

from fastapi import APIRouter, Response

from penstock.metrics.process_metrics import process_metrics
from penstock.service.rest.answers import machines
from penstock.service.rest.answers.metrics import cluster_metrics, list_metrics
from penstock.service.rest.logs import serve_log, serve_log_by_name
from penstock.service.rest.replies import Answer, PlainText
from penstock.service.rest.request_context import Context, JobId, RequestContext, Wanted

router = APIRouter(tags=["cluster"])


@router.get("/overview")
def overview(context: Context) -> Answer:
    """Return the numbers of machines and slots, and of jobs in each state."""
    return Answer(machines.overview(context.jobs.records(), context.jobs.task_managers()))


@router.get("/config")
def config(context: Context) -> Answer:
    """Return the configuration of a dashboard."""
    return Answer(machines.web_config(context.settings))


@router.get("/datasets")
def datasets(context: Context) -> Answer:
    """Return the cached data sets of Flink's Table API. The list is always empty."""
    return Answer({"dataSets": []})


# --- the job manager: the process that answers ---
@router.get("/jobmanager/config")
def options(context: Context) -> Answer:
    """Return the options of the answering process, without secrets."""
    return Answer(machines.key_values(_configuration(context)))


def _configuration(context: RequestContext) -> dict[str, str]:
    settings = context.settings
    known = {"rest.bind-address": settings.bind_address, "web.submit.enable": str(settings.submit).lower()}
    return known | dict(context.jobs.configuration())


@router.get("/jobmanager/environment")
def environment(context: Context) -> Answer:
    """Return the Python version of the answering process, under Flink's names for a Java virtual machine."""
    return Answer(machines.environment())


@router.get("/jobmanager/metrics")
def metrics(context: Context, wanted: Wanted) -> Answer:
    """Return the names of metrics, or with `get` their values."""
    running = machines.running(context.jobs.records())
    return Answer(list_metrics(cluster_metrics(running, context.jobs.task_managers(), process_metrics()), wanted))


@router.get("/jobmanager/thread-dump")
def threads(context: Context) -> Answer:
    """Return the stacks of the threads of the answering process."""
    return Answer(machines.threads(context.jobs.threads()))


@router.get("/jobmanager/logs")
def logs(context: Context) -> Answer:
    """Return the log files of the answering process."""
    return Answer(machines.log_files(context.jobs.logs()))


@router.get("/jobmanager/logs/{name}", response_class=PlainText)
def log_by_name(context: Context, name: str, offset: int = 0) -> Response:
    """Return one of the log files."""
    return serve_log_by_name(context.jobs.logs(), name, offset)


@router.get("/jobmanager/log", response_class=PlainText)
def log(context: Context, offset: int = 0) -> Response:
    """Return the log of the answering process."""
    return serve_log(context.jobs.logs(), False, offset)


@router.get("/jobmanager/stdout", response_class=PlainText)
def stdout(context: Context, offset: int = 0) -> Response:
    """Return the standard output of the answering process."""
    return serve_log(context.jobs.logs(), True, offset)


# --- the same, as seen from a job or an application ---
@router.get("/jobs/{job_id}/jobmanager/config")
def options_of_job(context: Context, job_id: JobId) -> Answer:
    """Return the options of the answering process, overridden by those of the job, without secrets."""
    record = context.job_if_known(job_id)
    own = dict(record.settings.configuration) if record is not None else {}
    return Answer(machines.key_values(_configuration(context) | own))


@router.get("/jobs/{job_id}/jobmanager/environment")
def environment_of_job(context: Context, job_id: JobId) -> Answer:
    """Return the Python version of the answering process."""
    return Answer(machines.environment())


@router.get("/applications/{job_id}/jobmanager/config")
def options_of_application(context: Context, job_id: JobId) -> Answer:
    """Return the options of the job with the same id."""
    return options_of_job(context, job_id)
