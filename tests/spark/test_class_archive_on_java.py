"""The archive of Java's classes with a real JVM: written by the first one, mapped by the second."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.waiting import until

pytestmark = pytest.mark.spark

PROGRAM = """
import sys
from pyspark import SparkContext
from penstock.spark.sessions.jvm import approve_archive, launch

launch({})
approve_archive()
jvm = SparkContext._gateway.jvm
process = jvm.java.lang.ProcessHandle.current().pid()
print(open(f"/proc/{process}/maps").read().count(".jsa"))
print("numpy", [name for name in ("pandas", "pyspark.testing") if name in sys.modules])
"""


def run(folder: Path) -> list[str]:
    own = {"PENSTOCK_CACHE_DIR": str(folder), "SPARK_SUBMIT_OPTS": "", "JDK_JAVA_OPTIONS": ""}
    environment = {**os.environ, **own, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return done.stdout.splitlines()


def test_the_second_jvm_maps_what_the_first_one_wrote(tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    before = run(folder)
    until(lambda: any(file.read_bytes()[:4].strip(b"\0") for file in folder.glob("*.part")))
    (draft,) = folder.glob("*.part")
    with_archive = run(folder)
    (archive,) = folder.glob("*.jsa")
    assert archive.stem.endswith(f"-{archive.stat().st_size}")
    assert not draft.exists()
    assert int(with_archive[0]) > int(before[0])
    assert with_archive[1] == "numpy []"
