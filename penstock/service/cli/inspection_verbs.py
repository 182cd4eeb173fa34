"""The verbs that inspect a job: logs, state."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from penstock.service.cli.job_verbs import ENDED
from penstock.service.cli.server_connection import At, CaCert, Job, Json, Settings, Token, connect, job_id

if TYPE_CHECKING:
    from penstock.service.cli.rest_client import RestClient


class Tail:
    """A reader of a job's log. Every `show` prints the text that was added since the last one."""

    def __init__(self, client: RestClient, job: str, name: str) -> None:
        self._client = client
        self._path = f"/jobs/{job}/{name}"
        self._offset = 0

    def show(self) -> bool:
        """Print new text. Return True if there was any."""
        from penstock.service.cli.output import raw

        answer = self._client.read(self._path, offset=self._offset or None)
        if int(answer.headers.get("x-log-size", self._offset)) < self._offset:  # a new file, since the old one was full
            answer, self._offset = self._client.read(self._path), 0
        self._offset += len(answer.body)
        raw(answer.body)
        return bool(answer.body)


def has_ended(client: RestClient, job: str) -> bool:
    """Return True if a job has ended."""
    return client.get(f"/jobs/{job}/status")["status"] in ENDED


def logs(
    job: Job,
    follow: Annotated[bool, typer.Option("-f", "--follow", help="Continue until the job ends.")] = False,
    stdout: Annotated[
        bool, typer.Option("-o", "--stdout", help="Show the output of the program instead of its log.")
    ] = False,
    level: Annotated[
        list[str] | None,
        typer.Option(
            "--level", metavar="LOGGER=LEVEL", help="Change the level of a logger, or of root, while the job runs."
        ),
    ] = None,
    at: At = None,
    token: Token = None,
    cacert: CaCert = None,
    option: Settings = None,
) -> None:
    """Show a job's log or its program's output; or change its log levels, with --level."""
    from penstock.service.cli.polling import pauses

    client = connect(at, token, cacert, option)
    full = job_id(client, job)
    if level:
        set_levels(client, full, level)
        return
    tail = Tail(client, full, "stdout" if stdout else "log")
    if not follow:
        tail.show()
        return
    waits = pauses()
    while True:
        ended = has_ended(client, full)  # asked first, so that the last lines are read after the end
        if tail.show():
            waits = pauses()
        elif ended:
            return
        if not ended:
            time.sleep(next(waits))


def set_levels(client: RestClient, job: str, given: list[str]) -> None:
    """Change log levels, and show all levels that are then set."""
    from penstock.errors import ConfigurationError
    from penstock.service.cli import output

    for one in given:
        if "=" not in one:
            raise ConfigurationError(f"--level takes LOGGER=LEVEL, such as root=DEBUG, and not '{one}'")
    wanted = {name: level for name, _, level in (one.partition("=") for one in given)}
    answer = client.patch(f"/jobs/{job}/log-levels", {"levels": wanted})
    output.table(["logger", "level"], list(answer["levels"].items()))


def state(
    job: Job,
    name: Annotated[str, typer.Argument(help="The name under which the state can be queried.", show_default=False)],
    keys: Annotated[
        list[str] | None,
        typer.Argument(
            help="Keys. Write numbers, true, false and null as in JSON.",
            metavar="[KEY]...",
            show_default=False,
        ),
    ] = None,
    limit: Annotated[int | None, typer.Option("--limit", help="The most entries to show.", min=1)] = None,
    at: At = None,
    json: Json = False,
    token: Token = None,
    cacert: CaCert = None,
    option: Settings = None,
) -> None:
    """Show the state of a running job: of the keys that are named, else of all."""
    from penstock.service.cli import output
    from penstock.service.cli.rest_client import segment

    client = connect(at, token, cacert, option)
    full = job_id(client, job)
    answer = client.get(f"/jobs/{full}/state/{segment(name)}", key=keys or None, limit=limit)
    if json:
        output.as_json(answer)
        return
    output.table(["key", "value"], [(_text(entry["key"]), _value_text(entry)) for entry in answer["entries"]])


def _value_text(entry: Mapping[str, Any]) -> str:
    return _text(entry["value"]) if entry["found"] else "(nothing)"


def _text(value: Any) -> str:
    import json

    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
