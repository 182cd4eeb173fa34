"""The context of all routes (jobs, settings, operations), and the parameters that read requests."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Annotated, Any, TypeVar, cast

from fastapi import Depends, Path, Query, Request
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from penstock.engine.job.job_record import JobRecord, VertexRecord
from penstock.service.options.rest_options import RestSettings
from penstock.service.rest.flame_graphs import FlameGraphs
from penstock.service.rest.job_backend import Jobs, UnknownJob
from penstock.service.rest.operations import Operations, TooMany
from penstock.service.rest.replies import bad_request, complaints, not_found

M = TypeVar("M", bound=BaseModel)

MOST_SLOW = 32
"""Largest number of slow requests at once. The server has 40 threads for requests."""
ID_PATTERN = r"^[0-9a-fA-F]{32}$"
JobId = Annotated[str, Path(pattern=ID_PATTERN), AfterValidator(str.lower)]
VertexId = Annotated[str, Path(pattern=ID_PATTERN), AfterValidator(str.lower)]
TriggerId = Annotated[str, Path(pattern=ID_PATTERN), AfterValidator(str.lower)]
OwnTriggerId = Annotated[str, Field(pattern=ID_PATTERN), AfterValidator(str.lower)]
Index = Annotated[int, Path(ge=0)]


@dataclass(frozen=True)
class RequestContext:
    """The objects that routes use."""

    jobs: Jobs
    settings: RestSettings
    operations: Operations
    flames: FlameGraphs
    _slots_for_slow: threading.BoundedSemaphore = field(default_factory=lambda: threading.BoundedSemaphore(MOST_SLOW))

    @contextmanager
    def slow_request(self) -> Iterator[None]:
        """Mark a slow request. Raise TooMany if there are too many, so that threads remain for fast requests."""
        if not self._slots_for_slow.acquire(blocking=False):
            raise TooMany(f"{MOST_SLOW} programs are being started, the maximum: try again in a moment")
        try:
            yield
        finally:
            self._slots_for_slow.release()

    def job(self, job_id: str) -> JobRecord:
        """Return the record of a job. Raise UnknownJob if there is no such job."""
        return self.jobs.record(job_id)

    def job_if_known(self, job_id: str) -> JobRecord | None:
        """Return the record of a job, or None. Metrics need this: those of an unknown job are an empty list."""
        try:
            return self.jobs.record(job_id)
        except UnknownJob:
            return None

    def vertex(self, job_id: str, vertex_id: str) -> tuple[JobRecord, VertexRecord]:
        """Return a job and one of its vertices. Raise a 404 error if there is no such vertex."""
        record = self.job(job_id)
        vertex = find_vertex(record, vertex_id)
        if vertex is None:
            raise not_found(f"No vertex with ID '{vertex_id}' exists in job {job_id}.")
        return record, vertex


def find_vertex(record: JobRecord, vertex_id: str) -> VertexRecord | None:
    """Return the vertex with this id, or None."""
    return next((vertex for vertex in record.vertices if vertex.id == vertex_id), None)


async def _context(request: Request) -> RequestContext:
    return cast(RequestContext, request.app.state.context)


Context = Annotated[RequestContext, Depends(_context)]


# --- queries ---
async def _names(
    get: Annotated[str | None, Query(description="Names, with commas between them.")] = None,
) -> list[str] | None:
    return None if get is None else [name for name in get.split(",") if name]


Wanted = Annotated[list[str] | None, Depends(_names)]


def split_list(text: str | None) -> list[str]:
    """Return the parts between the commas of a text, without blanks and empty parts."""
    return [part.strip() for part in (text or "").split(",") if part.strip()]


# --- bodies ---
class Body(BaseModel):
    """The JSON object in a request's body. Unknown names are ignored, and null counts as absent."""

    model_config = ConfigDict(extra="ignore", populate_by_name=False)


def body_of(model: type[M]) -> Any:
    """Return a parameter that reads the body with any content type. An empty body counts as an empty object."""

    async def parse(request: Request) -> M:
        data = await request.body()
        try:
            return model.model_validate_json(data if data.strip() else b"{}")
        except ValidationError as error:
            raise bad_request(f"the body does not have the expected form: {complaints(error)}") from None

    return Depends(parse)


def body_schema(model: type[BaseModel]) -> dict[str, Any]:
    """Return the OpenAPI description of a body."""
    schema = model.model_json_schema(ref_template="#/components/schemas/{model}")
    return {"requestBody": {"required": False, "content": {"application/json": {"schema": schema}}}}
