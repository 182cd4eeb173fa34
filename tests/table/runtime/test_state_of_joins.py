"""What joins keep: entries of state that stay small, rows that expire, and what earlier versions kept."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from penstock.api.state.descriptors import ValueStateDescriptor
from penstock.common import Row, RowKind
from penstock.engine.state.backend import KeyedStateBackend
from penstock.engine.state.rocksdb import RocksTables
from penstock.engine.state.tables import HeapTables, Tables
from penstock.table.logical.building import join
from penstock.table.logical.nodes import Relation
from penstock.table.logical.rex import InputRef
from penstock.table.operators.base.state_matching import Keyed
from penstock.table.operators.join.append_join import PagedRows
from penstock.table.operators.join.join_state import JoinRows
from penstock.table.operators.join.timed_rows import TimedRows
from tests.table.runtime.table_programs import STRING, call
from tests.table.runtime.test_state_of_queries import driven, kinds


@pytest.fixture(params=[HeapTables, RocksTables])
def backend(request: pytest.FixtureRequest) -> Iterator[KeyedStateBackend]:
    tables: Tables = request.param()
    yield KeyedStateBackend(tables=tables)
    tables.close()


class Work:
    """The bytes of the entries that are written, epoch by epoch."""

    def __init__(self, backend: KeyedStateBackend) -> None:
        self._backend = backend

    def done(self) -> int:
        """What was written since the last call."""
        tables = self._backend.tables.values()
        changed = [table.entries.get(address) for table in tables for address in table.changed]
        self._backend.end_epoch(False)
        return sum(len(pickle.dumps(value)) for value in changed)


def rows_of_one_key(first: int, stop: int) -> Keyed:
    numbers = np.arange(first, stop)
    batch = pa.RecordBatch.from_arrays([pa.array(numbers), pa.array(numbers * 7)], ["a", "b"])
    return Keyed(batch, ["k"], np.zeros(stop - first, np.int64))


def test_a_row_more_costs_the_same_however_many_its_key_has(backend: KeyedStateBackend) -> None:
    kept, work, most = PagedRows(backend, "left"), Work(backend), list[int]()
    for count in (1_000, 100_000):
        kept.add(rows_of_one_key(0, count))
        work.done()
        costs = []
        for number in range(count, count + 100):
            kept.add(rows_of_one_key(number, number + 1))
            costs.append(work.done())
        most.append(max(costs))
    assert most[1] < 2 * most[0]
    [found] = kept.all_rows(["k"])
    assert found is not None and len(found) == 101_200


def test_a_row_that_changes_costs_the_same_however_many_its_key_has(backend: KeyedStateBackend) -> None:
    kept, work, most = JoinRows(backend, "left", 0), Work(backend), list[int]()

    def rows_of_key() -> Any:
        return kept.read(["k"])[0] or {}

    def changed(add: range, remove: range) -> int:
        rows = rows_of_key()
        for number in add:
            rows[number, "text"] = kept.entry(1, 0)
        for number in remove:
            del rows[number, "text"]
        kept.write(["k"], [rows])
        return work.done()

    for count in (1_000, 30_000):
        changed(range(len(rows_of_key()), count), range(0))
        costs = [changed(range(n, n + 1), range(n - 900, n - 899)) for n in range(count, count + 100)]
        most.append(max(costs))
        changed(range(count - 900, count - 800), range(count, count + 100))
    assert most[1] < 2 * most[0]
    assert {row for row, _ in rows_of_key().items()} == {(number, "text") for number in range(30_000)}
    changed(range(0), range(30_000))
    assert not rows_of_key() and not any(len(table.entries) for table in backend.tables.values())


@pytest.mark.parametrize("outer", [False, True])
def test_a_row_more_in_time_costs_the_same_however_many_its_key_has(backend: KeyedStateBackend, outer: bool) -> None:
    """Writing it does, finding what is near it, and forgetting what is over."""
    kept, work, most, read = TimedRows(backend, "left", 8_000), Work(backend), list[int](), list[int]()

    def entry(time: int) -> Any:
        return [time, (time, "text"), False] if outer else (time, (time, "text"))

    for count, step in ((1_000, 100), (50_000, 2)):
        kept.add(["k"], [[entry(time) for time in range(0, count * step, step)]])
        work.done()
        costs, now = [], count * step
        for number in range(100):
            kept.add(["k"], [[entry(now + number)]])
            if outer:
                [near] = kept.near(["k"], now, now + number)
                assert near is not None
                near[-1][2] = True  # type: ignore[index]
                kept.store_changes("k", near[-1:])
            assert kept.expire(["k"], -1, 4_000) == []
            costs.append(work.done())
        most.append(max(costs))
        [near] = kept.near(["k"], now, now)
        assert near is not None
        read.append(len(near) - 1_000 // step)
        assert [one[0] for one in kept.expire(["k"], 0, 4_000)] == list(range(0, 4_001, step))
        work.done()
        assert kept.expire(["k"], 4_000, 8_000) == [] and work.done() == 0, "nothing is due"
        assert len(kept.expire(["k"], now + 99, now + 99)) == (now - 4_001) // step + 100
        assert not any(len(table.entries) for table in backend.tables.values())
    assert most[1] < 2 * most[0]
    assert max(read) <= 200


def test_rows_in_time_of_an_earlier_version_go_on(backend: KeyedStateBackend) -> None:
    """They were one tuple, however many."""
    before = tuple((time, (time, "text")) for time in range(1_000))
    backend.table(ValueStateDescriptor("left"), None).put("k", before)
    kept = TimedRows(backend, "left", 800)
    assert sorted(kept.times()) == [(time, "k") for time in range(1_000)]
    kept.add(["k", "l"], [[(1_000, (1_000, "text"))], [(5, (5, "text"))]])
    backend.end_epoch(False)
    assert sorted(kept.times()) == sorted([*((time, "k") for time in range(1_001)), (5, "l")])
    assert len(kept.expire(["k", "l"], 500, 500)) == 502
    assert sorted(kept.times()) == [(time, "k") for time in range(501, 1_001)]


# --- rows that expire ---
def both(left: Relation, right: Relation, kind: str = "INNER") -> Relation:
    return join(left, right, kind, call("=", InputRef(STRING, 0), InputRef(STRING, 2)))


def test_every_row_of_a_join_expires_by_itself() -> None:
    with driven(both, inputs=2, **{"table.exec.state.ttl": "1 s"}) as harness:
        harness.push(Row("a", 1))
        harness.advance_processing_time(600)
        harness.push(Row("a", 2))
        harness.advance_processing_time(1_100)
        harness.push(Row("a", 9), input=2)
        assert kinds(harness) == [("+I", "a", 2, "a", 9)], "the other row of the key does not make a row young"
        harness.advance_processing_time(1_700)
        harness.push(Row("a", 8), input=2)
        assert kinds(harness) == [], "finding a match does not, either"
        harness.advance_processing_time(9_000)
        assert harness.state_entries() == 0


def test_a_row_that_expired_is_not_taken_back() -> None:
    with driven(lambda *sides: both(*sides, kind="LEFT"), inputs=2, **{"table.exec.state.ttl": "1 s"}) as harness:
        harness.push(Row("a", 1))
        harness.advance_processing_time(1_500)
        harness.push(Row("a", 9), input=2)
        assert kinds(harness) == [("+I", "a", 1, None, None)], "nothing is left to join"
        harness.push(Row.of_kind(RowKind.DELETE, "a", 1))
        assert kinds(harness) == [("-D", "a", 1, "a", 9)], "as in Flink"


# --- what earlier versions kept ---
def test_rows_with_counts_are_read_as_pages(backend: KeyedStateBackend) -> None:
    table = backend.table(ValueStateDescriptor("left"))
    table.put("k", {(1, "x"): [2, 0], (2, "y"): [1, 3]})
    kept = PagedRows(backend, "left")
    assert kept.all_rows(["k", "z"]) == [((1, "x"), (1, "x"), (2, "y")), None]
    kept.add(Keyed(pa.RecordBatch.from_pydict({"a": [3], "b": ["z"]}), ["k"], np.zeros(1, np.int64)))
    assert kept.all_rows(["k"]) == [((1, "x"), (1, "x"), (2, "y"), (3, "z"))]
