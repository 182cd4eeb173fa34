"""Slots and links that misbehave: each ends in a clear error or a recovery, and nothing is lost or doubled."""

from __future__ import annotations

import ctypes
import logging
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from penstock.common import Configuration
from penstock.common.job import JobStatus
from penstock.datastream import StreamExecutionEnvironment
from penstock.errors import SlotLost
from penstock.spark.links.links import _HEADER, Tag, send
from penstock.spark.links.mesh import FEW_SLOTS
from tests.spark.kill_job import KEYS
from tests.spark.kills import Victim
from tests.waiting import SPARK_SECONDS, until

RECORDS = 400
MANY = FEW_SLOTS + 1
SUMS = sorted(sum(range(key, last + 1, 4)) for key in range(4) for last in range(key, RECORDS, 4))


@pytest.fixture
def environment(tmp_path: Path) -> Callable[..., StreamExecutionEnvironment]:
    """Makes environments with checkpoints and restarts."""

    def make(**options: str) -> StreamExecutionEnvironment:
        usual = {
            "execution.checkpointing.interval": "200 ms",
            "execution.checkpointing.dir": f"file://{tmp_path}/checkpoints",
            "restart-strategy.type": "fixed-delay",
            "restart-strategy.fixed-delay.attempts": "100",
            "restart-strategy.fixed-delay.delay": "10 ms",
        }
        return StreamExecutionEnvironment(Configuration.from_dict(usual | options)).set_parallelism(2)

    return make


def sums(env: StreamExecutionEnvironment, fault: Callable[[], None], folder: Path, at: int = 200):
    """The running sums by key, on the way to which a fault happens once."""

    def check(number: int) -> int:
        if number == at:
            try:
                Path(folder, "happened").touch(exist_ok=False)
            except FileExistsError:
                return number
            fault()
        return number

    return env.generate(lambda i: i, rate=200, count=RECORDS).map(check).key_by(lambda i: i % 4).sum()


# --- slots that hang ---
HEARTBEATS = {"heartbeat.interval": "300 ms", "heartbeat.timeout": "5 s"}
"""Missed within the patience of a test, and not by a process that waits for its turn on a busy machine."""


def hold_the_interpreter() -> None:
    """Compute for a long time without letting another thread run, as some libraries do."""
    ctypes.PyDLL(None).sleep(600)


def test_a_slot_that_hangs_is_lost_with_its_stack(environment, tmp_path) -> None:
    results = sums(environment(**HEARTBEATS), hold_the_interpreter, tmp_path).execute_and_collect()
    driver = results._job.job_driver
    assert sorted(results) == SUMS
    [cause] = [failure.message for failure in driver.view.failures]
    assert "has not answered for 5 s (heartbeat.timeout). The slot does not release the interpreter lock in" in cause
    assert "in hold_the_interpreter" in cause and "test_faults.py" in cause


def test_a_hanging_slot_does_not_outlive_its_job(environment, tmp_path, slot_processes) -> None:
    env = environment(**HEARTBEATS, **{"restart-strategy.type": "none"})
    results = sums(env, hold_the_interpreter, tmp_path).execute_and_collect()
    job = str(results._job.job_id)
    with pytest.raises(SlotLost, match="in hold_the_interpreter"):
        list(results)
    until(lambda: not slot_processes(job))


def take_a_nap() -> None:
    time.sleep(8)


def test_a_function_that_is_slow_is_not_taken_for_dead(environment, tmp_path, caplog) -> None:
    """The log says where the slot is, since it may hang for good."""
    with caplog.at_level(logging.WARNING, "penstock.job"):
        results = sums(environment(**HEARTBEATS), take_a_nap, tmp_path).execute_and_collect()
        driver = results._job.job_driver
        assert sorted(results) == SUMS
    assert not driver.view.failures
    told = [record.message for record in caplog.records if "has been busy with one epoch for 5 s" in record.message]
    assert any("in take_a_nap" in message for message in told)


# --- slots that die ---
def test_the_others_end_while_the_next_attempt_is_waited_for(environment, slot_processes) -> None:
    env = environment(**{"restart-strategy.fixed-delay.delay": "1 h"})
    env.generate(lambda i: i, rate=50).key_by(lambda i: i % 4).sum().discard()
    client = env.execute_async("to be killed")
    job = str(client.get_job_id())
    until(lambda: len(slot_processes(job)) == 2 and client.get_job_status().result() is JobStatus.RUNNING)
    os.kill(slot_processes(job)[0], signal.SIGKILL)
    until(lambda: client.get_job_status().result() is JobStatus.RESTARTING)
    until(lambda: not slot_processes(job))
    client.cancel().result()


# --- links ---
def the_slot():
    """The engine's own object in this process, as a fault finds it."""
    frame = sys._getframe()
    while frame.f_code.co_name != "_epoch":
        frame = frame.f_back
    return frame.f_locals["self"]


def cut_a_link_in_the_middle_of_a_message() -> None:
    for inlet in the_slot()._mesh._inlets.values():
        inlet.sock.send(_HEADER.pack(1000, 0, 0, 0) + b"half of it")
        inlet.sock.close()
    time.sleep(600)


def cut_a_report_in_the_middle() -> None:
    the_slot()._control.send(_HEADER.pack(1000, 0, 0, 0) + b"half of it")
    the_slot()._control.close()
    time.sleep(600)


