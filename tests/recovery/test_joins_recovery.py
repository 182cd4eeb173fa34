"""Joins go on from the savepoint of a version that kept their state in another form."""

from __future__ import annotations

import json

import pytest

from tests.recovery import join_programs
from tests.recovery.conftest import Stage


@pytest.mark.parametrize("parallelism", [1, 3])
@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
def test_joins_go_on_from_an_earlier_version(stage: Stage, parallelism: int, backend: str) -> None:
    before = [json.loads(line) for line in (join_programs.FOLDER / "seen.json").read_text().splitlines()]
    join_programs.SEEN.clear()
    options = {"execution_state__recovery_path": join_programs.FOLDER.as_uri(), "state_backend_type": backend}
    stage.run(join_programs.build, parallelism, **options)
    found, expected = join_programs.added_up([*before, *join_programs.SEEN]), join_programs.oracle()
    assert before and join_programs.SEEN
    for name, counted in expected.items():
        assert found[name] == counted, name
