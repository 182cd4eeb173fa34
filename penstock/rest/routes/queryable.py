"""Queryable state: what a running job holds, read from outside. Not in Flink's REST interface."""

from __future__ import annotations

import json
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from pydantic import RootModel

from penstock.rest.desk import AtDesk, JobId, body_of
from penstock.rest.replies import Answer

router = APIRouter(prefix="/jobs/{job_id}/state", tags=["queryable state"])


class StateQuery(RootModel[dict[str, Any]]):
    """Which keys are wanted, as the job's queryable state understands it."""


@router.get("/{name}")
def look_up(
    desk: AtDesk, job_id: JobId, name: str, request: Request, key: Annotated[list[str] | None, Query()] = None
) -> Answer:
    """Look up the keys that are named, or what else the query says. A value that is JSON is read as such."""
    others = {other: _value(text) for other, text in request.query_params.items() if other != "key"}
    return Answer(dict(desk.jobs.query(job_id, name, others | ({"keys": list(map(_value, key))} if key else {}))))


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
def look_up_many(desk: AtDesk, job_id: JobId, name: str, query: Annotated[StateQuery, body_of(StateQuery)]) -> Answer:
    """Look up many keys, all in one cut through the job's state."""
    return Answer(dict(desk.jobs.query(job_id, name, query.root)))
