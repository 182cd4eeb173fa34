"""Joins and set operations against brute force, with changes on both sides and any cut into epochs."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest

from penstock.table.logical.building import join, set_operation
from penstock.table.logical.rex import InputRef, Rex, conjunction
from tests.table.runtime.table_programs import INT, STRING, call, changes, environment, final, run, values

Rows = list[tuple[Any, ...]]


def log_of(rng: random.Random, rows: int, deletes: bool) -> tuple[Rows, Rows]:
    """A changelog, and the rows that are left."""
    left: Rows = []
    log: Rows = []
    for _ in range(rows):
        if left and deletes and rng.random() < 0.4:
            row = left.pop(rng.randrange(len(left)))
            log.append((rng.choice(["-U", "-D"]), *row))
        else:
            row = (rng.choice(["a", "b", None]), rng.randrange(4))
            left.append(row)
            log.append((rng.choice(["+I", "+U"]), *row))
    return log, left


def oracle(kind: str, left: Rows, right: Rows, safe: bool, unequal: bool) -> Rows:
    def match(one: Any, two: Any) -> bool:
        equal = one[0] == two[0] and (safe or one[0] is not None)
        return equal and (not unequal or one[1] < two[1])

    found: Rows = []
    for row in left:
        matched = [other for other in right if match(row, other)]
        if kind in {"SEMI", "ANTI"}:
            found += [row] if bool(matched) is (kind == "SEMI") else []
        else:
            found += [row + other for other in matched]
            found += [(*row, None, None)] if not matched and kind in {"LEFT", "FULL"} else []
    if kind in {"RIGHT", "FULL"}:
        found += [(None, None, *other) for other in right if not any(match(row, other) for row in left)]
    return sorted(found, key=repr)


@pytest.mark.parametrize("kind", ["INNER", "LEFT", "RIGHT", "FULL", "SEMI", "ANTI"])
@pytest.mark.parametrize("seed", range(4))
def test_a_join_of_changing_tables(kind: str, seed: int) -> None:
    rng = random.Random(f"{kind} {seed}")
    safe, unequal, deletes = rng.random() < 0.3, rng.random() < 0.5, seed > 0
    (one, left), (two, right) = log_of(rng, 25, deletes), log_of(rng, 25, deletes)
    env = environment(rng.choice([1, 2]))
    first, second = changes(env, one, k=STRING, v=INT), changes(env, two, k=STRING, v=INT)
    parts: list[Rex] = [call("IS NOT DISTINCT FROM" if safe else "=", InputRef(STRING, 0), InputRef(STRING, 2))]
    if unequal:
        parts.append(call("<", InputRef(INT, 1), InputRef(INT, 3)))
    plan = join(first, second, kind, conjunction(parts))
    found = final(run(plan, env, epoch_records=rng.choice([1, 4, None])))
    assert found == oracle(kind, left, right, safe, unequal)


@pytest.mark.parametrize("kind", ["INNER", "LEFT", "RIGHT", "FULL", "SEMI", "ANTI"])
def test_batch_mode_has_inserts_alone(kind: str) -> None:
    rng = random.Random(kind)
    left, right = log_of(rng, 20, False)[1], log_of(rng, 20, False)[1]
    first, second = values(left, k=STRING, v=INT), values(right, k=STRING, v=INT)
    plan = join(first, second, kind, call("=", InputRef(STRING, 0), InputRef(STRING, 2)))
    log = run(plan, batch=True)
    assert {row[0] for row in log} == {"+I"}
    assert final(log) == oracle(kind, left, right, False, False)


def test_a_key_may_be_an_expression() -> None:
    first, second = values([(1,), (2,), (None,)], a=INT), values([(2,), (3,), (4,)], b=INT)
    condition = call("=", call("*", InputRef(INT, 0), InputRef(INT, 0)), InputRef(INT, 1))
    assert final(run(join(first, second, "LEFT", condition))) == [(1, None), (2, 4), (None, None)]
    assert final(run(join(first, second, "SEMI", condition))) == [(2,)]


def test_not_in_with_null_matches_nothing() -> None:
    from dataclasses import replace

    first, second = values([(1,), (2,), (None,)], a=INT), values([(2,), (None,)], b=INT)
    condition = call("=", InputRef(INT, 0), InputRef(INT, 1))
    anti = replace(join(first, second, "ANTI", condition), null_aware=True)
    assert final(run(anti)) == []
    assert final(run(replace(anti, right=values([], b=INT)))) == [(1,), (2,), (None,)]
    assert final(run(replace(anti, right=values([(2,)], b=INT)))) == [(1,)]


@pytest.mark.parametrize("kind", ["INTERSECT", "EXCEPT", "UNION"])
@pytest.mark.parametrize("every", [True, False])
@pytest.mark.parametrize("seed", range(2))
def test_set_operations(kind: str, every: bool, seed: int) -> None:
    rng = random.Random(f"{kind} {every} {seed}")
    (one, left), (two, right) = log_of(rng, 30, bool(seed)), log_of(rng, 30, bool(seed))
    env = environment(2)
    first, second = changes(env, one, k=STRING, v=INT), changes(env, two, k=STRING, v=INT)
    plan = set_operation([first, second], kind, every, first.columns)
    found = final(run(plan, env, epoch_records=rng.choice([1, 4, None])))
    bags = Counter(left), Counter(right)
    if not every:
        bags = Counter(set(left)), Counter(set(right))
    expected = {"INTERSECT": bags[0] & bags[1], "EXCEPT": bags[0] - bags[1]}.get(kind)
    if expected is None:
        expected = bags[0] + bags[1] if every else bags[0] | bags[1]
    assert found == sorted(expected.elements(), key=repr)
