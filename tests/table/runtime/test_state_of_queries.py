"""What queries keep: state that expires, and nothing where nothing is needed any more."""

from __future__ import annotations

from typing import Any

from penstock.common import Row
from penstock.table.builders import Planner
from penstock.table.logical.building import aggregate, join
from penstock.table.logical.nodes import Relation, StreamScan
from penstock.table.logical.rex import AggregateCall, InputRef
from penstock.table.types.data_types import BigIntType
from penstock.testing import OperatorHarness
from tests.table.runtime.table_programs import INT, STRING, Options, call, columns


def driven(build: Any, inputs: int = 1, changelog: bool = True, **options: str) -> OperatorHarness:
    """A plan over streams of Rows (k, v) that a test pushes."""

    def program(*streams: Any) -> Any:
        scans = [
            StreamScan(columns(k=STRING, v=INT), stream, f"input {n}", changelog=changelog)
            for n, stream in enumerate(streams)
        ]
        plan: Relation = build(*scans)
        return Planner(streams[0].get_execution_environment(), Options(options), False).rows(plan)

    return OperatorHarness(program, inputs)


def counted(scan: Relation) -> Relation:
    return aggregate(scan, [0], [AggregateCall("COUNT", (), BigIntType(False), "n")])


def kinds(harness: OperatorHarness) -> list[tuple[Any, ...]]:
    return [(str(row.get_row_kind()), *row) for row in harness.values()]


def test_a_group_that_nobody_touched_begins_again() -> None:
    with driven(counted, **{"table.exec.state.ttl": "1 s"}) as harness:
        harness.push(Row("a", 1))
        harness.advance_processing_time(900)
        harness.push(Row("a", 1))
        assert kinds(harness) == [("+I", "a", 1), ("-U", "a", 1), ("+U", "a", 2)]
        harness.advance_processing_time(1_800)
        harness.push(Row("a", 1))
        assert kinds(harness)[-1] == ("+U", "a", 3), "the second row made it young again"
        harness.advance_processing_time(2_900)
        harness.push(Row("a", 1))
        assert kinds(harness) == [("+I", "a", 1)]


def test_groups_and_joins_without_rows_leave_nothing() -> None:
    from penstock.common import RowKind

    def both(left: Relation, right: Relation) -> Relation:
        return counted(join(left, right, "FULL", call("=", InputRef(STRING, 0), InputRef(STRING, 2))))

    with driven(both, inputs=2) as harness:
        for number in (1, 2):
            harness.push(Row("a", number), input=number)
            harness.push(Row(None, number), input=number)
        assert harness.state_entries() > 0
        for number in (1, 2):
            harness.push(Row.of_kind(RowKind.DELETE, "a", number), input=number)
            harness.push(Row.of_kind(RowKind.DELETE, None, number), input=number)
        assert harness.state_entries() == 0 and harness.timers() == 0
