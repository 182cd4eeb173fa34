"""Tests of the tests: random small changes of critical modules, and whether the fast tests notice them.

    python -m tests.mutants [--sample N] [--seed N] [ROOM …]

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
from tests.mutants.mutations import Mutant, mutants_of
from tests.mutants.rooms import ROOMS
from tests.mutants.trials import Room

ROOT = Path(__file__).parents[2]


def main() -> None:
    """Run a sample of each room."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants")
    parser.add_argument("rooms", nargs="*", choices=[*ROOMS, []], default=list(ROOMS))
    parser.add_argument("--sample", type=int, default=10, help="mutants of each room")
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder)
        for part in ("penstock", "tests", "examples", "docs"):
            shutil.copytree(ROOT / part, copy / part, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(ROOT / "pyproject.toml", copy)
        for name in asked.rooms or ROOMS:
            report(name, copy, asked.sample, asked.seed)


def report(name: str, copy: Path, size: int, seed: int) -> None:
    """Try a sample of a room's mutants, and print its survivors and its score."""
    room = Room(copy, *ROOMS[name])
    for test in room.failing:
        print(f"  left out, fails without any change: {test}", flush=True)
    killed = harmless = 0
    drawn = sample_of(name, size, seed)
    for module, mutant in drawn:
        if room.notices(module, mutant):
            killed += 1
            continue
        why = reason(module, mutant)
        harmless += why is not None
        print(f"  {'SURVIVES' if why is None else 'harmless'} {module}:{mutant.line} {mutant.change}", flush=True)
    counted = len(drawn) - harmless
    print(
        f"{name}: {killed} of {counted} killed, {harmless} more harmless ({killed / max(counted, 1):.1%})", flush=True
    )


def sample_of(room: str, size: int, seed: int) -> list[tuple[str, Mutant]]:
    """Draw mutants of a room's modules. The same seed always draws the same ones from the same text."""
    every = [(module, one) for module in ROOMS[room][0] for one in mutants_of((ROOT / module).read_text())]
    return Random(f"{room} {seed}").sample(every, min(size, len(every)))


if __name__ == "__main__":
    sys.exit(main())
