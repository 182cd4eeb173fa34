"""The jobs that are harmed: all their numbers have to come out once, whatever happens.

    python -m tests.nemesis.job FOLDER DISK KIND

`stream` counts numbers by key and writes them with a sink that commits; `sql` writes the numbers into files, and counts
and sums by key into a table of SQLite. What is to outlive hosts is on DISK. Settings come from the environment:
PARALLELISM, BACKEND, RESTORE (the savepoint to start from), JOB_ID, COUNT and MASTER. A file FOLDER/stop asks for a
savepoint, with which the program ends; its path is then in FOLDER/savepoint. A number in FOLDER/parallelism is the
parallelism with which the job continues in the same program; the file is then deleted.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import sys
import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

from penstock.common import Configuration, Types
from penstock.datastream import KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from penstock.datastream.state import ValueStateDescriptor
from penstock.errors import PenstockError
from tests.spark.kill_job import FolderSink

KEYS = 8
RATE = 100


class Count(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value: int, ctx: Any) -> Any:
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        yield f"{value} {count}"


def configuration(disk: str) -> Configuration:
    """Frequent checkpoints, restarts without end, recovery of drivers, and short patience."""
    chosen = Configuration()
    for name, value in {
        "spark.master": os.environ["MASTER"],
        "parallelism.default": os.environ["PARALLELISM"],
        "pipeline.max-parallelism": "32",
        "state.backend.type": os.environ["BACKEND"],
        "execution.checkpointing.interval": "500 ms",
        "execution.checkpointing.tolerable-failed-checkpoints": "3",
        "execution.checkpointing.dir": f"file://{disk}/checkpoints",
        "execution.recover": "latest",
        "execution.takeover": "true",
        "pipeline.job-id": os.environ["JOB_ID"],
        "restart-strategy.type": "fixed-delay",
        "restart-strategy.fixed-delay.attempts": "100000",
        "restart-strategy.fixed-delay.delay": "100 ms",
        "heartbeat.interval": "2 s",
        "heartbeat.timeout": "8 s",
        "slot.request.timeout": "2 min",
    }.items():
        chosen.set_string(name, value)
    if restore := os.environ.get("RESTORE"):
        chosen.set_string("execution.state-recovery.path", restore)
    return chosen


def counting(env: StreamExecutionEnvironment, folder: str, count: int) -> Any:
    """Start the job of a DataStream program."""
    numbers = env.generate(rate=RATE, count=count).uid("numbers")
    counted = numbers.key_by(lambda number: number % KEYS).process(Count()).uid("count")
    counted.sink_to(FolderSink(folder)).uid("sink")
    return env.execute_async("counting")


def querying(env: StreamExecutionEnvironment, folder: str, count: int) -> Any:
    """Start the job of two INSERTs."""
    from penstock.table import StreamTableEnvironment

    t_env = StreamTableEnvironment.create(env)
    t_env.execute_sql(f"""
        CREATE TABLE numbers (id BIGINT) WITH ('connector' = 'datagen', 'rows-per-second' = '{RATE}',
            'fields.id.kind' = 'sequence', 'fields.id.start' = '0', 'fields.id.end' = '{count - 1}')""")
    t_env.execute_sql(f"""
        CREATE TABLE files (id BIGINT) WITH (
            'connector' = 'filesystem', 'path' = 'file://{folder}/files', 'format' = 'csv')""")
    t_env.execute_sql(f"""
        CREATE TABLE counts (k BIGINT, c BIGINT, s BIGINT, PRIMARY KEY (k) NOT ENFORCED) WITH (
            'connector' = 'jdbc', 'url' = 'jdbc:sqlite:{folder}/counts.db', 'table-name' = 'counts')""")
    statements = t_env.create_statement_set()
    statements.add_insert_sql("INSERT INTO files SELECT id FROM numbers")
    statements.add_insert_sql(
        f"INSERT INTO counts SELECT MOD(id, {KEYS}), COUNT(*), SUM(id) FROM numbers GROUP BY MOD(id, {KEYS})"
    )
    return statements.execute().get_job_client()


KINDS = {"stream": counting, "sql": querying}


def prepare(folder: Path, kind: str) -> None:
    """Create what the sinks need, before the first driver."""
    if kind == "stream":
        for part in ("prepared", "visible"):
            (folder / part).mkdir()
    else:
        with sqlite3.connect(folder / "counts.db") as database:
            database.execute("PRAGMA journal_mode = WAL")
            database.execute("CREATE TABLE counts (k BIGINT PRIMARY KEY, c BIGINT, s BIGINT)")


def wrong(folder: Path, kind: str, count: int) -> str | None:
    """Return what is wrong with the output of a job that has ended; None if nothing is."""
    return (_wrong_counts if kind == "stream" else _wrong_tables)(folder, count)


def _wrong_counts(folder: Path, count: int) -> str | None:
    numbers: Counter[int] = Counter()
    counts = defaultdict(list)
    for path in (folder / "visible").iterdir():
        for line in path.read_text().splitlines():
            number, nth = map(int, line.split())
            numbers[number] += 1
            counts[number % KEYS].append(nth)
    for key, found in counts.items():
        if sorted(found) != list(range(1, len(found) + 1)):
            return f"the counts of key {key} are {sorted(found)[:20]} …"
    return _wrong_numbers(numbers, count)


def _wrong_tables(folder: Path, count: int) -> str | None:
    lines = [
        line
        for path in (folder / "files").iterdir()
        if not path.name.startswith((".", "_"))
        for line in path.read_text().split()
    ]
    with sqlite3.connect(folder / "counts.db") as database:
        found = sorted(database.execute("SELECT k, c, s FROM counts"))
    wanted = [(key, len(range(key, count, KEYS)), sum(range(key, count, KEYS))) for key in range(KEYS)]
    if found != wanted:
        return f"the table holds {found} instead of {wanted}"
    return _wrong_numbers(Counter(map(int, lines)), count)


def _wrong_numbers(found: Counter[int], count: int) -> str | None:
    missing = sorted(set(range(count)) - set(found))
    double = sorted(number for number, times in found.items() if times > 1)
    if missing or double:
        return f"{len(missing)} of {count} numbers are missing ({missing[:5]}), {len(double)} are double ({double[:5]})"
    return None


def rescale(client: Any, wanted: Path) -> None:
    """Give the running job the parallelism that a file names, if there is one."""
    if wanted.exists():
        try:
            client._job.rescale(int(wanted.read_text()))
        except PenstockError as error:
            print(f"not rescaled: {error}", file=sys.stderr)
        wanted.unlink()


def main(folder: str, disk: str, kind: str) -> None:
    logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s %(message)s")
    logging.getLogger("penstock.job").setLevel(logging.DEBUG)
    env = StreamExecutionEnvironment.get_execution_environment(configuration(disk))
    handle = KINDS[kind](env, disk, int(os.environ["COUNT"]))
    stop = Path(folder, "stop")
    while not handle.get_job_status().result().is_terminal_state():
        if stop.exists():
            try:
                path = handle.stop_with_savepoint(False, f"file://{disk}/savepoints").result()
            except PenstockError as error:
                print(f"no savepoint: {error}", file=sys.stderr)
                stop.unlink()
            else:
                Path(folder, "savepoint").write_text(path)
                stop.unlink()
                return
        rescale(handle, Path(folder, "parallelism"))
        time.sleep(0.02)
    handle.get_job_execution_result().result()
    Path(folder, "ended").touch()


if __name__ == "__main__":
    main(*sys.argv[1:])
