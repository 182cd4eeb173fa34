"""Libraries that could do the work of a query on a batch of columns: `make bench-kernels`."""

from __future__ import annotations

import argparse
import os

import environments
from launch import HERE, run_program
from measuring import attempt, folder_of, header, say
from pages import NOTHING, about, failures, joined, quick_warning, save, table, times

LIBRARIES = ("pyarrow", "polars", "duckdb", "datafusion")
SIZES = (100, 1_000, 10_000, 100_000)
"""Rows of a batch: an epoch has few where latency matters, and many where a job catches up."""
QUICK = (100,)


def work_of(library: str, rows: int) -> dict:
    os.environ["POLARS_MAX_THREADS"] = "1"  # a slot has one core, whatever its library would like
    return run_program(environments.python_of("kernels"), HERE / "peers" / "kernels.py", [library, str(rows)])


def page(results: dict) -> str:
    found = results["micros"]
    rows = []
    for size, by_library in found.items():
        for work in by_library["pyarrow"]:
            ours = by_library["pyarrow"][work]
            others = [by_library[library].get(work) for library in LIBRARIES[1:]]
            shown = [NOTHING if each is None else times(each / ours) for each in others]
            rows.append([f"{int(size):,}", work, f"{ours:,.0f}", *shown])
    caption = (
        "What a batch of so many rows takes, Arrow in and Arrow out, in one thread: microseconds with pyarrow, and how "
        "many times as long with the others. Medians, after a first time.\n"
    )
    head = ["rows", "work", "pyarrow, us", *LIBRARIES[1:]]
    parts = ["# Kernels\n", quick_warning(results), caption, table(head, rows), failures(found), about(results)]
    return joined(parts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one tiny size, to prove that it works")
    options = parser.parse_args()
    environments.python_of("kernels")
    results = header(options.quick, ("kernels",)) | {"micros": {}}
    for rows in QUICK if options.quick else SIZES:
        results["micros"][rows] = {library: attempt(library, work_of, library, rows) for library in LIBRARIES}
        say(f"{rows:,} rows done")
    folder = folder_of(options.quick)
    save(folder, "kernels", results, page(results))
    print((folder / "kernels.md").read_text())


if __name__ == "__main__":
    main()
