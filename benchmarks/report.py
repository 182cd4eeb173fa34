"""Turns the results of a run into tables and a plot: `python benchmarks/report.py benchmarks/results/latest.json`."""

from __future__ import annotations

import json
import sys
import textwrap
from pathlib import Path

import matplotlib
import plan
from pages import NOTHING, about, quick_warning, table, times, verdict

matplotlib.use("Agg")
from matplotlib import pyplot

PENSTOCK_COLOUR, PEER_COLOUR, LIMIT_COLOUR = "#1f6f8b", "#9aa5ab", "#d9c27a"


def write(results: dict, folder: Path) -> None:
    """`README.md` and `keyed_count.png` in the folder, from the results of `run.py`."""
    draw(results, folder / "keyed_count.png")
    (folder / "README.md").write_text(page(results))


def page(results: dict) -> str:
    parts = [
        "# Benchmark results\n",
        quick_warning(results),
        about(results),
        "## Targets\n",
        targets_table(results),
        "## Records per second\n",
        rates_caption(),
        rates_table(results, plan.BASIC),
        "![Keyed count, records per second](keyed_count.png)\n",
        "## Beside the last release\n",
        before_table(results),
        "## Windows and joins, records per second\n",
        windows_caption(),
        rates_table(results, plan.WINDOWS),
        "### Sliding windows: cost per record by size / slide\n",
        sliding_caption(),
        sliding_table(results),
        "## Penstock by records and by keys\n",
        *scaling_tables(results),
        "## Memory\n",
        memory_line(results),
        failures(results),
    ]
    return "\n".join(part for part in parts if part)


def rate_of(results: dict, peer: str, workload: plan.Workload) -> float | None:
    return results["peers"].get(peer, {}).get(workload.name, {}).get("rate")


def ratio_to(results: dict, peer: str, workload: plan.Workload) -> float | None:
    """Penstock's rate over the peer's."""
    ours, theirs = rate_of(results, "penstock", workload), rate_of(results, peer, workload)
    return ours / theirs if ours and theirs else None


def targets_table(results: dict) -> str:
    rows = []
    for target in plan.TARGETS:
        ratio = ratio_to(results, target.peer, target.workload)
        rows.append([target.text, times(ratio), verdict(ratio, bool(ratio) and ratio >= target.ratio)])
    peak = results.get("memory", {}).get("peak_slot_megabytes")
    limit = plan.MOST_SLOT_MEGABYTES
    memory = f"no slot above {limit} MB in {plan.MEMORY_RECORDS:,} stateless records"
    rows.append([memory, f"{peak:.0f} MB" if peak else "—", verdict(peak, bool(peak) and peak <= limit)])
    growth = worst_growth(results)
    linear = "a sliding window's cost per record grows no faster than size / slide"
    rows.append([linear, times(growth), verdict(growth, bool(growth) and growth <= plan.MOST_GROWTH)])
    if results["quick"]:
        rows = [[text, measured, "too quick to tell"] for text, measured, _ in rows]
    return table(["target", "measured", "verdict"], rows)


def worst_growth(results: dict) -> float | None:
    """The cost per pane at the worst ratio over that at ratio 1."""
    rates = {int(ratio): run.get("rate") for ratio, run in results.get("sliding", {}).items()}
    if not rates or not all(rates.values()):
        return None
    return max(rates[1] / rate / ratio for ratio, rate in rates.items() if ratio != 1)


def rates_caption() -> str:
    return (
        "Start-up is not in these rates: each is the difference of a small and a large run, (N2 - N1) / (t2 - t1). "
        "Where that difference takes less than ten seconds the pair is run twice and the better taken, for every peer "
        "alike. In brackets: how many times faster Penstock is. Before it is timed each peer counts "
        f"{plan.AGREEMENT[1]:,} records over 10 keys, and the results of every run, timed or not, are checked. "
        "PySpark's stateless chain is mapInPandas.\n"
    )


def windows_caption() -> str:
    return (
        f"Events of {plan.EVENT_KEYS} keys, one a millisecond, with monotonous timestamps; an aggregate function that "
        "keeps sum and count and returns the mean. All results are collected and checked; of the join, which makes a "
        "pair for every record, one in 97. Records of a join are those of both sides. The bare loop is the same user "
        "functions over plain dicts, one process per core, each with half of the keys.\n"
    )


def rates_table(results: dict, workloads: tuple[plan.Workload, ...]) -> str:
    head = ["", *(workload.label for workload in workloads)]
    peers = [peer for peer in plan.PEERS if any(workload.name in peer.sizes for workload in workloads)]
    return table(
        head, ([peer.label, *(rate_cell(results, peer, workload) for workload in workloads)] for peer in peers)
    )


def before_table(results: dict) -> str:
    """Every workload beside the last release, those that became slower marked and named again below."""
    rows, slower = [], []
    for workload in plan.WORKLOADS:
        ratio = ratio_to(results, plan.LAST.name, workload)
        if ratio is not None and ratio < 1:
            slower.append(f"{workload.label} ({times(ratio)})")
        rows.append([workload.label, *(rate_text(results, peer, workload) for peer in (plan.PENSTOCK, plan.LAST))])
        rows[-1].append(times(ratio))
    said = f"Slower than before: {'; '.join(slower)}.\n" if slower else "No part that was measured became slower.\n"
    head = ["", "records/s now", f"records/s of {plan.LAST_RELEASE}", "now / before"]
    return f"{table(head, rows)}\n{said}"


