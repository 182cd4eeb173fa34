"""Slots are processes that stay for an attempt: one that is lost fails it, and no other carries anything over."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from contextlib import suppress

import psutil
import pytest

from penstock.common import Configuration
from penstock.common.job import JobStatus
from penstock.datastream import StreamExecutionEnvironment
from penstock.datastream.functions import SourceFunction
from penstock.errors import SlotLost
from tests.waiting import SPARK_SECONDS, until, without_waits

PROGRAM = textwrap.dedent(
    """
    import os, sys
    from collections import Counter
    from penstock.common import Configuration
    from penstock.datastream import StreamExecutionEnvironment

    env = StreamExecutionEnvironment.get_execution_environment(
        Configuration().set_integer("penstock.epoch.max-records", 10)
    )
    env.set_parallelism(int(sys.argv[1]))
    sent = env.from_sequence(0, 20 * 10 * int(sys.argv[1]) - 1).map(lambda x: (x, os.getpid()))
    seen = sent.key_by(lambda t: t[0]).map(lambda t: (t[1], os.getpid())).rebalance().map(lambda t: (*t, os.getpid()))
    with seen.execute_and_collect() as results:
        rows = list(results)
    print(len(rows), *[len({row[stage] for row in rows}) for stage in range(3)], len({p for row in rows for p in row}))
    """
)


@pytest.mark.parametrize(
    ("master", "slots"),
    [
        ("local[1]", 2),
        ("local[*]", 4),
        pytest.param("local-cluster[2,2,1024]", 2, marks=pytest.mark.soak),
        ("local-cluster[2,2,1024]", 4),
    ],
)
def test_twenty_epochs_of_three_stages_meet_the_same_processes(master: str, slots: int) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(slots)],
        env={**os.environ, "PENSTOCK_MASTER": master},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [str(20 * 10 * slots), *[str(slots)] * 4]
    assert without_waits(done.stderr) == ""


def test_a_killed_worker_fails_the_job_with_slot_lost(env: StreamExecutionEnvironment, slot_processes) -> None:
    env.generate(lambda i: i, rate=50).key_by(lambda i: i % 4).sum().discard()
    client = env.execute_async("to be killed")
    job = str(client.get_job_id())
    victims = until(lambda: slot_processes(job), patience=SPARK_SECONDS, every=0.1)
    time.sleep(1)  # mostly, it is at work then
    os.kill(min(victims.values()), 9)
    with pytest.raises(SlotLost, match="state"):
        client.get_job_execution_result().result()
    assert client.get_job_status().result() is JobStatus.FAILED


def test_a_worker_killed_between_epochs_is_noticed(env: StreamExecutionEnvironment, slot_processes) -> None:
    """No epoch is under way, and none is due for a long time."""
    env.generate(lambda i: i, rate=0.01).key_by(lambda i: i).sum().discard()
    client = env.execute_async("to be killed at rest")
    job = str(client.get_job_id())
    until(lambda: len(slot_processes(job)) == 2, patience=SPARK_SECONDS, every=0.1)
    time.sleep(1.5)  # mostly, it rests then
    os.kill(slot_processes(job)[1], 9)
    with pytest.raises(SlotLost):
        client.get_job_execution_result().result()


class OneThenNothing(SourceFunction):
    """Emits one record, and then waits."""

    def __init__(self):
        self.over = threading.Event()

    def __getstate__(self):
        return {}

    def __setstate__(self, _):
        self.over = threading.Event()

    def run(self, ctx):
        ctx.collect(1)
        self.over.wait()

    def cancel(self):
        self.over.set()


def test_an_idle_job_runs_no_epochs_and_needs_no_cpu(env: StreamExecutionEnvironment, slot_processes) -> None:
    env.add_source(OneThenNothing()).key_by(lambda i: i).sum().discard()
    client = env.execute_async("idle")
    job, loop = str(client.get_job_id()), client._job.job_driver
    until(lambda: len(slot_processes(job)) == 2 and loop.view.epoch >= 1, patience=SPARK_SECONDS)
    slots = [psutil.Process(pid) for pid in slot_processes(job).values()]

    def idle() -> bool:
        before, used = loop.view.epoch, sum(sum(slot.cpu_times()[:2]) for slot in slots)
        time.sleep(4)
        return loop.view.epoch == before and sum(sum(slot.cpu_times()[:2]) for slot in slots) - used < 0.08

    until(idle)
    client.cancel().result()


def test_a_slot_that_is_stopped_is_lost_after_the_heartbeat_and_ends_when_it_goes_on(slot_processes, tmp_path) -> None:
    options = {
        "heartbeat.interval": "300 ms",
        "heartbeat.timeout": "5 s",
        "execution.checkpointing.interval": "200 ms",
        "execution.checkpointing.dir": f"file://{tmp_path}",
        "restart-strategy.type": "fixed-delay",
        "restart-strategy.fixed-delay.attempts": "100",
        "restart-strategy.fixed-delay.delay": "10 ms",
    }
    env = StreamExecutionEnvironment(Configuration.from_dict(options)).set_parallelism(2)
    results = env.generate(lambda i: i, rate=50, count=400).key_by(lambda i: i % 4).sum().execute_and_collect()
    job, loop = str(results._job.job_id), results._job.job_driver
    until(lambda: len(slot_processes(job)) == 2 and loop.coordinator.kept, patience=SPARK_SECONDS)
    stopped = slot_processes(job)[1]
    os.kill(stopped, signal.SIGSTOP)
    told = f"slot 1 has not answered for 5 s (heartbeat.timeout): its process {stopped} is stopped"
    until(lambda: [failure for failure in loop.view.failures if told in failure.message])
    with suppress(ProcessLookupError):  # its task may have ended, which takes it along
        os.kill(stopped, signal.SIGCONT)
    until(lambda: not psutil.pid_exists(stopped))
    expected = [sum(range(key, last + 1, 4)) for key in range(4) for last in range(key, 400, 4)]
    assert sorted(results) == sorted(expected)


def test_a_slot_carries_nothing_over_from_an_earlier_job(env: StreamExecutionEnvironment) -> None:
    def leave(value):
        sys.left_behind = value
        threading.Thread(target=time.sleep, args=(60,), daemon=True, name="left behind").start()
        return os.getppid()

    def find(value):
        return os.getppid(), hasattr(sys, "left_behind"), [t.name for t in threading.enumerate() if "left" in t.name]

    tasks = set(env.from_sequence(1, 4).map(leave).execute_and_collect())
    for _ in range(20):  # Spark takes idle workers in turn, and earlier jobs may have left more than this one needs
        found = list(env.from_sequence(1, 4).map(find).execute_and_collect())
        assert all((left, threads) == (False, []) for _, left, threads in found)
        if {task for task, *_ in found} & tasks:
            return
    pytest.fail("Spark has not used a worker again")


def test_a_record_of_200_mb(env: StreamExecutionEnvironment) -> None:
    large = env.from_elements(1, 2).map(lambda n: (n, b"x" * 200_000_000)).key_by(lambda pair: pair[0])
    assert sorted(large.map(lambda pair: (pair[0], len(pair[1]))).execute_and_collect()) == [
        (1, 200_000_000),
        (2, 200_000_000),
    ]


ENDLESS = """
from penstock.datastream import StreamExecutionEnvironment

