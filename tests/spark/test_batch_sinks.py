"""BATCH jobs into every exactly-once sink, each against the real system, whose tasks die in the middle."""

from collections import Counter

import pytest

from penstock.common import RestartStrategies
from penstock.datastream import RuntimeExecutionMode, StreamExecutionEnvironment
from penstock.errors import JobFailed
from tests.services.fixtures import started
from tests.services.kafka import Kafka
from tests.services.postgres import Postgres
from tests.spark.batch_kill_job import KEYS, PATIENCE, RECORDS
from tests.spark.connect_server import ConnectServer, ConnectVictim
from tests.spark.kills import Victim
from tests.spark.once import Once, die, fail
from tests.spark.sinks_kill_job import write_everywhere
from tests.spark.sinks_kills import check_nothing_hangs, held, prepare

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def kafka():
    yield from started(Kafka())


@pytest.fixture(scope="module")
def postgres():
    yield from started(Postgres())


@pytest.fixture
def env():
    made = StreamExecutionEnvironment.create_local_environment(2)
    made.set_runtime_mode(RuntimeExecutionMode.BATCH)
    return made


def check(folder, kafka, postgres):
    expected = Counter(range(1, RECORDS + 1))
    for name, found in held(folder, kafka, postgres).items():
        assert found == expected, f"{name}: {len(found - expected)} too many, {len(expected - found)} too few"
    check_nothing_hangs(folder, kafka, postgres)


def test_a_task_with_all_sinks_is_killed(env, kafka, postgres, tmp_path):
    prepare(tmp_path, kafka, postgres)
    write_everywhere(env.from_sequence(1, RECORDS).map(Once(RECORDS - 1, tmp_path / "killed", die)), tmp_path)
    env.execute()
    assert (tmp_path / "killed").exists()
    check(tmp_path, kafka, postgres)


def test_a_task_behind_the_shuffle_is_killed(env, kafka, postgres, tmp_path):
    prepare(tmp_path, kafka, postgres)
    keyed = env.from_sequence(1, RECORDS).map(Once(RECORDS // 2, tmp_path / "first", die)).key_by(lambda n: n % 100)
    write_everywhere(keyed.map(Once(RECORDS - 1, tmp_path / "second", die)), tmp_path)
    env.execute()
    assert (tmp_path / "first").exists() and (tmp_path / "second").exists()
    check(tmp_path, kafka, postgres)


def test_an_attempt_fails_whose_sinks_have_prepared_everything(env, kafka, postgres, tmp_path):
    """The sinks are in the first stage, and the failure is in the second."""
    prepare(tmp_path, kafka, postgres)
    env.set_restart_strategy(RestartStrategies.fixed_delay_restart(1, 10))
    numbers = env.from_sequence(1, RECORDS)
    write_everywhere(numbers, tmp_path)
    numbers.key_by(lambda n: n % 100).map(Once(RECORDS // 2, tmp_path / "failed", fail)).discard()
    env.execute()
    assert (tmp_path / "failed").exists()
    check(tmp_path, kafka, postgres)


def test_a_job_that_fails_for_good_leaves_nothing_behind(env, kafka, postgres, tmp_path):
    prepare(tmp_path, kafka, postgres)
    numbers = env.from_sequence(1, RECORDS)
    write_everywhere(numbers, tmp_path)
    numbers.key_by(lambda n: n % 100).map(Once(RECORDS // 2, tmp_path / "failed", fail)).discard()
    with pytest.raises(JobFailed, match="not this one"):
        env.execute()
    assert not any(held(tmp_path, kafka, postgres).values())
    check_nothing_hangs(tmp_path, kafka, postgres)


@pytest.mark.parametrize("kills", ["own", pytest.param("others", marks=pytest.mark.soak)])
def test_executors_are_killed(kills, kafka, postgres, tmp_path):
    """The second attempt loses an executor: that of the task that kills, or all others once their tasks have ended.

    Sinks of the first stage have prepared everything by then. Where Spark runs their tasks again, either run may count.
    """
    prepare(tmp_path, kafka, postgres)
    await_end(Victim(tmp_path, "local-cluster[2,1,1024]", "batch_kill_job", {"KILLS": kills}))
    check_counts(tmp_path, kafka, postgres)


@pytest.mark.soak
def test_executors_of_a_connect_server_are_killed(kafka, postgres, tmp_path):
    prepare(tmp_path, kafka, postgres)
    with ConnectServer(tmp_path, "local-cluster[2,1,1024]") as server:
        job = ConnectVictim(tmp_path, server.url, "batch_kill_job", {"KILLS": "own"})
        job.server = server
        await_end(job)
    check_counts(tmp_path, kafka, postgres)


def await_end(job):
    job.start()
    try:
        assert job.process.wait(PATIENCE) == 0, job.log()
    finally:
        if job.process.poll() is None:
            job.kill_driver()


def check_counts(folder, kafka, postgres):
    assert (folder / "failed").exists() and (folder / "killed").exists()
    check(folder, kafka, postgres)
    counts = [line for path in (folder / "counts").rglob("part*") for line in path.read_text().splitlines()]
    assert sorted(counts) == sorted(f"{key} {RECORDS // KEYS}" for key in range(KEYS))
    assert list((folder / "counts").rglob(".*")) == []
