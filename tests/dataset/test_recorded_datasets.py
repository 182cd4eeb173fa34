"""DataSet programs on results recorded from Flink 1.20, at several parallelisms."""

import sys
from pathlib import Path

import pytest

from penstock.testing import in_process

FOLDER = Path(__file__).parent / "recorded"
PARTS = 8


@pytest.fixture(scope="module")
def cases():
    """The module that runs the cases. It imports its neighbours by name."""
    sys.path.insert(0, str(FOLDER))
    try:
        import dataset_cases

        yield dataset_cases
    finally:
        sys.path.remove(str(FOLDER))


def differences(cases, prefix, part, parallelism):
    chosen, expected = cases.load(FOLDER / f"{prefix}cases.json", FOLDER / f"{prefix}expected.json")
    assert len(chosen) >= 150
    with in_process():
        for case in chosen[part::PARTS]:
            lines = cases.compare(case, expected[case["name"]], cases.run(case, parallelism))
            if lines:
                yield "\n".join([case["name"], *lines])


@pytest.mark.parametrize("parallelism", [1, 3])
@pytest.mark.parametrize("part", range(PARTS))
def test_features_give_what_flink_gave(cases, part, parallelism):
    assert list(differences(cases, "", part, parallelism)) == []


@pytest.mark.parametrize("part", range(PARTS))
def test_random_programs_give_what_flink_gave(cases, part):
    assert list(differences(cases, "random_", part, 2)) == []
