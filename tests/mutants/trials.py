"""Shows mutants to tests, each in a fork of a process that has collected the tests.

A fork gives the functions of the module the code of the mutant. A mutant that changes what happens when the module is
imported is shown to a new process.
"""

from __future__ import annotations

import ast
import faulthandler
import gc
import inspect
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from types import CodeType, FunctionType

import hypothesis
import pytest

from tests.mutants.mutations import Mutant
from tests.mutants.reach import Reach

PATIENCE, SLOWER = 20, 3
"""Seconds that a test may take besides some times its usual time. A test that takes longer has noticed the change."""
FAST = "not soak and not spark and not service"
OPTIONS = ["-q", "-p", "no:cacheprovider"]
NOTICED, SURVIVED, BROKEN, UNREACHED = "noticed", "survived", "broken", "unreached"
"""The fates of a mutant. That of a test that fails without any change is to be broken."""

Drawn = Sequence[tuple[str, Mutant]]
Key = tuple[str, int, bytes]
Codes = dict[Key, CodeType]


def try_mutants(copy: Path, tests: Sequence[str], drawn: Drawn) -> Iterator[tuple[str, str]]:
    """Show mutants of modules in a copy of the project to tests.

    Yield the tests that fail without any change, each with `BROKEN`; then the number and the fate of each mutant.
    """
    reading, writing = os.pipe()
    output = copy / "output.txt"
    child = os.fork()
    if child == 0:
        os.close(reading)
        _measure(copy, output, tests, Trials(copy, drawn, writing))
    os.close(writing)
    with open(reading) as found:
        for line in found:
            what, fate = json.loads(line)
            yield what, fate
    _, status = os.waitpid(child, 0)
    if status != 0:
        raise RuntimeError(f"the tests do not run: {output.read_text(errors='replace')[-5000:]}")


def _measure(copy: Path, output: Path, tests: Sequence[str], trials: Trials) -> None:
    """Run the trials as a plugin of pytest. Never return."""
    code = 99
    try:
        printed = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        for number in (1, 2):
            os.dup2(printed, number)
        os.chdir(copy)
        root = Path(__file__).parents[2].name
        sys.path[:] = [str(copy), *(part for part in sys.path if Path(part or ".").name != root)]
        os.environ["PYTHONPATH"] = str(copy)
        for name in [name for name in sys.modules if name.partition(".")[0] == "tests"]:
            del sys.modules[name]
        hypothesis.settings.register_profile("mutants", deadline=None, database=None)
        hypothesis.settings.load_profile("mutants")
        code = int(pytest.main([*tests, "-m", FAST, "--maxfail", "1", *OPTIONS], [trials]))
    finally:
        os._exit(code)


