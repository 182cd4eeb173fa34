"""How long a job takes to go on after kill -9 of a slot's worker, an executor or the driver.

Run as `python -m benchmarks.kills`.

Every round is also a test: no count is lost, none comes twice. The job whose slots and drivers are killed writes into
files, Kafka and PostgreSQL with every exactly-once sink there is, and what the systems hold at the end is compared with
what was read; that whose executors are killed has a sink into files alone. Times are from the kill to the next complete
checkpoint, with a checkpoint every 300 ms and a restart delay of 10 ms; they are of this machine and of one run.
"""

from __future__ import annotations

import platform
import statistics
import sys
import tempfile
from pathlib import Path

from tests.services.kafka import Kafka
from tests.services.postgres import Postgres
from tests.spark.kill_job import KEYS
from tests.spark.kills import Victim, run_rounds
from tests.spark.sinks_kills import kill_sinks

RESULTS = Path(__file__).with_name("results") / "kills.md"
WHAT = {
    "slot": "a slot's worker process (local[2])",
    "executor": "an executor (local-cluster[2,2,1024])",
    "driver": "the driver, started again at once (local[2])",
}


def killed(what: str, rounds: int) -> Victim:
    """A job through its rounds, and the check of what is left of it."""
    with tempfile.TemporaryDirectory() as folder:
        if what == "executor":
            victim = run_rounds(Path(folder), what, rounds, seed=11)
            victim.check(KEYS)
            return victim
        kafka, postgres = Kafka(), Postgres()
        try:
            kafka.start()
            postgres.start()
            return kill_sinks(Path(folder), kafka, postgres, what, rounds, seed=11)
        finally:
            kafka.remove()
            postgres.remove()


def main(rounds: int) -> None:
    lines = [
        "# Recovery after kill -9",
        "",
        f"{rounds} rounds each, {platform.machine()}, Python {platform.python_version()}. Slots and drivers were those",
        "of a job with every exactly-once sink: FileSink, KafkaSink, JdbcSink and a TwoPhaseCommitSinkFunction over",
        "prepared transactions, on a real Kafka and a real PostgreSQL. At the end each held every record once, no",
        "transaction was open and no hidden file left; no count alarmed. Seconds from the kill to the next complete",
        "checkpoint; the driver's include the start of Python and Spark.",
        "",
        "| killed | median | shortest | longest |",
        "|---|---|---|---|",
    ]
    for what, text in WHAT.items():
        times = killed(what, rounds).recoveries
        lines.append(f"| {text} | {statistics.median(times):.1f} | {min(times):.1f} | {max(times):.1f} |")
        print(lines[-1], flush=True)
    RESULTS.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10)
