"""SQL beside Flink SQL in Java, the same text on both, and beside Spark Structured Streaming: `make bench-sql`.

Every peer runs all queries one after the other in one process, so that nobody is measured cold.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

import environments
from launch import HERE, RunFailed, lines_of
from measuring import folder_of, header, say
from pages import NOTHING, about, failures, joined, quick_warning, save, table, times

sys.path.insert(0, str(HERE / "peers"))
from sql_queries import QUERIES

PENSTOCK, FLINK, MINI_BATCH, SPARK = "Penstock", "Flink SQL", "Flink SQL, mini-batch", "Spark Structured Streaming"
REUSE = {"pipeline.object-reuse": "true"}
BATCHED = {
    "table.exec.mini-batch.enabled": "true",
    "table.exec.mini-batch.allow-latency": "1 s",
    "table.exec.mini-batch.size": "20000",
    "table.optimizer.agg-phase-strategy": "TWO_PHASE",
}
PER_ROW = {"group by, every key new", "interval join", "top 3 per key", "deduplication", "q3", "q4", "q9", "q18", "q19"}
"""Queries that touch the state of a key for nearly every row."""
NO_FORM = "no form of it was written"
PARALLELISM = 2


@dataclass(frozen=True)
class Peer:
    environment: str
    program: str
    arguments: tuple[str, ...]
    options: dict[str, str]


PEERS = {
    PENSTOCK: Peer("", "sql_run.py", ("penstock",), {}),
    FLINK: Peer("flink", "sql_run.py", ("pyflink",), REUSE),
    MINI_BATCH: Peer("flink", "sql_run.py", ("pyflink",), REUSE | BATCHED),
    SPARK: Peer("", "sql_spark.py", (), {}),
}


@dataclass(frozen=True)
class Sizes:
    """How many rows a small run and a large one have; the large one grows until it takes so many seconds longer."""

    small: int = 200_000
    large: int = 1_000_000
    largest: int = 200_000_000
    pairs: int = 2
    least_seconds: float = 4


QUICK = Sizes(2_000, 20_000, 20_000, pairs=1)


# --- measuring ---
def measure(results: dict, peer: str, queries: list[str], sizes: Sizes, path: Path | None) -> None:
    """Fill in the rates of a peer that are missing, and save after each if there is a file for it."""
    rates = results["rates"]
    missing = [query for query in queries if "rate" not in rates.setdefault(query, {}).get(peer, {})]
    while missing:
        for query, found in tried(peer, missing, sizes):
            rates[query][peer] = found
            missing.remove(query)
            say(f"{query}, {peer}: " + (found.get("error") or ", ".join(f"{one:,.0f}" for one in found["rates"])))
            if path is not None:
                path.write_text(json.dumps(results))


def tried(peer: str, queries: list[str], sizes: Sizes) -> Iterator[tuple[str, dict]]:
    """The queries with what was found about each; ends early, after an error, if the program does not survive it."""
    which = PEERS[peer]
    settings = asdict(sizes) | {"queries": queries, "parallelism": PARALLELISM, "options": which.options}
    arguments = [*which.arguments, json.dumps(settings)]
    left = list(queries)
    try:
        python = environments.python_of(which.environment)
        for line in lines_of(python, HERE / "peers" / which.program, arguments):
            yield left.pop(0), found_in(line)
        if left:
            raise RunFailed("the program ended before its time")
    except (RunFailed, environments.EnvironmentFailed) as failure:
        if left:
            yield left[0], {"error": str(failure)}


def found_in(line: dict) -> dict:
    if "error" in line:
        return {"error": line["error"]}
    rates = [rate(pair["rows"], pair["seconds"]) for pair in line["pairs"]]
    return {"rate": median(rates), "rates": rates, "pairs": line["pairs"]}


def rate(rows: list[int], seconds: list[float]) -> float:
    return (rows[1] - rows[0]) / max(seconds[1] - seconds[0], 1e-9)


# --- telling ---
def page(results: dict) -> str:
    peers = [peer for peer in PEERS if any(peer in found for found in results["rates"].values())]
    head = ["query", *peers, *(f"of {peer}" for peer in peers[1:])]
    rows = [
        [f"{query} *" if query in PER_ROW else query, *cells(found, peers)] for query, found in results["rates"].items()
    ]
    caption = (
        "Million rows for each second on two cores, parallelism 2, start-up left out: a small run and a large one, "
        f"{counted(results)}. Penstock and Flink run the same SQL over the same generated rows, the generator "
        "included, and throw the result away; Flink has object reuse on. Spark runs the queries in its own words over "
        "its own generator, in micro-batches of a million rows. q0 to q19 are Nexmark's, with events made by the query "
        "itself. A star marks queries that touch the state of a key for nearly every row. A dash means that the query "
        "was not written for Spark, which refuses most of these over streams.\n"
    )
    parts = ["# SQL\n", quick_warning(results), caption, table(head, rows), verdict(results)]
    return joined([*parts, failures(without_refusals(results)), about(results)])


def counted(results: dict) -> str:
    pairs = min(len(one["pairs"]) for found in results["rates"].values() for one in found.values() if "pairs" in one)
    return "once each" if pairs == 1 else f"the median of {pairs} pairs"


def cells(found: dict, peers: list[str]) -> list[str]:
    rates = {peer: found.get(peer, {}).get("rate") for peer in peers}
    ours = rates.get(PENSTOCK)
    shown = [NOTHING if rates[peer] is None else f"{rates[peer] / 1e6:.2f}" for peer in peers]
    return shown + [times(ours / rates[peer] if ours and rates[peer] else None) for peer in peers[1:]]


def verdict(results: dict) -> str:
    """Where the aim is not reached: ahead of Flink, and within half of it where the state is touched for every row."""
    behind = []
    for query, found in results["rates"].items():
        flink = max((found.get(peer, {}).get("rate") or 0 for peer in (FLINK, MINI_BATCH)), default=0)
        ours = found.get(PENSTOCK, {}).get("rate")
        if flink and ours and ours < flink * (0.5 if query in PER_ROW else 1):
            behind.append(f"{query} ({times(ours / flink)})")
    if not any(PENSTOCK in found and FLINK in found for found in results["rates"].values()):
        return ""
    aim = "The aim is to be ahead of the faster of the two Flinks, and with a star at least half as fast."
    return f"{aim} Missed by: {', '.join(behind) or 'none'}.\n"


def without_refusals(results: dict) -> dict:
    """Results without the queries that were not written for a peer: that is no failure."""
    rates = {
        query: {peer: one for peer, one in found.items() if NO_FORM not in one.get("error", "")}
        for query, found in results["rates"].items()
    }
    return {**results, "rates": rates}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to prove that it works")
    parser.add_argument("--only", help="some of these, with semicolons between: " + "; ".join(PEERS))
    parser.add_argument("--queries", help="some of these, with semicolons between: " + "; ".join(QUERIES))
    parser.add_argument("--pairs", type=int, default=Sizes.pairs, help="how often each is measured")
    parser.add_argument(
        "--resume", type=Path, help="a file that keeps what is measured, so that it can be done in pieces"
    )
    options = parser.parse_args()
    peers = options.only.split(";") if options.only else list(PEERS)
    queries = options.queries.split(";") if options.queries else list(QUERIES)
    results = header(options.quick, tuple({PEERS[peer].environment for peer in peers})) | {"rates": {}}
    if options.resume and options.resume.exists():
        results = json.loads(options.resume.read_text())
    for peer in peers:
        measure(results, peer, queries, QUICK if options.quick else Sizes(pairs=options.pairs), options.resume)
    folder = folder_of(options.quick, partial=bool(options.only or options.queries))
    save(folder, "sql", results, page(results))
    print((folder / "sql.md").read_text())


if __name__ == "__main__":
    main()
