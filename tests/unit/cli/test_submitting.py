"""`penstock run` with a server: what is uploaded and ordered, and how a job is followed to its end."""

import json
import os
import signal
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.unit.cli.recorded_server import RECORDED, RecordedServer, recorded, said

JOB = RECORDED["POST /jars/:jarid/run"][0]["body"]["jobid"]
UPLOAD = "c450b6ae-2165-47bb-9595-5ef024956c32_yard.jar"


@pytest.fixture
def ready(cluster: RecordedServer) -> RecordedServer:
    """A server that takes a program and runs it."""
    Path("job.py").write_text("print('never run here')\n")
    return cluster.on("POST /jars/upload", "upload").on("POST /jars/:jarid/run", "run")


def order(server: RecordedServer) -> dict[str, object]:
    return server.the(f"POST /jars/{UPLOAD}/run").json()


def test_detached_uploads_orders_and_goes(ready: RecordedServer, penstock) -> None:
    done = penstock("run", "-d", "job.py")
    assert (done.code, done.out, done.err) == (0, f"job {JOB} has been submitted\n", "")
    assert ready.lines() == ["POST /jars/upload", f"POST /jars/{UPLOAD}/run", f"DELETE /jars/{UPLOAD}"]
    assert b'filename="job.py"' in ready.asked[0].body and b"never run here" in ready.asked[0].body
    assert order(ready) == {}


def test_everything_that_can_be_said_of_a_run(ready: RecordedServer, penstock) -> None:
    switches = ["-p", "4", "-s", "/sp", "-n", "-c", "job:main", "--pyflink", "--claim-mode", "CLAIM"]
    options = ["-D", "pipeline.name=x=y", "-D", "execution.state-recovery.claim-mode=NO_CLAIM"]
    penstock("run", "-d", *switches, *options, "-m", "spark://h:7077", "job.py", "--rate", "5")
    assert order(ready) == {
        "programArgsList": ["--rate", "5"],
        "parallelism": 4,
        "savepointPath": "/sp",
        "allowNonRestoredState": True,
        "entryClass": "job:main",
        "pyflink": True,
        "flinkConfiguration": {
            "pipeline.name": "x=y",
            "execution.state-recovery.claim-mode": "CLAIM",
            "spark.master": "spark://h:7077",
        },
    }


def test_the_configuration_of_this_machine_stays_here(ready: RecordedServer, penstock, monkeypatch) -> None:
    monkeypatch.setenv("PENSTOCK__PIPELINE__NAME", "mine")
    penstock("run", "-d", "job.py")
    assert order(ready) == {}


def test_an_archive_keeps_its_suffix(ready: RecordedServer, penstock) -> None:
    with zipfile.ZipFile("all.zip", "w") as archive:
        archive.writestr("__main__.py", "")
    penstock("run", "-d", "all.zip")
    assert b'filename="all.zip"' in ready.asked[0].body


def test_a_module_that_is_only_named_cannot_be_uploaded(ready: RecordedServer, penstock) -> None:
    done = penstock("run", "-d", "-c", "job:main")
    assert done.code == 2 and "a server needs the file that holds job:main" in done.err
    assert ready.asked == []


def test_with_the_address_of_a_server_a_job_is_followed(ready: RecordedServer, penstock) -> None:
    ready.on("GET /jobs/:jobid/execution-result", "just submitted", "running", "finished").on(
        "GET /jobs/:jobid/stdout", said(b"one\n"), said(b""), said(b"two\n")
    )
    done = penstock("run", "-m", ready.address, "job.py")
    assert done.code == 0 and done.err == ""
    assert done.out == f"job {JOB} has been submitted\none\ntwo\njob {JOB} has finished after 4.6s\n"
    offsets = [asked.query.get("offset", ["0"])[0] for asked in ready.asked if asked.path.endswith("stdout")]
    assert offsets == ["0", "4", "4"]


@pytest.mark.parametrize(
    ("case", "message"),
    [
        ("failed", f"error: job {JOB} has failed: Recovery is suppressed by FixedDelayRestartBackoffTimeStrategy"),
        ("cancelled", f"error: job {JOB} was cancelled\n"),
    ],
)
def test_a_job_that_ends_badly_fails_the_command(ready: RecordedServer, penstock, case, message) -> None:
    ready.on("GET /jobs/:jobid/execution-result", case).on("GET /jobs/:jobid/stdout", said(b"printed\n"))
    done = penstock("run", "-m", ready.address, "job.py")
    assert done.code == 1 and done.err.startswith(message) and "printed\n" in done.out


@pytest.mark.parametrize("case", ["upload, not a jar"])
def test_a_program_that_is_refused(cluster: RecordedServer, penstock, case) -> None:
    Path("job.py").write_text("")
    cluster.on("POST /jars/upload", case)
    done = penstock("run", "-d", "job.py")
    assert (done.code, done.err) == (1, "error: Only Jar files are allowed.…\n")


def test_a_program_that_cannot_be_started(cluster: RecordedServer, penstock) -> None:
    Path("job.py").write_text("")
    cluster.on("POST /jars/upload", "upload").on("POST /jars/:jarid/run", said({"errors": ["x.Y: no module z"]}, 500))
    done = penstock("run", "-d", "job.py")
    assert (done.code, done.err) == (1, "error: no module z\n")


def test_ctrl_c_leaves_the_job_running_and_says_how_to_end_it(ready: RecordedServer, tmp_path: Path) -> None:
    ready.on("GET /jobs/:jobid/execution-result", "running").on("GET /jobs/:jobid/stdout", said(b"one\n"), said(b""))
    process = subprocess.Popen(
        [sys.executable, "-m", "penstock", "run", "-m", ready.address, "job.py"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        # Where the tests run in the background, Ctrl-C is ignored, and so it would be by the process.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    assert process.stdout is not None
    assert [process.stdout.readline() for _ in range(2)] == [f"job {JOB} has been submitted\n", "one\n"]
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate()
    assert process.returncode == 130
    assert errors == f"the job continues: `penstock cancel {JOB[:8]}` ends it\n"
    assert not [line for line in ready.lines() if line.startswith("PATCH")]


def test_recorded_answers_are_as_flink_gave_them() -> None:
    assert json.loads(recorded("POST /jars/upload", "upload").body)["filename"].endswith(UPLOAD)
