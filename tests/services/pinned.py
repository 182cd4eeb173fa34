"""Jars from Maven by an exact list: nothing is resolved, so that a first run waits for the downloads only."""

from __future__ import annotations

import fcntl
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

import pyspark

from tests.services.maven import java
from tests.services.service import HOME

SETTINGS = """\
<ivysettings>
  <settings defaultResolver="central"/>
  <resolvers><ibiblio name="central" m2compatible="true" usepoms="false"/></resolvers>
</ivysettings>
"""
LIST = """\
<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">
  <info organisation="penstock" module="{name}"/>
  <dependencies>{dependencies}</dependencies>
</ivy-module>
"""


def pinned_jars(name: str, coordinates: Iterable[str]) -> Path:
    """The folder with exactly these jars ("group:name:version", or "group:name:version:classifier")."""
    HOME.mkdir(parents=True, exist_ok=True)
    folder = HOME / name
    with (HOME / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "complete").exists():
            folder.mkdir(exist_ok=True)
            _fetch(folder, [coordinate.split(":") for coordinate in coordinates])
            shutil.rmtree(folder / "cache")
            (folder / "complete").touch()
    return folder


def _fetch(folder: Path, coordinates: list[list[str]]) -> None:
    ivy = next((Path(pyspark.__file__).parent / "jars").glob("ivy-*.jar"))
    lines = "".join(_dependency(*coordinate) for coordinate in coordinates)
    (folder / "ivy.xml").write_text(LIST.format(name=folder.name, dependencies=lines))
    (folder / "ivysettings.xml").write_text(SETTINGS)
    done = subprocess.run(
        [
            *(java(), "-jar", str(ivy), "-settings", str(folder / "ivysettings.xml"), "-ivy", str(folder / "ivy.xml")),
            *("-cache", str(folder / "cache"), "-retrieve", str(folder / "[artifact]-[revision](-[classifier]).[ext]")),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    expected = ["-".join(coordinate[1:]) + ".jar" for coordinate in coordinates]
    missing = [name for name in expected if not (folder / name).exists()]
    if done.returncode != 0 or missing:
        raise RuntimeError(f"these jars could not be fetched: {missing}\n{done.stdout[-3000:]}\n{done.stderr[-2000:]}")


def _dependency(group: str, name: str, version: str, classifier: str | None = None) -> str:
    which = "" if classifier is None else f'<artifact name="{name}" type="jar" m:classifier="{classifier}"/>'
    return f'<dependency org="{group}" name="{name}" rev="{version}">{which}</dependency>'
