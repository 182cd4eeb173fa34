"""The same processes serve every stage of every epoch; one that is lost fails the job."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import time

import pytest

from penstock.common.job import JobStatus
from penstock.datastream import StreamExecutionEnvironment
from penstock.errors import SlotLost

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


@pytest.mark.parametrize("master", ["local[2]", "local-cluster[2,1,1024]"])
@pytest.mark.parametrize("slots", [2, 4])
def test_twenty_epochs_of_three_stages_meet_the_same_processes(master: str, slots: int) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(slots)],
        env={**os.environ, "PENSTOCK_MASTER": master},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [str(20 * 10 * slots), *[str(slots)] * 4]
    assert done.stderr == ""


def test_a_killed_worker_fails_the_job_with_slot_lost(env: StreamExecutionEnvironment, slot_processes) -> None:
    env.generate(lambda i: i, rate=50).key_by(lambda i: i % 4).sum().discard()
    client = env.execute_async("to be killed")
    job = str(client.get_job_id())
    deadline = time.monotonic() + 30
    while not (victims := {s: p for s, p in slot_processes().items() if s.startswith(job)}):
        assert time.monotonic() < deadline, "no slot came up"
        time.sleep(0.1)
    time.sleep(1)
    os.kill(min(victims.values()), 9)
    with pytest.raises(SlotLost, match="state"):
        client.get_job_execution_result().result()
    assert client.get_job_status().result() is JobStatus.FAILED


def test_a_worker_killed_between_epochs_is_noticed(env: StreamExecutionEnvironment, slot_processes) -> None:
    """With long rests between epochs Spark has time to notice the loss and offer a fresh process."""
    env.set_buffer_timeout(3000)
    env.generate(lambda i: i, rate=0.4).key_by(lambda i: i).sum().discard()
    client = env.execute_async("to be killed at rest")
    job = str(client.get_job_id())
    deadline = time.monotonic() + 30
    while len(victims := {s: p for s, p in slot_processes().items() if s.startswith(job)}) < 2:
        assert time.monotonic() < deadline, "no slot came up"
        time.sleep(0.1)
    time.sleep(1.5)
    os.kill(victims[f"{job}/1"], 9)
    with pytest.raises(SlotLost):
        client.get_job_execution_result().result()


def test_an_idle_job_keeps_its_slots_alive(env: StreamExecutionEnvironment) -> None:
    """Spark ends Python workers that were idle for a minute; the keep-alive epoch comes before that."""
    from penstock.job.driver import KEEP_ALIVE_MILLIS

    assert KEEP_ALIVE_MILLIS <= 20_000


@pytest.mark.soak
def test_a_job_that_rests_for_ninety_seconds_still_has_its_state(env: StreamExecutionEnvironment) -> None:
    stream = env.generate(lambda i: 1, rate=1 / 45, count=4).key_by(lambda i: 0).sum()
    with stream.execute_and_collect() as results:
        assert sorted(results) == [1, 2, 3, 4]
