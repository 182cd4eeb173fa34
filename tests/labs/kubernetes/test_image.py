"""The image by itself: what is in it, who runs it, and how its first process ends. Started by `make image`."""

from __future__ import annotations

import os
import subprocess
import time
import uuid
from collections.abc import Iterator

import pytest

from penstock import __version__
from tests.labs.kubernetes.lab import PROGRAM
from tests.labs.kubernetes.places import container_variables, installed_engine

IMAGE = os.environ.get("PENSTOCK_IMAGE", "")
ENGINE = installed_engine()
VARIABLES = container_variables() if os.environ.get("PENSTOCK_LAB") else dict(os.environ)
SECONDS = 600
"""Time for the start of a JVM and of a job on a busy machine."""
pytestmark = [
    pytest.mark.soak,
    pytest.mark.skipif(not IMAGE or not ENGINE, reason="needs an image and podman or docker: make image"),
]


def engine(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([ENGINE, *arguments], capture_output=True, text=True, check=False, env=VARIABLES)


def run(*command: str, options: tuple[str, ...] = ()) -> str:
    """Run a command in a new container, and return what it prints."""
    done = engine("run", "--rm", "--network", "none", *options, IMAGE, *command)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture
def name() -> Iterator[str]:
    chosen = f"penstock-{uuid.uuid4().hex[:8]}"
    yield chosen
    engine("rm", "-f", chosen)


def start(name: str, *command: str, is_up: str, options: tuple[str, ...] = ()) -> None:
    """Start a container, and wait until a command of the shell succeeds in it."""
    started = engine("run", "-d", "--name", name, "--network", "none", *options, IMAGE, *command)
    assert started.returncode == 0, started.stderr
    until = time.monotonic() + SECONDS
    while engine("exec", name, "sh", "-c", is_up).returncode:
        said = engine("logs", name)
        assert time.monotonic() < until, f"not up: {is_up}\n{said.stdout}\n{said.stderr}"
        time.sleep(0.5)


def stop(name: str) -> int:
    """Send SIGTERM, and return the exit code; SIGKILL after 20 s gives 137."""
    engine("stop", "-t", "20", name)
    return int(engine("inspect", "--format", "{{.State.ExitCode}}", name).stdout)


def test_penstock_and_its_extras_are_there() -> None:
    assert run("penstock", "--version") == f"penstock {__version__}"
    assert (
        run("python", "-c", "import penstock.table, fastapi, s3fs, confluent_kafka, pyarrow; print('there')") == "there"
    )


def test_everything_runs_as_the_user_of_sparks_images() -> None:
    assert run("id", "-u") == "185"
    folders = ("/var/lib/penstock", "/data", "/opt/spark/work", "/opt/spark/work-dir")
    assert run("sh", "-c", f"for f in {' '.join(folders)}; do touch $f/x || exit 1; done; echo written") == "written"


def test_a_new_volume_can_be_written(name: str) -> None:
    try:
        assert run("sh", "-c", "touch /data/x && echo written", options=("-v", f"{name}:/data")) == "written"
    finally:
        engine("volume", "rm", "-f", name)


def test_the_first_process_is_tini() -> None:
    assert run("cat", "/proc/1/comm") == "tini"


def test_a_server_ends_with_sigterm(name: str) -> None:
    start(name, "penstock", "server", "start", "--foreground", is_up="penstock server status")
    assert stop(name) == 0


def test_a_job_is_suspended_by_sigterm(name: str) -> None:
    program = ("-v", f"{PROGRAM}:/program.py:ro")
    command = ("penstock", "run", "-m", "local[2]", "/program.py", "/data/out", "100000", "10")
    start(name, *command, is_up="ls -d /data/out/*", options=program)
    assert stop(name) == 143


def test_a_worker_of_a_spark_cluster_starts(name: str) -> None:
    """It makes its work folder before it looks for its master."""
    worker = ("/opt/spark/bin/spark-class", "org.apache.spark.deploy.worker.Worker", "--host", "localhost")
    is_up = "grep -q ':1F90 .* 0A ' /proc/net/tcp /proc/net/tcp6"  # port 8080
    start(name, *worker, "--webui-port", "8080", "spark://localhost:7077", is_up=is_up)
    said = engine("logs", name)
    assert "Failed to create" not in said.stdout + said.stderr
