"""Simulated crashes without end: prints the seed of every failure. Run by `make soak`; Ctrl-C stops it."""

import itertools
import logging
import sys
import time

from tests.crash.test_crash_simulator import check


def main() -> None:
    logging.disable(logging.WARNING)
    first = int(sys.argv[1]) if len(sys.argv) > 1 else int(time.time())
    crashes = failures = 0
    print(f"from seed {first} on")
    for seed in itertools.count(first):
        try:
            crashes += len(check(seed).crashes)
        except KeyboardInterrupt:
            break
        except BaseException as error:
            failures += 1
            print(f"\nSEED {seed} failed: {error}")
        if (seed - first) % 20 == 19:
            print(f"\r{seed - first + 1} seeds, {crashes} crashes, {failures} failures", end="", flush=True)
    print()
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
