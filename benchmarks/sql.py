"""SQL beside Flink SQL in Java, the same text on both: `make bench-sql`."""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from statistics import median

import environments
from launch import HERE, RunFailed, run_program
from measuring import attempt, folder_of, header, say
from pages import NOTHING, about, failures, joined, quick_warning, save, table, times

sys.path.insert(0, str(HERE / "peers"))
from sql_queries import QUERIES

PENSTOCK, FLINK, MINI_BATCH = "Penstock", "Flink SQL", "Flink SQL, mini-batch"
REUSE = ["pipeline.object-reuse=true"]
BATCHED = [
    "table.exec.mini-batch.enabled=true",
    "table.exec.mini-batch.allow-latency=1 s",
    "table.exec.mini-batch.size=20000",
    "table.optimizer.agg-phase-strategy=TWO_PHASE",
]
PEERS = {
    PENSTOCK: ("", "penstock", []),
    FLINK: ("flink", "pyflink", REUSE),
    MINI_BATCH: ("flink", "pyflink", [*REUSE, *BATCHED]),
}
PER_ROW = {"group by, every key new", "interval join", "top 3 per key", "deduplication", "q3", "q4", "q9", "q18", "q19"}
"""Queries that touch the state of a key for nearly every row."""
PARALLELISM = 2


@dataclass(frozen=True)
class Sizes:
    """How many rows a small run and a large one have; the difference of their times leaves the start out."""

    small: int = 200_000
    large: int = 4_200_000
    pairs: int = 2
    least_seconds: float = 0.2


QUICK = Sizes(2_000, 20_000, pairs=1, least_seconds=-1_000)


def rate(peer: str, query: str, sizes: Sizes) -> dict:
    """Rows for each second without the start-up: the median over pairs of a small run and a large one."""
    environment, package, options = PEERS[peer]

    def seconds(rows: int) -> float:
        arguments = [package, query, str(rows), str(PARALLELISM), *options]
        found = run_program(environments.python_of(environment), HERE / "peers" / "sql_run.py", arguments)
        return found["seconds"]

    pairs = [(seconds(sizes.small), seconds(sizes.large)) for _ in range(sizes.pairs)]
    shortest = min(long - short for short, long in pairs)
    if shortest <= sizes.least_seconds:
        raise RunFailed(f"{sizes.large:,} rows take only {shortest:.2f} s more than {sizes.small:,}: too short to tell")
    rates = [(sizes.large - sizes.small) / max(long - short, 1e-9) for short, long in pairs]
    say(f"{query}, {peer}: " + ", ".join(f"{each:,.0f}" for each in rates) + " rows/s")
    return {"rate": median(rates), "rates": rates, "seconds": pairs, "sizes": [sizes.small, sizes.large]}


def page(results: dict) -> str:
    peers = [peer for peer in PEERS if any(peer in found for found in results["rates"].values())]
    head = ["query", *peers, *(f"of {peer}" for peer in peers[1:])]
    rows = [[query, *cells(found, peers)] for query, found in results["rates"].items()]
    caption = (
        "Million rows for each second on two cores, parallelism 2, start-up left out: the median of several pairs of "
        "runs. Both run the same SQL over the same generated rows, the generator included, and throw the result away. "
        "Flink has object reuse on. q0 to q19 are Nexmark's, with events made by the query itself.\n"
    )
    parts = ["# SQL\n", quick_warning(results), caption, table(head, rows), failures(results), about(results)]
    return joined(parts)


def cells(found: dict, peers: list[str]) -> list[str]:
    rates = {peer: found.get(peer, {}).get("rate") for peer in peers}
    ours = rates.get(PENSTOCK)
    shown = [NOTHING if rates[peer] is None else f"{rates[peer] / 1e6:.2f}" for peer in peers]
    return shown + [times(ours / rates[peer] if ours and rates[peer] else None) for peer in peers[1:]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to prove that it works")
    parser.add_argument("--only", help="some of these, with semicolons between: " + "; ".join(PEERS))
    parser.add_argument("--queries", help="some of these, with semicolons between: " + "; ".join(QUERIES))
    parser.add_argument("--rows", type=int, help="rows of the large run")
    options = parser.parse_args()
    peers = options.only.split(";") if options.only else list(PEERS)
    queries = options.queries.split(";") if options.queries else list(QUERIES)
    sizes = QUICK if options.quick else Sizes(large=options.rows) if options.rows else Sizes()
    results = header(options.quick, tuple({PEERS[peer][0] for peer in peers}))
    results["rates"] = {
        query: {peer: attempt(f"{query}, {peer}", rate, peer, query, sizes) for peer in peers} for query in queries
    }
    folder = folder_of(options.quick, partial=bool(options.only or options.queries or options.rows))
    save(folder, "sql", results, page(results))
    print((folder / "sql.md").read_text())


if __name__ == "__main__":
    main()
