"""mypy and pyright as this project runs them. `python -m tests.typing.checkers` checks the examples with pyright."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).parent
ROOT = HERE.parent.parent


class Finding(NamedTuple):
    """What a type checker says about a line."""

    file: str
    line: int
    message: str


def run_mypy(*files: Path) -> list[Finding]:
    """Return the errors that `mypy --strict` finds, as it is set up for the package."""
    command = [sys.executable, "-m", "mypy", "--no-error-summary", "--hide-error-context", *map(str, files)]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert said.returncode in (0, 1), said.stdout + said.stderr
    found = re.findall(r"^(.+?):(\d+): error: (.*)$", said.stdout, re.MULTILINE)
    return [Finding(str(ROOT / file), int(line), message) for file, line, message in found]


def run_pyright(*files: Path) -> list[Finding]:
    """Return the errors that pyright finds. Raise OSError if pyright cannot be installed."""
    return _diagnostics("error", files)


def reveal_types(file: Path) -> dict[int, str]:
    """Return what pyright says about each `reveal_type` of a file, by line."""
    return {one.line: one.message for one in _diagnostics("information", [file])}


def _diagnostics(severity: str, files: Sequence[Path]) -> list[Finding]:
    command = [*_pyright(), "--outputjson", "--pythonpath", sys.executable, *map(str, files)]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert said.returncode in (0, 1), said.stdout + said.stderr
    found: list[dict[str, Any]] = json.loads(said.stdout)["generalDiagnostics"]
    chosen = [one for one in found if one["severity"] == severity]
    return [Finding(one["file"], one["range"]["start"]["line"] + 1, one["message"]) for one in chosen]


def _pyright() -> list[str]:
    """Return the command of the pinned pyright, which npm installs on first use."""
    npm = _npm()
    script = HERE / "node_modules" / "pyright" / "index.js"
    wanted = json.loads((HERE / "package.json").read_text())["dependencies"]["pyright"]
    package = script.parent / "package.json"
    if not package.is_file() or json.loads(package.read_text())["version"] != wanted:
        try:
            subprocess.run([*npm, "ci", "--loglevel=error"], cwd=HERE, check=True, env=_with_node(npm))
        except subprocess.CalledProcessError as error:
            raise OSError(f"npm cannot install pyright: {error}") from error
    node = npm[0] if len(npm) > 1 else shutil.which("node")
    return [str(node), str(script)]


def _npm() -> list[str]:
    """Return the command of npm, as the build of the web pages finds it."""
    spec = importlib.util.spec_from_file_location("penstock_web_build", ROOT / "web" / "build.py")
    assert spec is not None
    assert spec.loader is not None
    build = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(build)
    try:
        command: list[str] = build.npm()
    except subprocess.CalledProcessError as error:
        raise OSError(f"Node.js cannot be installed: {error}") from error
    return command


def _with_node(command: list[str]) -> dict[str, str]:
    return {**os.environ, "PATH": f"{Path(command[0]).parent}{os.pathsep}{os.environ.get('PATH', '')}"}


def main() -> None:
    """Check the examples, and end with an error if pyright finds one."""
    try:
        found = run_pyright(ROOT / "examples")
    except OSError as error:
        if os.environ.get("PENSTOCK_REQUIRE_SERVICES"):
            sys.exit(str(error))
        print(f"the examples are not checked with pyright: {error}")
        return
    if found:
        sys.exit("\n".join(f"{one.file}:{one.line}: {one.message}" for one in found))


if __name__ == "__main__":
    main()
