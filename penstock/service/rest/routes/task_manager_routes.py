"""Task managers: the machines on which slots run."""

from __future__ import annotations

from fastapi import APIRouter, Response

from penstock.service.rest.answers import machines
from penstock.service.rest.answers.metrics import aggregated, listed, machine_metrics
from penstock.service.rest.job_backend import TaskManagerRecord
from penstock.service.rest.logs import served, served_by_name
from penstock.service.rest.replies import Answer, PlainText, missing
from penstock.service.rest.request_context import AtDesk, Desk, Wanted, split_list
from penstock.service.rest.routes.job_routes import aggregates

router = APIRouter(prefix="/taskmanagers", tags=["task managers"])


@router.get("")
def everyone(desk: AtDesk) -> Answer:
    """All task managers."""
    return Answer(machines.task_managers(desk.jobs.task_managers()))


@router.get("/metrics")
def all_metrics(desk: AtDesk, wanted: Wanted, agg: str | None = None, taskmanagers: str | None = None) -> Answer:
    """Names of metrics, or with `get` what the values of all machines, or those under `taskmanagers`, amount to."""
    how, chosen = aggregates(agg), split_list(taskmanagers)
    some = [one for one in desk.jobs.task_managers() if not chosen or one.id in chosen]
    return Answer(aggregated([machine_metrics(one) for one in some], wanted, how))


@router.get("/{manager_id}")
def one(desk: AtDesk, manager_id: str) -> Answer:
    """One task manager and the slots that jobs have on it."""
    return Answer(machines.task_manager(_known(desk, manager_id)))


def _known(desk: Desk, manager_id: str) -> TaskManagerRecord:
    for machine in desk.jobs.task_managers():
        if machine.id == manager_id:
            return machine
    raise missing(f"Could not find task manager {manager_id}.")


@router.get("/{manager_id}/metrics")
def metrics(desk: AtDesk, manager_id: str, wanted: Wanted) -> Answer:
    """Names of metrics, or with `get` their values; none of a machine that nobody knows."""
    known = [machine for machine in desk.jobs.task_managers() if machine.id == manager_id]
    return Answer(listed(machine_metrics(known[0]), wanted) if known else [])


@router.get("/{manager_id}/thread-dump")
def threads(desk: AtDesk, manager_id: str) -> Answer:
    """Where the threads of its processes are: of slots, and on a local master of the driver."""
    known = _known(desk, manager_id)
    with desk.slowly():
        return Answer(machines.threads(desk.jobs.threads(known.id)))


@router.get("/{manager_id}/logs")
def logs(desk: AtDesk, manager_id: str) -> Answer:
    """The files that it has written."""
    return Answer(machines.log_files(desk.jobs.logs(_known(desk, manager_id).id)))


@router.get("/{manager_id}/logs/{name}", response_class=PlainText)
def log_by_name(desk: AtDesk, manager_id: str, name: str, offset: int = 0) -> Response:
    """One of these files."""
    return served_by_name(desk.jobs.logs(_known(desk, manager_id).id), name, offset)


@router.get("/{manager_id}/log", response_class=PlainText)
def log(desk: AtDesk, manager_id: str, offset: int = 0) -> Response:
    """The log."""
    return served(desk.jobs.logs(_known(desk, manager_id).id), False, offset)


@router.get("/{manager_id}/stdout", response_class=PlainText)
def stdout(desk: AtDesk, manager_id: str, offset: int = 0) -> Response:
    """The standard output."""
    return served(desk.jobs.logs(_known(desk, manager_id).id), True, offset)
