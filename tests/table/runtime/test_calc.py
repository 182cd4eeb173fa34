"""Filters, projections, unions and inputs of plans."""

from __future__ import annotations

from penstock.table.builders import Planner
from penstock.table.logical.building import project, where
from penstock.table.logical.nodes import SetOperation
from tests.table.runtime.table_programs import (
    BIGINT,
    INT,
    STRING,
    Options,
    call,
    changes,
    environment,
    lit,
    ref,
    run,
    values,
)

ROWS = [(1, "a"), (2, None), (None, "c"), (4, "d")]


def test_a_filter_and_a_projection_are_one_operator() -> None:
    table = values(ROWS, id=INT, name=STRING)
    kept = where(table, call(">", ref(table, "id"), lit(1, INT)))
    plan = project(kept, [ref(kept, "name"), call("*", ref(kept, "id"), lit(2, INT))], ["name", "twice"])
    assert run(plan) == [("+I", None, 4), ("+I", "d", 8)]
    text = Planner(environment(), Options(), False).explain(plan)
    assert text.count("Calc(") == 2, "one in each of the two plans of operators"
    assert (
        "== Optimized Physical Plan ==\nCalc(select=[$1 AS name, ($0 * 2) AS twice], where=[($0 > 1)])\n+- Values"
        in text
    )


def test_a_union_of_inserts_and_changes_is_a_changelog() -> None:
    env = environment()
    table = values(ROWS, id=INT, name=STRING)
    log = changes(env, [("+I", 1, "x"), ("-U", 1, "x"), ("+U", 1, "y"), ("-D", 1, "y")], id=INT, name=STRING)
    found = run(SetOperation(table.columns, (table, log), "UNION", True), env)
    assert sorted(found, key=repr) == sorted(
        [("+I", *row) for row in ROWS] + [("+I", 1, "x"), ("-U", 1, "x"), ("+U", 1, "y"), ("-D", 1, "y")], key=repr
    )


def test_values_without_rows_end_at_once() -> None:
    assert run(values([], id=BIGINT)) == []
