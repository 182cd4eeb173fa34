"""Patterns beside FlinkCEP in Java and beside a process function written by hand: `make bench-cep`."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from statistics import median

import environments
from launch import HERE, RunFailed, run_command, run_program
from measuring import attempt, folder_of, header, say
from pages import NOTHING, about, failures, joined, quick_warning, save, table, times

PATTERNS = {
    "two": "two steps: a followed by b",
    "three": "three steps: a followed by b followed by c, within a limit",
    "loop": "a loop: a followed by one or more b until c",
}
PENSTOCK, HAND, JAVA = "penstock.cep", "written by hand", "FlinkCEP (Java)"
PEERS = (PENSTOCK, HAND, JAVA)
AIM = 150_000
ROUND = 4


@dataclass(frozen=True)
class Sizes:
    """Rounds of four events for each key: in a small run and in a large one, by the number of keys."""

    rounds: dict[int, tuple[int, int]]
    pairs: int = 3
    least_seconds: float | None = 5
    """A shorter difference between the two runs says more about their starts than about events. None: starts are not
    left out."""


FULL = Sizes({1_000: (50, 1_000), 100_000: (1, 10)})
QUICK = Sizes({100: (5, 25)}, pairs=1, least_seconds=None)
MORE = {HAND: 5}
"""Peers that are so fast that their large run must be so many times as large."""


def rate(peer: str, pattern: str, keys: int, sizes: Sizes) -> dict:
    """Events for each second without the start-up: the median over pairs of a small run and a large one."""
    small, large = (rounds * ROUND * keys for rounds in sizes.rounds[keys])
    large *= MORE.get(peer, 1)
    run = run_of(peer)
    seconds = [[run(pattern, records, keys)["seconds"] for records in (small, large)] for _ in range(sizes.pairs)]
    rates = rates_of(small, large, seconds, sizes.least_seconds)
    say(f"{pattern}, {keys} keys, {peer}: " + ", ".join(f"{each:,.0f}" for each in rates) + " events/s")
    return {"rate": median(rates), "rates": rates, "sizes": [small, large], "seconds": seconds}


def rates_of(small: int, large: int, seconds: list[list[float]], least: float | None) -> list[float]:
    if least is None:
        return [large / long for _, long in seconds]
    shortest = min(long - short for short, long in seconds)
    if shortest <= least:
        raise RunFailed(f"{large:,} events take only {shortest:.1f} s more than {small:,}: too short for a rate")
    return [(large - small) / (long - short) for short, long in seconds]


def run_of(peer: str) -> Callable[[str, int, int], dict]:
    def with_penstock(pattern: str, records: int, keys: int) -> dict:
        how = "hand" if peer == HAND else "pattern"
        arguments = [pattern, str(records), str(keys), how]
        return run_program(environments.python_of(""), HERE / "peers" / "cep_penstock.py", arguments)

    def with_java(pattern: str, records: int, keys: int) -> dict:
        command = [*environments.java_command("penstock.bench.Patterns"), pattern, str(records), str(keys)]
        return run_command(command, environments.python_of("flink"))

    return with_java if peer == JAVA else with_penstock


def measure(results: dict, sizes: Sizes, peers: list[str], patterns: list[str], path: Path | None) -> None:
    """Fill in the rates that are missing, and save after each if there is a file for it."""
    for pattern, keys, peer in product(patterns, sizes.rounds, peers):
        found = results["rates"].setdefault(pattern, {}).setdefault(str(keys), {})
        if "rate" not in found.get(peer, {}):
            found[peer] = attempt(peer, rate, peer, pattern, keys, sizes)
            if path is not None:
                path.write_text(json.dumps(results))


def page(results: dict) -> str:
    peers = [
        peer for peer in PEERS if any(peer in found for keys in results["rates"].values() for found in keys.values())
    ]
    head = ["pattern", "keys", *peers, *(f"of {peer}" for peer in peers[1:])]
    rows = [
        [PATTERNS[pattern], f"{int(keys):,}", *cells(found, peers)]
        for pattern, by_keys in results["rates"].items()
        for keys, found in by_keys.items()
    ]
    caption = (
        f"Events for each second on two cores, parallelism 2, start-up left out: the median of several pairs "
        f"of runs, with the least and the greatest. The aim is {AIM:,} for the two steps. "
        "What is written by hand relies on events that come in order: it sorts nothing and has no timers.\n"
    )
    parts = ["# Patterns\n", quick_warning(results), caption, table(head, rows), failures(results), about(results)]
    return joined(parts)


def cells(found: dict, peers: list[str]) -> list[str]:
    rates = {peer: found.get(peer, {}).get("rate") for peer in peers}
    ours = rates.get(PENSTOCK)
    shown = [rate_cell(found.get(peer, {})) for peer in peers]
    return shown + [times(ours / rates[peer] if ours and rates[peer] else None) for peer in peers[1:]]


def rate_cell(one: dict) -> str:
    if "rate" not in one:
        return NOTHING
    return f"{one['rate']:,.0f} ({min(one['rates']):,.0f} to {max(one['rates']):,.0f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to prove that it works")
    parser.add_argument("--only", help="some of these, with commas between: " + ", ".join(PEERS))
    parser.add_argument("--keys", type=int, help="this number of keys alone")
    parser.add_argument("--patterns", help="some of these, with commas between: " + ", ".join(PATTERNS))
    parser.add_argument(
        "--resume", type=Path, help="a file that keeps what is measured, so that it can be done in pieces"
    )
    options = parser.parse_args()
    peers = options.only.split(",") if options.only else list(PEERS)
    patterns = options.patterns.split(",") if options.patterns else list(PATTERNS)
    chosen = QUICK if options.quick else FULL
    if options.keys:
        chosen = replace(chosen, rounds={options.keys: chosen.rounds[options.keys]})
    results = header(options.quick, ("", "flink") if JAVA in peers else ("",))
    results["rates"] = {}
    if options.resume and options.resume.exists():
        results = json.loads(options.resume.read_text())
    measure(results, chosen, peers, patterns, options.resume)
    folder = folder_of(options.quick, partial=bool(options.only or options.patterns or options.keys))
    save(folder, "cep", results, page(results))
    print((folder / "cep.md").read_text())


if __name__ == "__main__":
    main()
