"""Random faults across hosts, seed after seed, until Ctrl-C: `make nemesis`.

    python -m tests.nemesis [--steps N] [SEED [NUMBER OF SEEDS]]

A seed decides the job and the faults, so that a failing one can be repeated. What a failing seed has left (logs of all
processes) is kept. It needs Linux and root, and says so where hosts cannot be had.
"""

from __future__ import annotations

import argparse
import itertools
import shutil
import sys
import tempfile
import time
from pathlib import Path

from tests.nemesis.hosts import obstacle
from tests.nemesis.schedule import plan_of
from tests.nemesis.trial import Trial


def main() -> None:
    """Run seeds."""
    parser = argparse.ArgumentParser(prog="python -m tests.nemesis")
    parser.add_argument("seed", nargs="?", type=int, default=int(time.time()))
    parser.add_argument("seeds", nargs="?", type=int)
    parser.add_argument("--steps", type=int, default=5)
    asked = parser.parse_args()
    reason = obstacle("cc")
    if reason is not None:
        print(f"skipped: {reason}")
        return
    seeds = itertools.count(asked.seed) if asked.seeds is None else range(asked.seed, asked.seed + asked.seeds)
    failures = []
    for done, seed in enumerate(seeds, 1):
        try:
            check(seed, asked.steps)
        except KeyboardInterrupt:
            break
        except Exception as error:
            failures.append(seed)
            say(f"SEED {seed} FAILED: {error}")
        say(f"{done} seeds, {len(failures)} failures{f': {failures}' if failures else ''}")
    sys.exit(1 if failures else 0)


def check(seed: int, steps: int) -> None:
    """Run a seed in a folder of its own, which stays if the seed fails."""
    folder = Path(tempfile.mkdtemp(prefix=f"penstock-nemesis-{seed}-"))
    try:
        Trial(folder, plan_of(seed, steps), say).run()
    except BaseException:
        say(f"logs are in {folder}")
        raise
    shutil.rmtree(folder)


def say(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    main()
