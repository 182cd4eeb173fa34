"""Checks of a program's file before it runs. It may be a Python file, a zip or a wheel."""

from __future__ import annotations

import ast
import zipfile
from pathlib import Path

from penstock.errors import ProgramError
from penstock.service.launch.program_runner import SUFFIXES


def check_name(name: str) -> None:
    """Raise ProgramError if a file with this name is not a program."""
    if Path(name).name != name or name.startswith("."):
        raise ProgramError(f"'{name}' is not a file name")
    if not name.endswith(SUFFIXES):
        raise ProgramError(
            f"'{name}' is not a program: it must be a Python file, a zip or a wheel ({', '.join(SUFFIXES)})"
        )


def check_program(path: Path, entry: str | None = None) -> None:
    """Raise ProgramError if a file cannot be run, before a driver starts for it."""
    check_name(path.name)
    if path.suffix == ".py":
        _check_source(path)
        return
    if not zipfile.is_zipfile(path):
        raise ProgramError(f"'{path.name}' is not a zip file")
    if entry is None and path.suffix == ".zip" and "__main__" not in entries(path):
        raise ProgramError(f"'{path.name}' has no __main__.py: name an entry point, such as my_package.jobs:main")


def _check_source(path: Path) -> None:
    try:
        ast.parse(path.read_bytes(), path.name)
    except (SyntaxError, ValueError) as error:
        raise ProgramError(f"'{path.name}' cannot be compiled: {error}") from None


def entries(path: Path) -> tuple[str, ...]:
    """Return the entry points of a program for display: its main module, or the console scripts of a wheel."""
    if path.suffix == ".py":
        return (path.stem,)
    if not zipfile.is_zipfile(path):
        return ()
    with zipfile.ZipFile(path) as archive:
        found = ["__main__"] if "__main__.py" in archive.namelist() else []
        for name in archive.namelist():
            if name.endswith(".dist-info/entry_points.txt"):
                found += _scripts(archive.read(name).decode("utf-8", "replace"))
    return tuple(found)


def _scripts(text: str) -> list[str]:
    lines = [line.partition("=")[2].strip() for line in text.splitlines() if "=" in line]
    return [line.split()[0] for line in lines if ":" in line]


def requirements_of(path: Path) -> str | None:
    """Return the text of the requirements.txt in a zip, or None."""
    if path.suffix == ".py" or not zipfile.is_zipfile(path):
        return None
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
        return archive.read("requirements.txt").decode() if "requirements.txt" in names else None
