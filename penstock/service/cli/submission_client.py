"""Gives a program to a server, and follows its job to the end."""

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
    """A program, and how it is to be run."""

    program: Program
    arguments: list[str]
    pyflink: bool
    options: list[str]
    """As given with -D."""
    switches: dict[str, str]
    """Options that were given with a switch of their own."""

    def body(self) -> dict[str, Any]:
        """What Flink's `/jars/:id/run` takes. The configuration of this machine is not the server's business."""
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
    """Upload, run, print the job's id, and unless detached stay until its end."""
    uploaded = _upload(client, order.program)
    try:
        job = client.post(f"/jars/{segment(uploaded)}/run", order.body())["jobid"]
    finally:
        _forget(client, uploaded)
    output.line(f"job {job} has been submitted")
    if not detached:
        follow(client, job)


def _upload(client: RestClient, program: Program) -> str:
    """The server's name for the program."""
    if program.path is None:
        raise UsageFailed(
            f"a server needs the file that holds {program.entry}: name a file, a zip or a wheel as well; "
            "`penstock package` makes one of a folder"
        )
    answer = client.upload("/jars/upload", program.path)
    return str(answer["filename"]).rpartition("/")[2]


def _forget(client: RestClient, uploaded: str) -> None:
    """Delete the upload: the job has a copy of its own."""
    with suppress(CommandFailed):
        client.delete(f"/jars/{segment(uploaded)}")


def follow(client: RestClient, job: str) -> None:
    """Print what the program prints, until its job ends; raises if that did not succeed."""
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
        output.errors().print(f"the job goes on: `penstock cancel {job[:8]}` ends it", highlight=False)
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
