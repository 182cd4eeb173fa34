"""What only a real Spark can show: errors, cancelling, sessions, DataFrames, the command line."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

import penstock
from penstock.common import Row, Types
from penstock.common.job import JobStatus
from penstock.datastream import StreamExecutionEnvironment
from penstock.errors import JavaMissing, JobCancelled, JobFailed, TypeMismatch
from penstock.spark.sessions import jvm
from penstock.spark.sessions import session as sessions
from tests.waiting import SPARK_SECONDS, until, without_waits


def run_program(tmp_path: Path, text: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a program through the command line."""
    program = tmp_path / "job.py"
    program.write_text(textwrap.dedent(text))
    return subprocess.run(
        [sys.executable, "-m", "penstock", "run", *arguments, str(program)],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


def test_a_user_exception_shows_the_operator_and_only_the_users_traceback(tmp_path: Path) -> None:
    done = run_program(
        tmp_path,
        """
        from penstock.datastream import StreamExecutionEnvironment

        def divide(x):
            return 10 // x

        env = StreamExecutionEnvironment.get_execution_environment()
        env.from_elements(5, 2, 0).map(divide).name("Divide").uid("the-divider").print()
        env.execute()
        """,
        "-p",
        "2",
    )
    assert done.returncode == 1
    assert "Divide (uid the-divider, subtask" in done.stderr
    assert "ZeroDivisionError" in done.stderr and "on record 0" in done.stderr and "return 10 // x" in done.stderr
    assert "py4j" not in done.stderr and "at org.apache" not in done.stderr
    assert os.path.dirname(penstock.__file__) not in done.stderr


def test_a_clean_run_prints_results_and_nothing_else(tmp_path: Path) -> None:
    done = run_program(
        tmp_path,
        """
        from dataclasses import dataclass
        from penstock.datastream import StreamExecutionEnvironment

        @dataclass(frozen=True)
        class Reading:
            sensor: str
            value: int

        env = StreamExecutionEnvironment.get_execution_environment()
        stream = env.from_elements(Reading("a", 1), Reading("b", 2), Reading("a", 3))
        stream.key_by("sensor").reduce(lambda x, y: Reading(x.sensor, x.value + y.value)).print("total")
        env.execute()
        """,
        "-p",
        "2",
    )
    assert done.returncode == 0, done.stderr
    assert without_waits(done.stderr) == ""
    lines = sorted(line.split("> ")[1] for line in done.stdout.splitlines())
    expected = ["('a', 1)", "('a', 4)", "('b', 2)"]
    assert [line.replace("Reading(sensor=", "(").replace("value=", "") for line in lines] == expected
    assert all(line.startswith(("total:1> ", "total:2> ")) for line in done.stdout.splitlines())


def test_an_unchanged_pyflink_program_runs(tmp_path: Path) -> None:
    done = run_program(
        tmp_path,
        """
        from pyflink.common import Types
        from pyflink.datastream import StreamExecutionEnvironment

        env = StreamExecutionEnvironment.get_execution_environment()
        env.set_parallelism(1)
        ds = env.from_collection([("a", 1), ("a", 2)], type_info=Types.TUPLE([Types.STRING(), Types.INT()]))
        ds.key_by(lambda t: t[0]).sum(1).print()
        env.execute()
        """,
        "--pyflink",
    )
    assert (done.returncode, done.stdout) == (0, "(a,1)\n(a,3)\n"), done.stderr


def test_ctrl_c_stops_the_job_and_leaves_no_process(tmp_path: Path) -> None:
    program = tmp_path / "job.py"
    program.write_text(
        textwrap.dedent(
            """
            from penstock.datastream import StreamExecutionEnvironment

            env = StreamExecutionEnvironment.create_local_environment(2)
            env.generate(lambda i: i, rate=20).key_by(lambda i: i % 3).sum().print()
            env.execute()
            """
        )
    )
    process = subprocess.Popen(
        [sys.executable, "-m", "penstock", "run", str(program)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    process.stdout.readline()
    family = psutil.Process(process.pid).children(recursive=True)
    assert family
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate()
    assert process.returncode == 130
    assert "cancelled" in errors and "Traceback" not in errors
    _, alive = psutil.wait_procs(family, timeout=60)
    assert not alive


def test_cancel_ends_the_job_and_its_processes(env: StreamExecutionEnvironment, slot_processes) -> None:
    env.generate(lambda i: i, rate=100).map(lambda x: x).discard()
    client = env.execute_async()
    job = str(client.get_job_id())
    until(lambda: slot_processes(job), patience=SPARK_SECONDS)
    client.cancel().result()
    assert client.get_job_status().result() is JobStatus.CANCELED
    with pytest.raises(JobCancelled):
        client.get_job_execution_result().result()
    until(lambda: not slot_processes(job))


def test_cancel_interrupts_a_function_that_does_not_return(
    env: StreamExecutionEnvironment, slot_processes, tmp_path: Path
) -> None:
    def stuck(value: int) -> int:
        (tmp_path / "stuck").touch()
        time.sleep(3600)
        return value

    env.from_elements(1).map(stuck).discard()
    client = env.execute_async()
    job = str(client.get_job_id())
    until((tmp_path / "stuck").exists, patience=SPARK_SECONDS)
    client.cancel().result()
    until(lambda: client.get_job_status().result() is JobStatus.CANCELED)
    until(lambda: not slot_processes(job))


def test_a_finished_job_leaves_no_process(env: StreamExecutionEnvironment, slot_processes) -> None:
    with env.from_sequence(1, 10).map(lambda x: x).execute_and_collect() as results:
        assert sorted(results) == list(range(1, 11))
    until(lambda: not slot_processes(""))


def test_results_stream_while_the_job_runs(env: StreamExecutionEnvironment) -> None:
    with env.generate(lambda i: i, rate=50).execute_and_collect() as results:
        first = [next(results) for _ in range(5)]
    assert len(first) == 5


def test_a_master_that_spark_does_not_know_is_told_in_one_line(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "from penstock.datastream import StreamExecutionEnvironment\n"
        "env = StreamExecutionEnvironment.get_execution_environment()\n"
        "env.from_sequence(1, 3).print()\n"
        "env.execute()\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "penstock", "run", "-m", "sparkle://host", str(program)],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 1 and done.stdout == ""
    said = " ".join(done.stderr.split())
    assert said.startswith("ConfigurationError: Spark could not be started with the master 'sparkle://host': Could not")
    assert "Traceback" not in said and "java" not in said


def test_two_jobs_run_side_by_side() -> None:
    clients = []
    for _ in range(2):
        env = StreamExecutionEnvironment.create_local_environment(2)
        env.from_sequence(1, 1000).key_by(lambda x: x % 7).sum().discard()
        clients.append(env.execute_async())
    for client in clients:
        client.get_job_execution_result().result()
        assert client.get_job_status().result() is JobStatus.FINISHED


def test_rows_of_a_data_frame(env: StreamExecutionEnvironment) -> None:
    spark = sessions.session("local[2]", "test", {})
    frame = spark.range(0, 50_000).selectExpr("id", "concat('n', id % 3) as name")
    stream = env.from_spark(frame).key_by("name").map(lambda row: (row.name, row["id"]))
    with stream.execute_and_collect() as results:
        rows = sorted(results, key=lambda r: r[1])
    assert rows == [(f"n{i % 3}", i) for i in range(50_000)]


def test_rows_keep_names_across_an_exchange(env: StreamExecutionEnvironment) -> None:
    names = [f"f{i}" for i in range(20)]
    row_type = Types.ROW_NAMED(names, [Types.INT()] * 20)
    rows = [Row(*range(i, i + 20)) for i in range(5)]
    stream = env.from_collection(rows, type_info=row_type).key_by("f0").map(lambda row: row)
    with stream.execute_and_collect() as results:
        got = sorted(results, key=lambda row: row.f0)
    assert [row.as_dict() for row in got] == [dict(zip(names, range(i, i + 20), strict=True)) for i in range(5)]


def test_values_of_a_class_defined_inside_a_function(env: StreamExecutionEnvironment) -> None:
    @dataclass(frozen=True)
    class Local:
        n: int

    stream = env.from_sequence(1, 4).map(Local).key_by(lambda v: v.n % 2).map(lambda v: Local(v.n * 10))
    with stream.execute_and_collect() as results:
        assert sorted(v.n for v in results) == [10, 20, 30, 40]


def test_a_value_that_does_not_fit_its_type_is_told_in_the_job(env: StreamExecutionEnvironment) -> None:
    env.from_elements(1, 2).map(lambda x: "x", output_type=Types.INT()).name("Wrong").discard()
    with pytest.raises(TypeMismatch, match=r"Wrong .*does not fit INT") as caught:
        env.execute()
    assert isinstance(caught.value, JobFailed)


def test_a_failing_job_does_not_spoil_the_session(env: StreamExecutionEnvironment) -> None:
    env.from_elements(1).map(lambda x: x / 0).discard()
    with pytest.raises(JobFailed):
        env.execute()
    with env.from_elements(1, 2).map(lambda x: x).execute_and_collect() as results:
        assert sorted(results) == [1, 2]


OWN_SESSION = """
import os, sys
os.environ["PYSPARK_PYTHON"] = sys.executable
from pyspark.sql import SparkSession
from penstock.common import Configuration
from penstock.datastream import StreamExecutionEnvironment
builder = SparkSession.builder.config("spark.ui.enabled", "false").appName("mine")
"""


def test_any_session_is_used_as_it_is(tmp_path: Path) -> None:
    done = run_program(
        tmp_path,
        OWN_SESSION
        + """
mine = builder.master("local[2]").getOrCreate()
env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(2)
env.from_elements(1, 2).map(lambda x: x + 1).print()
env.execute()
print(mine.range(3).count())
""",
    )
    assert done.returncode == 0, done.stderr
    assert sorted(line[-1] for line in done.stdout.splitlines()) == ["2", "3", "3"]


def test_too_few_cores_are_waited_for_and_then_an_error(tmp_path: Path) -> None:
    done = run_program(
        tmp_path,
        OWN_SESSION
        + """
mine = builder.master("local[1]").getOrCreate()
env = StreamExecutionEnvironment.get_execution_environment(
    Configuration().set_string("slot.request.timeout", "5 s").set_string("parallelism.default", "3")
)
env.from_elements(1).map(lambda x: x).print()
env.execute()
""",
    )
    assert done.returncode == 1
    assert "NotEnoughSlots: job 'Penstock job' needs 3 slots at once" in done.stderr
    assert "Spark can run 1 task at once, and the job needs 3" in done.stderr
    assert "slot.request.timeout, 5 s, has expired" in done.stderr


def test_a_job_that_waits_for_cores_can_be_cancelled(tmp_path: Path) -> None:
    done = run_program(
        tmp_path,
        OWN_SESSION
        + """
import threading, time
from penstock.errors import JobCancelled
mine = builder.master("local[1]").getOrCreate()
env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(3)
env.from_elements(1).map(lambda x: x).discard()
client = env.execute_async()
time.sleep(1)
client.cancel().result()
try:
    client.get_job_execution_result().result()
except JobCancelled:
    print(client.get_job_status().result().name)
print([thread.name for thread in threading.enumerate() if thread.name.startswith("penstock job")])
""",
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["CANCELED", "[]"]


def test_dynamic_allocation_means_nothing_on_a_local_master(tmp_path: Path) -> None:
    done = run_program(
        tmp_path,
        OWN_SESSION
        + """
mine = builder.master("local[2]").config("spark.dynamicAllocation.enabled", "true").getOrCreate()
env = StreamExecutionEnvironment.get_execution_environment()
env.from_elements(1).print()
env.execute()
""",
    )
    assert done.returncode == 0 and done.stdout.split()[-1] == "1", done.stderr


def test_a_session_of_our_own_grows_with_the_jobs_and_serves_two_at_once(env: StreamExecutionEnvironment) -> None:
    first = env.generate(lambda i: i, rate=20).key_by(lambda i: i % 2).sum().execute_and_collect()
    next(first)
    other = StreamExecutionEnvironment.create_local_environment(1)
    assert list(other.from_elements(1, 2).execute_and_collect()) == [1, 2]
    next(first)
    first.close()
    wide = StreamExecutionEnvironment.create_local_environment(6)
    assert sorted(wide.from_sequence(1, 12).map(lambda x: x).execute_and_collect()) == list(range(1, 13))


def test_java_missing_and_too_old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(JavaMissing, match="Install one"):
        jvm.check_java()
    old = tmp_path / "java"
    old.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\" 2019-01-15' >&2\n")
    old.chmod(0o755)
    with pytest.raises(JavaMissing, match="is Java 11"):
        jvm.check_java()
