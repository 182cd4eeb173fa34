"""Measures the parts of a restart, from kill -9 of a slot to the next complete checkpoint.

python -m tests.spark.restart_parts [ROUNDS] [MASTER]
"""

from __future__ import annotations

import logging
import re
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

import psutil

from tests.spark.kill_job import Numbers, count, environment

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


def main(rounds: int = 5, master: str = "local[2]") -> None:
    heard = Heard()
    log = logging.getLogger("penstock.job")
    log.setLevel(logging.DEBUG)
    log.addHandler(heard)
    log.propagate = False
    with tempfile.TemporaryDirectory() as folder:
        env = environment(folder, master)
        count(env.add_source(Numbers(folder)).uid("numbers"), folder)
        client = env.execute_async("counting")
        found = [measured(Path(folder), heard) for _ in range(rounds)]
        Path(folder, "enough").touch()
        client.get_job_execution_result().result()
    table(found)


def measured(folder: Path, heard: Heard) -> dict[str, float]:
    """The milliseconds of each part after one kill."""
    await_checkpoint(folder, newest(folder) + 2)
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
    main(*[convert(text) for convert, text in zip((int, str), sys.argv[1:], strict=False)])
