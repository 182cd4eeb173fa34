"""An archive of the classes that Spark loads in the driver's JVM. With it, a JVM starts in less than half the time.

The first JVM of a version of Spark and Java writes the archive into a folder of the user when it ends. Later JVMs map
it. Java writes the header of an archive last, so an archive with a header is complete.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

VARIABLE = "PENSTOCK_CACHE_DIR"
"""The environment variable that names the folder. If it is empty, there are no archives."""
_NO_HEADER = bytes(4)
_LEAST_SPACE = 1 << 30
"""Free space, in bytes, that a disk must have before an archive is written."""
_CLAIM_SECONDS = 600
"""Time, in seconds, after which another process may write an archive that was announced but never written."""
_KEPT = 4
"""Number of archives that are kept: one for each version of Spark and Java that was used last."""
_QUIET = "-Xlog:cds*=off -Xlog:class+path*=off"
_JAVA_VARIABLES = ("SPARK_SUBMIT_OPTS", "JDK_JAVA_OPTIONS", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "PYSPARK_SUBMIT_ARGS")
_JAVA_SETTINGS = ("spark.driver.extraJavaOptions", "spark.driver.defaultJavaOptions")
_CLASS_PATHS = ("HADOOP_CONF_DIR", "YARN_CONF_DIR", "SPARK_DIST_CLASSPATH")
"""Variables that add folders to the class path. Java makes no archive for a class path with folders that hold files."""
_OWN_ARCHIVE = re.compile(r"Xshare|SharedArchive|ArchiveClasses|SharedCodeCache|XX:AOT|javaagent|patch-module")
_ABOUT_ARCHIVES = re.compile(r"(?i)\bshared?\b|\bCDS\b|SharedSpaces|fatal error|GATEWAY_EXITED|printed nothing")


@dataclass(frozen=True)
class Jvm:
    """All inputs that decide which classes a JVM loads."""

    java: str
    version: str
    """The output of `java -version`."""
    spark_home: Path
    configuration: Path
    settings: Mapping[str, str]

    def key(self) -> str:
        """Return the name of the archive that fits."""
        jars = sorted(entry.name for entry in os.scandir(self.spark_home / "jars"))
        text = "\n".join([os.path.realpath(self.java), self.version, str(self.spark_home), *jars])
        return hashlib.sha256(text.encode()).hexdigest()[:24]

    def fits(self, environment: Mapping[str, str]) -> bool:
        """Return True if Java can share classes: the class path is plain, and no user option concerns sharing."""
        if any(environment.get(name) for name in _CLASS_PATHS) or self.settings.get("spark.driver.extraClassPath"):
            return False
        if not (self.spark_home / "jars").is_dir() or _holds_files(self.configuration):
            return False
        given = [environment.get(name, "") for name in _JAVA_VARIABLES]
        given += [self.settings.get(name, "") for name in _JAVA_SETTINGS]
        return not any(_OWN_ARCHIVE.search(text) for text in given)


def java_options(jvm: Jvm, environment: Mapping[str, str]) -> str:
    """Return options for Java that use an archive, or write one; an empty text if neither is possible."""
    folder = cache_folder(environment)
    if folder is None or not jvm.fits(environment):
        return ""
    try:
        key = jvm.key()
        archive = _find(folder, key) or _adopt(folder, key)
        if archive is not None:
            os.utime(archive)
            return f"-XX:SharedArchiveFile={archive} -Xshare:auto {_QUIET}"
        draft = _claim(folder, key)
    except OSError:
        return ""
    return "" if draft is None else f"-XX:ArchiveClassesAtExit={draft} {_QUIET}"


def approve(options: str) -> None:
    """Allow later JVMs to use the archive of a JVM with these options, which has started Spark without failure."""
    found = re.search(r"-XX:ArchiveClassesAtExit=(\S+)", options)
    if found is not None:
        _approval_of(Path(found[1])).touch(mode=0o600)


def is_about_archive(failure: str) -> bool:
    """Return True if the failure of a JVM may come from the archive, so that it may start without one."""
    return _ABOUT_ARCHIVES.search(failure) is not None


def discard(options: str) -> None:
    """Delete the archive that these options name, because a JVM did not start with it."""
    found = re.search(r"-XX:SharedArchiveFile=(\S+)", options)
    if found is not None:
        Path(found[1]).unlink(missing_ok=True)


def cache_folder(environment: Mapping[str, str]) -> Path | None:
    """Return the folder for archives, which only this user may write to; None if there is no such folder."""
    named = environment.get(VARIABLE)
    if named == "":
        return None
    try:
        base = environment.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        folder = Path(named) if named else Path(base, "penstock")
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = folder.stat()
    except (OSError, RuntimeError):
        return None
    is_private = status.st_uid == os.geteuid() and not status.st_mode & 0o022
    return folder.absolute() if is_private and " " not in str(folder) else None


def _find(folder: Path, key: str) -> Path | None:
    """Return the archive if its size is the one in its name. Java would crash on an incomplete archive."""
    for archive in folder.glob(f"{key}-*.jsa"):
        if archive.stem.rpartition("-")[2] == str(archive.stat().st_size):
            return archive
        archive.unlink(missing_ok=True)
    return None


def _adopt(folder: Path, key: str) -> Path | None:
    """Rename the complete archive of an earlier JVM, and return its path. Return None if there is no such archive."""
    for draft in folder.glob(f"{key}-*.part"):
        approval, complete = _approval_of(draft), _is_complete(draft)
        if complete and approval.exists():
            archive = folder / f"{key}-{draft.stat().st_size}.jsa"
            os.replace(draft, archive)
            for done in (approval, _claim_of(folder, key)):
                done.unlink(missing_ok=True)
            _delete_oldest(folder.glob("*.jsa"))
            return archive
        if complete or _age(draft) > _CLAIM_SECONDS:
            for useless in (draft, approval, _claim_of(folder, key)):
                useless.unlink(missing_ok=True)
    return None


def _is_complete(draft: Path) -> bool:
    with draft.open("rb") as file:
        if file.read(len(_NO_HEADER)) in (b"", _NO_HEADER):
            return False
        os.fsync(file.fileno())
        return True


def _approval_of(draft: Path) -> Path:
    return draft.with_suffix(".approved")


def _claim(folder: Path, key: str) -> Path | None:
    """Return the file that the next JVM writes, or None while another process is expected to write it."""
    if shutil.disk_usage(folder).free < _LEAST_SPACE:
        return None
    claim = _claim_of(folder, key)
    with suppress(FileNotFoundError):
        if _age(claim) > _CLAIM_SECONDS:
            claim.unlink()
    try:
        claim.touch(mode=0o600, exist_ok=False)
    except FileExistsError:
        return None
    return folder / f"{key}-{os.getpid()}.part"


def _claim_of(folder: Path, key: str) -> Path:
    return folder / f"{key}.claim"


def _age(file: Path) -> float:
    return time.time() - file.stat().st_mtime


def _delete_oldest(archives: Iterable[Path]) -> None:
    """Delete all archives except the last used ones. A JVM that has mapped an archive keeps it."""
    by_use = sorted(archives, key=lambda archive: archive.stat().st_mtime, reverse=True)
    for archive in by_use[_KEPT:]:
        archive.unlink(missing_ok=True)


def _holds_files(folder: Path) -> bool:
    return folder.is_dir() and any(folder.iterdir())
