"""Waiting for operations of a server. The answer is polled, often at first and less often later."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from penstock.service.cli.exit_codes import CommandFailed

if TYPE_CHECKING:
    from penstock.service.cli.rest_client import RestClient

_FIRST, _LONGEST = 0.02, 2.0


def pauses(first: float = _FIRST, longest: float = _LONGEST) -> Iterator[float]:
    """Yield the pauses, in seconds, before each further request, as in Flink's own client."""
    pause = first
    while True:
        yield pause
        pause = min(pause * 2, longest)


def outcome(
    client: RestClient, path: str, tell: Callable[[str], None] | None = None, known: Callable[[], str] = str
) -> Mapping[str, Any]:
    """Wait for a triggered operation, and return its outcome. Raise CommandFailed with its cause if it failed.

    `tell`, if given, gets the time so far and the text that `known` returns, such as the number of answers.
    """
    began = time.monotonic()
    for pause in pauses():
        answer = client.get(path)
        if answer["status"]["id"] == "COMPLETED":
            return _check_outcome(answer.get("operation") or {})
        if tell is not None:
            tell(" ".join(part for part in (f"{time.monotonic() - began:.0f} s", known()) if part))
        time.sleep(pause)
    raise AssertionError("there is always another pause")


def _check_outcome(operation: Mapping[str, Any]) -> Mapping[str, Any]:
    cause = operation.get("failure-cause")
    if cause is None:
        return operation
    raise CommandFailed(reason(cause))


def reason(cause: Mapping[str, Any]) -> str:
    """Return the cause of a failure in one line."""
    from penstock.service.cli.rest_client import innermost

    return innermost(str(cause.get("stack-trace") or cause.get("class") or "no reason was given"))


def count_acknowledged(client: RestClient, job: str) -> str:
    """Return a text with the number of subtasks that have acknowledged the current snapshot; empty if unknown."""
    try:
        history = client.get(f"/jobs/{job}/checkpoints").get("history", [])
    except (CommandFailed, AttributeError):
        return ""
    under_way = next((entry for entry in history if entry.get("status") == "IN_PROGRESS"), None)
    if under_way is None:
        return ""
    return f"({under_way.get('num_acknowledged_subtasks', 0)} of {under_way.get('num_subtasks', 0)} subtasks)"
