"""Removes from an environment of the image the files that nothing there can use.

python slim.py ENVIRONMENT

Removed are tests, headers of C, the examples of Spark, and libraries in jars for other systems than this one. Classes
and Python modules that a program may import stay.
"""

from __future__ import annotations

import platform
import shutil
import sys
import zipfile
from pathlib import Path

TESTS = ("pandas/tests", "numpy/tests", "numpy/*/tests", "pyarrow/tests", "cassandra/tests", "sqlglot/tests")
HEADERS = ("pyarrow/include", "numpy/_core/include", "pyarrow/src")
SPARK = ("pyspark/examples", "pyspark/data", "pyspark/*/tests", "pyspark/bin/*.cmd")
NATIVE = (".so", ".dll", ".jnilib", ".dylib")
MACHINES = {"x86_64": ("x86_64", "x86-64", "amd64", "linux64"), "aarch64": ("aarch64", "arm64")}


def main(environment: Path) -> None:
    (packages,) = environment.glob("lib/python3*/site-packages")
    for pattern in (*TESTS, *HEADERS, *SPARK):
        for path in packages.glob(pattern):
            remove(path)
    for jar in packages.glob("pyspark/jars/*.jar"):
        drop_other_systems(jar)


def remove(path: Path) -> None:
    """Remove a file or a folder."""
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()


def drop_other_systems(jar: Path) -> None:
    """Write a jar anew without libraries for other systems. A jar without libraries for this one stays as it is."""
    with zipfile.ZipFile(jar) as old:
        native = [entry for entry in old.namelist() if entry.endswith(NATIVE)]
        usable = [entry for entry in native if is_usable(entry)]
        if not usable or len(usable) == len(native):
            return
        unwanted = set(native) - set(usable)
        slim = jar.with_suffix(".slim")
        with zipfile.ZipFile(slim, "w", zipfile.ZIP_DEFLATED) as new:
            for entry in old.infolist():
                if entry.filename not in unwanted:
                    new.writestr(entry, old.read(entry))
    slim.replace(jar)


def is_usable(entry: str) -> bool:
    """Tell whether a library in a jar, by its path, is one for Linux on this machine."""
    name = entry.lower()
    is_linux = "linux" in name and entry.endswith(".so") and not any(other in name for other in ("musl", "android"))
    return is_linux and any(machine in name for machine in MACHINES.get(platform.machine(), ()))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
