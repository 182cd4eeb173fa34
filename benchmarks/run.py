"""Measures Penstock against its peers on this machine and writes the results: `python benchmarks/run.py --help`."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import environments
import plan
import report
from launch import HERE, RunFailed, run_command
from measuring import attempt, folder_of, header, say, versions
from peers import workloads

REPEAT_BELOW_SECONDS = 10  # a shorter difference is measured twice, and the better one taken


def command_of(peer: plan.Peer, python: Path) -> list[str]:
    program = Path(peer.program)
    if program.suffix == ".java":
        return environments.java_command(f"{environments.JAVA_PACKAGE}.{program.stem}")
    return [str(python), str(HERE / "peers" / program)]


def run_once(peer: plan.Peer, workload: plan.Workload, records: int, watch_memory: bool = False) -> dict:
    """One run of a peer, which fails unless its results are those that arithmetic gives."""
    job = workload.job(records, peer.setting)
    arguments = [job.workload, str(job.records), str(job.keys), *([job.setting] if job.setting else [])]
    python = environments.python_of(peer.environment)
    result = run_command([*command_of(peer, python), *arguments], python, watch_memory)
    expected = list(workloads.expected_digest(job))
    if result["results"] != expected:
        raise RunFailed(f"wrong results for {records:,} records: {result['results']} instead of {expected}")
    say(f"{peer.name}: {workload.label}, {records:,} records in {result['seconds']:.2f} s")
    return result


def measure(peer: plan.Peer, workload: plan.Workload, sizes: plan.Sizes, quick: bool) -> dict:
    """The rate of the difference between a small and a large run, so that no start-up is in it.

    In a quick run, each workload is run once and measured as a whole.
    """
    if quick:
        return {"rate": peer.quick / run_once(peer, workload, peer.quick)["seconds"]}
    small, large = sizes
    pairs = []
    while not pairs or (len(pairs) < 2 and pairs[0][1] - pairs[0][0] < REPEAT_BELOW_SECONDS):
        pairs.append([run_once(peer, workload, records)["seconds"] for records in sizes])
    shortest = min(after - before for before, after in pairs)
    if shortest <= 0:
        raise RunFailed("too short to tell: the large run took no longer than the small one")
    rate = (large - small) / shortest
    say(f"{peer.name}: {workload.label}, {rate:,.0f} records/s")
    return {"rate": rate, "sizes": list(sizes), "seconds": pairs}


def measure_peer(peer: plan.Peer, quick: bool) -> dict:
    """A measurement per workload, after a run that shows whether the peer counts like the others."""
    agreement, records = plan.AGREEMENT
    agreed = attempt(f"{peer.name}: agreement", run_once, peer, agreement, records)
    if "error" in agreed:
        return dict.fromkeys(peer.sizes, agreed)
    measured = {}
    for workload in plan.WORKLOADS:
        if workload.name in peer.sizes:
            what = f"{peer.name}: {workload.label}"
            measured[workload.name] = attempt(what, measure, peer, workload, peer.sizes[workload.name], quick)
    return measured


def scale(peers: dict, quick: bool) -> dict:
    """Penstock by records and by keys. The 1000 keys of the main table are not measured again."""
    records = plan.QUICK_RECORDS if quick else plan.SCALING_RECORDS
    by_records = {str(number): attempt("scaling", run_once, plan.PENSTOCK, plan.COUNT, number) for number in records}
    sizes, by_keys = plan.SCALING_KEYS_SIZES, {}
    for workload in plan.SCALING_KEYS:
        known = workload.keys == plan.COUNT.keys and peers["penstock"].get(plan.COUNT.name)
        by_keys[str(workload.keys)] = known or attempt("scaling", measure, plan.PENSTOCK, workload, sizes, quick)
    return {"records": by_records, "keys": by_keys}


def slide(peers: dict, quick: bool) -> dict:
    """Penstock's sliding windows by size / slide. The ratio of the main table is not measured again."""
    sizes, by_ratio = plan.PENSTOCK.sizes[plan.SLIDE.name], {}
    for ratio, workload in plan.BY_RATIO.items():
        known = peers["penstock"].get(workload.name)
        by_ratio[str(ratio)] = known or attempt("ratio", measure, plan.PENSTOCK, workload, sizes, quick)
    return by_ratio


def peak_memory(quick: bool) -> dict:
    records = plan.QUICK_RECORDS[-1] if quick else plan.MEMORY_RECORDS
    result = run_once(plan.PENSTOCK, plan.CHAIN, records, True)
    if not result["peak_slot_megabytes"]:
        raise RunFailed("no slot process was seen")
    return result


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to prove that everything runs")
    names = ",".join(peer.name for peer in plan.PEERS)
    parser.add_argument("--only", metavar="PEERS", help=f"measure these alone, separated by commas: {names}")
    options = parser.parse_args()
    options.chosen = options.only.split(",") if options.only else [peer.name for peer in plan.PEERS]
    unknown = set(options.chosen) - {peer.name for peer in plan.PEERS}
    if unknown:
        parser.error(f"unknown peers {sorted(unknown)}, choose from {names}")
    return options


def run_all(options: argparse.Namespace) -> dict:
    results = header(options.quick)
    left_out = {"error": "not chosen"}
    peers = results["peers"] = {}
    for peer in plan.PEERS:
        chosen = peer.name in options.chosen
        peers[peer.name] = measure_peer(peer, options.quick) if chosen else dict.fromkeys(peer.sizes, left_out)
    if plan.PENSTOCK.name in options.chosen:
        results["scaling"] = scale(peers, options.quick)
        results["sliding"] = slide(peers, options.quick)
        results["memory"] = attempt("slot memory", peak_memory, options.quick)
    results["versions"] = versions(environments.MEASURED)
    return results


def main() -> None:
    options = parse_arguments()
    results = run_all(options)
    folder = folder_of(options.quick, bool(options.only))
    (folder / "latest.json").write_text(json.dumps(results, indent=2) + "\n")
    report.write(results, folder)
    say(f"written: {folder / 'README.md'}")


if __name__ == "__main__":
    main()
