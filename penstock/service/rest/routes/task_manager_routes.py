"""Routes of task managers: the machines on which slots run."""

from __future__ import annotations

from fastapi import APIRouter, Response

from penstock.service.rest.answers import machines
from penstock.service.rest.answers.metrics import aggregate_metrics, list_metrics, machine_metrics
from penstock.service.rest.job_backend import TaskManagerRecord
from penstock.service.rest.logs import serve_log, serve_log_by_name
from penstock.service.rest.replies import Answer, PlainText, not_found
from penstock.service.rest.request_context import Context, RequestContext, Wanted, split_list
from penstock.service.rest.routes.job_routes import aggregates

router = APIRouter(prefix="/taskmanagers", tags=["task managers"])


@router.get("")
def everyone(context: Context) -> Answer:
    """Return all task managers."""
    return Answer(machines.task_managers(context.jobs.task_managers()))


@router.get("/metrics")
def all_metrics(context: Context, wanted: Wanted, agg: str | None = None, taskmanagers: str | None = None) -> Answer:
    """Return the names of metrics, or with `get` aggregates over all machines or those under `taskmanagers`."""
    how, chosen = aggregates(agg), split_list(taskmanagers)
    some = [one for one in context.jobs.task_managers() if not chosen or one.id in chosen]
    return Answer(aggregate_metrics([machine_metrics(one) for one in some], wanted, how))


@router.get("/{manager_id}")
def one(context: Context, manager_id: str) -> Answer:
    """Return one task manager and its allocated slots."""
    return Answer(machines.task_manager(_find_task_manager(context, manager_id)))


def _find_task_manager(context: RequestContext, manager_id: str) -> TaskManagerRecord:
    for machine in context.jobs.task_managers():
        if machine.id == manager_id:
            return machine
    raise not_found(f"Could not find task manager {manager_id}.")


@router.get("/{manager_id}/metrics")
def metrics(context: Context, manager_id: str, wanted: Wanted) -> Answer:
    """Return the names of metrics, or with `get` their values. An unknown machine has no metrics."""
    known = [machine for machine in context.jobs.task_managers() if machine.id == manager_id]
    return Answer(list_metrics(machine_metrics(known[0]), wanted) if known else [])


@router.get("/{manager_id}/thread-dump")
def threads(context: Context, manager_id: str) -> Answer:
    """Return the stacks of its threads: those of slots, and on a local master also those of the driver."""
    known = _find_task_manager(context, manager_id)
    with context.slow_request():
        return Answer(machines.threads(context.jobs.threads(known.id)))


@router.get("/{manager_id}/logs")
def logs(context: Context, manager_id: str) -> Answer:
    """Return the log files of the task manager."""
    return Answer(machines.log_files(context.jobs.logs(_find_task_manager(context, manager_id).id)))


@router.get("/{manager_id}/logs/{name}", response_class=PlainText)
def log_by_name(context: Context, manager_id: str, name: str, offset: int = 0) -> Response:
    """Return one of the log files."""
    return serve_log_by_name(context.jobs.logs(_find_task_manager(context, manager_id).id), name, offset)


@router.get("/{manager_id}/log", response_class=PlainText)
def log(context: Context, manager_id: str, offset: int = 0) -> Response:
    """Return the log of the task manager."""
    return serve_log(context.jobs.logs(_find_task_manager(context, manager_id).id), False, offset)


@router.get("/{manager_id}/stdout", response_class=PlainText)
def stdout(context: Context, manager_id: str, offset: int = 0) -> Response:
    """Return the standard output of the task manager."""
    return serve_log(context.jobs.logs(_find_task_manager(context, manager_id).id), True, offset)
