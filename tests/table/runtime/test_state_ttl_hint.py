"""The hint STATE_TTL: how long a join keeps the rows of either side, and an aggregate its groups."""

from __future__ import annotations

from typing import Any

from penstock.common import Row, Types
from penstock.table import EnvironmentSettings, StreamTableEnvironment
from penstock.testing import OperatorHarness


def query(text: str, inputs: int) -> OperatorHarness:
    """A query over tables a and b with columns k and v."""

    def program(*streams: Any) -> Any:
        t_env = StreamTableEnvironment.create(
            streams[0].get_execution_environment(), EnvironmentSettings.in_streaming_mode()
        )
        kinds = Types.ROW_NAMED(["k", "v"], [Types.STRING(), Types.INT()])
        for name, stream in zip("ab", streams, strict=False):
            rows = stream.map(lambda value: Row(*value), kinds)
            t_env.create_temporary_view(name, t_env.from_data_stream(rows))
        return t_env.to_changelog_stream(t_env.sql_query(text))

    return OperatorHarness(program, inputs)


def values(harness: OperatorHarness) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in harness.values()]


JOIN = "SELECT {} l.v AS lv, r.v AS rv FROM a AS l JOIN b AS r ON l.k = r.k"


def test_rows_of_one_side_expire_and_those_of_the_other_stay() -> None:
    with query(JOIN.format("/*+ STATE_TTL('l' = '1 s') */"), 2) as harness:
        harness.push(("x", 1), input=1)
        harness.push(("y", 2), input=2)
        harness.advance_processing_time(5_000)
        harness.push(("x", 3), input=2)
        harness.push(("y", 4), input=1)
        assert values(harness) == [(4, 2)]


def test_both_sides_stay_without_the_hint() -> None:
    with query(JOIN.format(""), 2) as harness:
        harness.push(("x", 1), input=1)
        harness.advance_processing_time(5_000)
        harness.push(("x", 3), input=2)
        assert values(harness) == [(1, 3)]


def test_groups_expire() -> None:
    with query("SELECT /*+ STATE_TTL('a' = '1 s') */ k, COUNT(*) AS n FROM a GROUP BY k", 1) as harness:
        harness.push(("x", 1))
        harness.advance_processing_time(5_000)
        harness.push(("x", 2))
        assert values(harness) == [("x", 1), ("x", 1)]
