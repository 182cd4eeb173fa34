"""Jobs on real YARN and HDFS: all ways to submit them, and exact results whatever is killed."""

import io
import os
import re
import signal
import sys
import tarfile
import time
import zipfile

import pytest

from penstock.base.storage import Storage
from penstock.service.launch.environment_archive import PYTHON, pack_environment
from tests.server.processes import Client, ServerProcess, driver_pids
from tests.services.hadoop import SPARK_JARS
from tests.waiting import SPARK_SECONDS, until
from tests.yarn.yarn_jobs import PROGRAM, SMALL, YarnJob, seconds_until_checkpoint

pytestmark = [pytest.mark.soak, pytest.mark.spark]
COUNT, RATE = 6000, 100
"""A job of one minute at least, so that kills find it at work."""
FAULTS = [
    ("run", "kill_executor"),
    ("client", "kill_executor"),
    ("run", "kill_driver_and_start_again"),
    ("cluster", "kill_executor"),
    ("cluster", "kill_application_master"),
    ("cluster", "stop_node"),  # last, because the node manager does not come back
]


@pytest.mark.parametrize(("mode", "fault"), FAULTS)
def test_results_are_exact_whatever_is_killed(submit, recoveries, mode, fault):
    job = submit(mode, COUNT, RATE)
    job.await_checkpoint()
    seconds = seconds_until_checkpoint(job, fault)
    recoveries.setdefault(f"{fault.replace('_', ' ')} ({mode})", []).append(seconds)
    print(f"{fault}: back after {seconds:.1f} s", flush=True)
    assert job.await_end() == 0, job.log()[-6000:]
    job.check_results()


def test_a_packed_environment_brings_its_python(submit, tmp_path):
    """Neither the driver in the application master nor the slots use a Python of the machine."""
    (tmp_path / "requirements.txt").write_text("penstock[hdfs]\n")
    archive = pack_environment(tmp_path / "environment.tar.gz", tmp_path / "requirements.txt").path
    job = submit(
        "cluster",
        500,
        500,
        spark__archives=f"{archive}#environment",
        spark__pyspark__python="./environment/bin/python",
        spark__yarn__appMasterEnv__PYSPARK_PYTHON="./environment/bin/python",
    )
    assert job.await_end() == 0, job.log()[-6000:]
    job.check_results()
    own = rf"/environment[.]tar[.]gz/bin/{PYTHON} and \S*/environment[.]tar[.]gz/lib/{PYTHON}/site-packages/penstock/"
    said = job.container_logs()
    assert re.search(f"the driver runs with .*{own}", said) and re.search(f"a slot runs with .*{own}", said)


def test_sparks_jars_come_from_an_archive_on_hdfs(submit, hadoop, tmp_path):
    """Containers unpack it, and nothing else of Spark is uploaded."""
    with zipfile.ZipFile(tmp_path / "spark-jars.zip", "w") as archive:
        for jar in sorted(SPARK_JARS.glob("*.jar")):
            archive.write(jar, jar.name)
    place = f"{hadoop.url}/spark/spark-jars.zip"
    hadoop.put(tmp_path / "spark-jars.zip", place)
    job = submit("cluster", 500, 500, spark__yarn__archive=place, spark__yarn__jars="")
    assert job.await_end() == 0, job.log()[-6000:]
    job.check_results()
    unpacked = {jar.name for jar in hadoop.folder.glob("data/**/spark-jars.zip/*.jar")}
    assert unpacked == {jar.name for jar in SPARK_JARS.glob("*.jar")}
    assert "Uploading resource" in job.log() and "__spark_libs__" not in job.log()


def test_a_python_without_penstock_is_named(submit, tmp_path):
    with tarfile.open(tmp_path / "bare.tar.gz", "w:gz") as archive:
        script = f'#!/bin/sh\nexec {sys._base_executable} -S "$@"\n'.encode()  # -S: no packages
        launcher = tarfile.TarInfo("bin/python")
        launcher.size, launcher.mode = len(script), 0o755
        archive.addfile(launcher, io.BytesIO(script))
    job = submit(
        "run",
        500,
        500,
        spark__archives=f"{tmp_path / 'bare.tar.gz'}#bare",
        spark__pyspark__python="./bare/bin/python",
    )
    assert job.await_end() == 1
    assert "the slots have another Python than the" in job.log() and "'./bare/bin/python' has no Penstock" in job.log()
    assert Storage(f"{job.url}/out").names() == []


def test_a_queue_that_does_not_exist_is_named(submit):
    job = submit("run", 500, 500, spark__yarn__queue="nowhere")
    assert job.await_end() == 1
    assert "nowhere" in job.log() and "spark.yarn.queue" in job.log()
    assert Storage(f"{job.url}/out").names() == []


def test_that_jars_are_uploaded_is_told(submit):
    job = submit("run", 500, 500, spark__yarn__queue="nowhere", spark__yarn__jars="")
    job.await_end()
    assert "spark.yarn.archive" in job.log()


def test_a_server_starts_the_driver_of_a_job_again(hadoop, tmp_path, monkeypatch, recoveries):
    for name, value in hadoop.environment.items():
        monkeypatch.setenv(name, value)
    job = YarnJob(hadoop, tmp_path, "server", COUNT, RATE)
    server = ServerProcess(tmp_path / "server", execution__checkpointing__interval="1 s")
    server.options |= {**SMALL, "spark.master": "yarn"}
    server.start()
    try:
        client = Client(server)
        number = client.submit(PROGRAM, f"{job.url}/out", str(COUNT), str(RATE), parallelism=2)
        client.await_checkpoints(number)
        storage = (tmp_path / "server/storage/default").as_uri()
        began = time.monotonic()
        os.kill(driver_pids(storage, number)[-1], signal.SIGKILL)
        client.await_checkpoints(number, more=1)
        recoveries.setdefault("kill driver (server)", []).append(time.monotonic() - began)
        until(
            lambda: client.state(number) == "FINISHED",
            progress=lambda: len(job.lines()),
            patience=SPARK_SECONDS,
            every=1,
            told=server.log,
        )
        job.check_results()
    finally:
        server.stop()
