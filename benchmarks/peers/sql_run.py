"""Runs one query of `sql_queries` with PyFlink's or Penstock's Table API, and prints how long it took, as JSON.

python sql_run.py pyflink|penstock QUERY ROWS PARALLELISM [option=value ...]
"""

from __future__ import annotations

import importlib
import json
import sys
import time

from sql_queries import statements


def main(package: str, name: str, rows: int, parallelism: int, *options: str) -> None:
    table = importlib.import_module(f"{package}.table")
    environments = importlib.import_module(f"{package}.datastream")
    env = environments.StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(parallelism)
    t_env = table.StreamTableEnvironment.create(env, table.EnvironmentSettings.in_streaming_mode())
    t_env.get_config().set("table.local-time-zone", "UTC")
    for option in options:
        t_env.get_config().set(*option.split("=", 1))
    definitions, insert = statements(name, rows)
    for definition in definitions:
        t_env.execute_sql(definition)
    began = time.perf_counter()
    t_env.execute_sql(insert).wait()
    print(json.dumps({"seconds": time.perf_counter() - began, "rows": rows}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), *sys.argv[5:])
