"""A BATCH job over more than memory holds, beside plain PySpark code for the same job: `make bench-batch`."""

from __future__ import annotations

import argparse
import datetime
import json
import sys

import environments
import launch
from launch import HERE, RunFailed, run_program
from measuring import RESULTS, attempt, machine, say
from report import about, table

sys.path.insert(0, str(HERE / "peers"))
import batch_job

LIMIT_MEGABYTES = 500
PEERS = {"Penstock": "batch_penstock.py", "PySpark, RDD sorted by key": "batch_rdd.py"}


def measured(label: str, records: int) -> dict:
    """One run, which fails unless its results are those that arithmetic gives."""
    ran = run_program(environments.python_of(""), HERE / "peers" / PEERS[label], [str(records)])
    if ran["results"] != batch_job.expected(records):
        raise RunFailed(f"wrong results: {ran['results']} instead of {batch_job.expected(records)}")
    say(f"{label}: {records:,} records in {ran['seconds']:.1f} s, {ran['peak_megabytes']:.0f} MB")
    return ran


def section(results: dict) -> str:
    penstock = results["peers"]["Penstock"].get("seconds")
    rows = []
    for label, ran in results["peers"].items():
        if "error" in ran:
            rows.append([label, "—", "—", "—", "—", ran["error"]])
            continue
        ratio = f"{ran['seconds'] / penstock:.2f}" if penstock else "—"
        rate = f"{results['records'] / ran['seconds'] / 1000:.0f}"
        cpu, peak = f"{ran['cpu_seconds']:.0f}", f"{ran['peak_megabytes']:.0f}"
        rows.append([label, f"{ran['seconds']:.0f}", rate, ratio, cpu, peak])
    columns = ["seconds", "thousand records/s", "time / Penstock's", "processor seconds", "peak of a process, MB"]
    return table(["", *columns], rows)


def page(results: dict) -> str:
    return "\n".join(
        [
            "# Batch\n",
            f"{results['gigabytes']:g} GB of records ({batch_job.PAYLOAD} bytes of text each, {results['records']:,} "
            f"of them, made in the job), {batch_job.KEYS:,} keys, {batch_job.SLOTS} tasks at a time. In Penstock a "
            "process function with keyed state and a timer sees one key after the other in BATCH mode. The same in "
            "plain PySpark is pairs, `repartitionAndSortWithinPartitions` and a loop over the sorted records; "
            "`reduceByKey` would be another job, since it needs no record but the last sum. Results are those that "
            "arithmetic gives. The "
            "memory is the peak of the largest Python process, as the kernel counts it; "
            f"{LIMIT_MEGABYTES} MB is the limit for Penstock's. Processor time is that of Python and Java together; it "
            "depends less than seconds do on what else the machine does. `make bench-batch` repeats it.\n",
            section(results),
            about(results),
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gigabytes", type=float, default=4, help="how much text the records have together")
    options = parser.parse_args()
    launch.TIMEOUT = 3600
    records = batch_job.records_in(options.gigabytes)
    results = {
        "date": datetime.date.today().isoformat(),
        "machine": machine(),
        "versions": {"penstock": environments.versions("")},
        "gigabytes": options.gigabytes,
        "records": records,
        "peers": {label: attempt(label, measured, label, records) for label in PEERS},
    }
    (RESULTS / "batch.json").write_text(json.dumps(results, indent=2) + "\n")
    (RESULTS / "batch.md").write_text(page(results))
    print(page(results))
    peak = results["peers"]["Penstock"].get("peak_megabytes")
    if peak is None or peak > LIMIT_MEGABYTES:
        sys.exit(f"Penstock needed {peak} MB; {LIMIT_MEGABYTES} are allowed")


if __name__ == "__main__":
    main()