def rate_text(results: dict, peer: plan.Peer, workload: plan.Workload) -> str:
    rate = rate_of(results, peer.name, workload)
    return NOTHING if rate is None else f"{rate:,.0f}"


def sliding_caption() -> str:
    return (
        "Penstock alone, windows of ten seconds, the same number of records each time. Wall time at parallelism 2; a "
        "record touches as many panes as size / slide. What a record costs before it reaches its panes, in source, map "
        "and exchange, is in these numbers; the last column is free of it: what each pane adds beyond the first, which "
        "stays the same where the cost is linear.\n"
    )


def sliding_table(results: dict) -> str:
    head = [
        "size / slide",
        "µs per record",
        "relative to ratio 1",
        "µs per pane touched",
        "µs per pane beyond the first",
    ]
    runs = results.get("sliding", {})
    base = runs.get("1", {}).get("rate")
    return table(head, ([ratio, *sliding_cells(int(ratio), run, base)] for ratio, run in runs.items()))


def sliding_cells(ratio: int, run: dict, base: float | None) -> list[str]:
    if "rate" not in run:
        return ["**failed**", run["error"], "—", "—"]
    cost = 1e6 / run["rate"]
    growth = times(cost * base / 1e6) if base else "—"
    beyond = f"{(cost - 1e6 / base) / (ratio - 1):.2f}" if base and ratio > 1 else "—"
    return [f"{cost:.2f}", growth, f"{cost / ratio:.2f}", beyond]


def rate_cell(results: dict, peer: plan.Peer, workload: plan.Workload) -> str:
    if workload in peer.lacks:
        return "has none"
    if workload.name not in peer.sizes:
        return "—"
    measured = results["peers"][peer.name][workload.name]
    if "error" in measured:
        return "not chosen" if measured["error"] == "not chosen" else "**failed**"
    rate = f"{measured['rate']:,.0f}"
    ratio = ratio_to(results, peer.name, workload)
    return rate if peer.name == "penstock" or ratio is None else f"{rate} ({times(ratio)})"


def failures(results: dict) -> str:
    lines = [
        f"- {peer} failed at {workload}: {measured['error']}"
        for peer, workloads in results["peers"].items()
        for workload, measured in workloads.items()
        if measured.get("error", "not chosen") != "not chosen"
    ]
    return "## Failures\n\n" + "\n".join(lines) + "\n" if lines else ""


def scaling_tables(results: dict) -> list[str]:
    scaling = results.get("scaling")
    if scaling is None:
        return ["Not chosen.\n"]
    by_records = [[f"{int(number):,}", *whole_job(int(number), run)] for number, run in scaling["records"].items()]
    by_keys = [
        [f"{int(keys):,}", f"{run['rate']:,.0f}" if "rate" in run else f"**failed**: {run['error']}"]
        for keys, run in scaling["keys"].items()
    ]
    return [
        "The keyed count over 1000 keys, whole jobs after a warm-up, their start included:\n",
        table(["records", "seconds", "records/s"], by_records),
        "The keyed count by number of keys, start-up subtracted as above:\n",
        table(["keys", "records/s"], by_keys),
    ]


def whole_job(number: int, run: dict) -> list[str]:
    if "error" in run:
        return ["**failed**", run["error"]]
    return [f"{run['seconds']:.2f}", f"{number / run['seconds']:,.0f}"]


def memory_line(results: dict) -> str:
    memory = results.get("memory", {})
    if "peak_slot_megabytes" not in memory:
        return f"{memory.get('error', 'Not chosen')}.\n"
    return (
        f"Largest resident memory of any slot process over {memory['records']:,} records of the stateless chain: "
        f"{memory['peak_slot_megabytes']:.0f} MB\n"
    )


def draw(results: dict, path: Path) -> None:
    """The keyed count over 1000 keys as bars on a logarithmic axis, the fastest on top."""
    rates = {peer.name: rate_of(results, peer.name, plan.COUNT) for peer in plan.PEERS}
    peers = sorted(plan.PEERS, key=lambda peer: rates[peer.name] or 0)
    left = min((rate for rate in rates.values() if rate), default=1) / 3
    widths = [rates[peer.name] or left for peer in peers]
    figure, axes = pyplot.subplots(figsize=(9, 4.5), layout="constrained")
    bars = axes.barh([textwrap.fill(peer.label, 36) for peer in peers], widths, color=[colour(peer) for peer in peers])
    axes.bar_label(bars, [f"{rates[p.name]:,.0f}" if rates[p.name] else "not measured" for p in peers], padding=4)
    axes.set_xscale("log")
    axes.set_xlim(left, max(widths) * 8)
    axes.set_xlabel("records per second (logarithmic), start-up subtracted")
    axes.set_title("Keyed count over 1000 keys, parallelism 2, one machine")
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=150)
    pyplot.close(figure)


def colour(peer: plan.Peer) -> str:
    return {"penstock": PENSTOCK_COLOUR, "bare": LIMIT_COLOUR}.get(peer.name, PEER_COLOUR)


if __name__ == "__main__":
    source = Path(sys.argv[1])
    write(json.loads(source.read_text()), source.parent)
