"""DataStream programs in columns beside the same programs in rows: `make bench-columns`.

Both run in this process with two slots, in turn. What counts is processor time, so that other work on the machine
matters little; the start of a job is part of it.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import environments
from measuring import attempt, folder_of, header, say
from pages import about, failures, joined, quick_warning, save, table, times

sys.path.insert(0, str(environments.ROOT))

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from penstock.common import Time, Types, WatermarkStrategy
from penstock.datastream import StreamExecutionEnvironment
from penstock.datastream.connectors.file_system import BucketAssigner, FileSink, FileSource
from penstock.datastream.formats.parquet import ParquetBulkWriters, ParquetColumnarRowInputFormat
from penstock.datastream.window import TumblingEventTimeWindows
from penstock.testing import in_process

SLOTS = 2
ROWS, COLUMNS = "in rows", "in columns"
SALE = Types.ROW_NAMED(["shop", "at", "pieces", "price"], [Types.STRING(), Types.LONG(), Types.LONG(), Types.DOUBLE()])
WINDOW_MILLIS = 60_000
MONOTONOUS = WatermarkStrategy.for_monotonous_timestamps()


def sales(folder: Path, count: int, keys: int) -> None:
    """A hundred sales a second, in two files."""
    for part in range(SLOTS):
        numbers = range(part, count, SLOTS)
        columns = {
            "shop": [f"shop {number * 7919 % keys}" for number in numbers],
            "at": [number * 10 for number in numbers],
            "pieces": [number % 10 for number in numbers],
            "price": [number % 97 / 8 for number in numbers],
        }
        pq.write_table(pa.table(columns), folder / f"{part}.parquet", row_group_size=100_000)


# --- the programs, each in two forms ---
def read(env, folder: Path, form: str):
    files = FileSource.for_bulk_file_format(ParquetColumnarRowInputFormat(SALE), str(folder / "*.parquet")).build()
    by_column, by_row = MONOTONOUS.with_timestamp_field("at"), MONOTONOUS.with_timestamp_assigner(lambda row: row["at"])
    return env.from_source(files, by_column if form == COLUMNS else by_row, "sales")


def large(stream, form: str):
    if form == COLUMNS:
        return stream.filter_batches(lambda batch: pc.greater(batch["pieces"], 2))
    return stream.filter(lambda row: row["pieces"] > 2)


def write(stream, folder: Path) -> None:
    sink = FileSink.for_bulk_format(str(folder / "out"), ParquetBulkWriters.for_row_type(SALE))
    stream.sink_to(sink.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner()).build())


def windows(env, folder: Path, form: str) -> None:
    sold = large(read(env, folder, form), form).key_by("shop")
    write(sold.window(TumblingEventTimeWindows.of(Time.milliseconds(WINDOW_MILLIS))).sum("pieces"), folder)


def filtered(env, folder: Path, form: str) -> None:
    write(large(read(env, folder, form), form), folder)


def rolling(env, folder: Path, form: str) -> None:
    large(read(env, folder, form), form).key_by("shop").sum("price").discard()


def mapped(env, folder: Path, form: str) -> None:
    """A function of columns over rows that no columnar source has read, with its own conversion."""
    rows = read(env, folder, ROWS).map(lambda row: row, SALE)
    if form == COLUMNS:
        worth = lambda batch: batch.set_column(3, "price", pc.multiply(batch["price"], batch["pieces"]))  # noqa: E731
        rows.map_batches(worth, SALE).discard()
    else:
        rows.map(with_worth, SALE).discard()


def with_worth(row):
    from penstock.common import Row

    return Row(shop=row["shop"], at=row["at"], pieces=row["pieces"], price=row["price"] * row["pieces"])


PROGRAMS: dict[str, tuple[str, Callable]] = {
    "windows": ("Parquet, filter, key_by, tumbling windows with sum, Parquet", windows),
    "filter": ("Parquet, filter, Parquet", filtered),
    "rolling": ("Parquet, filter, key_by, rolling sum", rolling),
    "from rows": ("rows of a declared type, map", mapped),
}


def counted(env, count: int) -> None:
    """Has no columns anywhere: what chunks of two forms cost those who have only one."""
    numbers = env.from_sequence(0, count - 1).map(lambda number: (number % 1000, 1))
    numbers.key_by(lambda pair: pair[0]).reduce(lambda left, right: (left[0], left[1] + right[1])).discard()


# --- measuring ---
def processor_seconds(build: Callable) -> float:
    with in_process():
        env = StreamExecutionEnvironment().set_parallelism(SLOTS)
        build(env)
        before = time.process_time()
        env.execute("columns")
        return time.process_time() - before


def compared(program: Callable, count: int, keys: int, rounds: int) -> dict:
    """Records for each second of processor time, in both forms, which take turns."""
    found: dict[str, list[float]] = {ROWS: [], COLUMNS: []}
    with tempfile.TemporaryDirectory() as folder:
        sales(Path(folder), count, keys)
        for _ in range(rounds):
            for form, seconds in found.items():
                seconds.append(processor_seconds(lambda env, form=form: program(env, Path(folder), form)))
    rates = {form: count / median(seconds) for form, seconds in found.items()}
    return rates | {"ratio": rates[COLUMNS] / rates[ROWS]}


def plain(count: int, rounds: int) -> dict:
    return {"rate": count / median(processor_seconds(lambda env: counted(env, count)) for _ in range(rounds))}


def page(results: dict) -> str:
    rows = [
        [PROGRAMS[name][0], f"{keys:,}", f"{found[ROWS]:,.0f}", f"{found[COLUMNS]:,.0f}", times(found["ratio"])]
        for name, by_keys in results["programs"].items()
        for keys, found in by_keys.items()
        if "error" not in found
    ]
    head = ["program", "keys", ROWS, COLUMNS, "ratio"]
    count = results["plain"]
    return joined(
        [
            "# Columns in DataStream programs\n",
            quick_warning(results),
            about(results),
            f"Records for each second of processor time, in one process with {SLOTS} slots; medians of "
            f"{results['rounds']} runs over {results['records']:,} records, which took turns.\n",
            table(head, rows),
            "" if "error" in count else f"A reduce by key over tuples, without columns: {count['rate']:,.0f}.\n",
            failures(results),
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to prove that everything works")
    parser.add_argument("--program", choices=list(PROGRAMS), help="only one of the programs")
    arguments = parser.parse_args()
    records, rounds, widths = (20_000, 1, [100]) if arguments.quick else (1_000_000, 5, [100, 10_000])
    results: dict = header(arguments.quick) | {"records": records, "rounds": rounds, "programs": {}}
    for name, (what, program) in PROGRAMS.items():
        if arguments.program not in (None, name):
            continue
        found = results["programs"][name] = {}
        for keys in widths:
            found[keys] = attempt(what, compared, program, records, keys, rounds)
            say(f"{what}, {keys:,} keys: {found[keys]}")
    results["plain"] = attempt("reduce by key", plain, records, rounds)
    say(f"reduce by key: {results['plain']}")
    save(folder_of(arguments.quick, arguments.program is not None), "columns", results, page(results))


if __name__ == "__main__":
    main()
