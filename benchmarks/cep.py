"""Patterns beside FlinkCEP in Java and beside a process function written by hand: `make bench-cep`."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass

import environments
from launch import HERE, run_command, run_program
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
    """Rounds of four events for each key, by the number of keys: in a small run and in a large one."""

    rounds: dict[int, tuple[int, int]]


FULL = Sizes({1_000: (50, 350), 100_000: (1, 4)})
QUICK = Sizes({100: (5, 25)})


def rate(peer: str, pattern: str, keys: int, rounds: tuple[int, int]) -> dict:
    """Events for each second, without the start-up: the difference of a large run and a small one."""
    small, large = (run_of(peer)(pattern, count * ROUND * keys, keys) for count in rounds)
    found = (large["records"] - small["records"]) / (large["seconds"] - small["seconds"])
    say(f"{pattern}, {keys} keys, {peer}: {found:,.0f} events/s")
    return {"rate": found}


def run_of(peer: str) -> Callable[[str, int, int], dict]:
    def with_penstock(pattern: str, records: int, keys: int) -> dict:
        how = "hand" if peer == HAND else "pattern"
        arguments = [pattern, str(records), str(keys), how]
        return run_program(environments.python_of(""), HERE / "peers" / "cep_penstock.py", arguments)

    def with_java(pattern: str, records: int, keys: int) -> dict:
        command = [*environments.java_command("penstock.bench.Patterns"), pattern, str(records), str(keys)]
        return run_command(command, environments.python_of("flink"))

    return with_java if peer == JAVA else with_penstock


def measured(sizes: Sizes, peers: list[str]) -> dict:
    return {
        pattern: {
            str(keys): {peer: attempt(peer, rate, peer, pattern, keys, rounds) for peer in peers}
            for keys, rounds in sizes.rounds.items()
        }
        for pattern in PATTERNS
    }


def page(results: dict) -> str:
    peers = [peer for peer in PEERS if any(peer in found for found in results["rates"]["two"].values())]
    head = ["pattern", "keys", *peers, *(f"of {peer}" for peer in peers[1:])]
    rows = [
        [PATTERNS[pattern], f"{int(keys):,}", *cells(found, peers)]
        for pattern, by_keys in results["rates"].items()
        for keys, found in by_keys.items()
    ]
    caption = (
        f"Events for each second on two cores, parallelism 2, start-up left out. The aim is {AIM:,} for the two steps. "
        "What is written by hand relies on events that come in order: it sorts nothing and has no timers.\n"
    )
    parts = ["# Patterns\n", quick_warning(results), caption, table(head, rows), failures(results), about(results)]
    return joined(parts)


def cells(found: dict, peers: list[str]) -> list[str]:
    rates = {peer: found.get(peer, {}).get("rate") for peer in peers}
    ours = rates.get(PENSTOCK)
    shown = [f"{each:,.0f}" if each else NOTHING for each in rates.values()]
    return shown + [times(ours / rates[peer] if ours and rates[peer] else None) for peer in peers[1:]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to prove that it works")
    parser.add_argument("--only", help="some of these, with commas between: " + ", ".join(PEERS))
    options = parser.parse_args()
    peers = options.only.split(",") if options.only else list(PEERS)
    results = header(options.quick, ("", "flink") if JAVA in peers else ("",))
    results["rates"] = measured(QUICK if options.quick else FULL, peers)
    folder = folder_of(options.quick, partial=bool(options.only))
    save(folder, "cep", results, page(results))
    print((folder / "cep.md").read_text())


if __name__ == "__main__":
    main()
