"""However a job ends, nothing of it stays: no slot, no task, no executor, no JVM."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from tests.spark.kills import session_of
from tests.waiting import SPARK_SECONDS, until

PROGRAM = """
import sys
from penstock.datastream import StreamExecutionEnvironment

env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)
env.generate(lambda i: i, rate=50).key_by(lambda i: i % 2).sum().print()
if sys.argv[1] == "cancel":
    client = env.execute_async()
    sys.stdin.readline()
    client.cancel().result()
    print("cancelled", flush=True)
    sys.stdin.readline()
else:
    env.execute()
"""


CLUSTER = "local-cluster[2,1,1024]"


@pytest.mark.parametrize(
    ("ending", "master"),
    [
        ("cancel", "local[2]"),
        ("Ctrl-C", "local[2]"),
        ("kill -9", "local[2]"),
        ("kill -9", CLUSTER),
        pytest.param("cancel", CLUSTER, marks=pytest.mark.soak),
        pytest.param("Ctrl-C", CLUSTER, marks=pytest.mark.soak),
    ],
)
def test_nothing_stays(ending: str, master: str) -> None:
    driver = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, ending],
        env={**os.environ, "PENSTOCK_MASTER": master},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    try:
        assert driver.stdout is not None and driver.stdout.readline()
        assert len(slots(driver.pid)) == 2
        ENDINGS[ending](driver)
        driver.stdout.read()
        until(
            lambda: driver.poll() is not None and not session_of(driver.pid),
            progress=lambda: session_of(driver.pid),
            patience=SPARK_SECONDS,
            every=0.1,
        )
    finally:
        for process in session_of(driver.pid):
            process.kill()


def cancel(driver: subprocess.Popen[str]) -> None:
    """The program goes on, but no slot does."""
    say(driver)
    assert driver.stdout is not None
    while driver.stdout.readline() != "cancelled\n":
        assert driver.poll() is None
    until(lambda: not slots(driver.pid), every=0.1)
    say(driver)


def say(driver: subprocess.Popen[str]) -> None:
    assert driver.stdin is not None
    driver.stdin.write("\n")
    driver.stdin.flush()


ENDINGS = {
    "cancel": cancel,
    "Ctrl-C": lambda driver: os.killpg(driver.pid, signal.SIGINT),
    "kill -9": lambda driver: driver.kill(),
}


def slots(session: int) -> list[str]:
    return [name for process in session_of(session) if (name := process.name()).startswith("slot")]
