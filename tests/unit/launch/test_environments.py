"""Archives with a whole Python, which must run where the Python that they were made with is not."""

import json
import subprocess
import sys
import tarfile

import pytest

from penstock import __version__
from penstock.errors import ConfigurationError
from penstock.service.launch.environment_archive import pack_environment

PROBE = """
import ctypes, hashlib, json, os, sys
import cloudpickle, fsspec, penstock, rocksdict, yaml
from penstock.datastream import StreamExecutionEnvironment
files = {module.__file__ for module in list(sys.modules.values()) if getattr(module, "__file__", None)}
print(json.dumps([penstock.__version__, sys.version, sorted(files)]))
"""


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    return pack_environment(tmp_path_factory.mktemp("packed") / "environment.tar.gz")


def test_everything_that_is_loaded_comes_out_of_the_archive(archive, tmp_path):
    with tarfile.open(archive.path) as packed:
        packed.extractall(tmp_path / "moved", filter="tar")
    python = tmp_path / "moved" / "bin" / "python"
    run = subprocess.run([python, "-c", PROBE], env={}, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    version, python_version, files = json.loads(run.stdout)
    assert (version, python_version) == (__version__, sys.version)
    outside = [file for file in files if not file.startswith(str(tmp_path.resolve() / "moved"))]
    assert not outside and len(files) > 100


def test_it_is_small_and_names_what_it_holds(archive):
    with tarfile.open(archive.path) as packed:
        names = packed.getnames()
    assert not [name for name in names if name.endswith((".jar", ".pyc", ".pth"))]
    assert {"penstock", "pyspark", "cloudpickle", "fsspec"} <= set(archive.packages)
    assert "pytest" not in archive.packages


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("no-such-package", "no-such-package is not installed with Penstock"),
        ("fsspec<2000", "fsspec<2000 is required, but fsspec .* is installed"),
        ("-r other.txt", r"requirements.txt: .*write only their names"),
    ],
)
def test_a_requirement_that_is_not_installed_is_refused(tmp_path, line, said):
    file = tmp_path / "requirements.txt"
    file.write_text(f"# needed\n{line}\n")
    with pytest.raises(ConfigurationError, match=said):
        pack_environment(tmp_path / "environment.tar.gz", file)
    assert not (tmp_path / "environment.tar.gz").exists()
