"""Routes of the parallelism of vertices, in the form of Flink's adaptive scheduler."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Request
from pydantic import BaseModel, Field, RootModel, ValidationError

from penstock.service.rest.answers.requirements import Unfulfillable, find_parallelism, requirements
from penstock.service.rest.replies import Answer, Rejected, bad_request, complaints
from penstock.service.rest.request_context import Context, JobId, body_schema

router = APIRouter(prefix="/jobs/{job_id}", tags=["jobs"])


class Bounds(BaseModel):
    """The bounds of a parallelism."""

    lower: int = Field(1, alias="lowerBound", ge=1)
    upper: int = Field(alias="upperBound", ge=1, le=32768)


class OfVertex(BaseModel):
    """The requirements of one vertex."""

    parallelism: Bounds


class Requirements(RootModel[dict[str, OfVertex]]):
    """The requirements by vertex id. They must name every vertex of the job."""


async def _read_body(request: Request) -> Requirements:
    try:
        return Requirements.model_validate_json(await request.body())
    except ValidationError as error:
        raise bad_request(f"the body does not have the expected form: {complaints(error)}") from None


@router.get("/resource-requirements")
def get_requirements(context: Context, job_id: JobId) -> Answer:
    """Return the bounds of each vertex. The upper bound is its present parallelism."""
    return Answer(requirements(context.job(job_id)))


@router.put("/resource-requirements", openapi_extra=body_schema(Requirements))
def require(context: Context, job_id: JobId, body: Annotated[Requirements, Depends(_read_body)]) -> Answer:
    """Rescale the job so that its vertices have these upper bounds. Answer when it runs with them."""
    for name, of in body.root.items():
        if of.parallelism.lower > of.parallelism.upper:
            raise bad_request(f"the lower bound of vertex {name} is above its upper bound")
    try:
        bounds = {name.lower(): of.parallelism.upper for name, of in body.root.items()}
        wanted = find_parallelism(context.job(job_id), bounds)
    except Unfulfillable as error:
        raise Rejected(400, str(error)) from None
    if wanted is not None:
        with context.slow_request():
            context.jobs.rescale(job_id, wanted)
    return Answer({})
