"""Shows mutants to tests, each in a fork of a process that has imported the libraries, but nothing of Penstock."""

from __future__ import annotations

import importlib
import json
import os
import signal
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import hypothesis
import pytest

from tests.mutants.mutations import Mutant
from tests.mutants.reach import Reach

LIBRARIES = ("numpy", "pandas", "pyarrow", "pyarrow.compute", "fsspec", "cloudpickle", "sqlglot")
PATIENCE, SLOWER = 60, 3
"""Seconds that tests may take besides some times their usual time; those that take longer have noticed the change."""
HUNG = -1
FAST = "not soak and not spark and not service"
OUTPUT = "output.txt"
"""What the latest tests have printed."""


class Room:
    """Modules in a copy of the project, and their tests."""

    def __init__(self, copy: Path, modules: Sequence[str], tests: Sequence[str]) -> None:
        self._copy = copy
        for library in LIBRARIES:
            importlib.import_module(library)
        reach = copy / "reach.json"
        self._run([*tests, "-m", FAST], 3600, Reach(copy, modules, reach))
        if not reach.exists():
            raise RuntimeError(f"the tests do not run: {(copy / OUTPUT).read_text(errors='replace')[-5000:]}")
        found = json.loads(reach.read_text())
        reach.unlink()
        self._lines: dict[str, list[str]] = found["lines"]
        self._seconds: dict[str, float] = found["seconds"]
        self.failing: list[str] = found["failing"]
        """Tests that fail without any change, and are left out."""

    def notices(self, module: str, mutant: Mutant) -> bool:
        """Whether a test fails with this mutant."""
        path = self._copy / module
        before = path.read_text()
        tests = self.tests_of(module, mutant)
        path.write_text(mutant.text)
        self._forget_compiled(path)
        try:
            return self._run([*tests, "-x"], PATIENCE + SLOWER * sum(self._seconds[test] for test in tests)) != 0
        finally:
            path.write_text(before)
            self._forget_compiled(path)

    def tests_of(self, module: str, mutant: Mutant) -> list[str]:
        """The tests that reach a mutant in their own process, the fastest first; all if none does."""
        keys = (f"{module}:{line}" for line in mutant.lines)
        reaching = {test for key in keys for test in self._lines.get(key, ())}
        return sorted(reaching or self._seconds, key=self._seconds.__getitem__)

    def _forget_compiled(self, path: Path) -> None:
        for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
            compiled.unlink()

    def _run(self, words: list[str], seconds: float, plugin: Any = None) -> int:
        """Run pytest in a fork, and return its exit code."""
        child = os.fork()
        if child == 0:
            self._be_tested(words, plugin)
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            done, status = os.waitpid(child, os.WNOHANG)
            if done:
                return os.waitstatus_to_exitcode(status)
            time.sleep(0.02)
        with suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)
        os.waitpid(child, 0)
        return HUNG

    def _be_tested(self, words: list[str], plugin: Any) -> None:
        """Never return."""
        code = 99
        try:
            os.setsid()
            output = os.open(self._copy / OUTPUT, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            for number in (1, 2):
                os.dup2(output, number)
            os.chdir(self._copy)
            sys.path[:] = [str(self._copy), *(part for part in sys.path if Path(part or ".").name != self._root().name)]
            os.environ["PYTHONPATH"] = str(self._copy)
            for name in [name for name in sys.modules if name.partition(".")[0] == "tests"]:
                del sys.modules[name]
            hypothesis.settings.register_profile("mutants", deadline=None)
            hypothesis.settings.load_profile("mutants")
            options = ["-q", "-p", "no:cacheprovider"]
            code = int(pytest.main([*words, *options], [plugin] if plugin is not None else []))
        finally:
            os._exit(code)

    @staticmethod
    def _root() -> Path:
        return Path(__file__).parents[2]
