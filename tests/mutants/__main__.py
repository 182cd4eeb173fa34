"""Tests of the tests: random small changes of critical modules, and whether the fast tests notice them.

    python -m tests.mutants [--sample N] [--seed N] [--line TEXT …] [ROOM …]

With `--line`, every mutant of the lines that contain one of the texts is tried instead of a sample.

Prints each mutant that survives, and the score of each room. A survivor is a gap in the tests, or a change that does
not matter; a person has to say which, and adds the latter to `harmless.py` with the reason. The changes are made in a
copy of the project. Each is shown to the tests that reach its lines, the fastest first.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path
from random import Random

from tests.mutants.harmless import reason
from tests.mutants.mutations import Mutant, count_mutants, mutant_of
from tests.mutants.rooms import ROOMS
from tests.mutants.trials import BROKEN, NOTICED, UNREACHED, try_mutants

ROOT = Path(__file__).parents[2]


def main() -> None:
    """Run a sample of each room."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants")
    parser.add_argument("rooms", nargs="*", choices=[*ROOMS, []], default=list(ROOMS))
    parser.add_argument("--sample", type=int, default=10, help="mutants of each room")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--line", action="append", default=[], metavar="TEXT", help="only lines that contain a text")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder).resolve()
        for part in ("penstock", "tests", "examples", "docs"):
            shutil.copytree(ROOT / part, copy / part, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(ROOT / "pyproject.toml", copy)
        for name in asked.rooms or ROOMS:
            drawn = sample_of(name, copy, asked.sample, asked.seed)
            if asked.line:
                every = sample_of(name, copy, 10_000, asked.seed)
                drawn = [(module, one) for module, one in every if any(text in one.source for text in asked.line)]
            report(name, copy, drawn)


def report(name: str, copy: Path, drawn: list[tuple[str, Mutant]]) -> None:
    """Try mutants of a room, and print its survivors and its score."""
    killed = harmless = 0
    for what, fate in try_mutants(copy, ROOMS[name][1], drawn):
        if fate == BROKEN:
            print(f"  left out, fails without any change: {what}", flush=True)
            continue
        if fate == NOTICED:
            killed += 1
            continue
        module, mutant = drawn[int(what)]
        why = reason(module, mutant)
        harmless += why is not None
        word = "SURVIVES" if why is None else "harmless"
        unreached = " (no test reaches it)" if fate == UNREACHED else ""
        print(f"  {word} {module}:{mutant.line} {mutant.change}{unreached}", flush=True)
    counted = len(drawn) - harmless
    print(
        f"{name}: {killed} of {counted} killed, {harmless} more harmless ({killed / max(counted, 1):.1%})", flush=True
    )


def sample_of(room: str, root: Path, size: int, seed: int) -> list[tuple[str, Mutant]]:
    """Draw mutants of a room's modules. The same seed always draws the same ones from the same text."""
    texts = {module: (root / module).read_text() for module in ROOMS[room][0]}
    every = [(module, index) for module, text in texts.items() for index in range(count_mutants(text))]
    drawn = Random(f"{room} {seed}").sample(every, min(size, len(every)))
    return [(module, mutant_of(texts[module], index)) for module, index in drawn]


if __name__ == "__main__":
    sys.exit(main())
