"""Whatever a client may send, by the description of the interface and against it: an answer, and never a 500."""

from __future__ import annotations

import schemathesis
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from schemathesis.checks import not_a_server_error

from penstock.service.options.rest_options import RestSettings
from penstock.service.rest.app import create_app
from tests.rest.scripted_jobs import RUNNING, SINK, ScriptedJobs

JOBS = ScriptedJobs.usual()
JOBS.uploaded["1_a.py"] = b""
app = create_app(JOBS, RestSettings(submit=True, address="testserver"))
schema = schemathesis.openapi.from_asgi("/openapi.json", app)

THERE = {"job_id": RUNNING, "vertex_id": SINK, "number": 1, "index": 0, "attempt": 0, "program_id": "1_a.py"}
"""What leads to something: by chance alone most requests would end at an unknown id."""


@schema.parametrize()
@settings(
    max_examples=10,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
@schema.given(there=st.booleans())
def test_no_request_is_a_surprise(case, there):
    if there:
        case.path_parameters = {
            name: THERE.get(name, value) for name, value in dict(case.path_parameters or {}).items()
        }
    response = case.call_and_validate(checks=[not_a_server_error])
    if response.status_code >= 400 and case.method != "HEAD":
        assert list(response.json()) == ["errors"]
        assert response.json()["errors"]
    JOBS.uploaded.setdefault("1_a.py", b"")
