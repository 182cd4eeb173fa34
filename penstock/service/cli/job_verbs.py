"""The verbs that list, end or change jobs: list, cancel, stop, modify."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from penstock.service.cli.exit_codes import UsageFailed
from penstock.service.cli.server_connection import At, CaCert, Job, Json, Settings, Token, connect, job_id, overview

if TYPE_CHECKING:
    from penstock.service.cli.rest_client import RestClient

SCHEDULED = ("CREATED", "INITIALIZING")
ENDED = ("FINISHED", "CANCELED", "FAILED")


def list_jobs(
    running: Annotated[bool, typer.Option("-r", "--running", help="Only jobs that run.")] = False,
    scheduled: Annotated[bool, typer.Option("-s", "--scheduled", help="Only jobs that are about to run.")] = False,
    everything: Annotated[bool, typer.Option("-a", "--all", help="Jobs that have ended, too.")] = False,
    at: At = None,
    json: Json = False,
    token: Token = None,
    cacert: CaCert = None,
    option: Settings = None,
) -> None:
    """List the jobs of a server: those that run or are about to, if nothing else is said."""
    from penstock.service.cli import output

    jobs = overview(connect(at, token, cacert, option))
    chosen = [job for job in jobs if everything or _is_wanted(job["state"], running, scheduled)]
    chosen.sort(key=lambda job: job["start-time"])
    if json:
        output.as_json({"jobs": chosen})
    elif chosen:
        output.table(["job", "name", "state", "started", "runs for", "tasks"], [_row(job) for job in chosen])
    else:
        output.line(
            "no jobs" if everything else f"no {_which(running, scheduled)} jobs; -a lists those that have ended"
        )


def _is_wanted(state: str, running: bool, scheduled: bool) -> bool:
    """Return True for jobs that run or are about to run, with one of the switches only for these."""
    if state in SCHEDULED:
        return scheduled or not running
    return state not in ENDED and (running or not scheduled)


def _which(running: bool, scheduled: bool) -> str:
    return "running or scheduled" if running == scheduled else "running" if running else "scheduled"


def _row(job: dict[str, Any]) -> list[str]:
    from penstock.service.cli.output import duration, moment

    tasks = job["tasks"]
    return [
        job["jid"],
        job["name"],
        job["state"],
        moment(job["start-time"]),
        duration(job["duration"]),
        f"{tasks.get('running', 0)} of {tasks['total']}",
    ]


def cancel(
    job: Annotated[
        str | None, typer.Argument(help="A job's id, or its first digits.", metavar="JOB", show_default=False)
    ] = None,
    savepoint: Annotated[
        str | None,
        typer.Option(
            "-s",
            "--withSavepoint",
            "--with-savepoint",
            help="Take a savepoint first, in this directory; without one: `cancel -s JOB`.",
            metavar="[DIR]",
            show_default=False,
        ),
    ] = None,
    at: At = None,
    json: Json = False,
    token: Token = None,
    cacert: CaCert = None,
    option: Settings = None,
) -> None:
    """Cancel a job."""
    from penstock.service.cli import output

    if job is None and savepoint is None:
        raise UsageFailed("name the job to cancel; `penstock list` shows the jobs")
    # As in Flink, -s takes the next word; if that was the last one, it is the job.
    directory, job = (None, savepoint) if job is None else (savepoint, job)
    client = connect(at, token, cacert, option)
    full = job_id(client, str(job))
    if savepoint is None:
        client.patch(f"/jobs/{full}", mode="cancel")
        output.as_json({"jobid": full}) if json else output.line(f"job {full} is cancelled")
        return
    body = {"target-directory": directory, "cancel-job": True}
    location = take_savepoint(client, full, "savepoints", body)
    output.as_json({"jobid": full, "savepoint": location}) if json else output.line(
        f"job {full} is cancelled, and its savepoint is {location}"
    )


def stop(
    job: Job,
    drain: Annotated[
        bool, typer.Option("-d", "--drain", help="Send the last watermark first, so that windows and timers fire.")
    ] = False,
    directory: Annotated[
        str | None,
        typer.Option(
            "-p",
            "--savepointPath",
            "--savepoint-path",
            help="Directory of the savepoint.",
            metavar="DIR",
            show_default=False,
        ),
    ] = None,
    at: At = None,
    json: Json = False,
    token: Token = None,
    cacert: CaCert = None,
    option: Settings = None,
) -> None:
    """Stop a job with a savepoint."""
    from penstock.service.cli import output

    client = connect(at, token, cacert, option)
    full = job_id(client, job)
    location = take_savepoint(client, full, "stop", {"targetDirectory": directory, "drain": drain})
    output.as_json({"jobid": full, "savepoint": location}) if json else output.line(
        f"job {full} has stopped, and its savepoint is {location}"
    )


def take_savepoint(client: RestClient, job: str, path: str, body: dict[str, Any]) -> str:
    """Request a savepoint, wait for it, and return its location."""
    from penstock.service.cli.output import progress
    from penstock.service.cli.polling import count_acknowledged, outcome

    given = {name: value for name, value in body.items() if value is not None}
    with progress(f"savepoint of job {job[:8]}") as tell:
        trigger = client.post(f"/jobs/{job}/{path}", given)["request-id"]
        done = outcome(client, f"/jobs/{job}/savepoints/{trigger}", tell, lambda: count_acknowledged(client, job))
    return str(done["location"])


def modify(
    job: Job,
    parallelism: Annotated[int, typer.Option("-p", "--parallelism", help="The new parallelism.", min=1)],
    at: At = None,
    json: Json = False,
    token: Token = None,
    cacert: CaCert = None,
    option: Settings = None,
) -> None:
    """Change the parallelism of a job: stop it with a savepoint and start it again from there.

    If that fails, the job continues as before.
    """
    from penstock.service.cli import output
    from penstock.service.cli.polling import outcome

    client = connect(at, token, cacert, option)
    full = job_id(client, job)
    with output.progress(f"rescaling job {full[:8]}") as tell:
        trigger = client.post(f"/jobs/{full}/rescaling", {"parallelism": parallelism})["request-id"]
        done = outcome(client, f"/jobs/{full}/rescaling/{trigger}", tell)
    output.as_json({"jobid": full, "parallelism": parallelism, **done}) if json else output.line(
        f"job {full} runs with parallelism {parallelism}"
    )
