"""The verbs of the command line against the real REST interface, with jobs that run in this process."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from penstock.common.job import JobStatus
from penstock.service.cli import app
from tests.rest.served_jobs import Served, served_jobs
from tests.waiting import until


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served_jobs(tmp_path_factory.mktemp("jobs")) as started:
        yield started


@pytest.fixture
def penstock(served: Served):
    def call(verb: str, *arguments: str, code: int = 0) -> str:
        result = CliRunner().invoke(app, [verb, "-m", served.url, *arguments])
        assert result.exit_code == code, result.output + str(result.exception)
        return result.stdout if code == 0 else result.stderr

    return call


@pytest.fixture
def job(served: Served, request: pytest.FixtureRequest):
    """A job for this test alone."""
    handle = served.another(request.node.name)
    yield handle
    handle.cancel()


def test_list(served: Served, penstock) -> None:
    running = json.loads(penstock("list", "--json", "-r"))["jobs"]
    assert served.running.job_id.hex in [job["jid"] for job in running]
    states = {job["name"]: job["state"] for job in json.loads(penstock("list", "--json", "-a"))["jobs"]}
    ended = {name: states[name] for name in ("running", "finished", "broken", "cancelled")}
    assert ended == {"running": "RUNNING", "finished": "FINISHED", "broken": "FAILED", "cancelled": "CANCELED"}
    assert [served.running.job_id.hex, "running", "RUNNING"] in [
        line.split()[:3] for line in penstock("list").splitlines()
    ]


def test_cancel(job, penstock) -> None:
    assert penstock("cancel", job.job_id.hex) == f"job {job.job_id.hex} is cancelled\n"
    until(lambda: job.status() is JobStatus.CANCELED, progress=lambda: job.view.epoch)


def test_cancel_with_a_savepoint(job, penstock, tmp_path: Path) -> None:
    done = json.loads(penstock("cancel", "-s", str(tmp_path), "--json", job.job_id.hex))
    assert Path(done["savepoint"].removeprefix("file:"), "_metadata").is_file()
    assert str(tmp_path) in done["savepoint"]
    until(lambda: job.status() is JobStatus.CANCELED, progress=lambda: job.view.epoch)


def test_stop(job, penstock, tmp_path: Path) -> None:
    done = json.loads(penstock("stop", "--drain", "-p", str(tmp_path), "--json", job.job_id.hex))
    assert str(tmp_path) in done["savepoint"]
    until(lambda: job.status() is JobStatus.FINISHED, progress=lambda: job.view.epoch)


def test_a_savepoint_is_taken_and_disposed_of(served: Served, penstock, tmp_path: Path) -> None:
    done = json.loads(penstock("savepoint", "--json", served.running.job_id.hex, str(tmp_path)))
    folder = Path(done["savepoint"].removeprefix("file:"))
    assert (folder / "_metadata").is_file()
    penstock("savepoint", "-d", done["savepoint"])
    assert not folder.exists()
    assert penstock("savepoint", "-d", done["savepoint"], code=1).startswith("error: ")


@pytest.mark.parametrize("kind", ["CONFIGURED", "FULL"])
def test_a_checkpoint(served: Served, penstock, kind: str) -> None:
    done = json.loads(penstock("checkpoint", "-t", kind, "--json", served.running.job_id.hex))
    assert done["checkpoint"] > 0


def test_a_job_in_one_process_can_be_rescaled(served: Served, penstock) -> None:
    assert "parallelism 3" in penstock("modify", "-p", "3", served.running.job_id.hex)


@pytest.mark.parametrize(
    ("verb", "arguments"), [("cancel", []), ("logs", []), ("savepoint", []), ("stop", []), ("checkpoint", [])]
)
def test_a_job_that_is_not_there(penstock, verb: str, arguments: list[str]) -> None:
    assert penstock(verb, *arguments, "f" * 32, code=4 if verb in ("cancel", "logs") else 1).startswith("error: ")


def test_levels_of_loggers(job, penstock) -> None:
    shown = penstock("logs", "--level", "cli.test=DEBUG", "--level", "cli.other=OFF", job.job_id.hex)
    assert {("cli.test", "DEBUG"), ("cli.other", "OFF")} <= {tuple(line.split()) for line in shown.splitlines()}
    assert job.log_levels()["cli.test"] == "DEBUG"
    assert "cli.test" not in penstock("logs", "--level", "cli.test=", "--level", "cli.other=", job.job_id.hex)
    assert "LOUD" in penstock("logs", "--level", "cli.test=LOUD", job.job_id.hex, code=1)
    assert "LOGGER=LEVEL" in penstock("logs", "--level", "DEBUG", job.job_id.hex, code=1)


def test_logs(served: Served, penstock) -> None:
    assert penstock("logs", "-f", served.ended[0].job_id.hex) == ""  # such a process keeps no log of a single job
