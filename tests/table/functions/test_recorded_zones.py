"""Moments in sessions of other zones, against what Flink 2.3 answered there; one of the zones changes its clocks."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from penstock.errors import PenstockError
from penstock.table.functions import Moment, compile_rex
from penstock.table.types.arrow_forms import values_of

sys.path.insert(0, str(Path(__file__).parent))
from plain_values import _ONE_ROW, bound, plain, same

RECORDED = json.loads((Path(__file__).parent / "recorded_zones.json").read_text())

DIFFERENT = {
    "EXTRACT(EPOCH": "Flink counts from 1970 on the clocks of the zone",
    "FROM TO_TIMESTAMP_LTZ(0,3))": "before 1970 on the clocks of New York, where Flink takes the day after",
    "HOUR(TO_TIMESTAMP_LTZ(0,3))": "as above",
    "CAST(FLOOR(": "Flink is an hour off if the clocks change between a moment and the start of its unit",
    "TIMESTAMPDIFF(HOUR": "Flink refuses the difference of moments with and without a zone",
}
"""Where we differ, and why."""


@pytest.mark.parametrize("zone", RECORDED)
def test_moments_in_zones(zone: str) -> None:
    problems = []
    for text, wanted in RECORDED[zone].items():
        try:
            rex = bound(text)
            column = compile_rex(rex)(_ONE_ROW, Moment(processing_time=1, zone=zone))
            kind, value = rex.type.as_sql(), plain(values_of(column, rex.type)[0], rex.type)
        except PenstockError as error:
            kind, value = str(error), None
        if "error" in wanted or wanted["type"] != kind or not same(wanted["value"], value):
            problems.append((text, kind, value, wanted))
    unknown = [problem for problem in problems if not any(part in problem[0] for part in DIFFERENT)]
    assert not unknown
    assert len(problems) < len(RECORDED[zone]) / 4
