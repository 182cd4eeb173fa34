"""A virtual environment for every peer, made on first use, so that no two of them share a dependency."""

from __future__ import annotations

import functools
import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import plan

ROOT = Path(__file__).resolve().parent.parent
REQUIREMENTS = {
    "flink": ["apache-flink==2.3.0"],
    "tws": ["pyspark>=4.1", "pandas", "pyarrow", "protobuf", "grpcio", "grpcio-status", "googleapis-common-protos"],
    "bw": ["bytewax"],
    "kernels": ["pyarrow", "polars", "duckdb", "datafusion"],
}
MEASURED = {
    "": ["penstock", "pyspark"],
    "flink": ["apache-flink"],
    "tws": ["pyspark", "pandas", "pyarrow"],
    "bw": ["bytewax"],
    "kernels": ["pyarrow", "polars", "duckdb", "datafusion"],
    plan.BEFORE: ["penstock", "pyspark"],
}
JAVA_PACKAGE = "penstock.bench"  # the package of the classes in `peers/java`
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
    return folder_of(environment) / "bin" / "python" if environment else Path(sys.executable)


def folder_of(environment: str) -> Path:
    return Path(os.environ.get("PENSTOCK_BENCH_VENVS", ROOT / ".venvs")) / environment


def install(environment: str, python: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        if environment == plan.BEFORE:
            base, wanted = sys.executable, release(plan.LAST_RELEASE, Path(folder))
        else:  # apache-flink and bytewax do not run on every newer Python
            base, wanted = shutil.which("python3.11") or sys.executable, REQUIREMENTS[environment]
        print(f"installing {' '.join(wanted)} in {folder_of(environment)}", flush=True)
        call([base, "-m", "venv", "--clear", str(folder_of(environment))])
        call([str(python), "-m", "pip", "install", "--quiet", *wanted])


def release(name: str, folder: Path) -> list[str]:
    """What to install for a release of this repository: its files, and the Spark that is measured beside it."""
    archive = folder / f"penstock-{name}.tar.gz"
    call(["git", "-C", str(ROOT), "archive", "--format=tar.gz", f"--prefix={name}/", "-o", str(archive), name])
    return [str(archive), f"pyspark=={versions('')['pyspark']}"]


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


# Java: the programs under `peers/java`, compiled with the jars that PyFlink brings along.


def java_command(main_class: str) -> list[str]:
    return ["java", "-cp", os.pathsep.join([str(java_jar()), *flink_jars()]), main_class]


@functools.cache
def java_jar() -> Path:
    """All of our own Java, compiled once a run."""
    if shutil.which("javac") is None:
        raise EnvironmentFailed("there is no javac (Debian, Ubuntu: apt install openjdk-17-jdk-headless)")
    sources = sorted(str(path) for path in (ROOT / "benchmarks" / "peers" / "java").glob("*.java"))
    classes, jar = folder_of("java") / "classes", folder_of("java") / "peers.jar"
    shutil.rmtree(classes, ignore_errors=True)
    classes.mkdir(parents=True)
    call(["javac", "-d", str(classes), "-cp", os.pathsep.join(flink_jars()), *sources])
    with zipfile.ZipFile(jar, "w") as archive:
        for path in sorted(classes.rglob("*.class")):
            archive.write(path, path.relative_to(classes))
    return jar


def flink_jars() -> list[str]:
    packages = python_of("flink").parent.parent / "lib"
    return sorted(str(path) for path in packages.glob("python*/site-packages/pyflink/lib/*.jar"))
