"""Savepoints of every format version so far: this version reads them, with any parallelism and either backend."""

import json
from collections import Counter

import pytest

from penstock.checkpoint.metadata import VERSION
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
