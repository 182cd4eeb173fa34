"""Programs in one file (a zip, a wheel, or a package of `penstock package`), unpacked for imports."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import zipfile
from pathlib import Path
from typing import Any

from penstock.errors import ConfigurationError

MANIFEST = "penstock-package.json"
"""Name of the file that describes a package. Archives from elsewhere have none."""
PROGRAM, LIBRARIES = "program", "libraries"
"""Folders of a package: the program with its modules, and the libraries that it needs."""


def unpack(archive: str | os.PathLike[str], folder: str | os.PathLike[str]) -> None:
    """Unpack an archive into a folder.

    The folder appears complete or not at all, even if several processes do the same.
    """
    target = Path(folder)
    if target.is_dir():
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    passing = tempfile.mkdtemp(prefix=f"{target.name}-", dir=target.parent)
    try:
        with zipfile.ZipFile(archive) as opened:
            opened.extractall(passing)
        os.rename(passing, target)
    except zipfile.BadZipFile:
        raise ConfigurationError(f"{archive} is not a zip file, or it is damaged") from None
    except OSError:
        if not target.is_dir():
            raise
    finally:
        shutil.rmtree(passing, ignore_errors=True)


def manifest(folder: str | os.PathLike[str]) -> dict[str, Any] | None:
    """Return a package's description of itself, or None for another archive."""
    path = Path(folder, MANIFEST)
    if not path.is_file():
        return None
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def import_folders(folder: str | os.PathLike[str]) -> list[str]:
    """Return the folders of an unpacked archive to import from. The program's own modules come first."""
    packed = Path(folder, MANIFEST).is_file()
    return [str(Path(folder, name)) for name in (PROGRAM, LIBRARIES)] if packed else [str(folder)]
