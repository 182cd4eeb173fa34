"""Distribution of the files of `env.register_cached_file` to the slots, through Spark."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING
from uuid import uuid4

from pyspark import SparkFiles

from penstock.base.archives import import_folders, unpack
from penstock.spark.sessions.connect_session import is_connect

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def ship_files(session: SparkSession, files: dict[str, str]) -> dict[str, str]:
    """Give files to Spark, by name. Return the names that Spark has for them.

    Spark knows a file by the last part of its path only, so each file gets a unique name.
    """
    names = {name: f"{uuid4().hex}-{os.path.basename(path)}" for name, path in files.items()}
    for name, path in files.items():
        staged = os.path.join(_staging(), names[name])
        if os.path.isdir(path):
            shutil.copytree(path, staged)
        else:
            shutil.copy(path, staged)
    upload(session, names.values())
    return names


def upload(session: SparkSession, names: Iterable[str]) -> None:
    """Give Spark the staged files of this process with these names. Several sessions may get the same files."""
    for name in names:
        staged = os.path.join(_staging(), name)
        if not is_connect(session):
            session.sparkContext.addFile(staged, recursive=os.path.isdir(staged))
        elif os.path.isdir(staged):
            archive = shutil.make_archive(f"{staged}.{uuid4().hex}", "zip", staged)
            session.addArtifacts(f"{archive}#{name}", archive=True)
        else:
            session.addArtifacts(staged, file=True)


@cache
def _staging() -> str:
    """Return a folder that exists until this process ends. An executor fetches files when it first needs them."""
    folder = tempfile.mkdtemp(prefix="penstock-cached-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def local(names: dict[str, str]) -> dict[str, str]:
    """Return the paths of the files on the machine of this slot, by name."""
    return {name: SparkFiles.get(there) for name, there in names.items()}


def unpack_archive(name: str) -> list[str]:
    """Unpack a shipped archive, and return the folders to import from. Slots of one executor unpack it once."""
    archive = SparkFiles.get(name)
    folder = f"{archive}.unpacked"
    unpack(archive, folder)
    return import_folders(folder)
