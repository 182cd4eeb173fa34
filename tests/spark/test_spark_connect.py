"""Jobs over a real Spark Connect server on this machine; the server is started once for all tests here.

A session of Spark Connect and a classic one exclude each other in a process, so every program has a process of its own.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.spark import kill_job
from tests.spark.conftest import REMOTE
from tests.spark.connect_server import ROOT, ConnectServer, ConnectVictim
from tests.spark.standalone import free_port
from tests.spark.tls_proxy import make_certificate, tls_proxy
from tests.waiting import SPARK_SECONDS, without_waits

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]
PROGRAM = """
from penstock.datastream import StreamExecutionEnvironment

env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
words = env.from_collection(["to be or not to be"]).flat_map(lambda line: line.split()).map(lambda word: (word, 1))
words.key_by(lambda pair: pair[0]).sum(1).filter(lambda pair: pair[1] > 1).print()
env.execute("repeated words")
"""
QUERY = """
from penstock.table import EnvironmentSettings, TableEnvironment

tables = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
with tables.sql_query("SELECT SUM(x) FROM (VALUES (1), (2)) AS v(x)").execute().collect() as rows:
    print([tuple(row) for row in rows])
"""
PRINTED = "('to', 2)\n('be', 2)\n"


TOKEN = "SPARK_CONNECT_AUTHENTICATE_TOKEN"
"""The variable that tells servers and clients their token."""
AS_EVER = {
    "test_batch.py": "is_killed_is_run_again or told_at_once",
    "test_queries_on_spark_sql.py": "casts_between or c_batch_joins or every_row_once or errors_come_home",
    "test_state_processor.py": "large_state",
    "test_streaming_source.py": "ends_with_it or restart or errors_of_the_source",
}
"""Tests that run over Spark Connect as they run in classic sessions."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(TOKEN, "secret")
        with ConnectServer(tmp_path_factory.mktemp("connect")) as started:
            yield started


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    return path


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "ignore::FutureWarning", **environment},
        capture_output=True,
        text=True,
        timeout=2 * SPARK_SECONDS,
        check=False,
    )


def test_jobs_of_a_program_with_its_own_session(server: ConnectServer, tmp_path: Path) -> None:
    done = run("tests.spark.connect_job", server.url, str(tmp_path))
    assert done.returncode == 0, done.stderr
    results = json.loads(done.stdout)
    failure = results.pop("fail")
    assert "ZeroDivisionError" in failure and "return 1 / number" in failure and "connect_job.py" in failure
    assert results == {
        "continue_through_faults": "FINISHED",
        "read_cached": ["in a file", "in a folder"],
        "cancel": "CANCELED",
        "session": 3,
    }


def test_a_master_that_is_a_server(server: ConnectServer, program: Path) -> None:
    """What the server decides is named in a warning; what a session may decide is set."""
    options = ("-D", "spark.executor.memory=2g", "-D", "spark.sql.shuffle.partitions=3")
    done = run("penstock", "run", "-m", server.url, *options, str(program))
    assert (done.returncode, done.stdout) == (0, PRINTED), done.stderr
    warning = without_waits(done.stderr)
    assert warning.startswith("spark.executor.memory cannot be set on a session of Spark Connect") and (
        "shuffle" not in warning
    )


def test_sparks_own_variable_names_the_server(server: ConnectServer, program: Path) -> None:
    done = run("penstock", "run", str(program), SPARK_REMOTE=server.url)
    assert (done.returncode, done.stdout, without_waits(done.stderr)) == (0, PRINTED, "")
    done = run("penstock", "run", "-m", "local[1]", str(program), SPARK_REMOTE=server.url)
    assert done.returncode != 0 and "SPARK_REMOTE" in done.stderr and "local[1]" in done.stderr


def test_tls_on_both_sides(server: ConnectServer, program: Path, tmp_path: Path) -> None:
    """The server's side is a proxy, because Spark's own server has no TLS."""
    certificate = make_certificate(tmp_path)
    with tls_proxy(certificate, server.port) as port:
        url = f"sc://localhost:{port}/;use_ssl=true"
        done = run("penstock", "run", "-m", url, str(program), GRPC_DEFAULT_SSL_ROOTS_FILE_PATH=str(certificate))
    assert (done.returncode, done.stdout) == (0, PRINTED), done.stderr


