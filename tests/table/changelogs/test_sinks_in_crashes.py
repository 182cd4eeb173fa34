"""Random queries into a table of SQLite: whatever dies, it holds the result, and after each commit that of a prefix.

`make soak` and `make soak-sinks` go on from here until they are stopped.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from tests.table.changelogs.random_changes import Case
from tests.table.changelogs.sink_runs import check

SEEDS = 48
MANY = 3000


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    logging.disable(logging.WARNING)
    yield
    logging.disable(logging.NOTSET)


def test_every_shape_of_query_has_a_turn() -> None:
    assert len({Case(seed).query.name for seed in range(SEEDS)}) >= 20


@pytest.mark.parametrize("first", range(0, SEEDS, 12))
def test_the_table_is_the_result_of_the_query(first: int) -> None:
    outcomes = [check(seed) for seed in range(first, first + 12)]
    assert any(outcome.crashes for outcome in outcomes)


@pytest.mark.soak
@pytest.mark.parametrize("first", range(SEEDS, SEEDS + MANY, 300))
def test_the_table_is_the_result_of_many_queries(first: int) -> None:
    outcomes = [check(seed) for seed in range(first, first + 300)]
    assert sum(len(outcome.crashes) for outcome in outcomes) > 60
