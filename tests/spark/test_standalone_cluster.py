"""A real cluster of a master and two workers, whose machines are killed one after the other, with all they run."""

from __future__ import annotations

import time
from pathlib import Path

import psutil
import pytest

from tests.spark.kill_job import KEYS
from tests.spark.kills import Victim
from tests.spark.standalone import Daemon, Standalone
from tests.waiting import SPARK_SECONDS, until

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1800)]


@pytest.fixture
def cluster(tmp_path: Path):
    (tmp_path / "cluster").mkdir()
    with Standalone(tmp_path / "cluster") as started:
        yield started


def test_a_job_outlives_each_of_its_machines(cluster: Standalone, tmp_path: Path) -> None:
    """What goes between them is encrypted, which changes nothing."""
    folder = tmp_path / "job"
    folder.mkdir()
    victim = Victim(folder, cluster.url, options={**cluster.environment, "ENCRYPTED": "true"})
    victim.start()
    try:
        victim.await_checkpoint(0)
        one, other = cluster.machines
        assert (len(one.slots()), len(other.slots())) == (1, 1), victim.log()
        lose(one, victim)
        assert (len(one.slots()), len(other.slots())) == (0, 2), "what is left has cores enough"
        again = cluster.machine(0)
        again.await_word("Successfully registered with master")
        lose(other, victim)
        assert (len(again.slots()), len(other.slots())) == (2, 0), "a machine that came back is used"
        victim.finish()
    finally:
        if victim.process is not None and victim.process.poll() is None:
            victim.kill_driver()
    victim.check(KEYS)

    def left() -> list[psutil.Process]:
        return [slot for machine in (one, other, again) for slot in machine.slots()]

    until(lambda: not left(), progress=left, patience=SPARK_SECONDS, every=0.1, told=lambda: f"still there: {left()}")


def lose(machine: Daemon, victim: Victim) -> None:
    """Kill it in the middle of the work, and wait until the job goes on."""
    victim.await_checkpoint(victim.checkpoint())
    machine.kill()
    # One that was on its way may still become complete.
    victim.await_checkpoint(victim.checkpoint() + 1)


def test_a_driver_gets_the_cores_of_one_that_died_without_a_word(cluster: Standalone, tmp_path: Path) -> None:
    """The master cannot know that the first driver is gone: its JVM still holds its connections, but is stopped."""
    folder = tmp_path / "job"
    folder.mkdir()
    first = Victim(folder, cluster.url, options=cluster.environment)
    second = Victim(folder, cluster.url, options={**cluster.environment, "TAKEOVER": "true"}, log_name="second")
    first.start()
    assert first.process is not None
    stopped: list[psutil.Process] = []
    try:
        first.await_checkpoint(0)
        stopped = [one for one in first.processes() if one.name() == "java"]
        for jvm in stopped:
            jvm.suspend()
        first.process.kill()
        first.process.wait()
        killed_at = int(1000 * time.time())
        second.start()
        second.await_checkpoint(0, ordered_after=killed_at)
        second.finish()
    finally:
        for jvm in stopped:
            jvm.kill()
        if second.process is not None and second.process.poll() is None:
            second.kill_driver()
    second.check(KEYS)
