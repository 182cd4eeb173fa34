"""What an epoch without records costs, and what a job without work costs: `make bench-epochs`."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import environments
import launch
import psutil
from connectors import PARTITIONS, PENSTOCK, KafkaPeer
from latency import DIRECT_PROGRAMS, PEERS, direct_settings, kafka_settings
from measuring import attempt, folder_of, header, say, tree_of, versions
from pages import NOTHING, about, failures, joined, quick_warning, save, table, targets, times
from peers.direct_jobs import ARRIVALS
from peers.workloads import PARALLELISM

sys.path.insert(0, str(environments.ROOT))

MOST_MILLIS = {(2, 2): 1.0, (16, 2): 3.0}  # by slots and stages
MOST_SHARE = 0.01  # of a core, while idle
NEVER_MILLIS = 24 * 3600 * 1000
START_SECONDS = 120
PEERS_OF = {"epochs": ("",), "idle": ("", "flink")}
SILENT, EMPTY_TOPIC = "a source that is silent", "Kafka, an empty topic"


@dataclass(frozen=True)
class Sizes:
    slots: tuple[int, ...] = (2, 4, 8, 16, 32)
    stages: tuple[int, ...] = (2, 4, 8)
    epochs: int = 500  # at most, for each combination of slots and stages
    seconds: float = 5
    settle_seconds: float = 30
    idle_seconds: float = 30


QUICK = Sizes((2, 4), (2, 4), 50, 1, 5, 5)


# --- epochs ---
def epochs_part(sizes: Sizes) -> dict:
    """Median and 99th percentile of an idle epoch, by slots and stages."""
    return {str(slots): attempt(f"{slots} slots", epochs_of_slots, slots, sizes) for slots in sizes.slots}


def epochs_of_slots(slots: int, sizes: Sizes) -> dict:
    settings = {"slots": slots, "stages": sizes.stages, "epochs": sizes.epochs, "seconds": sizes.seconds}
    program = launch.HERE / "peers" / "epochs_penstock.py"
    found = launch.run_program(environments.python_of(""), program, [json.dumps(settings)])
    say(f"{slots} slots: " + ", ".join(f"{one['median']:.2f} ms ({stages} stages)" for stages, one in found.items()))
    return found


def epoch_of(results: dict, slots: int, stages: int) -> dict | None:
    return results.get("epochs", {}).get(str(slots), {}).get(str(stages))


def epochs_section(results: dict) -> str:
    stages = (QUICK if results["quick"] else Sizes()).stages
    rows = [[slots, *(epoch_cell(results, int(slots), number) for number in stages)] for slots in results["epochs"]]
    caption = (
        "An epoch of a keyed job whose source gives nothing: milliseconds from the driver's orders to the last slot's "
        "report, median / 99th percentile. All slots are on this machine, with its few cores.\n"
    )
    return joined([caption, table(["slots", *(f"{number} stages" for number in stages)], rows)])


def epoch_cell(results: dict, slots: int, stages: int) -> str:
    one = epoch_of(results, slots, stages)
    return f"{one['median']:.2f} / {one['p99']:.2f}" if one else NOTHING


# --- idle jobs ---
def idle_part(sizes: Sizes) -> dict:
    """How much processor time a job without work takes, beside PyFlink."""
    from tests.services.kafka import Kafka

    found = {SILENT: {peer.label: attempt(peer.label, silent_job, peer, sizes) for peer in PEERS}}
    broker = Kafka()
    try:
        broker.start()
        found[EMPTY_TOPIC] = {peer.label: attempt(peer.label, topic_job, peer, sizes, broker) for peer in PEERS}
    finally:
        broker.remove()
    return found


def silent_job(peer: KafkaPeer, sizes: Sizes) -> dict:
    """A job whose source emits one record from every subtask at the start, and the next about half an hour later."""
    settings = direct_settings(peer) | {"rate": 0.001, "seconds": 100_000, "warm_up": 0}
    python, name = environments.python_of(peer.environment), DIRECT_PROGRAMS[peer.environment]
    with launch.running(python, name, settings) as program:
        await_sinks(program)
        return idle(peer, program, sizes)


def await_sinks(program: launch.Program) -> None:
    """Wait until every subtask of the sink has made its file, which it does when it is opened."""
    deadline = time.monotonic() + START_SECONDS
    while len(list(program.folder.glob(f"{ARRIVALS}*"))) < PARALLELISM:
        program.check()
        if time.monotonic() > deadline:
            raise launch.RunFailed(f"the job has not started within {START_SECONDS} s")
        time.sleep(0.5)


def topic_job(peer: KafkaPeer, sizes: Sizes, broker) -> dict:
    """A job that reads a topic, after a record or two have shown that it has started."""
    settings = kafka_settings(peer, broker) | {"interval_millis": NEVER_MILLIS}
    topics = [broker.create_topic(settings[name], PARTITIONS) for name in ("source", "target")]
    with launch.running(environments.python_of(peer.environment), peer.program, settings) as program:
        probe = launch.HERE / "peers" / "kafka_latency.py"
        launch.run_program(environments.python_of(""), probe, [broker.bootstrap, *topics, "1", "2", "0"])
        return idle(peer, program, sizes)


def idle(peer: KafkaPeer, program: launch.Program, sizes: Sizes) -> dict:
    """How much processor time a running job takes, once it has had time to settle."""
    time.sleep(sizes.settle_seconds)
    with processor_time(program.process.pid) as spent:
        time.sleep(sizes.idle_seconds)
    program.check()
    say(f"{peer.label}, idle: {spent}")
    return spent


@contextmanager
def processor_time(pid: int) -> Iterator[dict]:
    """What the processes of a job use in the block, as shares of a core."""
    shares: dict = {}
    before, began = times_of(pid), time.monotonic()
    yield shares
    after, seconds = times_of(pid), time.monotonic() - began
    if before.keys() != after.keys():
        raise launch.RunFailed(f"the job was not idle: it had {len(before)} processes, and then {len(after)} others")
    used = {process: (after[process] - before[process]) / seconds for process in before}
    shares["python"] = sum(share for (_, name), share in used.items() if name != "java")
    shares["all"] = sum(used.values())
    shares["processes"] = len(used)


def times_of(pid: int) -> dict[tuple[int, str], float]:
    found = {}
    for process in tree_of(pid):
        try:
            spent = process.cpu_times()
            found[process.pid, process.name()] = spent.user + spent.system
        except psutil.Error:  # it ended in between
            continue
    return found


def idle_section(results: dict) -> str:
    caption = (
        "The processor time of a job that has nothing to do, in percent of one core: of the Python processes "
        "(Penstock's driver and slots), and of all processes, the JVM among them. No checkpoints are due. PyFlink's "
        "thread mode runs Python in the JVM. In the last column: all processes of Penstock's over all of this one's.\n"
    )
    rows = []
    for what, runs in results["idle"].items():
        rows += [[label, what, *idle_cells(run, runs[PENSTOCK.label])] for label, run in runs.items()]
    return joined([caption, table(["", "source", "Python", "all", "Penstock's / this"], rows)])


def idle_cells(run: dict, ours: dict) -> list[str]:
    if "all" not in run:
        return ["**failed**", NOTHING, NOTHING]
    ratio = ours["all"] / run["all"] if "all" in ours and run["all"] else None
    return [f"{run['python']:.2%}", f"{run['all']:.2%}", times(ratio)]


# --- the pages ---
def epochs_targets(results: dict) -> list[tuple[str, str, bool | None]]:
    rows: list[tuple[str, str, bool | None]] = []
    for (slots, stages), most in MOST_MILLIS.items():
        one = epoch_of(results, slots, stages)
        text = f"an idle epoch of {stages} stages at {slots} slots in {most:g} ms at most"
        rows.append((text, f"{one['median']:.2f} ms" if one else NOTHING, one["median"] <= most if one else None))
    return rows


def idle_targets(results: dict) -> list[tuple[str, str, bool | None]]:
    rows: list[tuple[str, str, bool | None]] = []
    for what in (SILENT, EMPTY_TOPIC):
        share = results.get("idle", {}).get(what, {}).get(PENSTOCK.label, {}).get("python")
        text = f"{what}: the Python processes of an idle job use {MOST_SHARE:.0%} of a core at most"
        rows.append((text, f"{share:.2%}", share <= MOST_SHARE) if share is not None else (text, NOTHING, None))
    return rows


PARTS = {
    "epochs": ("Idle epochs", epochs_part, epochs_section, epochs_targets),
    "idle": ("Idle jobs", idle_part, idle_section, idle_targets),
}


def page(name: str, results: dict) -> str:
    title, _, section, rows = PARTS[name]
    parts = [f"# {title}\n", quick_warning(results), targets(results, rows(results))]
    parts.append("**Failed.**\n" if "error" in results[name] else section(results))
    return joined([*parts, about(results), failures({name: results[name]})])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few slots and seconds, to prove that it works")
    parser.add_argument("--only", choices=list(PARTS), help="measure this alone; each has a page of its own")
    options = parser.parse_args()
    for name in [options.only] if options.only else list(PARTS):
        results = header(options.quick)
        results[name] = attempt(name, PARTS[name][1], QUICK if options.quick else Sizes())
        results["versions"] = versions(PEERS_OF[name])
        save(folder_of(options.quick), name, results, page(name, results))
        print(page(name, results))


if __name__ == "__main__":
    main()
