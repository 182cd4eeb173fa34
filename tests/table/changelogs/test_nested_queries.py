"""Nested queries over rows that change leave the rows that SQLite finds in the final tables."""

from __future__ import annotations

import pytest

from penstock.errors import TableException
from tests.table.changelogs.nested_queries import Case, expected, found

SEEDS = 40
MANY = 2000
REFUSED = "not supported"
"""Some of these queries are refused, as by Flink."""


def check(seed: int) -> bool:
    """Run a seed. False if its query is refused."""
    case = Case(seed)
    try:
        rows = found(case)
    except TableException as refused:
        assert REFUSED in str(refused)
        return False
    assert rows == expected(case), f"seed {seed}: {case.query.stream}"
    return True


@pytest.mark.parametrize("first", range(0, SEEDS, 10))
def test_the_changelog_leaves_the_result_of_the_query(first: int) -> None:
    ran = [check(seed) for seed in range(first, first + 10)]
    assert sum(ran) >= 8


@pytest.mark.soak
@pytest.mark.parametrize("first", range(SEEDS, SEEDS + MANY, 200))
def test_many_changelogs_leave_the_results_of_their_queries(first: int) -> None:
    assert sum(check(seed) for seed in range(first, first + 200)) > 150
