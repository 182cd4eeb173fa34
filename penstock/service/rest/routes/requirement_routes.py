"""How many subtasks the vertices of a job have, in the form that Flink's adaptive scheduler takes it."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Request
from pydantic import BaseModel, Field, RootModel, ValidationError

from penstock.service.rest.answers.requirements import Unfulfillable, requirements, wanted_parallelism
from penstock.service.rest.replies import Answer, Rejected, complaints, malformed
from penstock.service.rest.request_context import AtDesk, JobId, documented

router = APIRouter(prefix="/jobs/{job_id}", tags=["jobs"])


class Bounds(BaseModel):
    lower: int = Field(1, alias="lowerBound", ge=1)
    upper: int = Field(alias="upperBound", ge=1, le=32768)


class OfVertex(BaseModel):
    parallelism: Bounds


class Requirements(RootModel[dict[str, OfVertex]]):
    """By the id of a vertex. Every vertex of the job is named."""


async def _sent(request: Request) -> Requirements:
    try:
        return Requirements.model_validate_json(await request.body())
    except ValidationError as error:
        raise malformed(f"the body is not what was expected: {complaints(error)}") from None


@router.get("/resource-requirements")
def required(desk: AtDesk, job_id: JobId) -> Answer:
    """The bounds of each vertex; the upper one is what it runs with."""
    return Answer(requirements(desk.job(job_id)))


@router.put("/resource-requirements", openapi_extra=documented(Requirements))
def require(desk: AtDesk, job_id: JobId, body: Annotated[Requirements, Depends(_sent)]) -> Answer:
    """Rescale the job, so that its vertices have these upper bounds. Answered when it runs with them."""
    for name, of in body.root.items():
        if of.parallelism.lower > of.parallelism.upper:
            raise malformed(f"the lower bound of vertex {name} is above its upper bound")
    try:
        bounds = {name.lower(): of.parallelism.upper for name, of in body.root.items()}
        wanted = wanted_parallelism(desk.job(job_id), bounds)
    except Unfulfillable as error:
        raise Rejected(400, str(error)) from None
    if wanted is not None:
        with desk.slowly():
            desk.jobs.rescale(job_id, wanted)
    return Answer({})
