"""`spark-submit` as a way to run programs, and what goes wrong between Spark, its JVM and the Python of the slots."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pyspark
import pytest

from tests.waiting import without_waits

pytestmark = pytest.mark.timeout(600)
SPARK = Path(pyspark.__file__).parent
ROOT = Path(__file__).parents[2]

SUBMITTED = """
import json, sys
from pyspark import SparkContext
import doubling
from penstock.datastream import StreamExecutionEnvironment

env = StreamExecutionEnvironment.get_execution_environment()
with env.from_sequence(1, 4).map(doubling.double).execute_and_collect() as results:
    collected = sorted(results)
context = SparkContext._active_spark_context
print(json.dumps({
    "results": collected,
    "parallelism": env.get_parallelism(),
    "interval": env.get_checkpoint_config().get_checkpoint_interval(),
    "epoch": env.settings.max_millis,
    "settings": dict(context.getConf().getAll()),
}))
"""

DOUBLING = """
from pathlib import Path
from pyspark import SparkFiles

def double(number):
    return int(Path(SparkFiles.get("data"), "factor").read_text()) * number
"""

FAILING = """
from penstock.datastream import StreamExecutionEnvironment

env = StreamExecutionEnvironment.get_execution_environment()
env.from_sequence(1, 4).map(lambda number: 1 // (number - 3)).print()
env.execute()
"""

OWN_SESSION = """
import json, os, sys
from pyspark.sql import SparkSession
from penstock.common import Configuration
from penstock.datastream import StreamExecutionEnvironment
from penstock.errors import PenstockError

master, interpreters, timeout = sys.argv[1], sys.argv[2:], os.environ.get("TIMEOUT", "5 min")
spark = SparkSession.builder.master(master).config("spark.ui.enabled", "false").getOrCreate()
spark.sparkContext.setLogLevel("OFF")
said = []
for interpreter in interpreters or [spark.sparkContext.pythonExec]:
    spark.sparkContext.pythonExec = interpreter
    configuration = Configuration()
    configuration.set_string("slot.request.timeout", timeout)
    env = StreamExecutionEnvironment.get_execution_environment(configuration).set_parallelism(1)
    env.enable_checkpointing(1000)
    try:
        with env.from_sequence(1, 3).execute_and_collect() as results:
            said.append([sys.executable, *map(str, results)])
    except PenstockError as error:
        said.append([type(error).__name__, str(error)])
print(json.dumps(said))
"""


def run(*command: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name != "PYSPARK_PYTHON"}
    environment["PYTHONPATH"] = str(ROOT)
    return subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=500, env={**environment, **variables}
    )


def submit(*arguments: str) -> subprocess.CompletedProcess[str]:
    return run(str(SPARK / "bin" / "spark-submit"), *arguments, PYSPARK_PYTHON=sys.executable)


def last_line(done: subprocess.CompletedProcess[str]) -> Any:
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


def test_settings_of_spark_submit_hold(tmp_path: Path) -> None:
    (tmp_path / "job.py").write_text(SUBMITTED)
    (tmp_path / "doubling.py").write_text(DOUBLING)
    with zipfile.ZipFile(tmp_path / "data.zip", "w") as archive:
        archive.writestr("factor", "2")
    given = {
        "spark.ui.port": "0",
        "spark.executor.memory": "600m",
        "spark.cleaner.periodicGC.interval": "7min",
        "spark.penstock.parallelism.default": "2",
        "spark.penstock.execution.checkpointing.interval": "5s",
        "spark.penstock.epoch.max-time": "500 ms",
        "spark.penstock.execution.checkpointing.intervall": "5s",
    }
    done = submit(
        *("--master", "local-cluster[1,2,600]", "--name", "doubled numbers"),
        *("--driver-memory", "512m", "--py-files", str(tmp_path / "doubling.py")),
        *("--archives", f"{tmp_path / 'data.zip'}#data"),
        *(part for name, value in given.items() for part in ("--conf", f"{name}={value}")),
        str(tmp_path / "job.py"),
    )
    said = last_line(done)
    assert said["results"] == [2, 4, 6, 8]
    assert (said["parallelism"], said["interval"], said["epoch"]) == (2, 5000, 500)
    settings = said["settings"]
    assert settings["spark.master"] == "local-cluster[1,2,600]"
    assert settings["spark.app.name"] == "doubled numbers"
    assert {name: settings[name] for name in given} == given
    assert "spark.ui.enabled" not in settings, "Spark's own default holds"
    assert "INFO SparkContext: Running Spark version" in done.stderr, "Spark logs as it always does"
    unknown = "spark.penstock.execution.checkpointing.intervall"
    meant = "did you mean 'spark.penstock.execution.checkpointing.interval'?"
    (warning,) = [line for line in done.stdout.splitlines() if unknown in line and line.startswith("warning")]
    assert meant in warning


def test_a_job_that_fails_is_a_submission_that_fails(tmp_path: Path) -> None:
    (tmp_path / "job.py").write_text(FAILING)
    done = submit("--master", "local[2]", "--conf", "spark.penstock.parallelism.default=1", str(tmp_path / "job.py"))
    assert done.returncode == 1
    # Spark writes both streams of a program to standard output.
    assert "JobFailed" in done.stdout
    assert "ZeroDivisionError" in done.stdout


def test_cluster_mode_of_a_standalone_cluster_takes_no_python(tmp_path: Path) -> None:
    (tmp_path / "job.py").write_text(FAILING)
    done = submit("--master", "spark://127.0.0.1:1", "--deploy-mode", "cluster", str(tmp_path / "job.py"))
    assert done.returncode == 1
    assert (
        "Cluster deploy mode is currently not supported for python applications on standalone clusters" in done.stderr
    )


@pytest.mark.parametrize(
    ("settings", "cause", "advice"),
    [
        pytest.param(
            {"spark.master": "yarn"},
            "When running with master 'yarn' either HADOOP_CONF_DIR or YARN_CONF_DIR must be set in the environment",
            "Set HADOOP_CONF_DIR to the folder with the cluster's core-site.xml",
            id="YARN without Hadoop's configuration",
        ),
        pytest.param({"spark.driver.memory": "nonsense"}, "nonsense", "Write spark.driver.memory", id="memory"),
        pytest.param(
            {"spark.master": "local[1]", "spark.kerberos.keytab": "/no/keytab", "spark.kerberos.principal": "me"},
            "/no/keytab",
            "spark.kerberos.keytab",
            id="keytab",
        ),
    ],
)
def test_a_jvm_that_does_not_start_says_why(tmp_path: Path, settings: dict[str, str], cause: str, advice: str) -> None:
    (tmp_path / "job.py").write_text(FAILING)
    chosen = [part for name, value in settings.items() for part in ("-D", f"{name}={value}")]
    done = run(sys.executable, "-m", "penstock", "run", *chosen, str(tmp_path / "job.py"))
    assert done.returncode == 1
    assert done.stderr.startswith("ConfigurationError: "), done.stderr
    assert cause in done.stderr
    assert advice in done.stderr
    assert "JAVA_GATEWAY_EXITED" not in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_session_of_the_program_uses_the_interpreter_of_the_driver(tmp_path: Path) -> None:
    """Spark would start the `python3` of the PATH, which need not have Penstock."""
    (tmp_path / "job.py").write_text(OWN_SESSION)
    other = tmp_path / "python3"
    other.write_text("#!/bin/sh\necho 'the python3 of the PATH' >&2\nexit 7\n")
    other.chmod(0o755)
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    done = run(sys.executable, str(tmp_path / "job.py"), "local[2]", PATH=path)
    assert last_line(done) == [[sys.executable, "1", "2", "3"]]
    assert "the python3 of the PATH" not in done.stderr


def test_an_interpreter_that_cannot_be_a_slot_is_named(tmp_path: Path) -> None:
    (tmp_path / "job.py").write_text(OWN_SESSION)
    changes = {
        "without": "",
        "older": "import penstock; penstock.__version__ = '0.0.1'",
    }
    interpreters = [_interpreter(tmp_path / name, name == "older", change) for name, change in changes.items()]
    missing = "./environment/bin/python"
    done = run(sys.executable, str(tmp_path / "job.py"), "local-cluster[1,1,1024]", *interpreters, missing)
    without, older, absent = last_line(done)
    for kind, message in (without, older, absent):
        assert kind == "ConfigurationError", message
        assert f"'{sys.executable}'" in message, "the driver's interpreter"
        assert "spark.pyspark.python" in message, "the setting"
    assert f"'{interpreters[0]}' has no Penstock" in without[1]
    assert "with Penstock 0.0.1" in older[1]
    assert f"the program '{missing}'" in absent[1]


def _interpreter(folder: Path, has_penstock: bool, change: str) -> str:
    """A command that starts Python with Spark, with or without Penstock, and something else changed."""
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(change)
    libraries = [*(SPARK / "python" / "lib").glob("*.zip"), folder, *([ROOT] if has_penstock else [])]
    command = folder / "python"
    interpreter = sys.executable if has_penstock else sys._base_executable
    path = os.pathsep.join(map(str, libraries))
    command.write_text(f"#!/bin/sh\nPYTHONPATH='{path}' exec '{interpreter}' \"$@\"\n")
    command.chmod(0o755)
    return str(command)


def test_slots_without_executors_say_what_they_wait_for(tmp_path: Path) -> None:
    (tmp_path / "job.py").write_text(OWN_SESSION)
    done = run(sys.executable, str(tmp_path / "job.py"), "local-cluster[0,1,1024]", TIMEOUT="2 s")
    ((kind, message),) = last_line(done)
    assert kind == "NotEnoughSlots"
    assert "needs 1 slots at once, and 0 have started (slot.request.timeout, 2 s, has expired)" in message
    assert "no executor has registered with Spark yet" in message
    assert without_waits(done.stderr).count("Traceback") == 0
