"""The INSERTs whose savepoints are in `savepoints/before-0.2-tables-…`. They must not change."""

from __future__ import annotations

import base64
import json
import random
from typing import Any

import fsspec

from penstock.datastream import DataStream, StreamExecutionEnvironment
from penstock.table import StreamTableEnvironment
from penstock.testing import scripted

FILES = "/before-0.2-tables"
"""A folder in the file system of the process, so that the paths in the savepoints are the same everywhere."""
TABLE = """
CREATE TABLE {name} ({columns}) {partitioned} WITH (
    'connector' = 'filesystem', 'path' = 'memory:/{folder}/{name}', 'format' = 'json' {options})
"""
EVENT = "k STRING, n INT, v INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '1' SECOND"
POLICY = ", 'sink.partition-commit.policy.kind' = 'success-file'"
LATE = POLICY + ", 'sink.partition-commit.trigger' = 'partition-time', 'sink.partition-commit.delay' = '10 s'"
LATE += ", 'partition.time-extractor.timestamp-pattern' = '2024-01-01 00:00:$second'"
INSERTS = {
    "plain": "SELECT k, n, v FROM clicks WHERE v > 0",
    "joined": "SELECT c.n, o.n AS m FROM clicks c JOIN others o ON c.k = o.k AND c.v = o.v",
    "parted": "SELECT n, v, k FROM clicks",
    "timely": "SELECT n, CAST(FLOOR(v * 10) AS STRING) AS `second` FROM clicks",
}


def sources() -> dict[str, list[dict[str, Any]]]:
    chance, made = random.Random(9), {}
    for name in ("clicks", "others"):
        made[name] = [
            {"k": chance.choice("abc"), "n": n, "v": chance.randrange(5), "ts": f"2024-01-01 00:00:{n:02}"}
            for n in range(60)
        ]
    return made


def build(environment: StreamExecutionEnvironment) -> DataStream:
    """Tables in files, and a stream that lasts as long as they are read."""
    t_env = StreamTableEnvironment.create(environment)

    def create(name: str, columns: str, partitioned: str = "", options: str = "") -> None:
        t_env.execute_sql(
            TABLE.format(name=name, columns=columns, folder=FILES, partitioned=partitioned, options=options)
        )

    for name in ("clicks", "others"):
        create(name, EVENT)
    create("plain", "k STRING, n INT, v INT")
    create("joined", "n INT, m INT")
    create("parted", "n INT, v INT, k STRING", "PARTITIONED BY (k)", POLICY)
    create("timely", "n INT, `second` STRING", "PARTITIONED BY (`second`)", LATE)
    statements = t_env.create_statement_set()
    for name, query in INSERTS.items():
        statements.add_insert_sql(f"INSERT INTO {name} {query}")
    statements.attach_as_datastream()
    return scripted(environment, *range(60)).uid("numbers").map(lambda number: ("number", number)).uid("named")


def reset() -> None:
    """Forget what earlier runs left in files, and put the files there that the queries read."""
    files = fsspec.filesystem("memory")
    if files.exists(FILES):
        files.rm(FILES, recursive=True)
    for name, rows in sources().items():
        for part in range(3):
            lines = "".join(json.dumps(row) + "\n" for row in rows[20 * part : 20 * part + 20])
            files.pipe(f"{FILES}/{name}/{part}.json", lines.encode())


def outside() -> dict[str, Any]:
    """The files that the queries have written."""
    files = fsspec.filesystem("memory")
    written = {path: files.cat(path) for name in INSERTS for path in files.find(f"{FILES}/{name}")}
    return {path: base64.b64encode(content).decode() for path, content in written.items()}


def put_back(saved: dict[str, Any]) -> None:
    """Make the files what they were at a savepoint."""
    for path, content in saved.items():
        fsspec.filesystem("memory").pipe(path, base64.b64decode(content))


def results() -> list[tuple[Any, ...]]:
    """What readers see: rows with their partitions, and success files."""
    files, found = fsspec.filesystem("memory"), []
    for name in INSERTS:
        for path in files.find(f"{FILES}/{name}"):
            folder, _, file = path.rpartition("/")
            if file == "_SUCCESS":
                found.append(("complete", folder.removeprefix(FILES)))
            elif not file.startswith((".", "_")):
                found += [(folder.removeprefix(FILES), line) for line in files.cat(path).decode().splitlines()]
    return found
