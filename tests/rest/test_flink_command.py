"""Flink's own command line against jobs of ours, where Flink is installed (FLINK_HOME, or pip's apache-flink)."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.rest.served_jobs import Served, served_jobs


def flink_home() -> Path | None:
    """The folder of a Flink distribution; the package on PyPI is one."""
    found = find_spec("pyflink")
    places = [os.environ.get("FLINK_HOME"), *(found.submodule_search_locations or () if found else ())]
    return next((Path(place) for place in places if place and (Path(place) / "bin/flink").is_file()), None)


HOME = flink_home()
# The package has 300 MB and would come with every test run; the recorded requests of the command are tested always.
pytestmark = [pytest.mark.service, pytest.mark.skipif(HOME is None, reason="Flink is not installed")]


@pytest.fixture(scope="module")
def served(tmp_path_factory) -> Iterator[Served]:
    with served_jobs(tmp_path_factory.mktemp("jobs")) as served:
        yield served


def flink(served: Served, verb: str, *words: str) -> subprocess.CompletedProcess[str]:
    order = [str(HOME / "bin/flink"), verb, "-m", served.url.removeprefix("http://"), *words]
    environment = {**os.environ, "FLINK_HOME": str(HOME)}
    return subprocess.run(order, capture_output=True, text=True, timeout=300, env=environment)


def test_the_verbs_that_need_no_java_program(served, tmp_path):
    running, stopped, cancelled = (served.another(name).job_id.hex for name in ("running", "stopped", "cancelled"))
    listed = flink(served, "list").stdout
    assert all(f"{job} : {name} (RUNNING)" in listed for job, name in [(running, "running"), (stopped, "stopped")])
    assert "completed. Path: file://" in flink(served, "savepoint", running).stdout.replace("Savepoint ", "")
    assert "completed" in flink(served, "checkpoint", running).stdout
    stop = flink(served, "stop", "-p", f"file://{tmp_path}", stopped)
    assert f"Savepoint completed. Path: file://{tmp_path}" in stop.stdout
    (savepoint,) = tmp_path.iterdir()
    assert "disposed" in flink(served, "savepoint", "-d", f"file://{savepoint}").stdout
    assert not savepoint.exists()
    assert f"Cancelled job {cancelled}" in flink(served, "cancel", cancelled).stdout
    everything = flink(served, "list", "-a").stdout
    assert f"{stopped} : stopped (FINISHED)" in everything and f"{cancelled} : cancelled (CANCELED)" in everything


def test_why_something_failed_is_told_at_once(served):
    failed = flink(served, "savepoint", served.running.job_id.hex, "file:///proc/nowhere")
    assert failed.returncode != 0
    assert "Caused by: penstock.errors.CheckpointFailed" in failed.stdout + failed.stderr
