"""How long a server's job takes to go on after kill -9 of its driver, its server or the leader: `make kills-service`.

Every round is also a test: no record is lost, none comes twice. Times are from the kill to the first complete
checkpoint that was ordered after it and can be seen over REST, with a checkpoint every 200 ms; they are of this machine
and of one run. At the end twenty jobs are submitted at once.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from pathlib import Path

import environments
from measuring import attempt, folder_of, header, say
from pages import NOTHING, about, failures, joined, quick_warning, save, table

sys.path.insert(0, str(environments.ROOT))

from tests.server.kills import SCENARIOS, run_many, run_rounds

ROUNDS, LEAST_ROUNDS, SEED, MANY = 10, 5, 13, 20


def recoveries(what: str, rounds: int, where: str) -> dict:
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        times = run_rounds(Path(folder), what, rounds, SEED, where).seconds
    say(f"{what}: {', '.join(f'{seconds:.1f}' for seconds in times)} s")
    return {"median": statistics.median(times), "seconds": times}


def many(_: str, number: int, where: str) -> dict:
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        return run_many(Path(folder), number, where)


# --- the page ---
def row(results: dict, what: str) -> list[str]:
    run = results["killed"][what]
    if "median" not in run:
        return [SCENARIOS[what].title, "**failed**", NOTHING, NOTHING]
    shown = (run["median"], min(run["seconds"]), max(run["seconds"]))
    return [SCENARIOS[what].title, *(f"{seconds:.1f}" for seconds in shown)]


def page(results: dict) -> str:
    where = "on Spark, local[2]" if results["where"] == "spark" else "in the driver's process, without Spark"
    caption = (
        f"{results['rounds']} rounds each. The job's slots were {where}. A row counts only if at the end the job's "
        "exactly-once sink held every number once. Seconds from the kill to the first complete checkpoint that was "
        "ordered after it and can be seen over REST; a checkpoint is taken every 200 ms.\n"
    )
    twenty = results["many"]
    said = (
        f"{results['jobs']} jobs submitted at once to one server: all had taken a checkpoint after "
        f"{twenty['run']:.0f} s, and all were cancelled after {twenty['ended']:.0f} s.\n"
        if "run" in twenty
        else f"{results['jobs']} jobs submitted at once: **failed**\n"
    )
    rows = (row(results, what) for what in results["killed"])
    return joined(
        [
            "# Jobs of a server after kill -9\n",
            quick_warning(results),
            caption,
            table(["killed", "median", "shortest", "longest"], rows),
            said,
            about(results),
            failures({"killed": results["killed"], "many": {"many": twenty}}),
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--jobs", type=int, default=MANY, help="how many jobs are submitted at once")
    parser.add_argument("--where", choices=["spark", "here"], default="spark", help="where the slots are")
    parser.add_argument("scenarios", nargs="*", default=list(SCENARIOS), help=", ".join(SCENARIOS))
    options = parser.parse_args()
    quick = options.rounds < LEAST_ROUNDS or options.where == "here"
    results = header(quick) | {"rounds": options.rounds, "where": options.where, "jobs": options.jobs}
    results["killed"] = {
        what: attempt(what, recoveries, what, options.rounds, options.where) for what in options.scenarios
    }
    results["many"] = attempt("many", many, "many", options.jobs, options.where)
    save(folder_of(quick), "service_kills", results, page(results))
    print(page(results))
    if any("error" in run for run in [*results["killed"].values(), results["many"]]):
        raise SystemExit("a round failed: see above")


if __name__ == "__main__":
    main()
