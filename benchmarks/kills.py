"""How long a job takes to go on after kill -9 of a slot's worker, an executor or the driver.

Run as `python -m benchmarks.kills`.

Every round is also a test: no count is lost, none comes twice. Times are from the kill to the next complete checkpoint,
with a checkpoint every 300 ms and a restart delay of 10 ms; they are of this machine and of one run.
"""

from __future__ import annotations

import platform
import statistics
import sys
import tempfile
from pathlib import Path

from tests.spark.kill_job import KEYS
from tests.spark.kills import run_rounds

RESULTS = Path(__file__).with_name("results") / "kills.md"
WHAT = {
    "slot": "a slot's worker process (local[2])",
    "executor": "an executor (local-cluster[2,1,1024])",
    "driver": "the driver, started again at once (local[2])",
}


def main(rounds: int) -> None:
    lines = [
        "# Recovery after kill -9",
        "",
        f"{rounds} rounds each, {platform.machine()}, Python {platform.python_version()}. Nothing was lost, nothing",
        "came twice and nothing alarmed in any of them. Seconds from the kill to the next complete checkpoint; the",
        "driver's include the start of Python and Spark.",
        "",
        "| killed | median | shortest | longest |",
        "|---|---|---|---|",
    ]
    for what, text in WHAT.items():
        with tempfile.TemporaryDirectory() as folder:
            victim = run_rounds(Path(folder), what, rounds, seed=11)
            victim.check(KEYS)
        times = victim.recoveries
        lines.append(f"| {text} | {statistics.median(times):.1f} | {min(times):.1f} | {max(times):.1f} |")
        print(lines[-1], flush=True)
    RESULTS.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10)
