"""How long a running job takes to continue with another parallelism, by the size of its state: `make bench-rescaling`.

A job on local Spark holds keyed state of about the given size (values of 1,000 bytes), and gets another parallelism
again and again. Each time counts from the order until the job has all its new slots with their state, and until the
next checkpoint after that is complete.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time

import environments  # noqa: F401  makes the package importable
from measuring import folder_of, header, say
from pages import about, joined, quick_warning, save, table, targets

from penstock.common import Configuration, Types
from penstock.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from penstock.datastream.state import ValueStateDescriptor

VALUE = 1000
PARALLELISM = (2, 3)
MOST_SECONDS = 2.0
MEGABYTES = (1, 100)


class Remember(KeyedProcessFunction):
    """Keeps bytes for every key."""

    def open(self, runtime_context):
        self.kept = runtime_context.get_state(ValueStateDescriptor("kept", Types.PICKLED_BYTE_ARRAY()))

    def process_element(self, value, ctx):
        self.kept.update(b"%09d" % value + bytes(VALUE - 9))
        return ()


def measure(megabytes: int, rounds: int) -> dict:
    """Return the seconds of each round, and what was in the way."""
    keys = megabytes * 1_000_000 // VALUE
    with tempfile.TemporaryDirectory() as folder:
        options = {
            "spark.master": "local[4]",
            "execution.checkpointing.interval": "500 ms",
            "execution.checkpointing.dir": f"file://{folder}",
        }
        env = StreamExecutionEnvironment(Configuration.from_dict(options)).set_parallelism(PARALLELISM[0])
        first = env.from_sequence(0, keys - 1).uid("first")
        later = env.generate(lambda number: number % keys, rate=100).uid("later")
        first.union(later).key_by(lambda number: number).process(Remember()).uid("remember").discard()
        client = env.execute_async("rescaling")
        job = client._job
        while job.view.checkpoints.completed_in_all < 3 or size_of(folder) < 0.9 * megabytes * 1_000_000:
            time.sleep(0.1)
        found = []
        for number in range(rounds):
            began = time.monotonic()
            job.rescale(PARALLELISM[(number + 1) % 2])
            deployed = time.monotonic()
            done = job.view.checkpoints.completed_in_all
            while job.view.checkpoints.completed_in_all <= done:
                time.sleep(0.005)
            found.append((deployed - began, time.monotonic() - began))
            say(f"{megabytes} MB: {found[-1][0]:.2f} s, {found[-1][1]:.2f} s; load {os.getloadavg()[0]:.0f}")
            time.sleep(1)
        client.cancel().result()
    slots, checkpoint = zip(*found, strict=True)
    return {"slots": slots, "checkpoint": checkpoint, "load": os.getloadavg()[0]}


def size_of(folder: str) -> int:
    """Return the bytes of all files below a folder."""
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.path.getsize(os.path.join(place, name))
            except OSError:
                continue
    return total


def page(results: dict) -> str:
    rows, checks = [], []
    for megabytes, run in results["sizes"].items():
        middle = statistics.median(run["slots"])
        each = ", ".join(f"{seconds:.2f}" for seconds in run["slots"])
        rows.append(
            [
                f"{megabytes} MB",
                f"{middle:.2f}",
                each,
                f"{statistics.median(run['checkpoint']):.2f}",
                f"{run['load']:.0f}",
            ]
        )
        checks.append((f"{megabytes} MB: {MOST_SECONDS:g} s at most", f"{middle:.2f} s", middle <= MOST_SECONDS))
    return joined(
        [
            "# Another parallelism for a running job\n",
            quick_warning(results),
            targets(results, checks),
            "From the order until all new slots have their state, and until the next checkpoint is complete; the "
            "parallelism goes from 2 to 3 and back. Checkpoints are on a local disk; the last column is the load "
            "average of the machine afterwards.\n",
            table(["state", "slots, s", "each", "checkpoint, s", "load"], rows),
            about(results),
        ]
    )


def main() -> None:
    """Measure, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=6)
    options = parser.parse_args()
    results = header(options.rounds < 6) | {"rounds": options.rounds}
    results["sizes"] = {str(megabytes): measure(megabytes, options.rounds) for megabytes in MEGABYTES}
    save(folder_of(options.rounds < 6), "rescaling", results, page(results))
    print(page(results))


if __name__ == "__main__":
    main()
