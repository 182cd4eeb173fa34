"""Tests of the tests: random small changes of critical modules, and whether the fast tests notice them.

    python -m tests.mutants [--sample N] [--seed N] [ROOM …]

Prints each mutant that survives, and the score of each room. A survivor is a gap in the tests, or a change that changes
nothing; a person has to say which. The changes are made in a copy of the project.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from random import Random

from tests.mutants.mutations import Mutant, mutants_of
from tests.mutants.rooms import ROOMS

ROOT = Path(__file__).parents[2]
SECONDS = 900
"""Tests that take longer hang: they have noticed the change."""


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
        for room in asked.rooms:
            killed = sum(is_noticed(copy, room, *one) for one in sample_of(room, asked.sample, asked.seed))
            print(f"{room}: {killed} of {asked.sample} killed", flush=True)


def sample_of(room: str, size: int, seed: int) -> list[tuple[str, Mutant]]:
    """Draw mutants of a room's modules. The same seed always draws the same ones from the same text."""
    every = [(module, one) for module in ROOMS[room][0] for one in mutants_of((ROOT / module).read_text())]
    return Random(f"{room} {seed}").sample(every, size)


def is_noticed(copy: Path, room: str, module: str, mutant: Mutant) -> bool:
    """Whether a test of the room fails with this mutant."""
    (copy / module).write_text(mutant.text)
    command = [sys.executable, "-m", "pytest", *ROOMS[room][1], "-x", "-q", "-p", "no:cacheprovider", "-m", "not soak"]
    environment = {**os.environ, "PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        done = subprocess.run(command, cwd=copy, env=environment, capture_output=True, check=False, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return True
    finally:
        shutil.copy(ROOT / module, copy / module)
    if done.returncode == 0:
        print(f"  SURVIVES {module}:{mutant.line} {mutant.change}", flush=True)
    return done.returncode != 0


if __name__ == "__main__":
    main()
