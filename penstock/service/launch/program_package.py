"""Packs a program, the modules beside it that it imports, and the packages that it requires into one file."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib.metadata import distributions
from pathlib import Path

from penstock import __version__
from penstock.base.archives import LIBRARIES, MANIFEST, PROGRAM
from penstock.errors import ConfigurationError
from penstock.service.launch.program_runner import platform_name

FORMAT = 1
ON_THE_CLUSTER = {"penstock", "pyspark", "py4j"}
"""Packages that every machine of a cluster has. They must be the same everywhere."""
_NO_PART = {"__pycache__", ".git", ".venv", "venv", "node_modules", ".mypy_cache", ".pytest_cache", ".ruff_cache"}
_COMPILED = (".so", ".pyd", ".dylib")
_MAIN = '''"""Runs the package: `python package.zip`."""
import sys
from pathlib import Path

from penstock.service.launch.program_runner import Program

Program(Path(__file__).parent).run(sys.argv[1:])
'''


@dataclass
class Package:
    """The path and the contents of a package."""

    path: Path
    script: str | None
    entry: str | None
    modules: list[str] = field(default_factory=list)
    """The program's own files, by their paths relative to its folder."""
    libraries: dict[str, str] = field(default_factory=dict)
    """Versions of the packages, by name."""
    left_out: list[str] = field(default_factory=list)
    """Packages that the program requires and that a cluster already has."""
    compiled_for: str | None = None
    """The kind of Python and machine that the package needs; None if it holds no compiled code."""
    size: int = 0


def make_package(
    program: Path,
    output: Path,
    requirements: Path | None = None,
    entry: str | None = None,
    included: Sequence[Path] = (),
) -> Package:
    """Write a package of a program, which is a file or a folder. `included` names files and folders beside it."""
    if not program.exists():
        raise ConfigurationError(f"there is no file or folder '{program}'")
    home = program.absolute() if program.is_dir() else program.absolute().parent
    made = Package(output, _script(program, entry), entry)
    files = {
        path: str(path.relative_to(home)) for path in sorted({*_own_files(program, home), *_beside(included, home)})
    }
    made.modules = sorted(files.values())
    with tempfile.TemporaryDirectory(prefix="penstock-package-") as passing:
        libraries = Path(passing)
        if requirements is not None:
            _install(requirements, libraries, made)
        _write(made, files, libraries)
    made.size = output.stat().st_size
    return made


def _script(program: Path, entry: str | None) -> str | None:
    if entry is not None:
        return None
    if program.is_file():
        return program.name
    if not (program / "__main__.py").is_file():
        raise ConfigurationError(f"{program} has no __main__.py: name the entry point with -c module:function")
    return "__main__.py"


# --- the program's own files ---
def _own_files(program: Path, home: Path) -> Iterator[Path]:
    if program.is_dir():
        yield from _files_below(home)
        return
    waiting, seen = [program.absolute()], set[Path]()
    while waiting:
        path = waiting.pop()
        if path in seen:
            continue
        seen.add(path)
        yield path
        if path.suffix == ".py":
            waiting.extend(found for name in _imports(path) for found in _module_files(home, name))


def _imports(path: Path) -> set[str]:
    """Return the first parts of the names of all modules that a file imports anywhere."""
    try:
        tree = ast.parse(path.read_bytes(), str(path))
    except SyntaxError as error:
        raise ConfigurationError(f"{path} cannot be packed: {error}") from None
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names.update(alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module.partition(".")[0])
    return names


def _module_files(home: Path, name: str) -> list[Path]:
    """Return the file of a module beside the program, or all files of a package, including data."""
    if (home / f"{name}.py").is_file():
        return [home / f"{name}.py"]
    folder = home / name
    return list(_files_below(folder)) if folder.is_dir() and any(folder.rglob("*.py")) else []


def _files_below(folder: Path) -> Iterator[Path]:
    for root, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in _NO_PART and not name.endswith(".egg-info"))
        yield from (Path(root, name) for name in sorted(names) if not name.endswith((".pyc", ".pyo")))


def _beside(included: Iterable[Path], home: Path) -> Iterator[Path]:
    for path in included:
        full = path.absolute()
        if not full.exists():
            raise ConfigurationError(f"there is no file or folder '{path}'")
        if not full.is_relative_to(home):
            raise ConfigurationError(f"'{path}' is not below {home}, the folder of the program")
        yield from _files_below(full) if full.is_dir() else [full]


# --- what it requires ---
def _install(requirements: Path, folder: Path, made: Package) -> None:
    if not requirements.is_file():
        raise ConfigurationError(f"there is no file '{requirements}'")
    options = ["--target", str(folder), "--no-compile", "--disable-pip-version-check", "-q"]
    command = [sys.executable, "-m", "pip", "install", *options, "-r", str(requirements)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise ConfigurationError(f"the requirements in {requirements} cannot be installed:\n{done.stderr.strip()}")
    for found in distributions(path=[str(folder)]):
        name = found.metadata["Name"]
        if name.lower() in ON_THE_CLUSTER:
            made.left_out.append(name)
            for file in found.files or ():
                Path(str(found.locate_file(file))).unlink(missing_ok=True)
        else:
            made.libraries[name] = found.version
    made.libraries = dict(sorted(made.libraries.items()))
    if any(path.suffix in _COMPILED for path in folder.rglob("*")):
        made.compiled_for = platform_name()


# --- the file ---
def _write(made: Package, files: dict[Path, str], libraries: Path) -> None:
    """Write the package. The same files always give the same bytes."""
    passing = made.path.with_name(f".{made.path.name}.part")
    try:
        with zipfile.ZipFile(passing, "w", zipfile.ZIP_DEFLATED) as archive:
            _add(archive, MANIFEST, json.dumps(_manifest(made), indent=2).encode())
            _add(archive, "__main__.py", _MAIN.encode())
            for path, name in files.items():
                _add(archive, f"{PROGRAM}/{name}", path.read_bytes())
            for path in sorted(_files_below(libraries)):
                _add(archive, f"{LIBRARIES}/{path.relative_to(libraries)}", path.read_bytes(), _mode(path))
        passing.replace(made.path)
    finally:
        passing.unlink(missing_ok=True)


def _mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def _add(archive: zipfile.ZipFile, name: str, data: bytes, mode: int = 0o644) -> None:
    entry = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.external_attr = mode << 16
    archive.writestr(entry, data)


def _manifest(made: Package) -> dict[str, object]:
    said = {
        "format": FORMAT,
        "penstock": __version__,
        "script": made.script,
        "entry": made.entry,
        "compiled-for": made.compiled_for,
        "libraries": made.libraries,
    }
    return {name: value for name, value in said.items() if value is not None}
