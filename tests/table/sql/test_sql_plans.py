"""Plans as text: what the binder makes of queries, in `plans.txt`.

A change of the binder that is meant shows there: each entry is a query, its plan, and its columns.
"""

from pathlib import Path

import pytest

from penstock.table.logical.nodes import explain
from tests.table.sql.sessions import bound
from tests.table.sql.validity import check_plan

ENTRIES = (Path(__file__).parent / "plans.txt").read_text().strip().split("\n\n")


@pytest.mark.parametrize("entry", ENTRIES, ids=[entry.partition("\n")[0][:60] for entry in ENTRIES])
def test_plan(entry: str) -> None:
    query, _, expected = entry.partition("\n")
    plan = bound(query)
    check_plan(plan)
    assert f"{explain(plan)}\n=> {', '.join(map(str, plan.columns))}" == expected
