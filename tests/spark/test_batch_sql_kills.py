"""BATCH statement sets on Spark SQL, on a real cluster, whose Python workers, executors and drivers are killed."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.services.fixtures import started
from tests.services.postgres import Postgres
from tests.spark.batch_sql_kill_job import FILES, KEYS, NUMBERS, PATIENCE
from tests.spark.kills import Victim
from tests.spark.standalone import Standalone

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1800)]
WHOLE = Counter((number, number * 3) for number in range(NUMBERS))
SUMS = sorted((key, sum(range(key, NUMBERS, KEYS)) * 3) for key in range(KEYS))


@pytest.fixture(scope="module")
def postgres():
    yield from started(Postgres())


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory):
    with Standalone(tmp_path_factory.mktemp("cluster")) as made:
        yield made


@pytest.fixture
def folder(tmp_path: Path, postgres: Postgres) -> Path:
    """What the job reads, and where it writes."""
    (tmp_path / "in").mkdir()
    each = NUMBERS // FILES
    for file in range(FILES):
        numbers = pa.array(range(file * each, (file + 1) * each), pa.int64())
        pq.write_table(pa.table({"number": numbers}), tmp_path / "in" / f"part-{file}.parquet")
    with psycopg.connect(postgres.dsn, autocommit=True) as database:
        database.execute("DROP TABLE IF EXISTS sums")
        database.execute("CREATE TABLE sums (k BIGINT, s BIGINT)")
    where = {"url": postgres.url, "user": postgres.user, "password": postgres.password}
    (tmp_path / "systems.json").write_text(json.dumps(where))
    return tmp_path


def job(folder: Path, cluster: Standalone, kills: str) -> Victim:
    made = Victim(folder, cluster.url, "batch_sql_kill_job", {**cluster.environment, "KILLS": kills})
    made.start()
    return made


def end(victim: Victim) -> None:
    assert victim.process is not None
    try:
        assert victim.process.wait(PATIENCE) == 0, victim.log()
    finally:
        if victim.process.poll() is None:
            victim.kill_driver()


def in_files(folder: Path) -> Counter[tuple[int, int]]:
    """What a reader of the folder sees."""
    seen = [path for path in (folder / "out").rglob("*") if path.is_file() and path.name[0] not in "._"]
    lines = [json.loads(line) for path in seen for line in path.read_text().splitlines()]
    return Counter((line["number"], line["w"]) for line in lines)


def in_database(postgres: Postgres) -> list[tuple[int, int]]:
    with psycopg.connect(postgres.dsn) as database:
        return sorted(database.execute("SELECT k, s FROM sums").fetchall())


def check_complete(folder: Path, postgres: Postgres) -> None:
    found = in_files(folder)
    assert found == WHOLE, f"{(found - WHOLE).total()} too many, {(WHOLE - found).total()} too few"
    assert in_database(postgres) == SUMS
    with psycopg.connect(postgres.dsn) as database:
        assert database.execute("SELECT gid FROM pg_prepared_xacts").fetchall() == []


def test_a_worker_and_an_executor_are_killed(cluster: Standalone, postgres: Postgres, folder: Path) -> None:
    end(job(folder, cluster, "workers"))
    assert (folder / "worker-killed").exists() and (folder / "executor-killed").exists()
    check_complete(folder, postgres)
    assert list((folder / "out").rglob(".*")) == []
    assert list((folder / "staging").iterdir()) == []


@pytest.mark.soak
def test_the_driver_is_killed_while_the_query_runs(cluster: Standalone, postgres: Postgres, folder: Path) -> None:
    victim = job(folder, cluster, "waits")
    victim.until(lambda: (folder / "waits").exists(), "the query does not come to its last numbers")
    check_killed(victim, cluster, postgres)


@pytest.mark.soak
def test_the_driver_is_killed_while_sinks_write(cluster: Standalone, postgres: Postgres, folder: Path) -> None:
    victim = job(folder, cluster, "nothing")
    victim.until(lambda: list((folder / "out").rglob(".*")), "nothing is written")
    check_killed(victim, cluster, postgres)


def check_killed(victim: Victim, cluster: Standalone, postgres: Postgres) -> None:
    """Readers see nothing of a job that was killed, and the same job gives everything once when it runs again."""
    victim.kill_driver()
    assert not in_files(victim.folder)
    assert in_database(postgres) == []
    end(job(victim.folder, cluster, "nothing"))
    check_complete(victim.folder, postgres)
