"""A BATCH statement set on Spark SQL whose processes die, or wait to be killed.

    python -m tests.spark.batch_sql_kill_job FOLDER MASTER

FOLDER/in holds Parquet files of the numbers. A function of the program makes the rows that both INSERTs share: one goes
into files in FOLDER/out, the other sums them up in a table of PostgreSQL (FOLDER/systems.json says where that is). The
environment variable KILLS says what happens on the way: "workers" and executors die, it "waits", or "nothing".
"""

import json
import os
import sys
import time
from pathlib import Path

from penstock.table import DataTypes, EnvironmentSettings, TableEnvironment
from penstock.table.expression.function_declarations import ScalarFunction, udf
from tests.spark.once import Once, die, kill_executor

FILES = 8
NUMBERS = 40_000
KEYS = 50
PATIENCE = 400
"""Seconds that any of it may take, for machines that are busy."""


class Tripled(ScalarFunction):
    """Three times a number. At some numbers something happens, the first time."""

    def __init__(self, folder, kills):
        wait = Once(NUMBERS - 9, f"{folder}/waits", self.wait)
        worker = Once(NUMBERS // 4, f"{folder}/worker-killed", die)
        executor = Once(NUMBERS - 9, f"{folder}/executor-killed", self.kill_executor)
        self.happenings = {"workers": [worker, executor], "waits": [wait]}.get(kills, [])
        self.folder = folder

    def eval(self, number):
        for one in self.happenings:
            one.map(number)
        return number * 3

    def wait(self):
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline and not Path(self.folder, "goes-on").exists():
            time.sleep(0.05)

    def kill_executor(self):
        """Not before some other task is done, whose rows are lost with the executor."""
        time.sleep(2)
        kill_executor()


def main(folder, master):
    t_env = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    options = {
        "spark.master": master,
        "spark.shuffle.io.retryWait": "1s",
        "table.exec.batch.staging-directory": f"{folder}/staging",
        "parallelism.default": "2",
    }
    for name, value in options.items():
        t_env.get_config().set(name, value)
    tripled = udf(Tripled(folder, os.environ["KILLS"]), result_type=DataTypes.BIGINT())
    t_env.create_temporary_system_function("tripled", tripled)
    where = json.loads(Path(folder, "systems.json").read_text())
    create = "CREATE TABLE {} ({}) WITH ('connector' = 'filesystem', 'path' = '{}', 'format' = '{}')"
    t_env.execute_sql(create.format("numbers", "number BIGINT", f"{folder}/in", "parquet"))
    t_env.execute_sql(create.format("files", "number BIGINT, w BIGINT", f"{folder}/out", "json"))
    t_env.execute_sql(
        "CREATE TABLE sums (k BIGINT, s BIGINT) WITH ('connector' = 'jdbc', 'table-name' = 'sums', "
        f"'url' = '{where['url']}', 'username' = '{where['user']}', 'password' = '{where['password']}', "
        "'sink.delivery-guarantee' = 'exactly-once')"
    )
    t_env.execute_sql("CREATE VIEW d AS SELECT number, tripled(number) AS w FROM numbers")
    both = t_env.create_statement_set()
    both.add_insert_sql("INSERT INTO files SELECT number, w FROM d")
    both.add_insert_sql(f"INSERT INTO sums SELECT MOD(number, {KEYS}) AS k, SUM(w) FROM d GROUP BY MOD(number, {KEYS})")
    assert both.explain().count("\nRuns on Spark SQL\n") == 2, both.explain()
    both.execute().wait()


if __name__ == "__main__":
    main(*sys.argv[1:])
