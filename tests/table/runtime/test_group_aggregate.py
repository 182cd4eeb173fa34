"""GROUP BY against an oracle that counts by hand."""

from __future__ import annotations

import random
from typing import Any

import pytest

from penstock.table.logical.building import aggregate
from penstock.table.logical.rex import AggregateCall
from penstock.table.operators.aggregate import group_aggregate
from penstock.table.types.data_types import BigIntType
from tests.table.runtime.table_programs import BIGINT, INT, STRING, changes, environment, final, run, values

COUNT = BigIntType(False)


def test_groups_change_with_their_rows() -> None:
    table = values([("a", 1), ("b", 2), ("a", 3), (None, 4), (None, None)], k=STRING, v=INT)
    plan = aggregate(table, [0], [AggregateCall("COUNT", (), COUNT, "n"), AggregateCall("SUM", (1,), INT, "s")])
    assert final(run(plan, epoch_records=2)) == [("a", 2, 4), ("b", 1, 2), (None, 2, 4)]
    assert run(plan, epoch_records=2)[:2] == [("+I", "a", 1, 1), ("+I", "b", 1, 2)]
    assert ("-U", "a", 1, 1) in run(plan, epoch_records=2)


def test_a_group_without_rows_is_deleted() -> None:
    env = environment()
    log = changes(env, [("+I", "a", 1), ("-D", "a", 1), ("+I", "a", 5)], k=STRING, v=INT)
    plan = aggregate(log, [0], [AggregateCall("MAX", (1,), INT, "m")])
    assert run(plan, env, epoch_records=1) == [("+I", "a", 1), ("-D", "a", 1), ("+I", "a", 5)]


def test_a_group_over_nothing() -> None:
    calls = [AggregateCall("COUNT", (), COUNT, "n"), AggregateCall("SUM", (0,), INT, "s")]
    plan = aggregate(values([], v=INT), [], calls)
    assert run(plan) == []
    assert run(plan, batch=True) == [("+I", 0, None)]


def test_distinct_rows_are_inserts() -> None:
    plan = aggregate(values([("a",), ("b",), ("a",), (None,), (None,)], k=STRING), [0], [])
    assert sorted(run(plan, epoch_records=1), key=repr) == [("+I", "a"), ("+I", "b"), ("+I", None)]


CALLS = [
    AggregateCall("COUNT", (), COUNT, "n"),
    AggregateCall("COUNT", (1,), COUNT, "c"),
    AggregateCall("SUM", (1,), BIGINT, "s"),
    AggregateCall("AVG", (1,), BIGINT, "a"),
    AggregateCall("MIN", (1,), BIGINT, "lo"),
    AggregateCall("MAX", (1,), BIGINT, "hi"),
    AggregateCall("COUNT", (1,), COUNT, "d", distinct=True),
]


def oracle(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    groups: dict[Any, list[Any]] = {}
    for key, value in rows:
        groups.setdefault(key, []).append(value)
    found = []
    for key, every in groups.items():
        there = [value for value in every if value is not None]
        total = sum(there) if there else None
        average = None if total is None else int(total / len(there))
        found.append(
            (key, len(every), len(there), total, average, min(there, default=None), max(there, default=None),
             len(set(there)))
        )  # fmt: skip
    return sorted(found, key=repr)


@pytest.mark.parametrize("seed", range(12))
def test_any_cut_into_epochs_gives_what_the_oracle_says(seed: int) -> None:
    rng = random.Random(seed)
    left: list[tuple[Any, ...]] = []
    log: list[tuple[Any, ...]] = []
    for _ in range(60):
        if left and rng.random() < 0.35 and seed % 2:
            row = left.pop(rng.randrange(len(left)))
            log.append((rng.choice(["-U", "-D"]), *row))
        else:
            row = (rng.choice(["a", "b", "c", None]), rng.choice([None, *range(-5, 6)]))
            left.append(row)
            log.append((rng.choice(["+I", "+U"]), *row))
    parallelism = rng.choice([1, 2, 3])
    env = environment(parallelism)
    plan = aggregate(changes(env, log, k=STRING, v=BIGINT), [0], CALLS if seed % 3 else CALLS[:4])
    found = final(run(plan, env, epoch_records=rng.choice([1, 3, 17, None])))
    width = 8 if seed % 3 else 5
    assert found == sorted((row[:width] for row in oracle(left)), key=repr)


@pytest.mark.parametrize("phases", ["ONE_PHASE", "TWO_PHASE"])
@pytest.mark.parametrize("batch", [False, True])
def test_distinct_rows_of_large_batches_come_once(phases: str, batch: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_aggregate, "FEW", 0)
    rows = [(number % 7, f"text {number % 5}", number) for number in range(70)]
    plan = aggregate(values(rows, a=INT, b=STRING, c=INT), [1, 0], [])
    found = run(plan, batch=batch, epoch_records=20, **{"table.optimizer.agg-phase-strategy": phases})
    assert sorted(found) == sorted({("+I", text, key) for key, text, _ in rows})