class Trials:
    """A plugin of pytest that shows mutants to the tests of a session, and writes their fates to a pipe."""

    def __init__(self, copy: Path, drawn: Drawn, writing: int) -> None:
        self._copy, self._drawn, self._writing = copy, drawn, writing
        self._lines: dict[str, list[str]] = {}
        self._seconds: dict[str, float] = {}

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Measure the tests without any change, then try each mutant."""
        for test in self._reach(session):
            self._write(test, BROKEN)
        functions = [one for one in gc.get_objects() if isinstance(one, FunctionType)]
        gc.freeze()  # forks leave what is there alone
        for number, (module, mutant) in enumerate(self._drawn):
            path = self._copy / module
            here = [one for one in functions if one.__code__.co_filename == str(path)]
            self._write(str(number), self._fate(session, module, mutant, here))
        return True

    def _write(self, what: str, fate: str) -> None:
        os.write(self._writing, (json.dumps([what, fate]) + "\n").encode())

    def _reach(self, session: pytest.Session) -> list[str]:
        """Find out which tests reach each line. Return the tests that fail, which are left out from now on."""
        self._items = {item.nodeid: item for item in session.items}
        modules = {str(self._copy / module): module for module, _ in self._drawn}
        found = self._copy / "reach.json"

        def trace() -> int:
            reach, failing = Reach(modules), set[str]()
            session.config.option.maxfail = 0
            for item in session.items:
                before = session.testsfailed
                with reach.watch(item.nodeid):
                    item.config.hook.pytest_runtest_protocol(item=item, nextitem=_after(item, session.items))
                if session.testsfailed > before:
                    failing.add(item.nodeid)
            lines = {line: sorted(tests - failing) for line, tests in reach.lines.items()}
            seconds = {test: took for test, took in reach.seconds.items() if test not in failing}
            found.write_text(json.dumps([lines, seconds, sorted(failing)]))
            return 0

        if _run_in_fork(trace, 3600) != 0:
            raise RuntimeError("the tests could not be measured")
        failing: list[str]
        self._lines, self._seconds, failing = json.loads(found.read_text())
        return failing

    def _fate(self, session: pytest.Session, module: str, mutant: Mutant, functions: list[FunctionType]) -> str:
        tests = self._tests_of(module, mutant)
        if not tests:
            return UNREACHED
        path = self._copy / module
        before = path.read_text()
        limits = {test: PATIENCE + SLOWER * self._seconds[test] for test in tests}
        path.write_text(mutant.text)  # for processes that tests start
        _forget_compiled(path)
        try:
            codes = _changed_codes(before, mutant.tree)
            if codes is None:
                code = _run_anew(self._copy, tests, sum(limits.values()))
            else:
                items = [(self._items[test], limit) for test, limit in limits.items()]
                code = _run_in_fork(lambda: _run_tests(session, items, functions, codes), sum(limits.values()))
        finally:
            path.write_text(before)
            _forget_compiled(path)
        return NOTICED if code != 0 else SURVIVED

    def _tests_of(self, module: str, mutant: Mutant) -> list[str]:
        """The tests that reach a mutant in their own process, the fastest first.

        All tests import the bodies of modules and classes.
        """
        if mutant.at_import:
            return sorted(self._seconds, key=self._seconds.__getitem__)
        keys = (f"{module}:{line}" for line in mutant.lines)
        return sorted({test for key in keys for test in self._lines.get(key, ())}, key=self._seconds.__getitem__)


def _after(item: pytest.Item, items: list[pytest.Item]) -> pytest.Item | None:
    """The next item, for which pytest keeps the fixtures that it shares."""
    place = items.index(item) + 1
    return items[place] if place < len(items) else None


def _run_tests(
    session: pytest.Session, items: list[tuple[pytest.Item, float]], functions: list[FunctionType], codes: Codes
) -> int:
    """Change functions, and run tests until one fails or takes too long. Return the number of failures."""
    for function in functions:
        new = codes.get(_key_of(function.__code__))
        if new is not None:
            function.__code__ = new
    for (item, limit), (following, _) in zip(items, [*items[1:], (None, 0)], strict=True):
        faulthandler.dump_traceback_later(limit, exit=True)
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if session.shouldfail:
            break
    return session.testsfailed


def _run_anew(copy: Path, tests: list[str], limit: float) -> int:
    """Run tests in a new process until one fails."""
    words = [sys.executable, "-m", "pytest", *tests, "-x", *OPTIONS]
    nowhere = subprocess.DEVNULL
    with subprocess.Popen(words, cwd=copy, stdout=nowhere, stderr=nowhere, start_new_session=True) as process:
        try:
            return process.wait(limit)
        except subprocess.TimeoutExpired:
            return -1
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def _run_in_fork(action: Callable[[], int], limit: float) -> int:
    """Run something in a fork, and return its exit code; another one than 0 if it takes too long."""
    child = os.fork()
    if child == 0:
        code = 99
        try:
            os.setsid()
            code = min(action(), 98)
        finally:
            os._exit(code)
    until, pause = time.monotonic() + limit, 0.002
    try:
        while time.monotonic() < until:
            done, status = os.waitpid(child, os.WNOHANG)
            if done:
                return os.waitstatus_to_exitcode(status)
            time.sleep(pause)
            pause = min(pause * 1.5, 0.05)
        os.killpg(child, signal.SIGKILL)
        os.waitpid(child, 0)
        return -1
    finally:
        with suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)


def _key_of(code: CodeType) -> Key:
    """Where a function is written: its name, and the lines and columns of its instructions."""
    return code.co_qualname, code.co_firstlineno, code.co_linetable


def _changed_codes(text: str, changed: ast.Module) -> Codes | None:
    """The changed code of each function of a module; None if importing the module does something else, too."""
    codes: Codes = {}
    alike = _pair_up(compile(text, "before", "exec"), compile(changed, "mutant", "exec"), codes)
    return codes if alike else None


def _pair_up(old: CodeType, new: CodeType, codes: Codes) -> bool:
    inner = [[one for one in code.co_consts if isinstance(one, CodeType)] for code in (old, new)]
    if len(inner[0]) != len(inner[1]):
        return False
    if old.co_flags & inspect.CO_OPTIMIZED:
        codes[_key_of(old)] = new
        if old.co_freevars != new.co_freevars:
            return False
    elif _body_of(old) != _body_of(new):
        return False
    return all(_pair_up(*pair, codes) for pair in zip(*inner, strict=True))


def _body_of(code: CodeType) -> tuple[bytes, tuple[str, ...], list[str]]:
    """What the body of a module or a class does, apart from the functions that it defines."""
    return code.co_code, code.co_names, [repr(one) for one in code.co_consts if not isinstance(one, CodeType)]


def _forget_compiled(path: Path) -> None:
    for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
        compiled.unlink()
