"""Runs a program as `python` would: a file, a zip, a wheel, a package or a named function."""

from __future__ import annotations

import atexit
import configparser
import importlib
import os
import platform
import runpy
import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock import compat
from penstock.base.archives import PROGRAM, import_folders, manifest, unpack
from penstock.errors import ConfigurationError

SUFFIXES = (".py", ".zip", ".whl")
"""Suffixes of the files that can be programs."""


@dataclass(frozen=True)
class Program:
    """A program to run: a file or an importable module, and a function in it or the module as a whole."""

    path: Path | None
    entry: str | None = None
    """`module:function`, `module`, or for a single file also `:function`. None means the file as a script."""

    def __post_init__(self) -> None:
        if self.path is None and self.entry is None:
            raise ConfigurationError("name a program: a file, or with -c a module and its function")
        if self.path is not None and not self.path.is_file():
            raise ConfigurationError(f"there is no file '{self.path}'")
        if self.path is not None and self.path.suffix not in SUFFIXES:
            raise ConfigurationError(
                f"a program must be a file with the ending {', '.join(SUFFIXES)}, not '{self.path}'"
            )

    def run(self, arguments: Sequence[str] = (), pyflink: bool = False) -> None:
        """Run the program in this process, with these arguments in `sys.argv`.

        With `pyflink`, modules of Penstock take the names of PyFlink's modules.
        """
        if pyflink:
            compat.install()
        sys.argv = [str(self.path or self.entry), *arguments]
        with self._ship_archive():
            self._main()()

    def _ship_archive(self) -> AbstractContextManager[object]:
        """Return a block within which jobs send the program's archive, if it is one, to the machines of their slots."""
        from penstock.service.launch.submission import with_defaults

        if self.path is None or self.path.suffix == ".py":
            return nullcontext()
        return with_defaults(archive=str(self.path.absolute()))

    def _main(self) -> Callable[[], Any]:
        if self.path is None:
            sys.path.insert(0, os.getcwd())
            return _entry(str(self.entry))
        if self.path.suffix == ".py":
            return _of_file(self.path, self.entry)
        folder = _unpack_program(self.path)
        sys.path[:0] = import_folders(folder)
        return _of_wheel(folder, self) if self.path.suffix == ".whl" else _of_zip(folder, self)


def _of_file(path: Path, entry: str | None) -> Callable[[], Any]:
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    if entry is None:
        return lambda: runpy.run_path(str(path), run_name="__main__")
    module, _, function = entry.rpartition(":")
    return _entry(f"{module or path.stem}:{function}")


def _of_zip(folder: Path, program: Program) -> Callable[[], Any]:
    found = manifest(folder) or {}
    _check_fit(found, program)
    entry = program.entry or found.get("entry")
    if entry is not None:
        return _entry(entry)
    script = Path(folder, PROGRAM, found["script"]) if found else Path(folder, "__main__.py")
    if not script.is_file():
        raise ConfigurationError(
            f"{program.path} has no __main__.py: name the entry point with -c module:function, or make the zip with "
            "`penstock package`"
        )
    return lambda: runpy.run_path(str(script), run_name="__main__")


def _check_fit(found: dict[str, Any], program: Program) -> None:
    """Raise ConfigurationError if the package holds code that was compiled for another machine or Python."""
    made, here = found.get("compiled-for"), platform_name()
    if made is not None and made != here:
        raise ConfigurationError(
            f"{program.path} contains code that was compiled for {made}, but this machine has {here}"
        )


def platform_name() -> str:
    """Return the kind of Python and machine that packages are compiled for here."""
    return f"Python {sys.version_info.major}.{sys.version_info.minor} on {platform.system()} {platform.machine()}"


def _of_wheel(folder: Path, program: Program) -> Callable[[], Any]:
    scripts = [] if program.entry else console_scripts(folder)
    if len(scripts) > 1 or not (program.entry or scripts):
        has = f"has {len(scripts)} console scripts" if scripts else "has no console script"
        raise ConfigurationError(f"{program.path} {has}: name the entry point with -c module:function")
    return _entry(program.entry or scripts[0])


def console_scripts(folder: Path) -> list[str]:
    """Return the functions that the console scripts of an unpacked wheel call, as module:function."""
    found: list[str] = []
    for file in folder.glob("*.dist-info/entry_points.txt"):
        parser = configparser.ConfigParser(delimiters=("=",), interpolation=None)
        parser.read(file, encoding="utf-8")
        if parser.has_section("console_scripts"):
            found.extend(value.partition("[")[0].strip() for _, value in parser.items("console_scripts"))
    return found


def _entry(entry: str) -> Callable[[], Any]:
    """Return the function that `module:function` names, or a function that runs `module` as a script."""
    module, separator, function = entry.partition(":")
    if not separator:
        return lambda: runpy.run_module(module, run_name="__main__", alter_sys=True)
    try:
        found: Any = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise
        raise ConfigurationError(f"there is no module '{module}' for -c {entry}") from None
    for name in function.split("."):
        found = getattr(found, name, None)
    if not callable(found):
        raise ConfigurationError(f"'{module}' has no function '{function}' for -c {entry}")
    return found  # type: ignore[no-any-return]


def _unpack_program(archive: Path) -> Path:
    """Unpack an archive, and return the folder. The folder is deleted when this process ends."""
    home = tempfile.mkdtemp(prefix="penstock-program-")
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    folder = Path(home, "unpacked")
    unpack(archive, folder)
    return folder
