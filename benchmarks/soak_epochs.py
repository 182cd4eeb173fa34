"""A job that idles and one that works, for an hour, watched for memory that grows: `make soak-epochs`.

Both run at the same time, each with a driver and a Spark of its own. Every second there is a checkpoint, so that the
idle job has epochs, too. What grows is told by the line that fits the
samples best, after a warm-up; the program fails if any process grew by more than it may.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from dataclasses import dataclass

import environments
import psutil
from launch import SLOT_NAME
from measuring import attempt, folder_of, header, say, slope, tree_of
from pages import NOTHING, about, failures, joined, quick_warning, save, table

sys.path.insert(0, str(environments.ROOT))

from penstock.common import Types
from penstock.datastream import ParallelSourceFunction, StreamExecutionEnvironment
from penstock.datastream.functions import KeyedProcessFunction
from penstock.datastream.state import ValueStateDescriptor
from penstock.service.launch import submission

SLOTS = 2
KEYS = 10_000
RATES = {"idle": 0, "load": 20_000}  # records a second, of all subtasks
WARM_UP = 0.25  # the share of the time after which memory must not grow
SAMPLES = 600
MOST_GROWTH = {"driver": 10.0, "jvm": 100.0, "slot": 10.0}  # in megabytes, from the warm-up to the end
BURSTS = 100  # a second


class Numbers(ParallelSourceFunction):
    """A source of numbers at a fixed rate, or of none at all."""

    def __init__(self, rate: float) -> None:
        self.burst = int(rate / BURSTS)
        self.running = True

    def run(self, ctx) -> None:
        number = 0
        while self.running:
            time.sleep(1 / BURSTS if self.burst else 1)
            for number in range(number, number + self.burst):  # noqa: B020
                ctx.collect(number)

    def cancel(self) -> None:
        self.running = False


class Count(KeyedProcessFunction):
    def open(self, runtime_context) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value, ctx):
        self.count.update((self.count.value() or 0) + 1)
        yield value


@dataclass
class Memory:
    """Resident megabytes of every process, sampled over time."""

    samples: dict[str, list[tuple[float, float]]]

    @staticmethod
    def none() -> Memory:
        return Memory(defaultdict(list))

    def sample(self, now: float) -> None:
        for process in tree_of(psutil.Process().pid):
            try:
                name, megabytes = process.name(), process.memory_info().rss / 1024**2
            except psutil.Error:  # it ended in between
                continue
            if kind := kind_of(process, name):
                self.samples[f"{kind} {process.pid}"].append((now, megabytes))

    def told(self, seconds: float) -> dict:
        """For each process: the first and the last sample, and how much it grew after the warm-up."""
        return {name: grown(name.split()[0], points, seconds) for name, points in sorted(self.samples.items())}


def kind_of(process: psutil.Process, name: str) -> str:
    """The kind of a process: slots have a name of their own; pyspark's daemon and tasks, which only wait, are left
    out."""
    if process.pid == psutil.Process().pid:
        return "driver"
    return "jvm" if name == "java" else "slot" if name.startswith(SLOT_NAME) else ""


def grown(kind: str, points: list[tuple[float, float]], seconds: float) -> dict:
    steady = [point for point in points if point[0] >= WARM_UP * seconds]
    growth = slope(steady) * (steady[-1][0] - steady[0][0]) if len(steady) > 1 else 0.0
    return {
        "first": points[0][1],
        "steady": steady[0][1] if steady else points[-1][1],
        "last": points[-1][1],
        "growth": growth,
        "most": MOST_GROWTH[kind],
        "samples": len(points),
    }


def watched(kind: str, seconds: float) -> dict:
    """Run one job for this time; return its epochs, its checkpoints and the memory of its processes."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        env = StreamExecutionEnvironment.create_local_environment(SLOTS)
        env.set_buffer_timeout(0)
        env.enable_checkpointing(1000)
        env.get_checkpoint_config().set_checkpoint_storage_dir(folder)
        numbers = env.add_source(Numbers(RATES[kind] / SLOTS))
        numbers.key_by(lambda number: number % KEYS).process(Count()).discard()
        job = submission.start(env, f"soak, {kind}")
        memory, began, step = Memory.none(), time.monotonic(), seconds / SAMPLES
        while (now := time.monotonic() - began) < seconds:
            memory.sample(now)
            if job.status().is_terminal_state():
                job.result()
            time.sleep(step)
        epochs = job.view.epoch
        job.cancel()
    say(f"{kind}: {epochs:,} epochs in {seconds:.0f} s")
    return {"seconds": seconds, "epochs": epochs, "processes": memory.told(seconds)}


def side_by_side(seconds: float) -> dict:
    """Each job in a program of its own; the last line that it prints is its result."""
    command = [sys.executable, __file__, "--seconds", str(seconds), "--kind"]
    programs = {kind: subprocess.Popen([*command, kind], stdout=subprocess.PIPE, text=True) for kind in RATES}
    return {kind: json.loads(program.communicate()[0].splitlines()[-1]) for kind, program in programs.items()}


# --- the page ---
def section(run: dict) -> str:
    if "error" in run:
        return "**Failed.**\n"
    head = ["process", "MB at the start", "after the warm-up", "at the end", "growth, MB", "allowed", "verdict"]
    rows = [row(name, one) for name, one in run["processes"].items()]
    return joined([f"{run['epochs']:,} epochs in {run['seconds']:,.0f} s.\n", table(head, rows)])


def row(name: str, one: dict) -> list[str]:
    measured = [f"{one[what]:.1f}" for what in ("first", "steady", "last", "growth")]
    return [name, *measured, f"{one['most']:g}", "**grows**" if grows(one) else "steady"]


def grows(one: dict) -> bool:
    return one["growth"] > one["most"]


def page(results: dict) -> str:
    caption = (
        f"Resident memory of every process of a keyed count over {KEYS:,} keys at {SLOTS} slots with a checkpoint "
        f"every second: a job whose source is silent and, at the same time, one with {RATES['load']:,} records a "
        "second. Growth is that of the line that fits the samples best after the first "
        f"{WARM_UP:.0%} of the time. `make soak-epochs` "
        "repeats it.\n"
    )
    parts = ["# Memory over many epochs\n", quick_warning(results), caption]
    for kind in RATES:
        parts += [f"## {kind.capitalize()}\n", section(results[kind]) if kind in results else f"{NOTHING}\n"]
    return joined([*parts, about(results), failures({kind: results.get(kind) for kind in RATES})])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=3600, help="of both jobs, which run at the same time")
    parser.add_argument("--kind", choices=RATES, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.kind:
        print(json.dumps(attempt(options.kind, watched, options.kind, options.seconds)))
        return
    quick = options.seconds < 600
    results = header(quick) | side_by_side(options.seconds)
    save(folder_of(quick), "soak_epochs", results, page(results))
    print(page(results))
    runs = [results[kind] for kind in RATES]
    if any("error" in run or any(map(grows, run["processes"].values())) for run in runs):
        raise SystemExit("memory grows, or a job failed: see the table")


if __name__ == "__main__":
    main()
