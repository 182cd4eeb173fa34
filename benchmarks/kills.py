"""How long a job takes to go on after kill -9 of a slot's worker, an executor or the driver: `make kills`.

Every round is also a test: no count is lost, none comes twice. The job whose slots and drivers are killed writes into
files, Kafka and PostgreSQL with every exactly-once sink there is, and what the systems hold at the end is compared with
what was read; that whose executors are killed has a sink into files alone. Times are from the kill to the next complete
checkpoint, with a checkpoint every 300 ms and a restart delay of 10 ms; they are of this machine and of one run.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from pathlib import Path

import environments
from measuring import attempt, folder_of, header, say
from pages import NOTHING, about, failures, joined, quick_warning, save, table, targets

sys.path.insert(0, str(environments.ROOT))

from tests.services.kafka import Kafka
from tests.services.postgres import Postgres
from tests.spark.kill_job import KEYS
from tests.spark.kills import Victim, run_rounds
from tests.spark.sinks_kills import kill_sinks

MOST_SECONDS = 1.5  # at the median, if the driver and its JVM survive
ROUNDS, LEAST_ROUNDS, SEED = 10, 5, 11
WHAT = {
    "slot": "a slot's process (local[2])",
    "executor": "an executor (local-cluster[2,2,1024])",
    "driver": "the driver, started again at once (local[2])",
}


def recoveries(what: str, rounds: int) -> dict:
    times = killed(what, rounds).recoveries
    say(f"{what}: {', '.join(f'{seconds:.1f}' for seconds in times)} s")
    return {"median": statistics.median(times), "seconds": times}


def killed(what: str, rounds: int) -> Victim:
    """Run a job through its rounds, and check what its sinks hold at the end."""
    with tempfile.TemporaryDirectory() as folder:
        if what == "executor":
            victim = run_rounds(Path(folder), what, rounds, SEED)
            victim.check(KEYS)
            return victim
        kafka, postgres = Kafka(), Postgres()
        try:
            kafka.start()
            postgres.start()
            return kill_sinks(Path(folder), kafka, postgres, what, rounds, SEED)
        finally:
            kafka.remove()
            postgres.remove()


# --- the page ---
def row(results: dict, what: str) -> list[str]:
    run = results["killed"][what]
    if "median" not in run:
        return [WHAT[what], "**failed**", NOTHING, NOTHING]
    return [WHAT[what], *(f"{seconds:.1f}" for seconds in (run["median"], min(run["seconds"]), max(run["seconds"])))]


def target_row(results: dict, what: str) -> tuple[str, str, bool | None]:
    text, median = f"{WHAT[what]}: {MOST_SECONDS} s at the median at most", results["killed"][what].get("median")
    return (text, NOTHING, None) if median is None else (text, f"{median:.1f} s", median <= MOST_SECONDS)


def page(results: dict) -> str:
    caption = (
        f"{results['rounds']} rounds each. Slots and drivers were those of a job with every exactly-once sink: "
        "FileSink, KafkaSink, JdbcSink and a TwoPhaseCommitSinkFunction over prepared transactions, on a real Kafka "
        "and a real PostgreSQL. A row counts only if at the end each of them held every record once, no transaction "
        "was open, no hidden file was left and no count alarmed. Seconds from the kill to the next complete "
        "checkpoint, of which there is one every 300 ms; the driver's include the start of Python and Spark.\n"
    )
    return joined(
        [
            "# Recovery after kill -9\n",
            quick_warning(results),
            targets(results, (target_row(results, what) for what in ("slot", "executor"))),
            caption,
            table(["killed", "median", "shortest", "longest"], (row(results, what) for what in WHAT)),
            about(results),
            failures({"killed": results["killed"]}),
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    options = parser.parse_args()
    quick = options.rounds < LEAST_ROUNDS
    results = header(quick) | {"rounds": options.rounds}
    results["killed"] = {what: attempt(what, recoveries, what, options.rounds) for what in WHAT}
    save(folder_of(quick), "kills", results, page(results))
    print(page(results))
    if any("error" in run for run in results["killed"].values()):
        raise SystemExit("a round failed: see above")


if __name__ == "__main__":
    main()
