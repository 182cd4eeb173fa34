"""Streams of columns between real slots: over links while a job streams, through Spark's shuffle in BATCH mode."""

from __future__ import annotations

import pytest

from penstock.datastream import RuntimeExecutionMode, StreamExecutionEnvironment
from tests.unit.runtime.columnar_programs import Forms, Total, totals, warm_readings

COUNT = 500


@pytest.mark.parametrize("mode", ["STREAMING", "BATCH"])
def test_the_same_totals_as_on_values(env: StreamExecutionEnvironment, mode: str) -> None:
    env.set_runtime_mode(RuntimeExecutionMode[mode])
    with warm_readings(env, COUNT).key_by("sensor").process(Total()).execute_and_collect() as results:
        got = list(results)
    assert sorted((sensor, count) for sensor, count, _, _ in got) == sorted((s, n) for s, n, _, _ in totals(COUNT))
    assert sorted(timestamp for *_, timestamp in got) == [timestamp for *_, timestamp in totals(COUNT)]


def test_columns_arrive_as_columns(env: StreamExecutionEnvironment) -> None:
    with (
        warm_readings(env, COUNT)
        .key_by("sensor")
        .apply_operator("Forms", Forms(), None)
        .execute_and_collect() as results
    ):
        assert set(results) == {"columns"}
