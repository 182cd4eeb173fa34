"""Interval, window and temporal joins, lookups, and upserts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from penstock.errors import TableException, ValidationException
from penstock.table import EnvironmentSettings, TableEnvironment
from penstock.table.logical.building import join
from penstock.table.logical.nodes import ROWTIME, Column, Relation, Watermark
from penstock.table.logical.rex import Call, InputRef, Literal, Rex, conjunction
from penstock.table.types.data_types import BooleanType, DayTimeIntervalType
from tests.table.runtime.table_programs import (
    INT,
    STRING,
    TS,
    call,
    changes,
    environment,
    final,
    run,
)
from tests.table.runtime.test_windows import EXACT, at, events, result, windows

BOOL = BooleanType()


def within(left: int, right: int, low: int, high: int) -> list[Rex]:
    """The time of the right is between those of the left plus so many seconds."""
    span = DayTimeIntervalType(nullable=False)
    plus = [Call(TS, "+", (InputRef(TS, left), Literal(span, bound * 1000))) for bound in (low, high)]
    return [
        Call(BOOL, ">=", (InputRef(TS, right), plus[0])),
        Call(BOOL, "<=", (InputRef(TS, right), plus[1])),
    ]


def test_an_interval_join_pads_when_the_interval_has_passed() -> None:
    orders = events([(1, 1), (5, 2), (10, 3), (30, 4)], id=INT)
    shipments = events([(4, 1, "sea"), (12, 2, "air"), (11, 3, "air"), (60, 4, "sea")], id=INT, how=STRING)
    width = len(orders.columns)
    condition = conjunction([call("=", InputRef(INT, 1), InputRef(INT, width + 1)), *within(0, width, 0, 5)])
    found = result(join(orders, shipments, "LEFT", condition))
    assert sorted((row[1], row[width + 2]) for row in found) == [(1, "sea"), (2, None), (3, "air"), (4, None)]


def test_a_window_join_meets_at_the_end_of_the_window() -> None:
    left = windows(events([(1, "a", 1), (3, "b", 2), (12, "a", 3), (25, "z", 9)], k=STRING, v=INT), "TUMBLE", 10)
    right = windows(events([(2, "a", 10), (14, "a", 20), (15, "c", 30), (28, "y", 9)], k=STRING, v=INT), "TUMBLE", 10)
    width = len(left.columns)
    pairs = [(name, left.names().index(name)) for name in ("k", "window_start", "window_end")]
    condition = conjunction(
        [call("=", InputRef(left.columns[i].type, i), InputRef(left.columns[i].type, width + i)) for _, i in pairs]
    )
    log = run(join(left, right, "FULL", condition), **EXACT)
    assert {row[0] for row in log} == {"+I"}
    found = [(row[2], row[3], row[width + 2], row[width + 3]) for row in log]
    assert sorted(found, key=repr) == sorted(
        [("a", 1, "a", 10), ("b", 2, None, None), ("a", 3, "a", 20), (None, None, "c", 30), ("z", 9, None, None),
         (None, None, "y", 9)],
        key=repr,
    )  # fmt: skip


def versioned(env: Any, rows: list[tuple[Any, ...]]) -> Relation:
    """A changelog in event time: (kind, seconds, key, value)."""
    log = [(kind, at(time), *rest, at(time)) for kind, time, *rest in rows]
    scan = replace(changes(env, log, ts=TS, cur=STRING, rate=INT, mark=TS), primary_key=(1,))
    timed = (Column("ts", TS, ROWTIME), *scan.columns[1:])
    return Watermark(timed, scan, 0, InputRef(TS, 3))


def test_a_temporal_join_finds_the_version_of_the_time() -> None:
    env = environment()
    orders = events([(2, 1, "eur", 10), (5, 2, "usd", 20), (12, 3, "eur", 30), (15, 4, "yen", 40), (25, 5, "usd", 50)],
                    id=INT, cur=STRING, amount=INT)  # fmt: skip
    rates = versioned(env, [("+I", 0, "eur", 100), ("+I", 1, "usd", 90), ("-U", 0, "eur", 100), ("+U", 10, "eur", 105),
                            ("-D", 20, "usd", 90), ("+I", 24, "yen", 1)])  # fmt: skip
    width = len(orders.columns)
    plan = join(orders, rates, "LEFT", call("=", InputRef(STRING, 2), InputRef(STRING, width + 1)))
    log = run(replace(plan, temporal=0), env, **EXACT)
    assert sorted((row[2], row[1 + width + 2]) for row in log) == [(1, 100), (2, 90), (3, 105), (4, None), (5, None)]


def test_upserts_are_normalised() -> None:
    env = environment()
    log = [("+I", "a", 1), ("+U", "b", 2), ("+U", "a", 3), ("-D", "b", None), ("+I", "a", 3), ("+U", "c", 4),
           ("-D", "z", None)]  # fmt: skip
    scan = replace(changes(env, log, k=STRING, v=INT), upsert_key=(0,))
    assert run(scan, env, epoch_records=1) == [
        ("+I", "a", 1), ("+I", "b", 2), ("-U", "a", 1), ("+U", "a", 3), ("-D", "b", 2), ("+I", "c", 4),
    ]  # fmt: skip
    env = environment(2)
    scan = replace(changes(env, log, k=STRING, v=INT), upsert_key=(0,))
    assert final(run(scan, env)) == [("a", 3), ("c", 4)]


class Cities:
    """What a connector offers for lookups: rows by key, and how often it was asked."""

    def __init__(self) -> None:
        self.asked: list[Any] = []

    def open(self) -> None:
        pass

    def close(self) -> None:
        pass

    def lookup(self, keys: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        assert keys not in self.asked, "each key of a batch is looked up once"
        self.asked.append(keys)
        return {("a",): [("a", 1), ("a", 5)], ("b",): [("b", 9)]}.get(keys, [])


def test_a_lookup_pads_and_computes() -> None:
    from penstock.table.builders.builder import Builder
    from penstock.table.builders.planner import builders, rules
    from penstock.table.operators.base.output_form import OutputForm
    from penstock.table.operators.io.row_conversions import ToRows
    from penstock.table.operators.join.lookup_join import LookedUp, LookupJoin
    from penstock.table.rules.implementation.chooser import Chooser
    from penstock.table.rules.implementation.query_settings import QuerySettings
    from penstock.table.types.arrow_forms import arrow_schema
    from penstock.testing import in_process
    from tests.table.runtime.table_programs import Options, columns, lit, values

    env = environment()
    table = values([("a",), ("z",), ("b",), ("a",), (None,)], k=STRING)
    right = columns(k=STRING, n=INT)
    looked_up = LookedUp(right, (InputRef(STRING, 0), call("*", InputRef(INT, 1), lit(2, INT))), None)
    both = (*table.columns, *right)
    condition = call(">", InputRef(INT, 2), lit(5, INT))
    builder = Builder(env, Chooser(QuerySettings(Options(), False, False), rules()), builders())
    operator = LookupJoin(Cities(), (0,), table.columns, looked_up, condition, True, OutputForm(arrow_schema(both)))
    joined = builder.then(builder.build(table), table, "Lookup Join", operator)
    rows = builder.then(joined, table, "Rows", ToRows(both, False))
    with in_process(), rows.execute_and_collect() as results:
        found = [tuple(row) for row in results]
    assert found == [("a", "a", 10), ("z", None, None), ("b", "b", 18), ("a", "a", 10), (None, None, None)]


VERSIONED = {
    "keyed": "cur STRING, rate INT, {time}, PRIMARY KEY (cur) NOT ENFORCED",
    "pairs": "cur STRING, b INT, rate INT, {time}, PRIMARY KEY (cur, b) NOT ENFORCED",
    "keyless": "cur STRING, rate INT, {time}",
    "timeless": "cur STRING, rate INT, PRIMARY KEY (cur) NOT ENFORCED",
}
VIEWS = {
    "renamed": "SELECT rate, cur AS c, ts FROM keyed",
    "filtered": "SELECT * FROM keyed WHERE rate > 3",
    "computed": "SELECT UPPER(cur) AS c, rate, ts FROM keyed",
    "newest": "SELECT cur AS c, rate, ts FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY cur ORDER BY ts DESC) AS rn"
    " FROM keyless WHERE rate > 3) WHERE rn = 1",
    "fewer": "SELECT * FROM newest WHERE rate < 9",
}


@pytest.mark.parametrize(
    ("table", "condition", "problem"),
    [
        ("keyed", "o.cur = r.cur", None),
        ("keyed", "o.cur = r.cur AND o.b = r.rate AND o.b > r.rate", None),
        ("keyed", "UPPER(o.cur) = r.cur", None),
        ("keyed", "o.cur = UPPER(r.cur)", ValidationException),
        ("keyed", "o.b = r.rate", ValidationException),
        ("keyed", "o.b > r.rate", ValidationException),
        ("pairs", "o.cur = r.cur AND o.b = r.b", None),
        ("pairs", "o.cur = r.cur", ValidationException),
        ("pairs", "o.cur = r.cur AND r.b = 3", ValidationException),
        ("keyless", "o.cur = r.cur", ValidationException),
        ("timeless", "o.cur = r.cur", ValidationException),
        ("renamed", "o.cur = r.c", None),
        ("filtered", "o.cur = r.cur", TableException),
        ("computed", "o.cur = r.c", ValidationException),
        ("newest", "o.cur = r.c", None),
        ("fewer", "o.cur = r.c", None),
    ],
)
def test_a_versioned_table_has_a_key_and_all_versions(
    table: str, condition: str, problem: type[Exception] | None
) -> None:
    """The kinds of error are those of Flink."""
    t = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    time = "ts TIMESTAMP(3), WATERMARK FOR ts AS ts"
    for name, defined in {"o": "id INT, cur STRING, b INT, {time}", **VERSIONED}.items():
        t.execute_sql(f"CREATE TABLE {name} ({defined.format(time=time)}) WITH ('connector' = 'datagen')")
    for name, query in VIEWS.items():
        t.execute_sql(f"CREATE VIEW {name} AS {query}")
    query = f"SELECT o.id, r.rate FROM o JOIN {table} FOR SYSTEM_TIME AS OF o.ts AS r ON {condition}"
    if problem is None:
        assert "TemporalJoin" in t.explain_sql(query)
    else:
        with pytest.raises(problem, match=r"versioned table"):
            t.explain_sql(query)


def test_the_key_of_versions_may_equal_an_expression() -> None:
    env = environment()
    orders = events([(2, 1, "EUR"), (12, 2, "eur")], id=INT, cur=STRING)
    rates = versioned(env, [("+I", 0, "eur", 100), ("+U", 10, "eur", 105)])
    width = len(orders.columns)
    plan = join(orders, rates, "INNER", call("=", call("LOWER", InputRef(STRING, 2)), InputRef(STRING, width + 1)))
    log = run(replace(plan, temporal=0), env, **EXACT)
    assert sorted((row[2], row[1 + width + 2]) for row in log) == [(1, 100), (2, 105)]
