"""Programs for every operator of a query: rows before and after a savepoint, and a table that takes the changes.

`FlinkPrograms.java` runs them on Apache Flink; what it gave is in `recorded.json`, which is not edited:

    python -m tests.table.programs.programs > programs.json
    java -cp 'flink/*' FlinkPrograms.java programs.json recorded.json

with Flink 2.3's jars and the tests of its planner (`flink-table-planner_2.12`, classifier `tests`) in `flink`.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, replace
from typing import Any

Rows = tuple[tuple[Any, ...], ...]


@dataclass(frozen=True)
class Source:
    """A table with its changes, which begin with their kind."""

    name: str
    columns: str
    before: Rows
    after: Rows
    modes: str = "I"


@dataclass(frozen=True)
class Program:
    """A query that goes into a table `s`."""

    name: str
    sources: tuple[Source, ...]
    sink: str
    sql: str
    options: dict[str, str] = field(default_factory=dict)


def inserts(*rows: tuple[Any, ...]) -> Rows:
    return tuple(("+I", *row) for row in rows)


KEY = "PRIMARY KEY ({}) NOT ENFORCED"
GROWS = Source(
    "g",
    "k STRING, n INT",
    inserts(("a", 1), ("b", 5), ("a", 3), ("c", 2), ("b", 5)),
    inserts(("a", 2), ("d", 7), ("c", -2), ("b", 1), ("a", 4)),
)
CHANGES = Source(
    "t",
    "id INT, k STRING, n INT, PRIMARY KEY (id) NOT ENFORCED",
    (("+I", 1, "a", 4), ("+I", 2, "b", 2), ("-U", 1, "a", 4), ("+U", 1, "a", 1), ("+I", 3, "a", 6), ("-D", 2, "b", 2)),
    (("-U", 3, "a", 6), ("+U", 3, "b", 3), ("+I", 4, "b", 9), ("-D", 1, "a", 1), ("+I", 2, "c", 5), ("+I", 5, "a", 3)),
    "I,UB,UA,D",
)
OTHERS = Source(
    "r",
    "id INT, k STRING, n INT, PRIMARY KEY (id) NOT ENFORCED",
    (("+I", 1, "a", 3), ("+I", 7, "c", 3)),
    (("+I", 2, "b", 1), ("-U", 1, "a", 3), ("+U", 1, "b", 5), ("-D", 7, "c", 3)),
    "I,UB,UA,D",
)
UPSERTS = Source(
    "u",
    CHANGES.columns,
    (("+I", 1, "a", 4), ("+U", 1, "a", 5), ("+I", 2, "b", 2), ("-D", 2, "b", 2)),
    (("+U", 1, "c", 1), ("+U", 2, "b", 3), ("+U", 2, "b", 3)),
    "I,UA,D",
)
TIME = "k STRING, n INT, m INT, ts AS TO_TIMESTAMP_LTZ(m, 0), WATERMARK FOR ts AS ts - INTERVAL '2' SECOND"
EVENTS = Source(
    "e",
    TIME,
    inserts(("a", 1, 1), ("b", 2, 2), ("a", 3, 4), ("a", 4, 3), ("b", 5, 9), ("a", 6, 11), ("c", 7, 14)),
    inserts(("a", 8, 13), ("b", 9, 5), ("a", 10, 16), ("c", 11, 21), ("a", 12, 33), ("b", 13, 40)),
)
ON_TIME = replace(EVENTS, after=tuple(row for row in EVENTS.after if row[3] >= 13))
"""The same without the late row. Two inputs race, and what a late row meets differs from run to run."""
LATER = Source(
    "f",
    TIME,
    inserts(("a", 10, 2), ("b", 20, 6), ("a", 30, 12), ("c", 40, 15)),
    inserts(("a", 50, 14), ("b", 60, 18), ("c", 70, 22), ("a", 80, 41)),
)
VERSIONS = Source(
    "v",
    f"{TIME}, PRIMARY KEY (k) NOT ENFORCED",
    (("+I", "a", 100, 1), ("+U", "b", 200, 2), ("+U", "a", 300, 6), ("+U", "c", 1, 15)),
    (("+U", "a", 400, 14), ("-D", "b", 200, 17), ("+U", "c", 2, 42)),
    "I,UA,D",
)
GROUPS = "SELECT k, SUM(n) AS c FROM g GROUP BY k"
RANKED = "SELECT k, n, ROW_NUMBER() OVER (PARTITION BY k ORDER BY n DESC) AS r FROM g"
RANKED_GROUPS = f"SELECT k, c, ROW_NUMBER() OVER (ORDER BY c DESC, k) AS r FROM ({GROUPS})"
TUMBLE = "TUMBLE(TABLE {}, DESCRIPTOR(ts), INTERVAL '10' SECOND)"
BOUNDS = "DATE_FORMAT(CAST(window_start AS TIMESTAMP(3)), 'mm:ss') AS w"


def windows(name: str, call: str) -> Program:
    """An aggregate over windows."""
    sql = f"SELECT k, {BOUNDS}, COUNT(*), SUM(n) FROM TABLE({call}) GROUP BY k, window_start, window_end"
    return Program(name, (EVENTS,), "k STRING, w STRING, c BIGINT, s INT", sql)


def joins() -> list[Program]:
    found = []
    for kind in ("", "LEFT", "RIGHT", "FULL"):
        for on in ("t.k = r.k", "t.k = r.k AND t.n < r.n"):
            sql = f"SELECT t.id, r.id, t.n, r.n FROM t {kind} JOIN r ON {on}"
            name = f"{kind.lower() or 'inner'}-join{'-unequal' if '<' in on else ''}"
            found.append(Program(name, (CHANGES, OTHERS), "i INT, j INT, n INT, m INT", sql))
    for word in ("EXISTS", "NOT EXISTS"):
        sql = f"SELECT id, k FROM t WHERE {word} (SELECT 1 FROM r WHERE r.k = t.k)"
        found.append(
            Program("semi-join" if word == "EXISTS" else "anti-join", (CHANGES, OTHERS), "i INT, k STRING", sql)
        )
    sql = "SELECT t.id, t.n, r.n FROM t LEFT JOIN r ON t.id = r.id"
    columns = f"i INT, n INT, m INT, {KEY.format('i')}"
    return [*found, Program("left-join-by-key", (CHANGES, OTHERS), columns, sql)]


def timed() -> list[Program]:
    near = "e.k = f.k AND e.ts BETWEEN f.ts - INTERVAL '3' SECOND AND f.ts + INTERVAL '3' SECOND"
    sides = f"(SELECT * FROM TABLE({TUMBLE.format('e')})) x {{}} JOIN (SELECT * FROM TABLE({TUMBLE.format('f')})) y"
    same = "ON x.k = y.k AND x.window_start = y.window_start AND x.window_end = y.window_end"
    over = "SUM(n) OVER (PARTITION BY k ORDER BY ts {} BETWEEN {} PRECEDING AND CURRENT ROW)"
    rank = "ROW_NUMBER() OVER (PARTITION BY {} ORDER BY {}) AS rn"
    found = [
        Program(f"interval-join-{kind.lower() or 'inner'}", (ON_TIME, LATER), "n INT, m INT",
                f"SELECT e.n, f.n FROM e {kind} JOIN f ON {near}")
        for kind in ("", "LEFT", "FULL")
    ]  # fmt: skip
    found += [
        Program(f"window-join-{kind.lower() or 'inner'}", (ON_TIME, LATER), "n INT, m INT",
                f"SELECT x.n, y.n FROM {sides.format(kind)} {same}")
        for kind in ("", "LEFT", "FULL")
    ]  # fmt: skip
    found += [
        Program(f"temporal-join-{kind.lower() or 'inner'}", (ON_TIME, VERSIONS), "k STRING, n INT, m INT",
                f"SELECT e.k, e.n, v.n FROM e {kind} JOIN v FOR SYSTEM_TIME AS OF e.ts ON e.k = v.k")
        for kind in ("", "LEFT")
    ]  # fmt: skip
    for name, words in {
        "rows": over.format("ROWS", "1"),
        "range": over.format("RANGE", "INTERVAL '5' SECOND"),
        "unbounded-rows": over.format("ROWS", "UNBOUNDED"),
        "unbounded-range": over.format("RANGE", "UNBOUNDED"),
    }.items():
        found.append(Program(f"over-{name}", (EVENTS,), "k STRING, n INT, s INT", f"SELECT k, n, {words} FROM e"))
    for name, part, order in (
        ("deduplicate-first", "k", "ts"),
        ("deduplicate-last", "k", "ts DESC"),
    ):
        sql = f"SELECT k, n FROM (SELECT *, {rank.format(part, order)} FROM e) WHERE rn = 1"
        found.append(Program(name, (EVENTS,), f"k STRING, n INT, {KEY.format('k')}", sql))
    part = "window_start, window_end, k"
    for name, order, last in (("window-rank", "n DESC", "<= 2"), ("window-deduplicate", "ts DESC", "= 1")):
        table = f"SELECT *, {rank.format(part, order)} FROM TABLE({TUMBLE.format('e')})"
        found.append(Program(name, (EVENTS,), "k STRING, n INT", f"SELECT k, n FROM ({table}) WHERE rn {last}"))
    found.append(Program("temporal-sort", (EVENTS,), "k STRING, n INT", "SELECT k, n FROM e ORDER BY ts, n"))
    old = "SELECT k, COUNT(*), SUM(n) FROM e GROUP BY k, TUMBLE(ts, INTERVAL '10' SECOND)"
    found.append(Program("group-window", (EVENTS,), "k STRING, c BIGINT, s INT", old))
    match = (
        "SELECT k, i, j FROM e MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts MEASURES X.n AS i, Y.n AS j "
        "ONE ROW PER MATCH AFTER MATCH SKIP TO NEXT ROW PATTERN (X Y) DEFINE Y AS Y.n > X.n)"
    )
    return [*found, Program("match", (EVENTS,), "k STRING, i INT, j INT", match)]


def windowed() -> list[Program]:
    hop = "HOP(TABLE e, DESCRIPTOR(ts), INTERVAL '5' SECOND, INTERVAL '10' SECOND)"
    return [
        windows("window-tumble", TUMBLE.format("e")),
        windows("window-hop", hop),
        windows("window-cumulate", "CUMULATE(TABLE e, DESCRIPTOR(ts), INTERVAL '5' SECOND, INTERVAL '15' SECOND)"),
        windows("window-session", "SESSION(TABLE e PARTITION BY k, DESCRIPTOR(ts), INTERVAL '4' SECOND)"),
        Program("window-table", (EVENTS,), "k STRING, n INT, w STRING",
                f"SELECT k, n, {BOUNDS} FROM TABLE({hop})"),
    ]  # fmt: skip


def changing() -> list[Program]:
    k, kn = f"k STRING, c INT, {KEY.format('k')}", "k STRING, n INT"
    by_id = f"id INT, k STRING, n INT, {KEY.format('id')}"
    return [
        Program("filter", (CHANGES,), by_id, "SELECT id, k, n FROM t WHERE n > 2"),
        Program("filter-retract", (CHANGES,), "id INT, k STRING", "SELECT id, k FROM t WHERE k = 'a'"),
        Program("group", (GROWS,), k, GROUPS),
        Program("group-retract", (CHANGES,), k, "SELECT k, SUM(n) AS c FROM t GROUP BY k"),
        Program("having", (GROWS,), f"k STRING, c BIGINT, {KEY.format('k')}",
                "SELECT k, COUNT(*) FROM g GROUP BY k HAVING COUNT(*) < 3"),
        Program("group-distinct", (CHANGES,), f"k STRING, c BIGINT, s INT, {KEY.format('k')}",
                "SELECT k, COUNT(DISTINCT n), MAX(n) FROM t GROUP BY k"),
        Program("whole", (CHANGES,), "c BIGINT, s INT", "SELECT COUNT(*), SUM(n) FROM t"),
        Program("distinct", (GROWS,), "k STRING", "SELECT DISTINCT k FROM g WHERE n > 1"),
        Program("counts-of-sums", (GROWS,), f"c INT, a BIGINT, {KEY.format('c')}",
                f"SELECT c, COUNT(*) FROM ({GROUPS}) GROUP BY c"),
        Program("expand", (CHANGES,), "k STRING, c BIGINT", "SELECT k, COUNT(*) FROM t GROUP BY ROLLUP (k)"),
        Program("union-all", (CHANGES, OTHERS), "id INT, k STRING",
                "SELECT id, k FROM t UNION ALL SELECT id, k FROM r"),
        Program("intersect", (CHANGES, OTHERS), "k STRING", "SELECT k FROM t INTERSECT SELECT k FROM r"),
        Program("except", (CHANGES, OTHERS), "k STRING", "SELECT k FROM t EXCEPT SELECT k FROM r"),
        Program("correlate", (CHANGES,), "id INT, v INT",
                "SELECT id, v FROM t CROSS JOIN UNNEST(ARRAY[n, n + 1]) AS u(v) WHERE v > 2"),
        Program("rank", (GROWS,), kn, f"SELECT k, n FROM ({RANKED}) WHERE r <= 1"),
        Program("rank-two", (GROWS,), f"{kn}, r BIGINT", f"SELECT k, n, r FROM ({RANKED}) WHERE r <= 2"),
        Program("rank-retract", (GROWS,), f"k STRING, c INT, {KEY.format('k')}",
                f"SELECT k, c FROM ({RANKED_GROUPS}) WHERE r <= 2"),
        Program("rank-numbers", (GROWS,), f"k STRING, c INT, r BIGINT, {KEY.format('r')}",
                f"SELECT k, c, r FROM ({RANKED_GROUPS}) WHERE r <= 3"),
        Program("rank-numbers-by-item", (GROWS,), f"k STRING, c INT, r BIGINT, {KEY.format('k')}",
                f"SELECT k, c, r FROM ({RANKED_GROUPS}) WHERE r <= 3"),
        Program("sort-limit", (GROWS,), kn, "SELECT k, n FROM g ORDER BY n DESC, k LIMIT 3"),
        Program("limit", (GROWS,), kn, "SELECT k, n FROM g LIMIT 7"),
        Program("over-changes", (GROWS,), f"k STRING, c INT, x INT, {KEY.format('k')}",
                f"SELECT k, c, SUM(c) OVER (PARTITION BY k ORDER BY c) FROM ({GROUPS})"),
        Program("normalize", (UPSERTS,), "id INT, k STRING, n INT", "SELECT id, k, n FROM u"),
        Program("normalize-group", (UPSERTS,), k, "SELECT k, SUM(n) AS c FROM u GROUP BY k"),
        Program("materialize", (CHANGES,), f"k STRING, id INT, {KEY.format('k')}",
                "SELECT k, id FROM t ON CONFLICT DO DEDUPLICATE"),
        Program("materialize-sums", (GROWS,), f"c INT, k STRING, {KEY.format('c')}",
                f"SELECT c, k FROM ({GROUPS}) ON CONFLICT DO DEDUPLICATE"),
        Program("materialize-rows", (GROWS,), f"k STRING, n INT, {KEY.format('k')}",
                "SELECT k, n FROM g ON CONFLICT DO DEDUPLICATE"),
        Program("materialize-nothing", (EVENTS,), f"k STRING, n INT, {KEY.format('k')}",
                "SELECT k, n FROM e ON CONFLICT DO NOTHING"),
        Program("materialize-force", (GROWS,), f"k STRING, c INT, {KEY.format('k')}", GROUPS,
                {"table.exec.sink.upsert-materialize": "FORCE"}),
    ]  # fmt: skip


TWO_PHASES = {
    "table.exec.mini-batch.enabled": "true",
    "table.exec.mini-batch.allow-latency": "200 ms",
    "table.exec.mini-batch.size": "3",
    "table.optimizer.agg-phase-strategy": "TWO_PHASE",
}
SPLIT = {**TWO_PHASES, "table.optimizer.distinct-agg.split.enabled": "true"}
MULTI_JOIN = {"table.optimizer.multi-join.enabled": "true"}


def in_other_operators() -> list[Program]:
    """Queries for which an option makes Flink choose other operators: local, global and incremental ones, one join."""
    k = f"k STRING, c BIGINT, s INT, {KEY.format('k')}"
    distinct = "SELECT k, COUNT(DISTINCT n), MAX(n) FROM {} GROUP BY k"
    three = "SELECT t.id, r.n, u.n FROM t {0} JOIN r ON t.k = r.k {0} JOIN u ON t.k = u.k"
    return [
        Program("two-phases", (GROWS,), f"k STRING, c INT, {KEY.format('k')}", GROUPS, TWO_PHASES),
        Program("two-phases-retract", (CHANGES,), k, "SELECT k, COUNT(*), SUM(n) FROM t GROUP BY k", TWO_PHASES),
        Program("incremental", (GROWS,), k, distinct.format("g"), SPLIT),
        Program("incremental-retract", (CHANGES,), k, distinct.format("t"), SPLIT),
        replace(windows("window-tumble-two-phases", TUMBLE.format("e")), options=TWO_PHASES),
        Program("multi-join", (CHANGES, OTHERS, UPSERTS), "i INT, n INT, m INT", three.format(""), MULTI_JOIN),
        Program("multi-join-left", (CHANGES, OTHERS, UPSERTS), "i INT, n INT, m INT", three.format("LEFT"), MULTI_JOIN),
        Program("values", (GROWS,), "k STRING, n INT, v INT",
                "SELECT g.k, g.n, x.v FROM g JOIN (VALUES ('a', 7), ('b', 8), ('a', 9)) AS x(k, v) ON g.k = x.k"),
    ]  # fmt: skip


PROGRAMS = {program.name: program for program in [*changing(), *joins(), *windowed(), *timed(), *in_other_operators()]}

if __name__ == "__main__":
    print(json.dumps([asdict(program) for program in PROGRAMS.values()], indent=1))
