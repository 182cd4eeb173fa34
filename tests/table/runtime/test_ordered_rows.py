"""Rows in order that come and go: against a sorted list, with costs that do not grow, and from earlier state."""

from __future__ import annotations

import random
from bisect import bisect_right
from collections.abc import Iterator
from typing import Any

import pytest

from penstock.api.state.descriptors import ValueStateDescriptor
from penstock.engine.state.backend import KeyedStateBackend
from penstock.engine.state.rocksdb import RocksTables
from penstock.engine.state.tables import HeapTables, Tables
from penstock.table.logical.rex import SortKey
from penstock.table.operators.base.sort_order import order_of
from penstock.table.operators.rank.ordered_rows import OrderedRows, Tree
from tests.table.runtime.test_state_of_joins import Work

ORDER = order_of([SortKey(0, True)])


@pytest.fixture(params=[HeapTables, RocksTables])
def backend(request: pytest.FixtureRequest) -> Iterator[KeyedStateBackend]:
    tables: Tables = request.param()
    yield KeyedStateBackend(tables=tables)
    tables.close()


def entries(backend: KeyedStateBackend) -> int:
    return sum(len(table.entries) for table in backend.tables.values())


@pytest.mark.parametrize("seed", range(4))
def test_rows_are_where_a_sorted_list_has_them(backend: KeyedStateBackend, seed: int) -> None:
    """Many rows are equal in order, and some altogether."""
    chance, kept, oracle = random.Random(seed), OrderedRows(backend, "rows", ORDER, 0), list[Any]()
    was_tree = False
    for size in (300, 20, 3_000, 0, 500, 0):
        while len(oracle) != size:
            rows = kept.read("k")
            for _ in range(chance.randint(1, 60)):
                grows = chance.random() < (0.9 if len(oracle) < size else 0.1)
                if len(oracle) == size:
                    break
                if grows:
                    row = (chance.choice([None, *range(9), chance.randint(0, 10**6)]), chance.randint(0, 500))
                    rows.insert(row)
                    oracle.insert(bisect_right(oracle, ORDER(row), key=ORDER), row)
                else:
                    row = chance.choice(oracle) if oracle and chance.random() < 0.9 else (3, -1)
                    there = row in oracle
                    if there:
                        oracle.remove(row)
                    assert rows.remove(row) is there
            kept.write("k", rows)
            backend.end_epoch(False)
            was_tree |= isinstance(kept.read("k"), Tree)
            assert kept.read("k").first(7) == oracle[:7]
        assert kept.read("k").first(None) == oracle and len(kept.read("k")) == size
    assert was_tree and entries(backend) == 0


def test_a_change_costs_the_same_however_many_rows_a_partition_has(backend: KeyedStateBackend) -> None:
    """Also if all rows are equal in order, as groups are that were counted once."""
    kept, work = OrderedRows(backend, "rows", ORDER, 0), Work(backend)
    most, compared = list[int](), list[int]()

    def changed(add: range, remove: range) -> int:
        rows = kept.read("k")
        for number in add:
            rows.insert((number % 2, f"text {number}"))
        for number in remove:
            assert rows.remove((number % 2, f"text {number}"))
        kept.write("k", rows)
        return work.done()

    for first, count in ((0, 1_000), (1_000, 30_000)):
        changed(range(first, count), range(0))
        asked = kept.order
        calls = [0]

        def counted(row: Any, asked: Any = asked, calls: list[int] = calls) -> Any:
            calls[0] += 1
            return asked(row)

        kept.order = counted
        most.append(max(changed(range(n, n + 1), range(n - 900, n - 899)) for n in range(count, count + 100)))
        compared.append(calls[0])
        kept.order = asked
        changed(range(count - 900, count - 800), range(count, count + 100))
    assert most[1] < 2 * most[0]
    assert compared[1] < 2 * compared[0]


def test_a_partition_of_an_earlier_version_goes_on(backend: KeyedStateBackend) -> None:
    """It was one list, however long."""
    before = sorted(((number % 50, f"text {number}") for number in range(1_000)), key=ORDER)
    backend.table(ValueStateDescriptor("rows"), None).put("k", list(before))
    kept = OrderedRows(backend, "rows", ORDER, 0)
    rows = kept.read("k")
    assert rows.first(None) == before
    rows.insert((99, "new"))
    assert rows.remove(before[-1])
    kept.write("k", rows)
    backend.end_epoch(False)
    assert isinstance(kept.read("k"), Tree)
    assert kept.read("k").first(None) == [(99, "new"), *before[:-1]]


def test_with_a_time_to_live_a_partition_stays_together(backend: KeyedStateBackend) -> None:
    kept = OrderedRows(backend, "rows", ORDER, 1_000)
    rows = kept.read("k")
    for number in range(500):
        rows.insert((number, "text"))
    kept.write("k", rows)
    backend.end_epoch(False)
    assert entries(backend) == 1
