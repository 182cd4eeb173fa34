"""The REST application: routes over whatever holds the jobs, behind a door."""

from __future__ import annotations

from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse
from starlette.staticfiles import StaticFiles

from penstock import __version__
from penstock.rest.activity_history import ActivityHistory
from penstock.rest.desk import Desk
from penstock.rest.door import Door
from penstock.rest.flame_graphs import FlameGraphs
from penstock.rest.jobs import Jobs
from penstock.rest.openapi import described, page
from penstock.rest.operations import Operations
from penstock.rest.replies import FORESEEN, Answer, answer_error, answer_http_error, answer_surprise
from penstock.rest.routes import (
    applications,
    checkpoints,
    cluster,
    programs,
    queryable,
    requirements,
    task_managers,
    vertices,
    watching,
)
from penstock.rest.routes import jobs as job_routes
from penstock.rest.settings import RestSettings
from penstock.rest.web_pages import add_pages

_ROUTERS = (
    cluster,
    job_routes,
    applications,
    checkpoints,
    vertices,
    requirements,
    task_managers,
    programs,
    queryable,
    watching,
)


def create_app(jobs: Jobs, settings: RestSettings) -> FastAPI:
    """Flink's REST interface for these jobs."""
    app = FastAPI(
        title="Penstock",
        version=__version__,
        description="Flink's REST interface v1. Every path also answers below /v1.",
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        default_response_class=Answer,
    )
    app.state.history = ActivityHistory(jobs)
    app.state.desk = Desk(jobs, settings, Operations(settings.remember / 1000), FlameGraphs(jobs, settings.flame))
    for kind in FORESEEN:
        app.add_exception_handler(kind, answer_error)
    app.add_exception_handler(HTTPException, answer_http_error)
    app.add_exception_handler(Exception, answer_surprise)
    for module in _ROUTERS:
        app.include_router(module.router)
    _add_pages(app, settings)
    app.add_middleware(Door, settings=settings)
    return app


def _add_pages(app: FastAPI, settings: RestSettings) -> None:
    """What people look at: the description of the interface, and our pages or, where it is named, Flink's dashboard."""

    @app.get("/openapi.json", include_in_schema=False)
    async def openapi() -> Answer:
        return Answer(described(app))

    @app.get("/docs", include_in_schema=False)
    async def docs() -> HTMLResponse:
        return HTMLResponse(page(described(app)))

    if settings.dashboard is not None:
        app.mount("/", StaticFiles(directory=settings.dashboard, html=True))
    else:
        add_pages(app)
