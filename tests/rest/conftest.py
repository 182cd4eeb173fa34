"""A client of the application over scripted jobs, without a server."""

from __future__ import annotations

import pytest
from starlette.testclient import TestClient

from penstock.service.options.rest_options import RestSettings
from penstock.service.rest.app import create_app
from tests.rest.scripted_jobs import ScriptedJobs


@pytest.fixture
def jobs() -> ScriptedJobs:
    return ScriptedJobs.usual()


def client_of(jobs: ScriptedJobs, **changes) -> TestClient:
    """What a client of these jobs sees; errors that nobody foresaw are answers, too."""
    app = create_app(jobs, RestSettings(**changes))
    return TestClient(app, base_url="http://localhost", raise_server_exceptions=False, follow_redirects=False)


@pytest.fixture
def client(jobs) -> TestClient:
    return client_of(jobs, submit=True)
