"""Files of `env.register_cached_file` on their way to the slots, through Spark's own distribution of files."""

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
    """Give files to Spark, by name; what comes back is the name that each has there.

    Spark knows a file by the last part of its path only, so each goes under a name of its own.
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
    """Give Spark what is staged in this process under these names; to several sessions, if need be."""
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
    """A folder that stays as long as this process: an executor fetches files when it first needs them."""
    folder = tempfile.mkdtemp(prefix="penstock-cached-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def local(names: dict[str, str]) -> dict[str, str]:
    """Where the files are on the machine of this slot, by name."""
    return {name: SparkFiles.get(there) for name, there in names.items()}


def unpack_archive(name: str) -> list[str]:
    """Where to import from in an archive that was shipped; slots of one executor unpack it once."""
    archive = SparkFiles.get(name)
    folder = f"{archive}.unpacked"
    unpack(archive, folder)
    return import_folders(folder)
