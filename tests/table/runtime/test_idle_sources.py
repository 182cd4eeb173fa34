"""`table.exec.source.idle-timeout`: a table without rows does not hold the event time of others back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from penstock.common import Row, Types
from penstock.datastream import StreamExecutionEnvironment
from penstock.table import EnvironmentSettings, Schema, StreamTableEnvironment
from penstock.testing import ManualClock, OperatorHarness, in_process


def timed(t_env: StreamTableEnvironment, stream: Any) -> Any:
    rows = stream.map(Row, Types.ROW_NAMED(["at"], [Types.LONG()]))
    schema = Schema.new_builder().column("at", "BIGINT").column_by_expression("ts", "TO_TIMESTAMP_LTZ(`at`, 3)")
    return t_env.from_data_stream(rows, schema.watermark("ts", "ts").build())


def united(timeout: str) -> OperatorHarness:
    """The rows of two tables, each with a watermark of its own."""

    def program(one: Any, other: Any) -> Any:
        env = one.get_execution_environment()
        t_env = StreamTableEnvironment.create(env, EnvironmentSettings.in_streaming_mode())
        t_env.get_config().set("pipeline.auto-watermark-interval", "0 ms")
        t_env.get_config().set("table.exec.source.idle-timeout", timeout)
        return t_env.to_data_stream(timed(t_env, one).union_all(timed(t_env, other)))

    return OperatorHarness(program, inputs=2)


def watermarks(harness: OperatorHarness) -> list[int]:
    return [value for kind, value, _ in harness.elements() if kind == "watermark"]


def test_a_silent_table_holds_event_time_back() -> None:
    with united("0 ms") as harness:
        harness.push(1000, input=1)
        harness.advance_processing_time(60_000)
        harness.push(2000, input=1)
        assert watermarks(harness) == []


def test_a_table_that_is_silent_for_too_long_is_not_waited_for() -> None:
    with united("1 s") as harness:
        harness.push(1000, input=1)
        assert watermarks(harness) == []
        harness.advance_processing_time(60_000)
        harness.push(2000, input=1)
        assert watermarks(harness)[-1] == 2000


def test_a_row_wakes_it_up() -> None:
    with united("1 s") as harness:
        harness.push(1000, input=1)
        harness.advance_processing_time(60_000)
        harness.push(2000, input=1)
        harness.push(2500, input=2)
        harness.push(9000, input=1)
        assert watermarks(harness)[-1] == 2500


def test_rows_of_a_file_that_ends_are_not_late(tmp_path: Path) -> None:
    """A subtask without files is idle. The rows that it aggregated before the exchange go before that."""
    for part in range(3):
        rows = [{"n": n, "at": 1000 * n} for n in range(20 * part, 20 * part + 20)]
        (tmp_path / f"{part}.json").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with in_process(epoch_records=16, clock=ManualClock(now=1_000_000, tick=2)):
        env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)
        t_env = StreamTableEnvironment.create(env)
        t_env.get_config().set("pipeline.auto-watermark-interval", "1 ms")
        t_env.execute_sql(
            "CREATE TABLE numbers (n INT, `at` BIGINT, ts AS TO_TIMESTAMP_LTZ(`at`, 3), WATERMARK FOR ts AS ts) "
            f"WITH ('connector' = 'filesystem', 'path' = '{tmp_path.as_uri()}', 'format' = 'json')"
        )
        windows = "TABLE(TUMBLE(TABLE numbers, DESCRIPTOR(ts), INTERVAL '10' SECOND))"
        counts = t_env.sql_query(f"SELECT COUNT(*) AS c FROM {windows} GROUP BY window_start, window_end")
        with t_env.to_data_stream(counts).execute_and_collect() as results:
            assert [row[0] for row in results] == [10] * 6
