"""Virtual environments for programs with requirements: one for each list, created once and reused."""

from __future__ import annotations

import fcntl
import hashlib
import shutil
import site
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

from penstock.errors import ConfigurationError


def python_for(requirements: str | None, folder: Path) -> str:
    """Return the path of an interpreter with these requirements, or of the server's own if there are none.

    A new environment also contains the server's packages, such as Penstock and Spark. Its own packages take precedence.
    """
    if not requirements or not requirements.strip():
        return sys.executable
    digest = hashlib.sha256(f"{sys.version}\n{requirements}".encode()).hexdigest()[:24]
    place = folder / digest
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f"{digest}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (place / "complete").exists():
            shutil.rmtree(place, ignore_errors=True)
            _make(place, requirements)
            (place / "complete").touch()
    return str(place / "bin" / "python")


def _make(place: Path, requirements: str) -> None:
    venv.create(place, with_pip=False, symlinks=True)
    packages = Path(sysconfig.get_path("purelib", "venv", {"base": str(place), "platbase": str(place)}))
    packages.mkdir(parents=True, exist_ok=True)
    (packages / "penstock-server.pth").write_text("".join(f"{path}\n" for path in _own_packages()))
    file = place / "requirements.txt"
    file.write_text(requirements)
    command = [
        str(place / "bin" / "python"),
        "-m",
        "pip",
        "install",
        "-q",
        "--disable-pip-version-check",
        "-r",
        str(file),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        said = done.stderr.strip() or done.stdout.strip()
        raise ConfigurationError(f"the program's requirements cannot be installed:\n{said}")


def _own_packages() -> list[str]:
    """Return the folders of the server's packages and of Penstock itself."""
    import penstock

    places = [*site.getsitepackages(), str(Path(penstock.__file__).parents[1])]
    return list(dict.fromkeys(places))
