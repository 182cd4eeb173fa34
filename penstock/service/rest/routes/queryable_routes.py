"""Routes of queryable state: lookups in the state of a running job. Not in Flink's REST interface."""

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
    """A selection of keys, in the form that the job's queryable state defines."""


Keys = Annotated[list[str] | None, Query(alias="key", description="A key, as JSON or as plain text.")]
Groups = Annotated[str | None, Query(alias="key-groups", pattern=r"^\d{1,5}-\d{1,5}$")]
Limit = Annotated[int | None, Query(ge=1, description="The number of entries of a page.")]
Token = Annotated[str | None, Query(description="The field `next` of the previous page.")]


@router.get("")
def states(context: Context, job_id: JobId) -> Answer:
    """Return the queryable states of the job."""
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
    """Look up the named keys, or all keys, optionally in pages."""
    asked = {
        "keys": None if keys is None else [_value(key) for key in keys],
        "key-groups": None if groups is None else [int(number) for number in groups.split("-")],
        "limit": limit,
        "token": token,
    }
    given = {part: value for part, value in asked.items() if value is not None}
    return Answer(dict(context.jobs.query(job_id, name, given)))


def _value(text: str) -> Any:
    """Return the value of a text that is JSON, and any other text as it is."""
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
    """Look up many keys in one consistent cut of the job's state."""
    return Answer(dict(context.jobs.query(job_id, name, query.root)))
