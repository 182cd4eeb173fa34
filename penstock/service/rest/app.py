"""The REST application: routes over a `Jobs` implementation, behind the access middleware."""

from __future__ import annotations

from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse
from starlette.staticfiles import StaticFiles

from penstock import __version__
from penstock.service.options.rest_options import RestSettings
from penstock.service.rest.activity_history import ActivityHistory
from penstock.service.rest.flame_graphs import FlameGraphs
from penstock.service.rest.job_backend import Jobs
from penstock.service.rest.middleware import AccessMiddleware
from penstock.service.rest.openapi import describe_routes, render_page
from penstock.service.rest.operations import Operations
from penstock.service.rest.replies import (
    EXPECTED_ERRORS,
    Answer,
    answer_error,
    answer_http_error,
    answer_unexpected_error,
)
from penstock.service.rest.request_context import RequestContext
from penstock.service.rest.routes import application_routes as applications
from penstock.service.rest.routes import checkpoint_routes as checkpoints
from penstock.service.rest.routes import cluster_routes as cluster
from penstock.service.rest.routes import job_routes
from penstock.service.rest.routes import profiling_routes as watching
from penstock.service.rest.routes import program_routes as programs
from penstock.service.rest.routes import queryable_routes as queryable
from penstock.service.rest.routes import requirement_routes as requirements
from penstock.service.rest.routes import task_manager_routes as task_managers
from penstock.service.rest.routes import vertex_routes as vertices
from penstock.service.rest.web_pages import add_pages

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
    """Return the application that serves Flink's REST interface for these jobs."""
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
    app.state.context = RequestContext(
        jobs, settings, Operations(settings.remember / 1000), FlameGraphs(jobs, settings.flame)
    )
    for kind in EXPECTED_ERRORS:
        app.add_exception_handler(kind, answer_error)
    app.add_exception_handler(HTTPException, answer_http_error)
    app.add_exception_handler(Exception, answer_unexpected_error)
    for module in _ROUTERS:
        app.include_router(module.router)
    _add_pages(app, settings)
    app.add_middleware(AccessMiddleware, settings=settings)
    return app


def _add_pages(app: FastAPI, settings: RestSettings) -> None:
    """Add the description of the interface, and Penstock's pages or the dashboard that `web.dashboard.dir` names."""

    @app.get("/openapi.json", include_in_schema=False)
    async def openapi() -> Answer:
        return Answer(describe_routes(app))

    @app.get("/docs", include_in_schema=False)
    async def docs() -> HTMLResponse:
        return HTMLResponse(render_page(describe_routes(app)))

    if settings.dashboard is not None:
        app.mount("/", StaticFiles(directory=settings.dashboard, html=True))
    else:
        add_pages(app)
