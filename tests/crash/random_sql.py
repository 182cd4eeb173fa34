"""Random queries over random rows, each in two words: as a stream is asked, and as Spark SQL is.

Both mean the same: whole numbers without division, texts, an order that leaves no choice, event time without late rows.
Moments are compared as milliseconds: `t` has those of `ts`.
"""

from __future__ import annotations

import datetime
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Rows = list[tuple[Any, ...]]
START = datetime.datetime(2024, 1, 1)
START_MS = 1_704_067_200_000
DISORDER = 4
"""Seconds by which a row may be late, and watermarks are."""


@dataclass(frozen=True)
class Asked:
    """A query for a stream and the same for Spark. A view of the stream may be needed first."""

    name: str
    stream: str
    spark: str
    view: str | None = None


def seconds(text: str) -> str:
    return f"INTERVAL '{text}' SECOND"


class RandomSql:
    """What one seed asks for."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self.tables = {"a": self._rows(), "b": self._rows()}
        kinds = self._kinds()
        self.asked = kinds[seed % len(kinds)]()

    def _kinds(self) -> list[Callable[[], Asked]]:
        return [
            self._group,
            self._join,
            self._sets,
            self._nested,
            self._semi,
            self._tumble,
            self._hop,
            self._cumulate,
            self._session,
            self._over_time,
            self._top,
            self._top_of_groups,
            self._limit,
            self._deduplicate,
            self._window_top,
            self._window_join,
            self._interval_join,
            self._temporal_join,
            self._pattern,
            self._grouping_sets,
            self._in_query,
            self._distinct_of_changes,
        ]

    def _rows(self) -> Rows:
        """(id, k, n, t, ts): moments are unique, and nearly in order."""
        pick, count = self._random, self._random.randint(0, 40)
        moments = pick.sample(range(0, 60_000, 250), count)
        moments.sort(key=lambda moment: moment + pick.randint(0, DISORDER * 1000 - 500))
        return [
            (
                index,
                pick.choice([None, "a", "b", "c", "d"]),
                pick.choice([None, *range(-5, 15)]),
                START_MS + moment,
                START + datetime.timedelta(milliseconds=moment),
            )
            for index, moment in enumerate(moments)
        ]

    # --- parts ---
    def _one(self, *choices: str) -> str:
        return self._random.choice(choices)

    def _number(self, side: str = "") -> str:
        return self._one(f"{side}n", f"{side}id", f"({side}n + {side}id)", f"COALESCE({side}n, 0)", f"ABS({side}n) * 2")

    def _condition(self, side: str = "") -> str:
        return self._one(
            f"{side}n > {self._random.randint(-4, 9)}",
            f"{side}k IN ('a', 'b')",
            f"{side}k IS NULL",
            f"{side}n BETWEEN 0 AND 7",
            f"NOT ({side}id < 5) OR {side}k = 'c'",
            "TRUE",
        )

    def _aggregate(self, side: str = "") -> str:
        inside = self._number(side)
        return self._one(
            "COUNT(*)",
            f"COUNT({side}n)",
            f"SUM({inside})",
            f"MIN({inside})",
            f"MAX({side}k)",
            f"COUNT(DISTINCT {side}k)",
            f"COUNT(DISTINCT {side}n)",
            f"SUM(DISTINCT {side}n)",
            f"SUM({inside}) FILTER (WHERE {self._condition(side)})",
        )

    def _aggregates(self) -> str:
        return f"{self._aggregate()} AS x, {self._aggregate()} AS y"

    def _same(self, name: str, query: str) -> Asked:
        return Asked(name, query, query)

    # --- without time ---
    def _group(self) -> Asked:
        having = self._one("", " HAVING COUNT(*) > 1")
        return self._same(
            "group", f"SELECT k, {self._aggregates()} FROM a WHERE {self._condition()} GROUP BY k{having}"
        )

    def _join(self) -> Asked:
        kind = self._one("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN")
        on = self._one("l.k = r.k", "l.id = r.id", "l.k = r.k AND l.id < r.id")
        return self._same("join", f"SELECT l.id AS i, r.id AS j, l.k AS k, r.n AS n FROM a l {kind} b r ON {on}")

    def _sets(self) -> Asked:
        word = self._one("UNION", "UNION ALL", "INTERSECT", "EXCEPT", "INTERSECT ALL", "EXCEPT ALL")
        return self._same("sets", f"SELECT k, n FROM a WHERE {self._condition()} {word} SELECT k, n FROM b")

    def _nested(self) -> Asked:
        inner = f"SELECT k, {self._aggregate()} AS c, SUM(n) AS s FROM a WHERE {self._condition()} GROUP BY k"
        return self._same("nested", f"SELECT c, COUNT(*) AS m, SUM(s) AS s, MAX(s) AS t FROM ({inner}) AS q GROUP BY c")

    def _semi(self) -> Asked:
        word = self._one("EXISTS", "NOT EXISTS")
        return self._same(
            "semi", f"SELECT id, k FROM a WHERE {word} (SELECT 1 FROM b WHERE b.k = a.k AND {self._condition('b.')})"
        )

    def _in_query(self) -> Asked:
        inner = self._one("SELECT n FROM b WHERE n IS NOT NULL", "SELECT MAX(n) FROM b GROUP BY k HAVING MAX(n) > 0")
        return self._same("in", f"SELECT id, n FROM a WHERE n {self._one('IN', 'NOT IN')} ({inner})")

    def _grouping_sets(self) -> Asked:
        sets = self._one("ROLLUP (k, n)", "CUBE (k, n)", "GROUPING SETS ((k), (n), ())")
        return self._same("grouping sets", f"SELECT k, n, COUNT(*) AS c, SUM(id) AS s FROM a GROUP BY {sets}")

    def _distinct_of_changes(self) -> Asked:
        inner = f"SELECT id - id + COUNT(*) AS c, k FROM a WHERE {self._condition()} GROUP BY k, id - id"
        return self._same(
            "distinct of changes",
            f"SELECT COUNT(DISTINCT c) AS x, SUM(DISTINCT c) AS y, MIN(c) AS z FROM ({inner}) AS q",
        )

    # --- first rows ---
    def _top(self) -> Asked:
        last, way = self._random.randint(1, 4), self._one("ASC", "DESC")
        ranked = (
            f"SELECT id, k, n, ROW_NUMBER() OVER (PARTITION BY k ORDER BY COALESCE(n, 0) {way}, id) AS r "
            f"FROM a WHERE {self._condition()}"
        )
        return self._same("top", f"SELECT {self._one('id, k, n, r', 'id, n')} FROM ({ranked}) AS q WHERE r <= {last}")

    def _top_of_groups(self) -> Asked:
        """Of rows that change."""
        grouped = f"SELECT k, n, COUNT(*) AS c, MAX(id) AS m FROM a WHERE {self._condition()} GROUP BY k, n"
        by = self._one("PARTITION BY k ", "")
        ranked = f"SELECT k, n, c, m, ROW_NUMBER() OVER ({by}ORDER BY c DESC, m) AS r FROM ({grouped}) AS q"
        bounds = self._one("r <= 2", "r <= 3", "r BETWEEN 2 AND 4")
        return self._same(
            "top of groups", f"SELECT {self._one('k, n, c, r', 'k, n, m')} FROM ({ranked}) AS p WHERE {bounds}"
        )

    def _limit(self) -> Asked:
        return self._same(
            "limit", f"SELECT id, n FROM a ORDER BY COALESCE(n, 0) DESC, id LIMIT {self._random.randint(1, 6)}"
        )

    def _deduplicate(self) -> Asked:
        way = self._one("ASC", "DESC")
        query = (
            "SELECT id, k, n FROM (SELECT id, k, n, ROW_NUMBER() OVER (PARTITION BY k ORDER BY {} {}) AS r FROM a) AS q"
        )
        return Asked("deduplicate", f"{query.format('ts', way)} WHERE r = 1", f"{query.format('t', way)} WHERE r = 1")

    # --- windows ---
    def _windowed(self, name: str, table: str, spark: str) -> Asked:
        aggregates, where = self._aggregates(), self._condition()
        keys = self._one("k, ", "")
        return Asked(
            name,
            f"SELECT {keys}window_start AS ws, window_end AS we, {aggregates} FROM TABLE({table}) WHERE {where} "
            f"GROUP BY {keys}window_start, window_end",
            f"SELECT {keys}ws, we, {aggregates} FROM ({spark}) AS q WHERE {where} GROUP BY {keys}ws, we",
        )

    def _tumble(self) -> Asked:
        size = self._random.choice([5, 10, 20])
        return self._windowed("tumble", tumble_of("a", size), spark_tumble("a", size))

    def _hop(self) -> Asked:
        slide, times = self._random.choice([3, 5, 10]), self._random.choice([2, 3, 4])
        start = f"t - pmod(t, {slide}000) - i * {slide}000"
        spark = (
            f"SELECT *, {start} AS ws, {start} + {slide * times}000 AS we "
            f"FROM (SELECT *, explode(sequence(0, {times - 1})) AS i FROM a) AS w"
        )
        size = seconds(str(slide * times))
        return self._windowed("hop", f"HOP(TABLE a, DESCRIPTOR(ts), {seconds(str(slide))}, {size})", spark)

    def _cumulate(self) -> Asked:
        step, times = self._random.choice([3, 5]), self._random.choice([2, 3, 4])
        whole = step * times
        start = f"t - pmod(t, {whole}000)"
        spark = (
            f"SELECT * FROM (SELECT *, {start} AS ws, {start} + i * {step}000 AS we "
            f"FROM (SELECT *, explode(sequence(1, {times})) AS i FROM a) AS w) AS v WHERE we > t"
        )
        size = seconds(str(whole))
        return self._windowed("cumulate", f"CUMULATE(TABLE a, DESCRIPTOR(ts), {seconds(str(step))}, {size})", spark)

    def _session(self) -> Asked:
        gap, aggregates = self._random.choice([2, 4]), self._aggregates()
        stream = f"SESSION(TABLE a PARTITION BY k, DESCRIPTOR(ts), {seconds(str(gap))})"
        begins = f"CASE WHEN t - LAG(t) OVER (PARTITION BY k ORDER BY t) <= {gap}000 THEN 0 ELSE 1 END"
        runs = (
            f"SELECT *, SUM(b) OVER (PARTITION BY k ORDER BY t ROWS UNBOUNDED PRECEDING) AS run "
            f"FROM (SELECT *, {begins} AS b FROM a) AS w"
        )
        return Asked(
            "session",
            f"SELECT k, window_start AS ws, window_end AS we, {aggregates} FROM TABLE({stream}) "
            "GROUP BY k, window_start, window_end",
            f"SELECT k, MIN(t) AS ws, MAX(t) + {gap}000 AS we, {aggregates} FROM ({runs}) AS q GROUP BY k, run",
        )

    def _window_top(self) -> Asked:
        way = self._one("ASC", "DESC")
        ranked = (
            "SELECT id, n, {0} AS w, ROW_NUMBER() OVER (PARTITION BY {0}, {1} ORDER BY COALESCE(n, 0) {2}, id) AS r"
        )
        stream = f"{ranked.format('window_start', 'window_end', way)} FROM TABLE({tumble_of('a', 10)})"
        spark = f"{ranked.format('ws', 'we', way)} FROM ({spark_tumble('a', 10)}) AS v"
        return Asked("window top", *(f"SELECT id, n, w, r FROM ({one}) AS q WHERE r <= 2" for one in (stream, spark)))

    def _window_join(self) -> Asked:
        kind = self._one("JOIN", "LEFT JOIN", "FULL JOIN")
        chosen = f"SELECT l.id AS i, r.id AS j, l.n AS n FROM {{}} AS l {kind} {{}} AS r ON l.k = r.k AND "
        stream = chosen + "l.window_start = r.window_start AND l.window_end = r.window_end"
        sides = [f"(SELECT * FROM TABLE({tumble_of(table, 10)}))" for table in "ab"]
        return Asked(
            "window join",
            stream.format(*sides),
            (chosen + "l.ws = r.ws").format(*(f"({spark_tumble(table, 10)})" for table in "ab")),
        )

    # --- rows near each other in time ---
    def _over_time(self) -> Asked:
        aggregate = self._one("COUNT(*)", "SUM(COALESCE(n, 0))", "MIN(id)", "MAX(id)", "COUNT(n)")
        by = self._one("PARTITION BY k ", "")
        width = self._random.randint(1, 6)
        stream, spark = self._random.choice(
            [
                (f"ROWS BETWEEN {width} PRECEDING AND CURRENT ROW", f"ROWS BETWEEN {width} PRECEDING AND CURRENT ROW"),
                ("ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",) * 2,
                ("RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",) * 2,
                (
                    f"RANGE BETWEEN {seconds(str(width))} PRECEDING AND CURRENT ROW",
                    f"RANGE BETWEEN {width}000 PRECEDING AND CURRENT ROW",
                ),
            ]
        )
        query = "SELECT id, k, {} OVER ({}ORDER BY {} {}) AS x FROM a WHERE {}"
        where = self._condition()
        return Asked(
            "over",
            query.format(aggregate, by, "ts", stream, where),
            query.format(aggregate, by, "t", spark, where),
        )

    def _interval_join(self) -> Asked:
        kind = self._one("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN")
        before, after = self._random.randint(0, 6), self._random.randint(0, 6)
        query = f"SELECT l.id AS i, r.id AS j, r.n AS n FROM a l {kind} b r ON l.k = r.k AND "
        return Asked(
            "interval join",
            f"{query}l.ts BETWEEN r.ts - {seconds(str(before))} AND r.ts + {seconds(str(after))}",
            f"{query}l.t BETWEEN r.t - {before}000 AND r.t + {after}000",
        )

    def _temporal_join(self) -> Asked:
        """A version that comes after a later one is none, as in Flink; so versions come in order."""
        self.tables["b"].sort(key=lambda row: row[3])
        kind = self._one("JOIN", "LEFT JOIN")
        view = (
            "CREATE TEMPORARY VIEW v AS SELECT id, k, n, ts FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k "
            "ORDER BY ts DESC) AS r FROM b) WHERE r = 1"
        )
        stream = f"SELECT a.id AS i, v.id AS j, v.n AS n FROM a {kind} v FOR SYSTEM_TIME AS OF a.ts ON a.k = v.k"
        versions = "SELECT *, LEAD(t) OVER (PARTITION BY k ORDER BY t) AS until FROM b"
        on = "a.k = v.k AND v.t <= a.t AND (v.until IS NULL OR a.t < v.until)"
        return Asked(
            "temporal join",
            stream,
            f"SELECT a.id AS i, v.id AS j, v.n AS n FROM a {kind} ({versions}) AS v ON {on}",
            view,
        )

    def _pattern(self) -> Asked:
        limit = self._random.randint(0, 6)
        stream = (
            "SELECT k, i, j FROM a MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts MEASURES X.id AS i, Y.id AS j "
            "ONE ROW PER MATCH AFTER MATCH SKIP TO NEXT ROW PATTERN (X Y) "
            f"DEFINE X AS X.n > {limit}, Y AS Y.n <= X.n)"
        )
        following = "LEAD({}) OVER (PARTITION BY k ORDER BY t)"
        inner = f"SELECT k, id AS i, n, {following.format('id')} AS j, {following.format('n')} AS m FROM a"
        return Asked("pattern", stream, f"SELECT k, i, j FROM ({inner}) AS q WHERE n > {limit} AND m <= n")


def tumble_of(table: str, size: int) -> str:
    return f"TUMBLE(TABLE {table}, DESCRIPTOR(ts), {seconds(str(size))})"


def spark_tumble(table: str, size: int) -> str:
    start = f"t - pmod(t, {size}000)"
    return f"SELECT *, {start} AS ws, {start} + {size}000 AS we FROM {table}"
