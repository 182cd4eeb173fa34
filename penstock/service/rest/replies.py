"""HTTP responses, and the common form of all errors."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from secrets import token_hex
from typing import Any

from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError
from starlette.exceptions import HTTPException

from penstock.common.secrets import conceal
from penstock.errors import NoSuchSnapshot, NotFound, PenstockError, QueryTimeout, StateUnavailable, UnknownState
from penstock.service.rest.job_backend import Refused, UnknownJob
from penstock.service.rest.operations import TooMany

log = logging.getLogger("penstock.rest")


class Answer(Response):
    """A response with JSON in Flink's form."""

    media_type = "application/json; charset=UTF-8"

    def render(self, content: Any) -> bytes:
        return json.dumps(content, allow_nan=False, separators=(",", ":")).encode("ascii")


class PlainText(Response):
    """A response with plain text."""

    media_type = "text/plain"


class Rejected(Exception):
    """The request is rejected. The status and the texts say why."""

    def __init__(self, status: int, *texts: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(*texts)
        self.status = status
        self.texts = texts
        self.headers = headers or {}


def bad_request(text: str) -> Rejected:
    """Return a 400 error."""
    return Rejected(400, f"Bad request: {text}")


def not_found(text: str) -> Rejected:
    """Return a 404 error."""
    return Rejected(404, text)


def problem(status: int, *texts: str) -> Answer:
    """Return an error response. Clients look for the field `errors`, whatever the status."""
    # The server does not wait for the rest of a request that it has not read completely.
    headers = {"connection": "close"} if status in (408, 413) else None
    return Answer({"errors": [conceal(text) or "unknown error" for text in texts]}, status, headers)


def complaints(error: ValidationError | RequestValidationError) -> str:
    """Return the faults of a request, field by field, without the values."""
    return "; ".join(f"{_where(one['loc'])}: {one['msg']}" for one in error.errors())


def _where(place: Sequence[Any]) -> str:
    return ".".join(str(part) for part in place if part not in ("path", "query", "body")) or "body"


# --- from exceptions to answers ---
_STATUS: list[tuple[type[Exception], int]] = [
    (UnknownJob, 404),
    (Refused, 409),
    (TooMany, 503),
    (NotFound, 404),
    (NoSuchSnapshot, 404),
    (UnknownState, 404),
    (StateUnavailable, 503),
    (QueryTimeout, 503),
    (PenstockError, 400),
]


async def answer_error(request: Request, error: Exception) -> Response:
    """Answer a request that failed with one of EXPECTED_ERRORS."""
    if isinstance(error, Rejected):
        return problem(error.status, *error.texts)
    if isinstance(error, RequestValidationError):
        return problem(400, f"Bad request: {complaints(error)}")
    status = next((status for kind, status in _STATUS if isinstance(error, kind)), 500)
    return problem(status, str(error) or type(error).__name__)


async def answer_http_error(request: Request, error: Exception) -> Response:
    """Answer a request that the framework rejects. As in Flink, an unsupported method of a path is a 404 error."""
    status = error.status_code if isinstance(error, HTTPException) else 500
    if status in (404, 405):
        return problem(404, f"Not found: {request.url.path}")
    return problem(status, str(getattr(error, "detail", error)))


async def answer_unexpected_error(request: Request, error: Exception) -> Response:
    """Log an unexpected error, and give the client a number with which the log entry can be found."""
    number = token_hex(4)
    log.error("request %s %s failed (%s)", request.method, request.url.path, number, exc_info=error)
    return problem(500, "Internal server error.", f"The log has the reason under the number {number}.")


EXPECTED_ERRORS = (Rejected, RequestValidationError, *(kind for kind, _ in _STATUS))
