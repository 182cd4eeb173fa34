"""Queryable state: what a running job holds, read from outside. Not in Flink's REST interface."""

from __future__ import annotations

import json
from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import RootModel

from penstock.service.rest.answers.activity_answers import queryable_states
from penstock.service.rest.replies import Answer
from penstock.service.rest.request_context import Context, JobId, body_of

router = APIRouter(prefix="/jobs/{job_id}/state", tags=["queryable state"])


class StateQuery(RootModel[dict[str, Any]]):
    """Which keys are wanted, as the job's queryable state understands it."""


Keys = Annotated[list[str] | None, Query(alias="key", description="A key; what is JSON is read as such.")]
Groups = Annotated[str | None, Query(alias="key-groups", pattern=r"^\d{1,5}-\d{1,5}$")]
Limit = Annotated[int | None, Query(ge=1, description="How many entries a page has.")]
Token = Annotated[str | None, Query(description="What the page before gives as `next`.")]


@router.get("")
def states(context: Context, job_id: JobId) -> Answer:
    """Which states of the job can be looked up."""
    return Answer(queryable_states(context.job(job_id)))


@router.get("/{name}")
def look_up(
    context: Context,
    job_id: JobId,
    name: str,
    keys: Keys = None,
    groups: Groups = None,
    limit: Limit = None,
    token: Token = None,
) -> Answer:
    """Look up the keys that are named, or all, in pages or not."""
    asked = {
        "keys": None if keys is None else [_value(key) for key in keys],
        "key-groups": None if groups is None else [int(number) for number in groups.split("-")],
        "limit": limit,
        "token": token,
    }
    given = {part: value for part, value in asked.items() if value is not None}
    return Answer(dict(context.jobs.query(job_id, name, given)))


def _value(text: str) -> Any:
    """What a text means: what it says as JSON, if it is, else itself."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


@router.post(
    "/{name}",
    openapi_extra={"requestBody": {"content": {"application/json": {"schema": {"type": "object"}}}}},
)
def look_up_many(
    context: Context, job_id: JobId, name: str, query: Annotated[StateQuery, body_of(StateQuery)]
) -> Answer:
    """Look up many keys, all in one cut through the job's state."""
    return Answer(dict(context.jobs.query(job_id, name, query.root)))
