"""Simulated crashes without end: prints the seed of every failure. Run by `make soak`; Ctrl-C stops it.

    python -m tests.crash.soak [--takeovers] [SEED [NUMBER OF SEEDS]]

With `--takeovers` drivers also take the job from each other (`make soak-takeovers`).
"""

import itertools
import logging
import sys
import time

from tests.crash import test_crash_simulator, test_takeovers


def main(*words: str) -> None:
    logging.disable(logging.WARNING)
    numbers = [int(word) for word in words if word != "--takeovers"]
    check = (test_takeovers if "--takeovers" in words else test_crash_simulator).check
    first = numbers[0] if numbers else int(time.time())
    seeds = range(first, first + numbers[1]) if len(numbers) > 1 else itertools.count(first)
    crashes = drivers = failures = 0
    print(f"from seed {first} on")
    for seed in seeds:
        try:
            outcome = check(seed)
            crashes += len(outcome.crashes)
            drivers += outcome.drivers
        except KeyboardInterrupt:
            break
        except BaseException as error:
            failures += 1
            print(f"\nSEED {seed} failed: {error}")
        if (seed - first) % 20 == 19:
            done = seed - first + 1
            print(f"\r{done} seeds, {drivers} drivers, {crashes} crashes, {failures} failures", end="", flush=True)
    print()
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main(*sys.argv[1:])
