"""Patterns on FlinkCEP's recorded results, wherever epochs end."""

from pathlib import Path

import pytest

from penstock.testing import ManualClock, in_process
from tests.cep import check

FOLDER = Path(__file__).parent
EVERYTHING = None


def recorded(prefix):
    cases, expected = check.load(FOLDER / f"{prefix}cases.json", FOLDER / f"{prefix}expected.json")
    return [(case, expected[case["name"]]) for case in cases]


CASES = recorded("") + recorded("random_")


@pytest.mark.parametrize("epoch_records", [1, 3, EVERYTHING])
@pytest.mark.parametrize("part", range(10))
def test_gives_what_flink_gave(part, epoch_records):
    compare(CASES[part::10], epoch_records)


@pytest.mark.parametrize("part", range(6))
def test_gives_what_flink_gave_for_more_random_patterns(part):
    """Cases of `fresh.py`: other seeds, calls in odd orders, patterns that Flink refuses."""
    compare(recorded("more_random_")[part::6], [1, 3, EVERYTHING][part % 3])


def compare(cases, epoch_records):
    wrong = []
    with in_process(epoch_records, ManualClock()):
        for case, expected in cases:
            verdict, lines = check.compare(case, expected, check.run([case])[case["name"]])
            if verdict != "ok":
                wrong += [f"{case['name']}: {verdict}", *lines]
    assert not wrong, "\n".join(wrong)


def test_the_comparison_can_fail():
    case, expected = next(pair for pair in CASES if isinstance(pair[1], list) and pair[1])
    assert check.compare(case, expected[:-1], expected)[0] == "wrong"
