"""A sample of the recorded patterns on Spark, all in one job, and patterns that are replaced there."""

from pathlib import Path

import pytest

from penstock.cep import CEP, Pattern, PatternUpdate
from penstock.common import WatermarkStrategy
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


def test_patterns_are_replaced(env):
    """Each one means the same, so that it does not matter when it arrives in which slot."""
    kinds = "aabbbab"
    events = [(kinds[n // 4 % 7], n % 4, n) for n in range(280)]
    forms = ["a(f0 = 'a') -> b(f0 = 'b')", "a(not f0 != 'a') -> b(f0 in ('b'))", "a(f0 = 'a' and true) -> b(f0 = 'b')"]
    times = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda event: event[2] + 1)
    stream = env.from_collection(events).assign_timestamps_and_watermarks(times).set_parallelism(1)
    updates = env.from_collection([PatternUpdate(form, keep_matches=True) for form in forms[1:]])
    found = CEP.dynamic_pattern(stream.key_by(lambda event: event[1]), Pattern.parse(forms[0]), updates)
    with found.select(lambda match: match["a"][0]).execute_and_collect() as results:
        assert sorted(results) == sorted(event for event in events if event[0] == "a")
