"""Submits a program to a server, and follows its job to the end."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from penstock.service.cli import output
from penstock.service.cli.exit_codes import CANCELLED, CommandFailed, UsageFailed
from penstock.service.cli.inspection_verbs import Tail
from penstock.service.cli.polling import pauses, reason
from penstock.service.cli.rest_client import segment

if TYPE_CHECKING:
    from penstock.service.cli.rest_client import RestClient
    from penstock.service.launch.program_runner import Program


@dataclass(frozen=True)
class Order:
    """A program, its arguments, and the options to run it with."""

    program: Program
    arguments: list[str]
    pyflink: bool
    options: list[str]
    """Options given with -D."""
    switches: dict[str, str]
    """Options given with their own switches, by name of the option."""

    def body(self) -> dict[str, Any]:
        """Return the body of Flink's `/jars/:id/run`. It leaves out the configuration of this machine."""
        options = dict(self.switches)
        parallelism = options.pop("parallelism.default", None)
        asked = {
            "entryClass": self.program.entry,
            "programArgsList": self.arguments or None,
            "parallelism": None if parallelism is None else int(parallelism),
            "savepointPath": options.pop("execution.state-recovery.path", None),
            "allowNonRestoredState": options.pop("execution.state-recovery.ignore-unclaimed-state", None) and True,
            "flinkConfiguration": {**dict(_pair(option) for option in self.options), **options} or None,
            "pyflink": self.pyflink or None,
        }
        return {name: value for name, value in asked.items() if value is not None}


def _pair(option: str) -> tuple[str, str]:
    name, _, value = option.partition("=")
    return name.strip(), value


def submit(client: RestClient, order: Order, detached: bool) -> None:
    """Upload and run a program, and print the job's id. Unless detached, wait for the end of the job."""
    uploaded = _upload(client, order.program)
    try:
        job = client.post(f"/jars/{segment(uploaded)}/run", order.body())["jobid"]
    finally:
        _forget(client, uploaded)
    output.line(f"job {job} has been submitted")
    if not detached:
        follow(client, job)


def _upload(client: RestClient, program: Program) -> str:
    """Upload the program, and return the server's name for it."""
    if program.path is None:
        raise UsageFailed(
            f"a server needs the file that holds {program.entry}: name a file, a zip or a wheel as well; "
            "`penstock package` makes one of a folder"
        )
    answer = client.upload("/jars/upload", program.path)
    return str(answer["filename"]).rpartition("/")[2]


def _forget(client: RestClient, uploaded: str) -> None:
    """Delete the upload, of which the job has its own copy."""
    with suppress(CommandFailed):
        client.delete(f"/jars/{segment(uploaded)}")


def follow(client: RestClient, job: str) -> None:
    """Print the program's output until its job ends. Raise CommandFailed if the job did not succeed."""
    tail = Tail(client, job, "stdout")
    waits = pauses()
    try:
        while True:
            result = client.get(f"/jobs/{job}/execution-result")
            if tail.show():
                waits = pauses()
            if result["status"]["id"] == "COMPLETED":
                break
            time.sleep(next(waits))
    except KeyboardInterrupt:
        output.errors().print(f"the job continues: `penstock cancel {job[:8]}` ends it", highlight=False)
        raise SystemExit(CANCELLED) from None
    _check(job, result["job-execution-result"])


def _check(job: str, result: dict[str, Any]) -> None:
    status = result["application-status"]
    if status == "SUCCEEDED":
        output.line(f"job {job} has finished after {output.duration(result['net-runtime'])}")
        return
    cause = result.get("failure-cause")
    why = f": {reason(cause)}" if cause else ""
    raise CommandFailed(f"job {job} {'was cancelled' if status == 'CANCELED' else 'has failed'}{why}")
