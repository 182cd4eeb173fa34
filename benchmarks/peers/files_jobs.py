"""What the peers of the file benchmark share: the rows, the jobs, how they are timed.

A program is called with its settings in JSON (`format`, `jobs`, `input`, `warm_up`, `output`, `repeats`) and prints one
line of JSON: for each job the seconds of every repeat. Each job is run on a few rows first, in the same session.
"""

from __future__ import annotations

import json
import random
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

JSON, PARQUET = "json", "parquet"
NAMES = ("id", "key", "value", "text")
KEYS = 10_000
SEED = 20_260_102
WORDS = ("ash", "birch", "cedar", "elm", "fir", "hazel", "larch", "maple", "oak", "pine", "rowan", "spruce", "yew")

Row = tuple[int, int, float, str]


def rows(first: int, number: int) -> Iterator[Row]:
    """Some of the input, the same each time."""
    chance = random.Random(SEED + first)
    for id in range(first, first + number):
        text = f"{chance.choice(WORDS)} {chance.choice(WORDS)} {chance.choice(WORDS)} {id % 97}"
        yield id, chance.randrange(KEYS), chance.randrange(1_000_000) / 64, text


def main(run: Callable[[str, str, str, str], object]) -> None:
    """Time `run(job, format, input, output)`."""
    settings = json.loads(sys.argv[1])
    seconds: dict[str, list[float]] = {}
    for job in settings["jobs"]:
        run(job, settings["format"], settings["warm_up"], str(Path(settings["output"], f"{job}-warm-up")))
        for repeat in range(settings["repeats"]):
            output = str(Path(settings["output"], f"{job}-{repeat}"))
            start = time.perf_counter()
            run(job, settings["format"], settings["input"], output)
            seconds.setdefault(job, []).append(time.perf_counter() - start)
    print(json.dumps({"seconds": seconds}), flush=True)
