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
<ivy-module version="2.0">
  <info organisation="penstock" module="{name}"/>
  <dependencies>{dependencies}</dependencies>
</ivy-module>
"""


def pinned_jars(name: str, coordinates: Iterable[str]) -> Path:
    """The folder with exactly these jars ("group:name:version")."""
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
    lines = (f'<dependency org="{group}" name="{name}" rev="{version}"/>' for group, name, version in coordinates)
    (folder / "ivy.xml").write_text(LIST.format(name=folder.name, dependencies="".join(lines)))
    (folder / "ivysettings.xml").write_text(SETTINGS)
    done = subprocess.run(
        [
            *(java(), "-jar", str(ivy), "-settings", str(folder / "ivysettings.xml"), "-ivy", str(folder / "ivy.xml")),
            *("-cache", str(folder / "cache"), "-retrieve", str(folder / "[artifact]-[revision].[ext]")),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    missing = [
        f"{name}-{version}.jar" for _, name, version in coordinates if not (folder / f"{name}-{version}.jar").exists()
    ]
    if done.returncode != 0 or missing:
        raise RuntimeError(f"these jars could not be fetched: {missing}\n{done.stdout[-3000:]}\n{done.stderr[-2000:]}")
