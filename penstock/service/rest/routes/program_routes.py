"""Routes of programs: upload, run, plan and delete. Flink calls them jars; here they are Python files or archives."""

from __future__ import annotations

import re
import shlex
import shutil
import tempfile
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request
from pydantic import Field
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile

from penstock.service.launch.program_runner import SUFFIXES
from penstock.service.rest.answers.jobs import plan as plan_answer
from penstock.service.rest.job_backend import ProgramRecord, RunRequest
from penstock.service.rest.replies import Answer, bad_request, not_found
from penstock.service.rest.request_context import (
    Body,
    Context,
    OwnTriggerId,
    RequestContext,
    body_of,
    body_schema,
    split_list,
)

_NAME = re.compile(r"[\w()+,@ -][\w()+.,@ -]{0,200}")


async def _check_allowed(context: Context, request: Request) -> None:
    if not context.settings.submit and not request.scope.get("is_owner"):
        raise not_found(
            "This server does not accept programs over REST: web.submit.enable is false. Only the user who "
            "started the server "
            "can run programs, with the command line on its machine."
        )


router = APIRouter(prefix="/jars", tags=["programs"], dependencies=[Depends(_check_allowed)])


@router.get("")
def programs(context: Context, request: Request) -> Answer:
    """Return the uploaded programs."""
    rows = [_row(program) for program in context.jobs.programs()]
    return Answer({"address": str(request.base_url).rstrip("/"), "files": rows})


def _row(program: ProgramRecord) -> dict[str, Any]:
    entries = [{"name": name, "description": None} for name in program.entries]
    return {"id": program.id, "name": program.name, "uploaded": program.uploaded, "entry": entries}


@router.post(
    "/upload",
    openapi_extra={
        "requestBody": {
            "content": {
                "multipart/form-data": {
                    "schema": {"type": "object", "properties": {"jarfile": {"type": "string", "format": "binary"}}}
                }
            }
        }
    },
)
async def upload(context: Context, request: Request) -> Answer:
    """Store a file as a program: exactly one file, under any field name."""
    if not request.headers.get("content-type", "").startswith("multipart/form-data"):
        raise bad_request("Exactly 1 file must be sent as multipart/form-data, received 0.")
    async with request.form(max_files=2, max_fields=100) as form:
        files = [value for _, value in form.multi_items() if isinstance(value, UploadFile)]
        if len(files) != 1:
            raise bad_request(f"Exactly 1 file must be sent, received {len(files)}.")
        name = check_name(files[0].filename or "")
        program = await run_in_threadpool(_keep, context, name, files[0])
    return Answer({"filename": f"/jars/{program.id}", "status": "success"})


def check_name(name: str) -> str:
    """Return the name of an uploaded file. Raise a 400 error if it is a path or not the name of a program."""
    if not _NAME.fullmatch(name) or ".." in name:
        raise bad_request(
            "the name of the file must consist of letters, digits and a few signs, and must not be a path"
        )
    if not name.lower().endswith(SUFFIXES):
        raise bad_request(f"only files that end in {', '.join(SUFFIXES)} are allowed")
    return name


def _keep(context: RequestContext, name: str, file: UploadFile) -> ProgramRecord:
    with tempfile.TemporaryDirectory(prefix="penstock-upload-") as folder:
        path = Path(folder) / name
        with path.open("wb") as copy:
            shutil.copyfileobj(file.file, copy)
        return context.jobs.upload(name, path)


@router.delete("/{program_id}")
def forget(context: Context, program_id: str) -> Answer:
    """Delete a program. Jobs that were started from it continue."""
    if all(program.id != program_id for program in context.jobs.programs()):
        raise bad_request(f"there is no program {program_id}")
    context.jobs.forget_program(program_id)
    return Answer({})


# --- running ---
class RunBody(Body):
    """An order to start a program. The names are Flink's; only `pyflink` is Penstock's own."""

    entry_class: str | None = Field(None, alias="entryClass")
    program_args: str | None = Field(None, alias="programArgs")
    program_args_list: list[str] | None = Field(None, alias="programArgsList")
    parallelism: int | None = Field(None, ge=1, le=32768)
    job_id: OwnTriggerId | None = Field(None, alias="jobId")
    savepoint_path: str | None = Field(None, alias="savepointPath")
    allow_non_restored: bool | None = Field(None, alias="allowNonRestoredState")
    claim_mode: str | None = Field(None, alias="claimMode")
    restore_mode: str | None = Field(None, alias="restoreMode")
    pyflink: bool | None = None
    configuration: dict[str, Any] | None = Field(None, alias="flinkConfiguration")


class RunQuery(Body):
    """The same order as a query, where some names differ. Values of the body take precedence."""

    entry_class: str | None = Field(None, alias="entry-class")
    program_arg: str | None = Field(None, alias="programArg")
    program_args: str | None = Field(None, alias="program-args")
    parallelism: int | None = Field(None, ge=1, le=32768)
    savepoint_path: str | None = Field(None, alias="savepointPath")
    allow_non_restored: bool | None = Field(None, alias="allowNonRestoredState")
    claim_mode: str | None = Field(None, alias="claimMode")
    pyflink: bool | None = None


def _request(program_id: str, body: RunBody, query: RunQuery) -> RunRequest:
    return RunRequest(
        program=program_id,
        arguments=_arguments(body, query),
        entry=body.entry_class or query.entry_class,
        parallelism=body.parallelism or query.parallelism,
        savepoint=body.savepoint_path or query.savepoint_path,
        allow_non_restored=bool(body.allow_non_restored or query.allow_non_restored),
        claim_mode=body.claim_mode or body.restore_mode or query.claim_mode,
        job_id=body.job_id,
        pyflink=bool(body.pyflink or query.pyflink),
        configuration={name: _text(value) for name, value in (body.configuration or {}).items()},
    )


def _arguments(body: RunBody, query: RunQuery) -> tuple[str, ...]:
    if body.program_args_list is not None:
        return tuple(body.program_args_list)
    if body.program_args is None and query.program_arg is not None:
        return tuple(split_list(query.program_arg))
    try:
        return tuple(shlex.split(body.program_args or query.program_args or ""))
    except ValueError as error:
        raise bad_request(f"the program's arguments cannot be split: {error}") from None


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


OfBody = Annotated[RunBody, body_of(RunBody)]
OfQuery = Annotated[RunQuery, Query()]


def _check_known(context: RequestContext, program_id: str) -> None:
    if all(program.id != program_id for program in context.jobs.programs()):
        raise not_found(f"There is no program {program_id}.")


@router.post("/{program_id}/run", openapi_extra=body_schema(RunBody))
def run(context: Context, program_id: str, body: OfBody, query: OfQuery) -> Answer:
    """Start the program, and answer as soon as it has a job."""
    _check_known(context, program_id)
    with context.slow_request():
        job = context.jobs.run(_request(program_id, body, query))
    return Answer({"jobid": job, "applicationId": job})


@router.post("/{program_id}/plan", openapi_extra=body_schema(RunBody))
def plan(context: Context, program_id: str, body: OfBody, query: OfQuery) -> Answer:
    """Return the plan of the job that the program would start."""
    _check_known(context, program_id)
    with context.slow_request():
        return Answer({"plan": plan_answer(context.jobs.plan(_request(program_id, body, query)))})


@router.get("/{program_id}/plan")
def plan_by_get(context: Context, program_id: str, query: OfQuery) -> Answer:
    """Return the plan without a body. This runs the program up to its job, and so needs permission to operate."""
    return plan(context, program_id, RunBody.model_validate({}), query)
