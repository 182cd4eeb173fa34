"""The verbs that take and dispose of snapshots: savepoint, checkpoint."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from penstock.service.cli.exit_codes import UsageFailed
from penstock.service.cli.server_connection import At, CaCert, Job, Json, Settings, Token, connect, job_id


def savepoint(
    job: Annotated[
        str | None, typer.Argument(help="A job's id, or its first digits.", metavar="JOB", show_default=False)
    ] = None,
    directory: Annotated[
        str | None, typer.Argument(help="Where the savepoint goes.", metavar="[DIR]", show_default=False)
    ] = None,
    dispose: Annotated[
        str | None,
        typer.Option("-d", "--dispose", help="Delete this savepoint instead.", metavar="PATH", show_default=False),
    ] = None,
    detached: Annotated[
        bool, typer.Option("--detached", "-detached", help="Do not wait for the savepoint; print the trigger id.")
    ] = False,
    at: At = None,
    json: Json = False,
    token: Token = None,
    cacert: CaCert = None,
    option: Settings = None,
) -> None:
    """Take a savepoint of a job that goes on running, or dispose of one."""
    from penstock.service.cli import output
    from penstock.service.cli.job_verbs import take_savepoint
    from penstock.service.cli.polling import outcome

    if (job is None) == (dispose is None):
        raise UsageFailed("name either a job, or with -d a savepoint to dispose of")
    client = connect(at, token, cacert, option)
    if dispose is not None:
        with output.progress(f"disposing of {dispose}") as tell:
            trigger = client.post("/savepoint-disposal", {"savepoint-path": dispose})["request-id"]
            outcome(client, f"/savepoint-disposal/{trigger}", tell)
        output.as_json({"disposed": dispose}) if json else output.line(f"savepoint {dispose} is disposed of")
        return
    full = job_id(client, str(job))
    body = {"target-directory": directory, "cancel-job": False}
    if detached:
        given = {name: value for name, value in body.items() if value is not None}
        trigger = client.post(f"/jobs/{full}/savepoints", given)["request-id"]
        output.as_json({"jobid": full, "request-id": trigger}) if json else output.line(
            f"savepoint {trigger} of job {full} is in progress"
        )
        return
    location = take_savepoint(client, full, "savepoints", body)
    output.as_json({"jobid": full, "savepoint": location}) if json else output.line(
        f"savepoint of job {full}: {location}"
    )


class CheckpointType(StrEnum):
    """Content of a checkpoint: as configured, the whole state, or only changes."""

    CONFIGURED = "CONFIGURED"
    FULL = "FULL"
    INCREMENTAL = "INCREMENTAL"


def checkpoint(
    job: Job,
    kind: Annotated[
        CheckpointType, typer.Option("-t", "--type", help="What the checkpoint holds.", case_sensitive=False)
    ] = CheckpointType.CONFIGURED,
    at: At = None,
    json: Json = False,
    token: Token = None,
    cacert: CaCert = None,
    option: Settings = None,
) -> None:
    """Take a checkpoint of a job now."""
    from penstock.service.cli import output
    from penstock.service.cli.polling import count_acknowledged, outcome

    client = connect(at, token, cacert, option)
    full = job_id(client, job)
    with output.progress(f"checkpoint of job {full[:8]}") as tell:
        trigger = client.post(f"/jobs/{full}/checkpoints", {"checkpointType": kind.value})["request-id"]
        done = outcome(client, f"/jobs/{full}/checkpoints/{trigger}", tell, lambda: count_acknowledged(client, full))
    number = done["checkpointId"]
    output.as_json({"jobid": full, "checkpoint": number}) if json else output.line(
        f"checkpoint {number} of job {full} is complete"
    )
