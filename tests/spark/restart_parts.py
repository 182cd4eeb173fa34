"""Measures the parts of a restart, from kill -9 of a slot to the next complete checkpoint.

python -m tests.spark.restart_parts [--rounds 5] [--master local[2]] [--sinks]

With --sinks the job has every exactly-once sink, each with the real system, as in `make kills`.
"""

from __future__ import annotations

import argparse
import logging
import random
import re
import statistics
import tempfile
import time
from collections import defaultdict
from contextlib import ExitStack
from pathlib import Path
from typing import TypeVar

import psutil

from penstock.common import Types
from tests.services.kafka import Kafka
from tests.services.postgres import Postgres
from tests.services.service import Service
from tests.spark.kill_job import Numbers, count, environment
from tests.spark.sinks_kill_job import write_everywhere
from tests.spark.sinks_kills import prepare

S = TypeVar("S", bound=Service)

PARTS = {
    "noticing, and why": r"failed and restarts in",
    "restart delay, the old attempt's end": r"asks Spark for",
    "Spark starts the tasks, first slot forked and connected": r"meets slot",
    "all slots connected": r"has its slots",
    "opening and restoring": r"is open",
}


class Heard(logging.Handler):
    """When the log first had each part since the last kill."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.times: dict[str, float] = {}

    def emit(self, record: logging.LogRecord) -> None:
        for part, pattern in PARTS.items():
            if part not in self.times and re.search(pattern, record.getMessage()):
                self.times[part] = time.monotonic()
                return


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--sinks", action="store_true")
    options = parser.parse_args()
    heard = listen()
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        env = environment(folder, options.master)
        numbers = env.add_source(Numbers(folder), type_info=Types.LONG()).uid("numbers")
        count(numbers, folder)
        if options.sinks:
            prepare(Path(folder), running(Kafka(), stack), running(Postgres(), stack))
            write_everywhere(numbers, folder)
        client = env.execute_async("counting")
        found = [measured(Path(folder), heard) for _ in range(options.rounds)]
        Path(folder, "enough").touch()
        client.get_job_execution_result().result()
    table(found)


def listen() -> Heard:
    heard = Heard()
    log = logging.getLogger("penstock.job")
    log.setLevel(logging.DEBUG)
    log.addHandler(heard)
    log.propagate = False
    return heard


def running(service: S, stack: ExitStack) -> S:
    """A server that is removed at the end."""
    stack.callback(service.remove)
    service.start()
    return service


def measured(folder: Path, heard: Heard) -> dict[str, float]:
    """The milliseconds of each part after one kill, at any moment between two checkpoints."""
    await_checkpoint(folder, newest(folder) + 2)
    time.sleep(random.uniform(0, 0.3))
    [victim, *_] = [p for p in psutil.Process().children(recursive=True) if p.name().startswith("slot")]
    heard.times.clear()
    began = time.monotonic()
    victim.kill()
    while "opening and restoring" not in heard.times:
        time.sleep(0.001)
    await_checkpoint(folder, newest(folder) + 1)
    heard.times["first epochs and a checkpoint"] = time.monotonic()
    parts, last = {}, began
    for part in [*PARTS, "first epochs and a checkpoint"]:
        parts[part], last = 1000 * (heard.times[part] - last), heard.times[part]
    return {**parts, "all": 1000 * (last - began)}


def newest(folder: Path) -> int:
    found = (folder / "checkpoints").glob("*/chk-*/_metadata")
    return max((int(path.parent.name.removeprefix("chk-")) for path in found), default=0)


def await_checkpoint(folder: Path, number: int) -> None:
    while newest(folder) < number:
        time.sleep(0.002)


def table(found: list[dict[str, float]]) -> None:
    columns = defaultdict(list)
    for parts in found:
        for part, millis in parts.items():
            columns[part].append(millis)
    print("| part | median, ms | longest, ms |\n|---|---|---|")
    for part, all_millis in columns.items():
        print(f"| {part} | {statistics.median(all_millis):.0f} | {max(all_millis):.0f} |")


if __name__ == "__main__":
    main()
