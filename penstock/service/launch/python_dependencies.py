"""The files, packages and archives that a program needs in its slots."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field

from penstock.errors import ConfigurationError
from penstock.service.options.translated_options import Translation


@dataclass
class PythonDependencies:
    """The dependencies that a program registers, and the folders into which they are unpacked or installed."""

    files: list[str] = field(default_factory=list)
    archives: list[tuple[str, str]] = field(default_factory=list)
    cached: dict[str, str] = field(default_factory=dict)
    """Paths of cached files, by the names under which functions ask for them."""
    requirements: tuple[str, str | None] | None = None
    _packages: str | None = None
    _archive_root: str | None = None

    def add_file(self, path: str) -> None:
        """Add a module, package or folder to import from."""
        self.files.append(_existing(path))

    def add_archive(self, path: str, target: str | None) -> None:
        """Add an archive. It is unpacked into the folder `target`, by default one with the name of the archive."""
        self.archives.append((_existing(path), target or os.path.basename(path)))

    def cache(self, path: str, name: str) -> None:
        """Register a file under a name by which functions find it in the slots."""
        if name in self.cached:
            raise ConfigurationError(f"a cached file '{name}' is registered already: {self.cached[name]}")
        self.cached[name] = _existing(path.removeprefix("file://"))

    def set_requirements(self, path: str, cache: str | None) -> None:
        """Name a file of requirements, and a folder of packages from which pip installs without a network."""
        self.requirements = (_existing(path), cache if cache is None else _existing(cache))

    def add_configured(self, translation: Translation) -> None:
        """Add the dependencies that options name. Archives and requirements of the program take precedence."""
        files = [_existing(path) for path in translation.python_files]
        self.files[:0] = [path for path in files if path not in self.files]
        known = [path for path, _ in self.archives]
        for path, target in translation.python_archives:
            if _existing(path) not in known:
                self.add_archive(path, target)
        if translation.python_requirements is not None and self.requirements is None:
            self.set_requirements(*translation.python_requirements)

    def search_path(self) -> list[str]:
        """Return the folders and archives from which slots import. Later files come first, so their modules win."""
        folders = [
            path if os.path.isdir(path) or path.endswith((".zip", ".egg", ".whl")) else os.path.dirname(path)
            for path in reversed(self.files)
        ]
        if self.requirements is not None:
            folders.append(self._install_requirements())
        return folders

    def working_directory(self) -> str | None:
        """Return the folder of the unpacked archives, in which slots run; None if there are no archives."""
        if self.archives and self._archive_root is None:
            self._archive_root = tempfile.mkdtemp(prefix="penstock-archives-")
            for path, target in self.archives:
                shutil.unpack_archive(path, os.path.join(self._archive_root, target))
        return self._archive_root

    def _install_requirements(self) -> str:
        assert self.requirements is not None
        if self._packages is None:
            self._packages = tempfile.mkdtemp(prefix="penstock-packages-")
            path, cache = self.requirements
            offline = ["--no-index", "--find-links", cache] if cache else []
            command = [sys.executable, "-m", "pip", "install", "-q", "-r", path, "--target", self._packages, *offline]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                raise ConfigurationError(f"the requirements in {path} cannot be installed:\n{done.stderr.strip()}")
        return self._packages


def _existing(path: str) -> str:
    full = os.path.abspath(path)
    if not os.path.exists(full):
        raise ConfigurationError(f"there is no file or folder '{path}'")
    return full
