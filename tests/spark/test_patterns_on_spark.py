"""A sample of the recorded patterns on Spark, all in one job."""

from pathlib import Path

import pytest

from tests.cep import check

RECORDED = Path(check.__file__).parent

pytestmark = pytest.mark.spark


def test_a_sample_gives_what_flink_gave():
    cases, expected = check.load(RECORDED / "cases.json", RECORDED / "expected.json")
    sample = [case for case in cases if isinstance(expected[case["name"]], list)][::6]
    got = check.run(sample)
    for case in sample:
        verdict, lines = check.compare(case, expected[case["name"]], got[case["name"]])
        assert verdict == "ok", "\n".join([case["name"], *lines])
