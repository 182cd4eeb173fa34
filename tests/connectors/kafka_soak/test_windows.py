"""A short version of the long run, and the judge of both."""

import json

import pytest

from tests.connectors.kafka_soak.windows import Run, differences

EXPECTED = {("a", 0): (2, 30), ("a", 2000): (1, 5), ("b", 0): (1, 7)}


def result(key, start, count, total):
    return json.dumps({"key": key, "start": start, "count": count, "sum": total})


RESULTS = [result("b", 0, 1, 7), result("a", 0, 2, 30), result("a", 2000, 1, 5)]


@pytest.mark.parametrize(
    ("results", "found"),
    [
        (RESULTS, []),
        (RESULTS[1:], ["1 windows missing"]),
        ([*RESULTS, RESULTS[0]], ["1 windows too many"]),
        ([result("b", 0, 1, 8), *RESULTS[1:]], ["1 windows missing", "1 windows too many"]),
        ([], ["3 windows missing"]),
    ],
)
def test_the_judge_sees_what_is_wrong(results, found):
    assert [text.split(",")[0] for text in differences(EXPECTED, results)] == found


@pytest.mark.soak
@pytest.mark.parametrize("both", [False, True])
def test_every_window_comes_out_once(tmp_path, both):
    assert Run(tmp_path, 40, both=both).run() == []