env = StreamExecutionEnvironment.create_local_environment(2)
env.generate(lambda i: i, rate=50).key_by(lambda i: i % 2).sum().print()
env.execute()
"""


def test_a_driver_that_is_stopped_for_a_while_goes_on(tmp_path) -> None:
    driver = subprocess.Popen([sys.executable, "-c", ENDLESS], stdout=subprocess.PIPE, text=True)
    assert driver.stdout is not None
    try:
        seen = [driver.stdout.readline() for _ in range(20)]
        driver.send_signal(signal.SIGSTOP)
        time.sleep(3)
        driver.send_signal(signal.SIGCONT)
        seen += [driver.stdout.readline() for _ in range(200)]
    finally:
        driver.kill()
    numbers = [int(line.split("> ")[1]) for line in seen]
    even, odd = ([sum(range(start, last + 1, 2)) for last in range(start, 1000, 2)] for start in (0, 1))
    evens, odds = [n for n in numbers if n in set(even)], [n for n in numbers if n not in set(even)]
    assert (evens, odds) == (even[: len(evens)], odd[: len(odds)]), "one of the sums came twice, or not at all"


@pytest.mark.soak
def test_a_job_that_rests_for_ninety_seconds_still_has_its_state(env: StreamExecutionEnvironment) -> None:
    stream = env.generate(lambda i: 1, rate=1 / 45, count=4).key_by(lambda i: 0).sum()
    with stream.execute_and_collect() as results:
        assert sorted(results) == [1, 2, 3, 4]
