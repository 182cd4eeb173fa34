"""Servers from their Maven artifacts, resolved with the Ivy that comes with Spark: Java is all that is needed."""

from __future__ import annotations

import fcntl
import os
import subprocess
from pathlib import Path

import pyspark

from tests.services.service import HOME


def jars(name: str, *coordinates: str) -> Path:
    """The folder with the jars of some artifacts ("group:name:version") and of all they depend on."""
    HOME.mkdir(parents=True, exist_ok=True)
    folder = HOME / name
    with (HOME / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "complete").exists():
            for coordinate in coordinates:
                _retrieve(folder, coordinate.split(":"))
            (folder / "complete").touch()
    return folder


def _retrieve(folder: Path, coordinate: list[str]) -> None:
    ivy = next((Path(pyspark.__file__).parent / "jars").glob("ivy-*.jar"))
    pattern = str(folder / "[artifact]-[revision](-[classifier]).[ext]")
    command = [java(), "-jar", str(ivy), "-cache", str(HOME / "ivy"), "-confs", "default", "-types", "jar", "bundle"]
    done = subprocess.run(
        [*command, "-dependency", *coordinate, "-retrieve", pattern], capture_output=True, text=True, check=False
    )
    if done.returncode != 0 or not list(folder.glob(f"{coordinate[1]}-*.jar")):
        said = f"{done.stdout[-3000:]}\n{done.stderr[-2000:]}"
        raise RuntimeError(f"{':'.join(coordinate)} could not be fetched:\n{said}")


def java() -> str:
    home = os.environ.get("JAVA_HOME")
    return f"{home}/bin/java" if home else "java"
