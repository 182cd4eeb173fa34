"""Clusters on which Spark adds and removes executors: slots are ordinary tasks there."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import psutil
import pytest

from tests.spark.kill_job import KEYS
from tests.spark.kills import Victim
from tests.spark.standalone import DYNAMIC, Standalone

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1800)]
PRELUDE = """
import os, sys, time
from penstock.common import Configuration
from penstock.datastream import StreamExecutionEnvironment
from penstock.spark.sessions.session import active_session, session

sessions = {
    "spark.dynamicAllocation.enabled": "true",
    "spark.dynamicAllocation.minExecutors": "0",
    "spark.dynamicAllocation.maxExecutors": "2",
    "spark.dynamicAllocation.executorIdleTimeout": "1s",
    "spark.executor.memory": "512m",
    "spark.executor.cores": "1",
}

def environment(slots, **options):
    options = {name.replace("__", "."): value for name, value in options.items()}
    return StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(options)).set_parallelism(slots)

def executors():
    return len(active_session().sparkContext._jsc.sc().statusTracker().getExecutorInfos()) - 1
"""


def run(program: str, *settings: str) -> str:
    """Run a program on a cluster of two machines with one core each; return what it printed."""
    lines = [f"sessions[{name!r}] = {value!r}" for name, value in (setting.split("=", 1) for setting in settings)]
    begin = "session('local-cluster[2,1,1024]', 'dynamic', sessions)\n"
    text = PRELUDE + "\n".join(lines) + "\n" + begin + textwrap.dedent(program)
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_job_brings_its_executors_and_outlives_a_slot() -> None:
    """It begins without executors, is quiet for longer than an executor may be idle, and loses a slot."""
    said = run(
        """
        from pathlib import Path
        from tempfile import mkdtemp
        from penstock.errors import NotEnoughSlots

        died = Path(mkdtemp(), "died")

        def once(number):
            if number == 50:
                time.sleep(3)
            if number == 80 and not died.exists():
                died.touch()
                os.kill(os.getpid(), 9)
            return number

        assert executors() == 0
        options = {"restart-strategy.type": "fixed-delay", "restart-strategy.fixed-delay.delay": "10 ms"}
        env = environment(2, **options, **{"execution.checkpointing.interval": "100 ms"})
        counts = env.from_sequence(0, 99).map(once).key_by(lambda n: n % 3).map(lambda n: (n % 3, 1)).key_by(
            lambda pair: pair[0]
        ).sum(1)
        results = counts.execute_and_collect()
        driver = results._job.job_driver
        print(sorted(results) == sorted((k, n) for k in range(3) for n in range(1, 35 if k == 0 else 34)))
        print([failure.message for failure in driver.view.failures], died.exists())

        env = environment(3, slot__request__timeout="5 s")
        env.from_elements(1).print()
        try:
            env.execute("too large")
        except NotEnoughSlots as error:
            print(error)
        """
    ).splitlines()
    assert said[0] == "True"
    assert "slot" in said[1] and said[1].count("died") == 1 and said[1].endswith("True")
    assert "job 'too large' needs 3 slots" in said[2] and "spark.dynamicAllocation.maxExecutors=2" in said[2]


@pytest.mark.soak
def test_slots_executors_and_machines_are_lost(tmp_path: Path) -> None:
    """Each time Spark would run the lost tasks again; the attempt has ended by then."""
    with Standalone(folder(tmp_path, "cluster"), DYNAMIC) as cluster:
        victim = Victim(folder(tmp_path, "job"), cluster.url, options=cluster.environment)
        victim.start()
        try:
            victim.await_checkpoint(0)
            for kind in ("slot", "executor", "slot", "executor"):
                alive = victim.until(lambda kind=kind: hosted(cluster, kind), f"there is no {kind}")
                alive[0].kill()
                victim.await_checkpoint(victim.checkpoint() + 1)
            machine = next(machine for machine in cluster.machines if machine.slots())
            machine.kill()
            victim.await_checkpoint(victim.checkpoint() + 1)
            victim.finish()
        finally:
            end(victim)
        victim.check(KEYS)


def hosted(cluster: Standalone, kind: str) -> list[psutil.Process]:
    """The slots of a job that has both, or their executors."""
    slots = [slot for machine in cluster.machines for slot in machine.slots()]
    if len(slots) < 2:
        return []
    executors = [executor for machine in cluster.machines for executor in machine.executors()]
    return slots if kind == "slot" else [one for one in executors if slots[0] in one.children(recursive=True)]


def folder(parent: Path, name: str) -> Path:
    made = parent / name
    made.mkdir()
    return made


def end(victim: Victim) -> None:
    if victim.process is not None and victim.process.poll() is None:
        victim.kill_driver()
