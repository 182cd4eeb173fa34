"""Savepoints of every format version so far: this version reads them, with any parallelism and either backend."""

import json
from collections import Counter

import pytest

from penstock.engine.checkpoint.metadata import VERSION
from tests.compat import savepoints_before_0_2 as before_0_2
from tests.compat.savepoints import FOLDER, run

KEPT = sorted(path.name for path in FOLDER.iterdir() if path.is_dir())


def test_there_are_some():
    kinds = ("hashmap", "hashmap-compressed", "hashmap-files", "rocksdb")
    assert {f"{version}-{kind}" for version in range(1, VERSION + 1) for kind in kinds} <= set(KEPT)


@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
@pytest.mark.parametrize("parallelism", [1, 2, 3])
@pytest.mark.parametrize("name", KEPT)
def test_a_job_goes_on_from_it(name, parallelism, backend):
    options = {"execution.state-recovery.path": (FOLDER / name).as_uri(), "state.backend.type": backend}
    results, _ = run(options, parallelism)
    assert results == Counter(json.loads((FOLDER / name / "expected.json").read_text()))


@pytest.mark.parametrize("changed", [False, True], ids=["same backend", "other backend"])
@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
@pytest.mark.parametrize("kind", before_0_2.PROGRAMS)
def test_programs_of_before_0_2_go_on(kind, backend, changed, tmp_path):
    """With parallelism 1, or with parallelism 3 and the other backend. The savepoints have parallelism 2."""
    folder = before_0_2.unpack(kind, backend, tmp_path)
    parallelism, restored = (3, {"hashmap": "rocksdb", "rocksdb": "hashmap"}[backend]) if changed else (1, backend)
    results = before_0_2.restore(kind, folder, parallelism, restored)
    assert results == Counter(json.loads((folder / "expected.json").read_text()))
