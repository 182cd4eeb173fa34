"""Jobs that run, served over HTTP, measured against what Flink 2.3 answers: `check.py` holds its paths and shapes."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.rest.served_jobs import Served, served_jobs
from tests.waiting import until

pytestmark = pytest.mark.service
CHECK = Path(__file__).with_name("check.py")


@pytest.fixture(scope="module")
def served(tmp_path_factory) -> Iterator[Served]:
    with served_jobs(tmp_path_factory.mktemp("jobs")) as served:
        yield served


def get(served: Served, path: str):
    with urllib.request.urlopen(served.url + path, timeout=60) as response:
        return json.load(response)


def test_every_required_answer_is_as_flink_gives_it(served):
    ends = [word for name in ("cancel", "stop", "button") for word in (f"--{name}", served.another(name).job_id.hex)]
    order = [sys.executable, str(CHECK), served.url, served.running.job_id.hex, "--quiet", *ends]
    done = subprocess.run(order, capture_output=True, text=True, timeout=300)
    assert done.stdout.splitlines()[-1:] and done.stdout.splitlines()[-1].endswith(" 0 failed"), done.stdout
    assert int(done.stdout.splitlines()[-1].split()[0]) >= 230


def test_counts_and_watermarks_are_those_of_the_job(served):
    path = f"/jobs/{served.running.job_id.hex}"
    first, *others = get(served, path)["vertices"]
    written = until(lambda: get(served, path)["vertices"][0]["metrics"]["write-records"])
    assert written > 0 and others and first["metrics"]["read-records"] == 0
    (watermark, _) = get(served, f"{path}/vertices/{others[0]['id']}/watermarks")
    assert int(watermark["value"]) >= 0


def test_the_sizes_of_a_checkpoint_are_told_by_vertex(served):
    checkpoints = f"/jobs/{served.running.job_id.hex}/checkpoints"
    number = get(served, checkpoints)["latest"]["completed"]["id"]
    details = get(served, f"{checkpoints}/details/{number}")
    sizes = [task["state_size"] for task in details["tasks"].values()]
    assert 0 < sum(sizes) <= details["state_size"]


def test_the_failure_of_a_job_names_the_exception_of_its_function(served):
    broken = next(handle for handle in served.ended if handle.record().name == "broken")
    newest, first = get(served, f"/jobs/{broken.job_id.hex}/exceptions")["exceptionHistory"]["entries"]
    assert [one["exceptionName"] for one in (*newest["concurrentExceptions"], first)] == ["ZeroDivisionError"] * 2
    assert "divide" in first["taskName"]


def test_no_secret_is_in_any_configuration(served):
    for path in ("/jobmanager/config", f"/jobs/{served.running.job_id.hex}/jobmanager/config"):
        rows = {row["key"]: row["value"] for row in get(served, path)}
        assert rows["s3.secret-key"] == "******"


PROGRAM = """
import json, sys, urllib.request
from contextlib import suppress
from penstock.common.restart_strategy import RestartStrategies
from penstock.errors import JobFailed
from penstock.datastream import StreamExecutionEnvironment
from penstock.testing import in_process

with in_process():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.from_collection([1, 2, 3]).print()
    env.execute("seen")
    env.set_restart_strategy(RestartStrategies.fixed_delay_restart(1, 1))
    env.from_collection([0]).map(lambda n: 1 // n).print()
    with suppress(JobFailed):
        env.execute("broken")
url = "http://127.0.0.1:" + sys.argv[1]
for path in ("/jobs/overview", "/jobmanager/log"):
    print(urllib.request.urlopen(url + path).read().decode())
"""


def test_a_program_opens_rest_for_its_own_jobs(tmp_path):
    import socket

    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    order = [sys.executable, "-m", "penstock", "run", "-D", f"rest.port={port}", str(program), port]
    done = subprocess.run(order, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert f"REST: http://127.0.0.1:{port}" in done.stderr
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("{")]
    jobs = {job["name"]: job["state"] for job in json.loads(line)["jobs"]}
    assert jobs == {"seen": "FINISHED", "broken": "FAILED"}
    # What is logged is served, and warnings are still shown.
    assert "restarts in 1 ms" in done.stdout and "restarts in 1 ms" in done.stderr
