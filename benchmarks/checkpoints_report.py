"""Tables from the results of `checkpoints.py`: `python benchmarks/checkpoints_report.py results/checkpoints.json`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from statistics import median

from pages import NOTHING, about, failures, quick_warning, table, times, verdict

LEAST_SHARE = 0.85  # of the rate without checkpoints
MOST_GROWTH_OF_BYTES, MOST_GROWTH_OF_TIME = 1.1, 2.0  # for as many changed keys in larger states
KILOBYTE, MEGABYTE = 1000, 1_000_000


def write(results: dict, folder: Path) -> None:
    """Write `checkpoints.md` into the folder."""
    (folder / "checkpoints.md").write_text(page(results))


def page(results: dict) -> str:
    sections = {
        "throughput": ("Throughput with checkpoints", throughput_section),
        "cost": ("What one checkpoint costs", cost_section),
        "recovery": ("Recovery", recovery_section),
        "large_state": ("Large state in RocksDB", large_state_section),
    }
    parts = ["# Checkpoints: benchmark results\n", quick_warning(results), about(results), "## Targets\n"]
    parts.append(targets(results))
    for name, (title, section) in sections.items():
        parts.append(f"## {title}\n")
        parts.append(section(results[name]) if name in results else "Not chosen.\n")
    return "\n".join(part for part in [*parts, failures(results)] if part)


def targets(results: dict) -> str:
    rows = []
    for keys, run in results.get("throughput", {}).items():
        text = f"{int(keys):,} keys: at least {100 * LEAST_SHARE:.0f} % of the rate without checkpoints"
        share = share_kept(run)
        rows.append([text, share, share is not None and share >= LEAST_SHARE])
    if "cost" in results:
        for text, growth, most in growths(results["cost"]):
            rows.append([text, growth, growth is not None and growth <= most])
    if results["quick"]:
        return table(
            ["target", "measured", "verdict"], ([text, times(ratio), "too quick to tell"] for text, ratio, _ in rows)
        )
    return table(
        ["target", "measured", "verdict"], ([text, times(ratio), verdict(ratio, met)] for text, ratio, met in rows)
    )


def growths(runs: dict) -> list[tuple[str, float | None, float]]:
    """How much more the same number of changed keys costs in the largest state than in the smallest, and may cost."""
    text = "as many changed keys in the largest state against the smallest: at most {} times the {}"
    in_bytes = (text.format(MOST_GROWTH_OF_BYTES, "bytes"), MOST_GROWTH_OF_BYTES)
    in_time = (text.format(MOST_GROWTH_OF_TIME, "time"), MOST_GROWTH_OF_TIME)
    if any("error" in run for run in runs.values()):
        return [(text, None, most) for text, most in (in_bytes, in_time)]
    by_keys = {int(keys): run["few"] for keys, run in runs.items()}
    small, large = by_keys[min(by_keys)], by_keys[max(by_keys)]
    measured = (large["written"] / small["written"], millis(large) / millis(small))
    return [(text, growth, most) for (text, most), growth in zip((in_bytes, in_time), measured, strict=True)]


# a


def rates(run: dict, kind: str) -> list[float]:
    """The rate of every round: that of the large run without the small one if there are both, else of the one run."""
    sizes, found = run["sizes"], []
    for measured in run["rounds"]:
        seconds = [one["seconds"] for one in measured[kind]]
        records, took = (sizes[-1] - sizes[0], seconds[-1] - seconds[0]) if len(sizes) > 1 else (sizes[0], seconds[0])
        if took > 0:
            found.append(records / took)
    return found


def share_kept(run: dict) -> float | None:
    """The median rate with checkpoints over the median rate without."""
    if "error" in run or not (rates(run, "with") and rates(run, "without")):
        return None
    return median(rates(run, "with")) / median(rates(run, "without"))


def throughput_section(runs: dict) -> str:
    rows = []
    for keys, run in runs.items():
        share = share_kept(run)
        if share is None:
            rows.append([f"{int(keys):,}", "**failed**", *[NOTHING] * 5])
            continue
        largest = [measured["with"][-1] for measured in run["rounds"]]
        spread = [a / b for a, b in zip(rates(run, "with"), rates(run, "without"), strict=False)]
        rows.append(
            [
                f"{int(keys):,}",
                f"{share:.0%}",
                ", ".join(f"{one:.0%}" for one in spread),
                f"{median(rates(run, 'without')):,.0f}",
                f"{median(rates(run, 'with')):,.0f}",
                f"{median(one['checkpoints'] for one in largest):.0f}",
                f"{median(one['written'] for one in largest) / MEGABYTE:.2f}",
            ]
        )
    caption = (
        "The keyed count of the main benchmark with a checkpoint every second to a local folder, against the same "
        "without, run in turn in one Spark session: medians, and beside them every pair. Start-up is not in the rates. "
        "Records per second are for orientation.\n"
    )
    head = ["keys", "with / without", "each pair", "records/s without", "records/s with", "checkpoints", "MB written"]
    return "\n".join([caption, table(head, rows)])


# b


def millis(one: dict) -> float:
    return one["sync_millis"] + one["async_millis"]


def good(runs: dict) -> dict[int, dict]:
    return {int(keys): run for keys, run in runs.items() if "error" not in run}


def cost_section(runs: dict) -> str:
    measured = good(runs)
    if not measured:
        return "**Failed.**\n"
    few = int(next(iter(measured.values()))["few"]["changed"])
    captions = (
        "Value state with a whole number per key in the HashMap backend, parallelism 2: the state is filled and a full "
        "checkpoint taken; then one key in a hundred is changed and an incremental one taken, several times (medians). "
        "The job stands still while a checkpoint is serialised (sync) and goes on while it is written (async). "
        "Times are those of the slower slot, bytes those of both.\n",
        "Per changed key. Every checkpoint has some hundred bytes and some file operations that depend on nothing, so "
        f"the right half, where {few:,} keys are changed whatever the size of the state, tells more: what it costs "
        "should not grow with the state. In brackets: relative to the smallest state.\n",
    )
    first = table(
        ["keys", "full: sync ms", "async ms", "MB", "1 %: sync ms", "async ms", "kB", "time / full", "bytes / full"],
        (full_row(keys, run) for keys, run in measured.items()),
    )
    head = ["keys", "1 %: bytes per key", "µs per key", f"{few:,} keys: bytes per key", "µs per key", "of it sync"]
    base = measured[min(measured)]
    second = table(head, (changed_row(keys, run, base) for keys, run in measured.items()))
    return "\n".join([captions[0], first, captions[1], second])


def full_row(keys: int, run: dict) -> list[str]:
    full, percent = run["full"], run["percent"]
    return [
        f"{keys:,}",
        *(f"{one:,.1f}" for one in (full["sync_millis"], full["async_millis"], full["written"] / MEGABYTE)),
        *(f"{one:,.1f}" for one in (percent["sync_millis"], percent["async_millis"], percent["written"] / KILOBYTE)),
        f"{millis(percent) / millis(full):.1%}",
        f"{percent['written'] / full['written']:.1%}",
    ]


def changed_row(keys: int, run: dict, base: dict) -> list[str]:
    percent, few, least = run["percent"], run["few"], base["few"]
    return [
        f"{keys:,}",
        f"{percent['written'] / percent['changed']:.1f}",
        f"{1000 * millis(percent) / percent['changed']:.2f}",
        f"{few['written'] / few['changed']:.1f} ({times(few['written'] / least['written'])})",
        f"{1000 * millis(few) / few['changed']:.2f} ({times(millis(few) / millis(least))})",
        f"{1000 * few['sync_millis'] / few['changed']:.2f}",
    ]


# c


def seconds_back(run: dict | None, until: str = "first") -> float | None:
    if run is None or "error" in run:
        return None
    return median(one[until] for one in run["recoveries"])


def recovery_section(runs: dict) -> str:
    least = seconds_back(next(iter(runs.values())).get("penstock"))
    rows = []
    for keys, run in runs.items():
        ours, theirs = seconds_back(run.get("penstock")), seconds_back(run.get("pyflink"))
        rows.append(
            [
                f"{int(keys):,}",
                times(theirs / ours if ours and theirs else None),
                recovery_cell(run.get("penstock")),
                recovery_cell(run.get("pyflink")),
                times(ours / least if ours and least else None),
            ]
        )
    caption = (
        "The state is filled and a checkpoint of it complete when a user function raises; measured is the time until "
        "the first record is processed after the restart, with the state of its key checked, and in brackets until "
        "every subtask has processed one. Medians of several failures of one job. HashMap backend, checkpoints on "
        "local disk, a fixed delay of 0 ms before a restart, no local copies, both peers at parallelism 2; PyFlink in "
        "thread mode. No process dies: Penstock's slots and Flink's JVM stay and take up the state again.\n"
    )
    head = ["keys", "PyFlink's time / Penstock's", "Penstock, s", "PyFlink, s", "Penstock's / its smallest"]
    return "\n".join([caption, table(head, rows)])


def recovery_cell(run: dict | None) -> str:
    if run is None:
        return "not measured"
    if "error" in run:
        return "**failed**"
    return f"{seconds_back(run):.3f} ({seconds_back(run, 'every'):.3f})"


# d


def large_state_section(runs: dict) -> str:
    labels = {
        "rocksdb": "Penstock, RocksDB",
        "pyflink": "PyFlink, RocksDB",
        "hashmap": "Penstock, HashMap",
    }
    rate = runs["rocksdb"].get("rate")
    caption = (
        "A keyed count over random keys, with checkpoints all the while (incremental ones), both peers with the same "
        "budget for RocksDB in each slot. Penstock's state has every key before the rate is taken. PyFlink starts with "
        "an empty state, since it would need many minutes to fill it, so its work is lighter. Memory is that of each "
        "slot's process, Python's own included; PyFlink's is that of the JVM with all that is in it. Penstock's epochs "
        "have at most 100,000 records a slot, so that checkpoints come on time.\n"
    )
    rows = []
    for name, label in labels.items():
        run = runs[name]
        if "error" in run:
            rows.append([label, "**failed**", *[NOTHING] * 5])
            continue
        memory = run["slot_megabytes"] if name != "pyflink" else [run["jvm_megabytes"]]
        rows.append(
            [
                label,
                times(rate / run["rate"]) if rate else NOTHING,
                f"{run['rate']:,.0f}",
                f"{run['fill']:,} of {run['keys']:,}",
                ", ".join(f"{one:,.0f}" for one in memory),
                NOTHING if name == "hashmap" else f"{run['budget_megabytes']}",
                f"{run['checkpoints']}",
            ]
        )
    head = [
        "",
        "Penstock's RocksDB / this",
        "records/s",
        "keys before",
        "peak memory, MB",
        "budget of a slot, MB",
        "checkpoints",
    ]
    return "\n".join([caption, table(head, rows)])


if __name__ == "__main__":
    source = Path(sys.argv[1])
    write(json.loads(source.read_text()), source.parent)
