"""How long it takes to the first result, in a session that exists already and from nothing: `make bench-start`."""

from __future__ import annotations

import argparse
import os
import re
import statistics
import subprocess
import tempfile
import time
from dataclasses import dataclass

import environments
import plan
from launch import HERE, RunFailed, end_group, run_program, spawned
from measuring import attempt, folder_of, header, say, versions
from pages import NOTHING, about, failures, joined, quick_warning, save, table, targets, times

PROGRAM = HERE / "peers" / "first_jobs.py"
MOST_WARM_SECONDS = 1.5
REPEATS, QUICK_REPEATS = 10, 2
FIRST = "(to,2)"  # the first result without quotes and spaces
KINDS = {"warm": "from execute() in a session that is there", "cold": "from the command"}


@dataclass(frozen=True)
class Peer:
    label: str
    environment: str
    package: str


OURS = Peer("Penstock", "", "penstock")
PEERS = (
    OURS,
    Peer("Penstock, the last release", plan.BEFORE, "penstock"),
    Peer("PyFlink, thread mode", "flink", "pyflink"),
)


def warm(peer: Peer, repeats: int) -> dict:
    """Several jobs in one process; the first, which starts the session, does not count."""
    python = environments.python_of(peer.environment)
    found = run_program(python, PROGRAM, [peer.package, str(repeats + 1)])["seconds"][1:]
    return told(peer, "warm", found)


def cold(peer: Peer, repeats: int) -> dict:
    """Several programs, one after the other."""
    return told(peer, "cold", [seconds_to_output(peer) for _ in range(repeats)])


def told(peer: Peer, kind: str, found: list[float]) -> dict:
    say(f"{peer.label}, {kind}: {', '.join(f'{seconds:.2f}' for seconds in found)} s")
    return {"median": statistics.median(found), "seconds": found}


def seconds_to_output(peer: Peer) -> float:
    """From the command to the first result that it prints."""
    python = environments.python_of(peer.environment)
    command = [str(python), str(PROGRAM), peer.package, "print"]
    with tempfile.TemporaryDirectory() as folder, open(os.devnull, "w") as nowhere:
        began = time.perf_counter()
        process = spawned(command, python, folder, subprocess.PIPE, nowhere)
        try:
            for line in process.stdout or ():
                if re.sub(r"['\s]", "", line) == FIRST:
                    return time.perf_counter() - began
        finally:
            end_group(process)
    raise RunFailed("the program ended without a result")


# --- the page ---
def section(results: dict) -> str:
    head = ["", *(f"{text}, s (shortest to longest)" for text in KINDS.values())]
    rows = [[peer.label, *(cell(results, kind, peer) for kind in KINDS)] for peer in PEERS]
    return table(head, rows)


def cell(results: dict, kind: str, peer: Peer) -> str:
    run, ours = results[kind][peer.label], results[kind][OURS.label]
    if "median" not in run:
        return "**failed**"
    text = f"{run['median']:.2f} ({min(run['seconds']):.2f} to {max(run['seconds']):.2f})"
    known = peer is not OURS and "median" in ours
    return f"{text}, Penstock's / this: {times(ours['median'] / run['median'])}" if known else text


def target_rows(results: dict) -> list[tuple[str, str, bool | None]]:
    median = results["warm"][OURS.label].get("median")
    text = f"from execute() to the first result in {MOST_WARM_SECONDS} s at most"
    return [(text, f"{median:.2f} s", median <= MOST_WARM_SECONDS) if median else (text, NOTHING, None)]


def page(results: dict) -> str:
    caption = (
        f"The first program of the README, medians of {results['repeats']} runs each. From the command: the start of "
        "Python, imports and the start of Spark or Flink are in it, until the program prints its first result.\n"
    )
    parts = ["# Start\n", quick_warning(results), targets(results, target_rows(results)), caption, section(results)]
    return joined([*parts, about(results), failures({kind: results[kind] for kind in KINDS})])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few repeats, to prove that it works")
    options = parser.parse_args()
    repeats = QUICK_REPEATS if options.quick else REPEATS
    results = header(options.quick) | {"repeats": repeats}
    for kind, measure in (("warm", warm), ("cold", cold)):
        results[kind] = {peer.label: attempt(f"{peer.label}, {kind}", measure, peer, repeats) for peer in PEERS}
    results["versions"] = versions(peer.environment for peer in PEERS)
    save(folder_of(options.quick), "start", results, page(results))
    print(page(results))


if __name__ == "__main__":
    main()
