"""An archive with a whole Python environment, for machines of a cluster without a suitable Python.

A packed virtual environment only links to the Python that it was made with. Here the interpreter, its library and the
packages are copied, so that nothing points outside but the libraries of the operating system.
"""

from __future__ import annotations

import io
import os
import sys
import sysconfig
import tarfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

import penstock
from penstock.errors import ConfigurationError

PYTHON = f"python{sys.version_info.major}.{sys.version_info.minor}"
LIBRARY = f"lib/{PYTHON}"
PACKAGES = f"{LIBRARY}/site-packages"
LEFT_OUT = {"__pycache__", "site-packages", "dist-packages", "test", "idlelib", "turtledemo", "ensurepip", "lib2to3"}
JARS = "pyspark/jars/"
"""Folder of pyspark that only the driver's machine needs. The cluster manager brings Spark's jars elsewhere."""
LAUNCHER = f"""\
#!/bin/sh
home=$(cd "$(dirname "$0")/.." && pwd -P)
unset PYTHONHOME
export LD_LIBRARY_PATH="$home/lib${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}"
export PYTHONPATH="${{PYTHONPATH:+$PYTHONPATH:}}$home/{PACKAGES}"
exec "$home/bin/{PYTHON}" "$@"
"""


@dataclass(frozen=True)
class PackedEnvironment:
    """An archive that was written, its size in bytes, and its packages."""

    path: Path
    size: int
    packages: dict[str, str]
    """Versions of the packages, by name."""


def pack_environment(target: Path, requirements: Path | None = None) -> PackedEnvironment:
    """Write an archive with this Python, Penstock, the installed packages that a file names, and their requirements."""
    named = _read_requirements(requirements) if requirements is not None else []
    packed = _closure([Requirement("penstock"), *named])
    draft = target.with_name(f"{target.name}.part")
    try:
        with tarfile.open(draft, "w:gz", compresslevel=5) as archive:
            _add_interpreter(archive)
            for name, package in sorted(packed.items()):
                for source, place in _files(name, package):
                    archive.add(source, f"{PACKAGES}/{place}", recursive=False)
        os.replace(draft, target)
    finally:
        draft.unlink(missing_ok=True)
    return PackedEnvironment(target, target.stat().st_size, {name: found.version for name, found in packed.items()})


def _read_requirements(file: Path) -> list[Requirement]:
    lines = (line.partition("#")[0].strip() for line in file.read_text(encoding="utf-8").splitlines())
    try:
        return [Requirement(line) for line in lines if line]
    except InvalidRequirement as error:
        raise ConfigurationError(
            f"{file}: {str(error).splitlines()[0]}. An environment holds installed packages, so write only their "
            "names, one per line"
        ) from None


# --- packages ---
def _closure(wanted: list[Requirement]) -> dict[str, Distribution]:
    """Return the installed packages that fulfil these requirements, and the requirements of these packages."""
    packages: dict[str, Distribution] = {}
    seen: set[str] = set()
    while wanted:
        requirement = wanted.pop()
        if str(requirement) in seen:
            continue
        seen.add(str(requirement))
        name = canonicalize_name(requirement.name)
        packages[name] = found = packages.get(name) or _find_distribution(requirement)
        if found.version not in requirement.specifier and requirement.specifier:
            raise ConfigurationError(f"{requirement} is required, but {name} {found.version} is installed")
        wanted += _needs(found, requirement.extras)
    return packages


def _find_distribution(requirement: Requirement) -> Distribution:
    try:
        return distribution(requirement.name)
    except PackageNotFoundError:
        raise ConfigurationError(
            f"{requirement} is not installed with Penstock in {sys.prefix}. An environment holds installed "
            f"packages: pip install '{requirement}'"
        ) from None


def _needs(package: Distribution, extras: Iterable[str]) -> list[Requirement]:
    needs = [Requirement(line) for line in package.requires or []]
    chosen = ("", *extras)
    return [need for need in needs if need.marker is None or any(need.marker.evaluate({"extra": x}) for x in chosen)]


def _files(name: str, package: Distribution) -> Iterator[tuple[Path, str]]:
    """Yield the files of a package, each with its place in `site-packages`."""
    if name == "penstock":
        # In a development environment, Penstock is not installed as files.
        yield from _tree(Path(penstock.__file__).parent, "penstock")
    for file in package.files or []:
        place = file.as_posix()
        if name == "penstock" and ".dist-info/" not in place:
            continue
        if not place.startswith(("..", JARS)) and "__pycache__" not in place and not place.endswith(".pth"):
            source = Path(str(package.locate_file(file)))
            if source.is_file():
                yield source, place


# --- the interpreter ---
def _add_interpreter(archive: tarfile.TarFile) -> None:
    executable = Path(os.path.realpath(getattr(sys, "_base_executable", sys.executable)))
    archive.add(executable, f"bin/{PYTHON}", recursive=False)
    for name in ("python", "python3"):
        launcher = tarfile.TarInfo(f"bin/{name}")
        launcher.size, launcher.mode = len(LAUNCHER), 0o755
        archive.addfile(launcher, io.BytesIO(LAUNCHER.encode()))
    shared = sysconfig.get_config_var("INSTSONAME")
    library = Path(sysconfig.get_config_var("LIBDIR") or "", shared or "")
    if sysconfig.get_config_var("Py_ENABLE_SHARED") and library.is_file():
        archive.add(library.resolve(), f"lib/{shared}", recursive=False)
    for source, place in _tree(Path(sysconfig.get_path("stdlib")), LIBRARY):
        archive.add(source, place, recursive=False)


def _tree(folder: Path, place: str) -> Iterator[tuple[Path, str]]:
    for parent, names, files in os.walk(folder):
        names[:] = sorted(name for name in names if name not in LEFT_OUT and not name.startswith("config-"))
        for name in sorted(files):
            source = Path(parent, name)
            if source.is_file():
                yield source.resolve(), f"{place}/{source.relative_to(folder).as_posix()}"
