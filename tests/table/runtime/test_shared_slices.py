"""Functions of users in windows that overlap: with merge they share slices, without they see every window's rows."""

from __future__ import annotations

import datetime
import random
from typing import Any

import pytest

from penstock.table import DataTypes, EnvironmentSettings, Schema, StreamTableEnvironment
from penstock.table.expression.function_declarations import AggregateFunction, udaf
from penstock.table.physical import aggregate_nodes
from penstock.testing import in_process

START = datetime.datetime(2024, 1, 1)
TYPES = DataTypes.ROW([("k", DataTypes.STRING()), ("v", DataTypes.BIGINT()), ("ts", DataTypes.TIMESTAMP(3))])


class Separate(AggregateFunction[str, Any]):
    """The different values, as a sorted text. The accumulator is a list in a list, which a careless merge shares."""

    def create_accumulator(self) -> Any:
        return [[]]

    def accumulate(self, accumulator: Any, *args: Any) -> None:
        if args[0] not in accumulator[0]:
            accumulator[0].append(args[0])

    def get_value(self, accumulator: Any) -> str:
        return " ".join(map(str, sorted(accumulator[0])))


class Merging(Separate):
    def merge(self, accumulator: Any, accumulators: Any) -> None:
        for other in accumulators:
            if not accumulator[0]:
                accumulator[0] = other[0]
            else:
                accumulator[0].extend(value for value in other[0] if value not in accumulator[0])


def rows(seed: int) -> list[tuple[Any, ...]]:
    pick, found = random.Random(seed), []
    for second in range(0, 120, 2):
        moment = START + datetime.timedelta(seconds=max(second - pick.choice([0, 0, 3, 9]), 0))
        found.append((pick.choice(["a", "b"]), pick.randrange(6), moment))
    return found


def windows(
    function: type[AggregateFunction[str, Any]], table: str, seed: int, epoch: int | None
) -> list[tuple[Any, ...]]:
    with in_process(epoch_records=epoch):
        t_env = StreamTableEnvironment.create(environment_settings=EnvironmentSettings.in_streaming_mode())
        t_env.create_temporary_view("given", t_env.from_elements(rows(seed), TYPES))
        t_env.create_temporary_system_function("of_rows", udaf(function(), result_type=DataTypes.STRING()))
        stream = t_env.to_data_stream(t_env.sql_query("SELECT k, v, ts FROM given"))
        schema = Schema.new_builder().column("k", "STRING").column("v", "BIGINT").column("ts", "TIMESTAMP(3)")
        schema = schema.watermark("ts", "ts - INTERVAL '10' SECOND")
        t_env.create_temporary_view("t", t_env.from_data_stream(stream, schema.build()))
        query = (
            f"SELECT k, window_start, window_end, of_rows(v) AS x, COUNT(*) AS n, COUNT(DISTINCT v) AS d "
            f"FROM TABLE({table}(TABLE t, DESCRIPTOR(ts), INTERVAL '5' SECOND, INTERVAL '30' SECOND)) "
            "GROUP BY k, window_start, window_end"
        )
        with t_env.sql_query(query).execute().collect() as found:
            return sorted(tuple(row) for row in found)


@pytest.mark.parametrize("table", ["HOP", "CUMULATE"])
@pytest.mark.parametrize(("seed", "epoch"), [(1, 1), (2, 7), (3, None)])
def test_both_give_the_same(table: str, seed: int, epoch: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    shared: list[Any] = []
    choose = aggregate_nodes.SharedSliceAggregate

    def noted(*args: Any) -> Any:
        shared.append(args)
        return choose(*args)

    monkeypatch.setattr(aggregate_nodes, "SharedSliceAggregate", noted)
    apart = windows(Separate, table, seed, epoch)
    assert not shared and len(apart) > 20
    assert windows(Merging, table, seed, epoch) == apart
    assert shared
