"""What the optimiser makes of plans: filters and columns go down, and parts that are the same run once."""

from __future__ import annotations

from penstock.table.builders import Planner
from penstock.table.logical.building import aggregate, identity, join, project, set_operation, where
from penstock.table.logical.nodes import Filter, StreamScan
from penstock.table.logical.rex import AggregateCall, InputRef, conjunction
from penstock.table.physical.physical_nodes import Calc
from penstock.table.rules.optimiser import optimise
from penstock.table.types.data_types import BigIntType
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
    assert first.stream._node is second.stream._node
    both = set_operation([counted(), counted()], "UNION", True, table.columns)  # type: ignore[list-item]
    assert final(run(both)) == [("a", 1), ("a", 1), ("b", 2), ("b", 2)]


def test_the_same_query_has_the_same_uids() -> None:
    def uids() -> list[str | None]:
        table = values([("a", 1)], k=STRING, v=BIGINT)
        plan = aggregate(table, [0], [AggregateCall("SUM", (1,), BIGINT, "s")])
        made = Planner(environment(), Options(), False).stream(plan)
        return [made.stream._node.uid]

    assert uids() == uids() and uids()[0] is not None
    table = values([("a", 1)], k=STRING, v=BIGINT)
    other = aggregate(table, [0], [AggregateCall("MAX", (1,), BIGINT, "s")])
    assert Planner(environment(), Options(), False).stream(other).stream._node.uid not in uids()


def test_columns_that_nobody_reads_are_left_out() -> None:
    left, right = stream("left"), stream("right")
    joined = join(left, right, "INNER", call("=", ref(left, "id"), InputRef(INT, 3)))
    plan = optimise(project(joined, identity(joined)[2:3], ["v"]), batch=False)
    widths = [len(side.columns) for side in plan.inputs()[0].inputs()]
    assert widths == [2, 1]
