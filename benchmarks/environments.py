"""A virtual environment for every peer, made on first use, so that no two of them share a dependency."""

from __future__ import annotations

import functools
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
REQUIREMENTS = {
    "flink": ["apache-flink==2.3.0"],
    "tws": ["pyspark>=4.1", "pandas", "pyarrow", "protobuf", "grpcio", "grpcio-status", "googleapis-common-protos"],
    "bw": ["bytewax"],
}
MEASURED = {
    "": ["penstock", "pyspark"],
    "flink": ["apache-flink"],
    "tws": ["pyspark", "pandas", "pyarrow"],
    "bw": ["bytewax"],
}
READ_VERSIONS = """
import importlib.metadata, json, sys
found = {d.name: d.version for d in importlib.metadata.distributions() if d.name in sys.argv}
print(json.dumps(found))
"""


class EnvironmentFailed(Exception):
    """An environment could not be made; the message says which step failed and how."""


@functools.cache
def python_of(environment: str) -> Path:
    """The interpreter of a peer's environment, which is installed first when missing or left half made."""
    python = interpreter(environment)
    if environment and len(versions(environment)) < len(MEASURED[environment]):
        install(environment, python)
    return python


def interpreter(environment: str) -> Path:
    folder = Path(os.environ.get("PENSTOCK_BENCH_VENVS", ROOT / ".venvs"))
    return folder / environment / "bin" / "python" if environment else Path(sys.executable)


def install(environment: str, python: Path) -> None:
    folder = python.parent.parent
    print(f"installing {' '.join(REQUIREMENTS[environment])} in {folder}", flush=True)
    base = shutil.which("python3.11") or sys.executable  # apache-flink and bytewax do not run on every newer Python
    call([base, "-m", "venv", "--clear", str(folder)])
    call([str(python), "-m", "pip", "install", "--quiet", *REQUIREMENTS[environment]])


def call(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        reason = (done.stderr.strip() or done.stdout.strip() or "no output").splitlines()[-1]
        raise EnvironmentFailed(f"`{' '.join(command[:4])} …` failed: {reason}")


def versions(environment: str) -> dict[str, str]:
    """The versions of what an environment is there to measure, as far as it is installed."""
    python = interpreter(environment)
    if not python.exists():
        return {}
    command = [str(python), "-c", READ_VERSIONS, *MEASURED[environment]]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return json.loads(done.stdout) if done.returncode == 0 else {}
