"""Kills of a job with every exactly-once sink, and what the systems hold afterwards."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import psycopg

from tests.services.kafka import Kafka
from tests.services.postgres import Postgres
from tests.spark.kill_job import KEYS
from tests.spark.kills import Victim, run_rounds

TABLES = ("jdbc", "prepared")
TOPIC = "numbers"


def prepare(folder: Path, kafka: Kafka, postgres: Postgres) -> None:
    """Empty tables, an empty topic, and where they are."""
    with psycopg.connect(postgres.dsn, autocommit=True) as database:
        for table in TABLES:
            database.execute(f"DROP TABLE IF EXISTS {table}")
            database.execute(f"CREATE TABLE {table} (number BIGINT)")
    if TOPIC in kafka.topics():
        kafka.delete_topic(TOPIC)
    kafka.create_topic(TOPIC, 3)
    where = {
        "kafka": kafka.bootstrap,
        "url": postgres.url,
        "dsn": postgres.dsn,
        "user": postgres.user,
        "password": postgres.password,
    }
    (folder / "systems.json").write_text(json.dumps(where))


def kill_sinks(folder: Path, kafka: Kafka, postgres: Postgres, what: str, rounds: int, seed: int) -> Victim:
    """One job through so many kills; then every system holds every number once, and nothing hangs."""
    prepare(folder, kafka, postgres)
    victim = run_rounds(folder, what, rounds, seed, script="sinks_kill_job")
    victim.check(KEYS)
    expected = Counter(victim.emitted())
    assert expected
    for name, found in held(folder, kafka, postgres).items():
        assert found == expected, f"{name}: {len(found - expected)} too many, {len(expected - found)} too few"
    check_nothing_hangs(folder, kafka, postgres)
    return victim


def held(folder: Path, kafka: Kafka, postgres: Postgres) -> dict[str, Counter[int]]:
    """What a reader of each system sees."""
    seen = {"files": Counter[int](), "kafka": Counter(map(int, kafka.values(TOPIC)))}
    for path in (folder / "files").rglob("*"):
        if path.is_file() and not path.name.startswith("."):
            seen["files"].update(map(int, path.read_text().split()))
    with psycopg.connect(postgres.dsn) as database:
        for table in TABLES:
            seen[table] = Counter(number for (number,) in database.execute(f"SELECT number FROM {table}"))
    return seen


def check_nothing_hangs(folder: Path, kafka: Kafka, postgres: Postgres) -> None:
    with psycopg.connect(postgres.dsn) as database:
        assert database.execute("SELECT gid FROM pg_prepared_xacts").fetchall() == []
    assert kafka.stable_offsets(TOPIC) == kafka.end_offsets(TOPIC), "a transaction is open"
    assert list((folder / "files").rglob(".*")) == []
