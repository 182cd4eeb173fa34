"""Checks a release: builds sdist and wheel, installs each into an empty environment, runs the program of the README.

Run by `make release-check`. It needs the network, and takes a few minutes.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import venv
import zipfile
from pathlib import Path

import penstock

ROOT = Path(__file__).parents[1]
NEEDED = ("penstock/py.typed", "penstock/service/rest/web/index.html", "penstock/spark/sessions/log4j2.properties")
"""Files that a wheel must hold beside its modules."""


def program_and_output() -> tuple[str, str]:
    """Return the program of the README and what it prints."""
    found = re.search(
        r"```python\n(.*?)```.*?<!-- output -->\n```text\n(.*?)```", (ROOT / "README.md").read_text(), re.S
    )
    if found is None:
        sys.exit("README.md has no program with its output")
    return found.group(1), found.group(2)


def build(folder: Path) -> tuple[Path, Path]:
    """Build the sdist, and the wheel from the sdist. Return both."""
    subprocess.run([sys.executable, "-m", "build", "--outdir", str(folder), str(ROOT)], check=True)
    version = penstock.__version__
    return folder / f"penstock-{version}.tar.gz", folder / f"penstock-{version}-py3-none-any.whl"


def check_contents(wheel: Path) -> None:
    """End with an error if the wheel lacks a file that is not a module."""
    names = set(zipfile.ZipFile(wheel).namelist())
    missing = [name for name in NEEDED if name not in names]
    if missing:
        sys.exit(f"{wheel.name} lacks {', '.join(missing)}")


def check_installed(package: Path, folder: Path) -> None:
    """Install a package into an empty environment, and run the program of the README with it."""
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "-q", str(package)], check=True)
    program, expected = program_and_output()
    script = folder / "first.py"
    script.write_text(program)
    for command in ([python, script], [folder / "bin" / "penstock", "run", script]):
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode != 0 or sorted(done.stdout.splitlines()) != sorted(expected.splitlines()):
            sys.exit(f"{package.name}: {command[0].name} printed\n{done.stdout}{done.stderr}\ninstead of\n{expected}")
    print(f"{package.name}: installed, and the program of the README ran", flush=True)


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        sdist, wheel = build(folder / "dist")
        check_contents(wheel)
        for package in (wheel, sdist):
            check_installed(package, folder / package.name.removesuffix(".whl"))


if __name__ == "__main__":
    main()
