"""What the optimiser makes of plans: filters and columns go down, and parts that are the same run once."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from penstock.table import EnvironmentSettings, TableEnvironment, connectors
from penstock.table.builders import Planner
from penstock.table.logical.building import aggregate, identity, join, project, set_operation, where
from penstock.table.logical.nodes import Aggregate, Filter, StreamScan
from penstock.table.logical.optimised_nodes import Calc
from penstock.table.logical.rex import AggregateCall, InputRef, conjunction
from penstock.table.rules.optimiser import optimise
from penstock.table.types.data_types import BigIntType
from penstock.testing import in_process
from tests.table.runtime.table_programs import (
    BIGINT,
    INT,
    STRING,
    Options,
    call,
    environment,
    final,
    lit,
    ref,
    run,
    values,
)

Row = tuple[Any, ...]


@pytest.fixture(autouse=True)
def script(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A connector whose rows are in the options of its table."""
    monkeypatch.setitem(connectors._BUILT_IN, "script", "tests.table.programs.script_connector:Script")
    yield


def stream(name: str) -> StreamScan:
    table = values([], id=INT, k=STRING, v=INT)
    return StreamScan(table.columns, object(), name)


def test_conditions_go_to_the_side_that_they_speak_of() -> None:
    left, right = stream("left"), stream("right")
    joined = join(left, right, "LEFT", call("=", InputRef(STRING, 1), InputRef(STRING, 4)))
    kept = where(
        joined,
        conjunction([call(">", InputRef(INT, 2), lit(1, INT)), call("<", InputRef(INT, 5), lit(9, INT))]),  # type: ignore[arg-type]
    )
    plan = optimise(project(kept, [kept.ref(0)], ["id"]), batch=False)
    assert isinstance(plan, Calc)
    assert str(plan.condition) == "($3 < 9)", "a condition on the padded side stays above, after columns were left out"
    first, second = plan.input.inputs()
    assert isinstance(first, Calc) and str(first.condition) == "($2 > 1)"
    assert [column.name for column in second.columns] == ["k", "v"]


def test_a_filter_on_keys_goes_below_the_aggregate() -> None:
    table = stream("one")
    grouped = aggregate(table, [1], [AggregateCall("COUNT", (), BigIntType(False), "n")])
    plan = optimise(where(grouped, call("=", InputRef(STRING, 0), lit("a", STRING))), batch=False)
    assert not isinstance(plan, Calc | Filter)
    below = plan.inputs()[0]
    assert isinstance(below, Calc) and below.condition is not None and below.names() == ["k"]


def test_what_is_false_reads_nothing() -> None:
    table = values([(1,), (2,)], v=INT)
    plan = where(table, call(">", lit(1, INT), lit(2, INT)))
    assert run(plan) == []
    assert type(optimise(plan, batch=False)).__name__ == "Values"


def test_equal_parts_of_a_program_run_once() -> None:
    env = environment()
    planner = Planner(env, Options(), False)
    table = values([("a", 1), ("b", 2)], k=STRING, v=BIGINT)

    def counted() -> object:
        return aggregate(table, [0], [AggregateCall("SUM", (1,), BIGINT, "s")])

    first, second = planner.stream(counted()), planner.stream(counted())  # type: ignore[arg-type]
    assert first._node is second._node
    both = set_operation([counted(), counted()], "UNION", True, table.columns)  # type: ignore[list-item]
    assert final(run(both)) == [("a", 1), ("a", 1), ("b", 2), ("b", 2)]


def test_the_same_query_has_the_same_uids() -> None:
    def uids() -> list[str | None]:
        table = values([("a", 1)], k=STRING, v=BIGINT)
        plan = aggregate(table, [0], [AggregateCall("SUM", (1,), BIGINT, "s")])
        made = Planner(environment(), Options(), False).stream(plan)
        return [made._node.uid]

    assert uids() == uids() and uids()[0] is not None
    table = values([("a", 1)], k=STRING, v=BIGINT)
    other = aggregate(table, [0], [AggregateCall("MAX", (1,), BIGINT, "s")])
    assert Planner(environment(), Options(), False).stream(other)._node.uid not in uids()


def test_columns_that_nobody_reads_are_left_out() -> None:
    left, right = stream("left"), stream("right")
    joined = join(left, right, "INNER", call("=", ref(left, "id"), InputRef(INT, 3)))
    plan = optimise(project(joined, identity(joined)[2:3], ["v"]), batch=False)
    widths = [len(side.columns) for side in plan.inputs()[0].inputs()]
    assert widths == [2, 1]


def grouped_by_all(table: StreamScan) -> Aggregate:
    return aggregate(table, [1, 0, 2], [AggregateCall("COUNT", (), BigIntType(False), "n")])


def test_in_batch_mode_columns_beside_a_key_make_no_groups() -> None:
    table = replace(stream("keyed"), primary_key=(0,))
    plan = optimise(grouped_by_all(table), batch=True)
    assert isinstance(plan, Calc) and isinstance(plan.input, Aggregate)
    assert plan.input.keys == (0,)
    assert [call.function for call in plan.input.calls] == ["COUNT", "MIN", "MIN"]
    assert plan.names() == ["k", "id", "v", "n"]
    assert [column.type for column in plan.columns] == [column.type for column in grouped_by_all(table).columns]


def test_all_columns_of_a_group_are_compared_in_streams_and_without_a_key() -> None:
    keyed = optimise(grouped_by_all(replace(stream("keyed"), primary_key=(0,))), batch=False)
    plain = optimise(grouped_by_all(stream("plain")), batch=True)
    assert isinstance(keyed, Aggregate) and isinstance(plain, Aggregate)
    assert keyed.keys == plain.keys == (1, 0, 2)


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([(1, "a", None), (2, "b", 7)], [("a", 1, None, 1), ("b", 2, 7, 1)]),
        ([(4, "b", 8), (4, "d", 7), (0, "a", 8)], [("a", 0, 8, 1), ("b", 4, 7, 2)]),
    ],
)
def test_a_group_has_one_row_of_each_key_in_batch_mode(rows: list[Row], expected: list[Row]) -> None:
    with in_process():
        t_env = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
        t_env.get_config().set("table.exec.batch.engine", "penstock")
        columns = "id INT, k STRING, v INT, PRIMARY KEY (id) NOT ENFORCED"
        options = f"'connector' = 'script', 'rows' = '{json.dumps([['+I', *row] for row in rows])}'"
        t_env.execute_sql(f"CREATE TABLE t ({columns}) WITH ({options})")
        with t_env.execute_sql("SELECT k, id, v, COUNT(*) FROM t GROUP BY k, id, v").collect() as found:
            assert sorted(tuple(row) for row in found) == expected
