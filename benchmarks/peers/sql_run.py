"""Runs queries of `sql_queries` with PyFlink's or Penstock's Table API, one after the other in one process, and prints
the pairs of rows and seconds of each as a line of JSON.

python sql_run.py pyflink|penstock SETTINGS, which are JSON: queries, parallelism, options, and what `pairing` takes
"""

from __future__ import annotations

import importlib
import json
import sys
import time
from collections.abc import Callable
from typing import Any

from pairing import report
from sql_queries import statements


def runner(package: str, parallelism: int, options: dict[str, str]) -> Callable[[str, int], float]:
    """A function that runs a query over so many rows and says how many seconds it took."""
    table = importlib.import_module(f"{package}.table")
    environments = importlib.import_module(f"{package}.datastream")

    def seconds(query: str, rows: int) -> float:
        env = environments.StreamExecutionEnvironment.get_execution_environment()
        env.set_parallelism(parallelism)
        t_env = table.StreamTableEnvironment.create(env, table.EnvironmentSettings.in_streaming_mode())
        for name, value in {"table.local-time-zone": "UTC", **options}.items():
            t_env.get_config().set(name, value)
        definitions, insert = statements(query, rows)
        for definition in definitions:
            t_env.execute_sql(definition)
        began = time.perf_counter()
        t_env.execute_sql(insert).wait()
        return time.perf_counter() - began

    return seconds


def main(package: str, settings: dict[str, Any]) -> None:
    report(runner(package, settings["parallelism"], settings["options"]), settings)


if __name__ == "__main__":
    main(sys.argv[1], json.loads(sys.argv[2]))
