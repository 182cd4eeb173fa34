"""Flink's SQL gateway REST interface, versions 1 to 4."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, FastAPI, Query, Request
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException

from penstock import __version__
from penstock.errors import PenstockError
from penstock.service.gateway import shapes
from penstock.service.gateway.sql_sessions import Operation, Sessions, TooMany, Unknown
from penstock.service.options.rest_options import RestSettings
from penstock.service.rest.middleware import AccessMiddleware
from penstock.service.rest.replies import (
    EXPECTED_ERRORS,
    Answer,
    answer_error,
    answer_http_error,
    answer_unexpected_error,
    problem,
)
from penstock.table.result_kind import ResultKind

VERSIONS = ("v1", "v2", "v3", "v4")
FLINK = "2.3.0"
"""Version of Flink's gateway whose answers this gateway gives."""
_KINDS = {ResultKind.SUCCESS: "SUCCESS", ResultKind.SUCCESS_WITH_CONTENT: "SUCCESS_WITH_CONTENT"}

router = APIRouter()


class OpenSession(BaseModel):
    """A client's request for a session."""

    sessionName: str | None = None  # noqa: N815
    properties: dict[str, str] | None = None


class Statement(BaseModel):
    """A statement, and options for this statement alone."""

    statement: str
    executionTimeout: int | None = Field(default=None, ge=0)  # noqa: N815
    executionConfig: dict[str, str] | None = None  # noqa: N815


class Completion(BaseModel):
    """A statement that is being typed."""

    statement: str
    position: int = 0


def _sessions(request: Request) -> Sessions:
    sessions: Sessions = request.app.state.sessions
    return sessions


@router.get("/info")
def info() -> Answer:
    """Return the product's name and version, for which Flink's clients ask."""
    return Answer({"productName": "Apache Flink", "version": FLINK})


@router.get("/api_versions")
def api_versions() -> Answer:
    """Return the supported versions of the REST interface."""
    return Answer({"versions": [version.upper() for version in VERSIONS]})


@router.post("/sessions")
def open_session(request: Request, asked: OpenSession | None = None) -> Answer:
    """Open a session."""
    asked = asked or OpenSession()
    session = _sessions(request).open(asked.sessionName, asked.properties or {})
    return Answer({"sessionHandle": session.handle})


@router.get("/sessions/{session}")
def session_config(request: Request, session: str) -> Answer:
    """Return the options of a session."""
    found = _sessions(request).get(session)
    return Answer({"properties": found.environment.get_config().to_map()})


@router.delete("/sessions/{session}")
def close_session(request: Request, session: str) -> Answer:
    """Close a session and its operations."""
    _sessions(request).close(session)
    return Answer({"status": "CLOSED"})


@router.post("/sessions/{session}/heartbeat")
def heartbeat(request: Request, session: str) -> Answer:
    """Keep a session alive."""
    _sessions(request).get(session)
    return Answer({})


@router.post("/sessions/{session}/configure-session")
def configure(request: Request, session: str, asked: Statement) -> Answer:
    """Run a statement that changes the session, such as SET, USE or CREATE TABLE."""
    _sessions(request).get(session).configure(asked.statement)
    return Answer({})


@router.post("/sessions/{session}/statements")
def execute(request: Request, session: str, asked: Statement) -> Answer:
    """Run a statement, and return the handle with which its result is fetched."""
    operation = _sessions(request).get(session).submit(asked.statement, asked.executionConfig or {})
    return Answer({"operationHandle": operation.handle})


@router.get("/sessions/{session}/complete-statement")
def complete(request: Request, session: str, asked: Completion | None = None) -> Answer:
    """Return words that could complete a statement that is being typed."""
    environment = _sessions(request).get(session).environment
    text = "" if asked is None else asked.statement[: asked.position]
    begun = text.split()[-1].lower() if text.split() and not text[-1:].isspace() else ""
    words = [*environment.list_tables(), *environment.list_functions()]
    return Answer({"candidates": sorted(word for word in words if word.lower().startswith(begun))})


@router.get("/sessions/{session}/operations/{operation}/status")
def status(request: Request, session: str, operation: str) -> Answer:
    """Return the status of an operation."""
    return Answer({"status": _sessions(request).operation(session, operation).status})


@router.post("/sessions/{session}/operations/{operation}/cancel")
def cancel(request: Request, session: str, operation: str) -> Answer:
    """Cancel an operation, and return its status."""
    found = _sessions(request).operation(session, operation)
    found.cancel()
    return Answer({"status": found.status})


@router.delete("/sessions/{session}/operations/{operation}/close")
def close_operation(request: Request, session: str, operation: str) -> Answer:
    """Close an operation. Its result can no longer be fetched."""
    _sessions(request).operation(session, operation).cancel("CLOSED")
    _sessions(request).get(session).operations.pop(operation, None)
    return Answer({"status": "CLOSED"})


Format = Annotated[str, Query(alias="rowFormat", pattern="^(JSON|PLAIN_TEXT)$")]


@router.get("/sessions/{session}/operations/{operation}/result/{token}")
def result(request: Request, session: str, operation: str, token: int, row_format: Format = "JSON") -> Answer:
    """Return a page of a result, and the address of the next page."""
    found = _sessions(request).operation(session, operation)
    here = request.url.path.rsplit("/", 1)[0]
    page = found.page(token)
    if page is None:
        return Answer({"resultType": "NOT_READY", "nextResultUri": f"{here}/{token}?rowFormat={row_format}"})
    answer = _describe(found, row_format)
    assert found.schema is not None
    types = found.schema.types()
    answer["results"]["data"] = shapes.rows(page.rows, types, row_format == "PLAIN_TEXT", found.zone)
    if page.last:
        return Answer({**answer, "resultType": "EOS"})
    following = f"{here}/{token + 1}?rowFormat={row_format}"
    return Answer({**answer, "resultType": "PAYLOAD", "nextResultUri": following})


def _describe(operation: Operation, row_format: str) -> dict[str, Any]:
    """Return a result without its rows. A missing job id is left out, because Flink's clients read null as a text."""
    assert operation.schema is not None
    job = {} if operation.job_id is None else {"jobID": operation.job_id}
    return {
        "isQueryResult": operation.is_query,
        **job,
        "resultKind": _KINDS[operation.kind],
        "results": {"columns": shapes.columns(operation.schema), "rowFormat": row_format, "data": []},
    }


async def _answer_failure(request: Request, error: Exception) -> Any:
    """Answer an error. Clients of Flink's gateway look for the reason after a first line."""
    code = 404 if isinstance(error, Unknown) else 503 if isinstance(error, TooMany) else 500
    return problem(code, "Internal server error." if code == 500 else str(error), str(error))


def create_gateway(sessions: Sessions, settings: RestSettings) -> FastAPI:
    """Create the gateway's application, which serves every path with and without a version."""
    app = FastAPI(title="Penstock SQL gateway", version=__version__, default_response_class=Answer)
    app.state.sessions = sessions
    for kind in EXPECTED_ERRORS:
        app.add_exception_handler(kind, answer_error)
    app.add_exception_handler(PenstockError, _answer_failure)
    app.add_exception_handler(HTTPException, answer_http_error)
    app.add_exception_handler(Exception, answer_unexpected_error)
    for version in VERSIONS:
        app.include_router(router, prefix=f"/{version}", include_in_schema=version == VERSIONS[-1])
    app.include_router(router, include_in_schema=False)
    app.add_middleware(AccessMiddleware, settings=settings)
    return app