def send_what_belongs_to_an_earlier_attempt() -> None:
    for inlet in the_slot()._mesh._inlets.values():
        inlet.sock.send(_HEADER.pack(3, the_slot()._invitation.attempt - 1, 7, 0) + b"old")


def report_for_an_earlier_attempt() -> None:
    slot = the_slot()
    send(slot._control, Tag(slot._invitation.attempt - 1, 7, -1), b"old")


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (cut_a_link_in_the_middle_of_a_message, "the link to slot"),
        (cut_a_report_in_the_middle, "the connection ended in the middle of a message"),
        (send_what_belongs_to_an_earlier_attempt, r"sent Tag(attempt=-1, epoch=7, stage=0) instead of"),
        (report_for_an_earlier_attempt, r"answered Tag(attempt=-1, epoch=7, stage=-1) instead of"),
    ],
)
@pytest.mark.parametrize("slots", [2, MANY], ids=["direct", "with a hub"])
def test_a_link_that_misbehaves_ends_the_attempt(environment, tmp_path, slot_processes, slots, fault, said) -> None:
    results = sums(environment(), fault, tmp_path).set_parallelism(slots).execute_and_collect()
    driver, job = results._job.job_driver, str(results._job.job_id)
    assert sorted(results) == SUMS
    [cause] = [failure.message for failure in driver.view.failures]
    assert said in cause
    until(lambda: not slot_processes(job))


# --- a slow slot ---
def test_what_waits_for_a_slow_slot_is_one_epochs_output(environment) -> None:
    """600 MB pass through; a slot that could run ahead would hold half of them."""

    def slowly(pair):
        if pair[0] % 2:
            time.sleep(0.0002)
        return pair[0], resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    total = 60_000
    env = environment(**{"penstock.epoch.max-records": "2000"})
    large = env.from_sequence(0, total - 1).map(lambda n: (n, b"%09d" % n * 1000))
    seen = large.key_by(lambda pair: pair[0] % 2).map(slowly)
    sent = large.map(lambda pair: (-1, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss))
    numbers, memory = [], []
    for number, kilobytes in seen.union(sent).execute_and_collect():
        numbers.append(number)
        memory.append(kilobytes)
    assert sorted(number for number in numbers if number >= 0) == list(range(total))
    assert max(memory) < 300_000


# --- the driver ---
STOPPED = """
from penstock.common import Configuration
from penstock.common.job import JobStatus
from penstock.datastream import StreamExecutionEnvironment

options = {"heartbeat.interval": "200 ms", "heartbeat.timeout": "5 s", "restart-strategy.type": "none"}
env = StreamExecutionEnvironment(Configuration.from_dict(options)).set_parallelism(2)
env.generate(lambda i: i, rate=50, count=300).key_by(lambda i: i % 2).sum().print()
env.execute()
"""


def test_a_driver_that_was_stopped_for_long_does_not_take_its_slots_for_dead() -> None:
    driver = subprocess.Popen([sys.executable, "-c", STOPPED], stdout=subprocess.PIPE, text=True)
    assert driver.stdout is not None
    try:
        seen = [driver.stdout.readline() for _ in range(20)]
        for _ in range(2):
            driver.send_signal(signal.SIGSTOP)
            time.sleep(6)  # longer than the heartbeat's timeout
            driver.send_signal(signal.SIGCONT)
            seen.append(driver.stdout.readline())
        seen.extend(driver.stdout)
        assert driver.wait(SPARK_SECONDS) == 0
    finally:
        driver.kill()
    expected = sorted(sum(range(start, last + 1, 2)) for start in (0, 1) for last in range(start, 300, 2))
    assert sorted(int(line.split("> ")[1]) for line in seen) == expected


# --- executors ---
def test_an_executor_that_is_lost_while_slots_start(tmp_path) -> None:
    victim = Victim(tmp_path, "local-cluster[2,2,1024]")
    victim.start()
    try:
        executor = victim.until(lambda: host_of_a_slot(victim), "no slot is started")
        executor.kill()
        victim.await_checkpoint(victim.checkpoint() + 1)
        victim.finish()
    finally:
        if victim.process is not None and victim.process.poll() is None:
            victim.kill_driver()
    victim.check(KEYS)


def host_of_a_slot(victim: Victim) -> psutil.Process | None:
    """An executor that has just begun to start the Python process of a task."""
    for executor in victim.executors():
        with suppress(psutil.Error):
            if executor.children():
                return executor
    return None


@pytest.mark.spark
@pytest.mark.timeout(1800)
def test_a_jvm_that_dies_is_replaced_by_the_same_driver(tmp_path: Path) -> None:
    """With it goes the Spark application: the job gets another one, and goes on from its last checkpoint."""
    victim = Victim(tmp_path, "local[2]")
    victim.start()
    assert victim.process is not None
    try:
        victim.await_checkpoint(victim.checkpoint())
        [jvm] = [child for child in psutil.Process(victim.process.pid).children() if child.name() == "java"]
        jvm.kill()
        killed_at = int(1000 * time.time())
        victim.await_checkpoint(0, ordered_after=killed_at)
        assert victim.process.poll() is None
        victim.finish()
    finally:
        if victim.process.poll() is None:
            victim.kill_driver()
    victim.check(KEYS)
    assert "the Spark application of this job has ended; starting another one" in victim.log()
