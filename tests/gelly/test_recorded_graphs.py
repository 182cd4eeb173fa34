"""Graph programs on results recorded from Gelly 1.16, at several parallelisms."""

import sys
from pathlib import Path

import pytest

from penstock.testing import in_process

FOLDER = Path(__file__).parent / "recorded"
NEIGHBOR = Path(__file__).parents[1] / "dataset" / "recorded"
PARTS = 8


@pytest.fixture(scope="module")
def cases():
    """The module that runs the cases, with the one for data sets that it imports by name."""
    paths = [str(FOLDER), str(NEIGHBOR)]
    sys.path[:0] = paths
    try:
        import gelly_cases

        yield gelly_cases
    finally:
        for path in paths:
            sys.path.remove(path)


def differences(cases, prefix, part, parallelism):
    chosen, expected = cases.load(FOLDER / f"{prefix}cases.json", FOLDER / f"{prefix}expected.json")
    assert len(chosen) >= 100
    with in_process():
        for case in chosen[part::PARTS]:
            lines = cases.compare(case, expected[case["name"]], cases.run(case, parallelism))
            if lines:
                yield "\n".join([case["name"], *lines])


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("prefix", ["", "random_"])
def test_gelly_gave_this(cases, prefix, part):
    assert list(differences(cases, prefix, part, 1)) == []


@pytest.mark.parametrize(
    ("prefix", "part", "parallelism"), [("", 0, 2), ("", 1, 3), ("random_", 0, 2), ("random_", 1, 3)]
)
def test_gelly_gave_this_with_more_tasks(cases, prefix, part, parallelism):
    assert list(differences(cases, prefix, part, parallelism)) == []


@pytest.mark.soak
@pytest.mark.parametrize("parallelism", [2, 3])
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("prefix", ["", "random_"])
def test_gelly_gave_this_with_any_number_of_tasks(cases, prefix, part, parallelism):
    assert list(differences(cases, prefix, part, parallelism)) == []