def test_a_driver_in_the_cluster(server: ConnectServer, program: Path) -> None:
    """Its output and its exit code come through the server."""
    program.write_text(f"{PROGRAM}raise SystemExit(7)")
    options = ("-D", "spark.submit.deployMode=cluster")
    done = run("penstock", "run", "-m", server.url, *options, str(program))
    assert (done.returncode, done.stdout) == (7, PRINTED), done.stderr
    assert "runs in the cluster" in done.stderr
    done = run("penstock", "run", "-m", server.url, "-D", "spark.submit.deployMode=clusters", str(program))
    assert done.returncode == 1 and "'clusters'; allowed are 'client' and 'cluster'" in done.stderr


def test_a_program_with_a_batch_query_ends(server: ConnectServer, tmp_path: Path) -> None:
    """The query has a session of its own, which must not hold up the end of the process."""
    path = tmp_path / "query.py"
    path.write_text(QUERY)
    done = run("penstock", "run", "-m", server.url, str(path))
    assert (done.returncode, done.stdout) == (0, "[(3,)]\n"), done.stderr


@pytest.mark.parametrize("file", AS_EVER)
def test_results_are_those_of_classic_sessions(server: ConnectServer, file: str) -> None:
    options = ("-q", "-p", "no:cacheprovider", "-k", AS_EVER[file])
    done = run("pytest", str(ROOT / "tests" / "spark" / file), *options, **{REMOTE: server.url})
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("suffix", "token", "said"),
    [
        ("", "wrong", "rejects the token"),
        ("/;use_ssl=true", "secret", "that both sides use TLS"),
    ],
)
def test_a_server_that_refuses(server: ConnectServer, program: Path, suffix: str, token: str, said: str) -> None:
    url = server.url + suffix
    done = run("penstock", "run", "-m", url, "-D", "slot.request.timeout=5s", str(program), **{TOKEN: token})
    assert done.returncode != 0 and said in done.stderr and f"'{url}'" in done.stderr, done.stderr
    assert "Traceback" not in done.stderr and "secret" not in done.stderr


def test_a_server_that_does_not_answer(program: Path) -> None:
    url = f"sc://127.0.0.1:{free_port()}"
    done = run("penstock", "run", "-m", url, "-D", "slot.request.timeout=1s", str(program))
    assert done.returncode != 0 and f"no Spark Connect server answers at '{url}' within 1 s" in done.stderr


@pytest.mark.soak
@pytest.mark.parametrize("what", ["slot", "executor", "driver"])
def test_kill_9_over_spark_connect(what: str, tmp_path: Path) -> None:
    """The driver is the process of the job, which is a client of the server. Its slots end by themselves."""
    chance = random.Random(7)
    with ConnectServer(tmp_path, "local-cluster[2,2,1024]" if what == "executor" else "local[4,4]") as server:
        victim = ConnectVictim(tmp_path, server.url)
        victim.server = server
        victim.start()
        try:
            for _ in range(2):
                victim.round(what, chance)
            victim.finish()
        finally:
            if victim.process is not None and victim.process.poll() is None:
                victim.kill_driver()
        victim.check(kill_job.KEYS)


@pytest.mark.soak
def test_a_server_that_is_started_again_during_a_job(tmp_path: Path) -> None:
    """The new server does not know the session of the job, nor the files that it was given."""
    with ConnectServer(tmp_path, "local[4,4]") as server:
        victim = ConnectVictim(tmp_path, server.url)
        victim.server = server
        victim.start()
        try:
            for _ in range(2):
                before = victim.checkpoint()
                victim.await_checkpoint(before)
                server.end()
                stopped_at = int(time.time() * 1000)
                server.start()
                victim.await_checkpoint(0, ordered_after=stopped_at)
            victim.finish()
        finally:
            if victim.process is not None and victim.process.poll() is None:
                victim.kill_driver()
        victim.check(kill_job.KEYS)
