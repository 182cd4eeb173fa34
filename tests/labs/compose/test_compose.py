"""The compose file: a Spark cluster and a server, with a killed worker and a stopped server. `make test-compose`."""

from __future__ import annotations

import ast
import json
import os
import shutil
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from tests.labs.kubernetes.lab import PROGRAM, SLOW
from tests.labs.kubernetes.places import CHOSEN_ENGINE, ROOT, container_variables
from tests.labs.kubernetes.store import check_counts
from tests.waiting import until

TOKEN = "a-token-of-the-lab"
SERVER = "127.0.0.1:8081"
ENGINES = {"podman-compose": ("podman", ["podman-compose"]), "docker": ("docker", ["docker", "compose"])}
FOUND = next((name for name in ENGINES if CHOSEN_ENGINE in ("", ENGINES[name][0]) and shutil.which(name)), None)
NUMBERS, PER_SECOND = 4000, 10
"""Each look at the results takes seconds on a busy machine, and the faults have to come while the job runs."""
pytestmark = [
    pytest.mark.soak,
    pytest.mark.timeout(3600),
    pytest.mark.skipif(
        FOUND is None or not os.environ.get("PENSTOCK_COMPOSE"),
        reason="needs podman-compose or docker compose, and port 8081: make test-compose",
    ),
]


class Compose:
    """The services of the compose file."""

    def __init__(self) -> None:
        assert FOUND is not None
        self._engine, command = ENGINES[FOUND]
        self._command = [*command, "-f", str(ROOT / "deployment/docker-compose.yml")]
        own = container_variables() if os.environ.get("PENSTOCK_LAB") else dict(os.environ)
        self._variables = {**own, "PENSTOCK_TOKEN": TOKEN}

    def run(self, *arguments: str, check: bool = True) -> str:
        done = subprocess.run(
            [*self._command, *arguments], capture_output=True, text=True, check=False, env=self._variables
        )
        assert done.returncode == 0 or not check, done.stdout + done.stderr
        return done.stdout

    def engine(self, *arguments: str) -> str:
        command = [self._engine, *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True, env=self._variables).stdout

    def containers(self, service: str) -> list[str]:
        """The names of the containers of a service that run."""
        names = self.engine("ps", "--format", "{{.Names}}").split()
        return sorted(name for name in names if service in name)  # penstock_spark-worker_1, or with other separators

    def submit(self, *arguments: str) -> None:
        """Give a job to the server, with the command line on this machine."""
        command = [sys.executable, "-m", "penstock", "run", "-d", "-m", SERVER, *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=self._variables)
        assert done.returncode == 0, done.stdout + done.stderr

    def ask(self, path: str) -> Any:
        request = urllib.request.Request(f"http://{SERVER}{path}", headers={"Authorization": f"Bearer {TOKEN}"})
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.load(answer)

    def answers(self) -> bool:
        try:
            return bool(self.ask("/overview"))
        except OSError:
            return False

    def rows(self) -> list[tuple[int, int, int]]:
        """The rows that are committed."""
        found = "find /data/output -type f -not -name '.*' -not -name '_*' -exec cat {} +"
        said = self.run("exec", "-T", "server", "sh", "-c", f"test -d /data/output && {found}", check=False)
        return [ast.literal_eval(line) for line in said.splitlines() if line.startswith("(")]


@pytest.fixture
def compose() -> Iterator[Compose]:
    services = Compose()
    services.run("up", "-d", "--no-build")
    try:
        yield services
    finally:
        print(services.run("logs", "--tail", "30", check=False))
        services.run("down", "-v", check=False)


def test_results_are_exact_through_a_killed_worker_and_a_stopped_server(compose: Compose) -> None:
    until(compose.answers, patience=SLOW, every=1)
    assert len(compose.containers("spark-worker")) == 2
    options = ("-D", "execution.checkpointing.interval=2 s")
    compose.submit(*options, str(PROGRAM), "file:///data/output", str(NUMBERS), str(PER_SECOND))
    (job,) = compose.ask("/jobs/overview")["jobs"]

    def progress() -> int:
        return len(compose.rows())

    def is_finished() -> bool:
        return str(compose.ask(f"/jobs/{job['jid']}")["state"]) == "FINISHED"

    until(lambda: progress() > 0, patience=SLOW, every=1)
    before = progress()
    compose.engine("kill", "--signal", "KILL", compose.containers("spark-worker")[0])
    until(lambda: progress() > before, patience=SLOW, every=1)
    assert not is_finished(), "the faults have to come while the job runs"
    compose.run("restart", "server")

    until(compose.answers, patience=SLOW, every=1)
    until(is_finished, progress=progress, patience=SLOW, every=2)
    check_counts(compose.rows(), NUMBERS)
